//! Runs blocking work on the threads that tokio keeps for it.

use std::panic::resume_unwind;

use tokio::task::spawn_blocking;

use crate::error::{Error, Result};

/// Runs work that reads files or takes more than a moment, so that no thread of the async runtime
/// waits for it. If the work panics, so does the caller.
///
/// Returns [`Error::Closed`] if the runtime is being shut down.
pub async fn run_blocking<T, F>(work: F) -> Result<T>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    match spawn_blocking(work).await {
        Ok(result) => Ok(result),
        Err(error) if error.is_panic() => resume_unwind(error.into_panic()),
        Err(_cancelled) => Err(Error::Closed),
    }
}
