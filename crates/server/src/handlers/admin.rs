//! `/v1/admin`: what the operator's page asks for, and maintenance on demand. JSON alone.
//!
//! # Invariants
//! - Every call but the one that says whether there is one wants the operator's token; where the
//!   server has none, nobody is let in.
//! - Nothing of the users' content leaves here, and no device's name.
//! - No vault is opened: of closed ones is told what the file system knows.

mod accounts;
mod maintenance;
mod overview;
mod status;

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use ::accounts::VaultId;
use engine::DatabaseHealth;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app_state::AppState;
use crate::openapi::OPERATOR;

pub(crate) fn router() -> OpenApiRouter<Arc<AppState>> {
    OpenApiRouter::new()
        .routes(routes!(overview::overview))
        .routes(routes!(accounts::list))
        .routes(routes!(maintenance::maintain))
        .routes(routes!(status::status))
}

/// The vault that is in this file, if one is: the accounts' file has another name.
pub(crate) fn vault_id_from_path(path: &Path) -> Option<VaultId> {
    path.file_stem()?.to_str()?.parse().ok()
}

/// How the open vaults' files are.
fn open_vaults(app: &AppState) -> HashMap<VaultId, DatabaseHealth> {
    let files = app.databases.health().into_iter();
    files.filter_map(|(path, health)| Some((vault_id_from_path(&path)?, health))).collect()
}
