//! `/v1/admin`: the calls of the operator's page, and maintenance on demand. Only JSON is used.
//!
//! # Invariants
//! - Every call except `status` requires the admin token. If the server has none, it refuses them
//!   all.
//! - No response contains user content or device names.
//! - No vault is opened: closed vaults are described only by what the file system reports.

mod accounts;
mod maintenance;
mod overview;
mod status;

use std::sync::Arc;

use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app_state::AppState;

pub(crate) fn router() -> OpenApiRouter<Arc<AppState>> {
    OpenApiRouter::new()
        .routes(routes!(overview::overview))
        .routes(routes!(accounts::list))
        .routes(routes!(maintenance::maintain))
        .routes(routes!(status::status))
}
