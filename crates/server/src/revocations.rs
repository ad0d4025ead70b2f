//! Applies the revocation list of the data directory at the start, so that revocations stay in
//! effect.
//!
//! # Not here
//! - The list's format, and how it is applied → `accounts`.

use std::sync::Arc;

use accounts::REVOCATIONS_FILE;

use crate::app_state::AppState;
use crate::error::Result;

/// Applies the list to the accounts file, which may have been restored from an older copy. The
/// vaults of removed accounts stay on the disk: the operator who restored them may need them.
pub(crate) async fn apply(app: &Arc<AppState>) -> Result<()> {
    let applying = Arc::clone(app);
    let applied = engine::run_blocking(move || applying.accounts.apply_revocations()).await??;
    let path = app.config.data.join(REVOCATIONS_FILE);
    let path = path.display();
    if !applied.damaged_lines.is_empty() {
        tracing::warn!(
            %path,
            lines = ?applied.damaged_lines,
            "skipped damaged lines in the revocation list"
        );
    }
    if applied.unknown_count > 0 {
        tracing::error!(
            %path,
            count = applied.unknown_count,
            "the accounts file is damaged and may lack revocations from the revocation list"
        );
    }
    if applied.applied_count > 0 {
        tracing::warn!(
            %path,
            count = applied.applied_count,
            vaults_without_account = applied.removed_vaults.len(),
            "applied the revocation list, because the accounts file was older than the list"
        );
    }
    Ok(())
}
