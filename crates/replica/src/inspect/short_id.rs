//! Resolves short ids that people type: the first digits of a digest, as many as make it unique.

use crate::error::{Error, Result};

/// Returns the only one of `found` whose digest begins with `id`, in any case.
///
/// # Errors
/// [`Error::ConflictNotFound`] if there is none, [`Error::AmbiguousConflict`] if there are several.
pub(super) fn resolve<T>(found: Vec<T>, id: &str, digest: impl Fn(&T) -> &str) -> Result<T> {
    let id = id.to_ascii_lowercase();
    let begins = |one: &T| !id.is_empty() && digest(one).starts_with(&id);
    let mut fitting = found.into_iter().filter(begins);
    match (fitting.next(), fitting.next()) {
        (Some(one), None) => Ok(one),
        (Some(_), Some(_)) => Err(Error::AmbiguousConflict { id }),
        (None, _) => Err(Error::ConflictNotFound { id }),
    }
}
