//! `/v1/admin`: what the operator's page asks for, and maintenance on demand. JSON alone.
//!
//! # Invariants
//! - Every call but the one that says whether there is one wants the admin token; where the
//!   server has none, nobody is let in.
//! - Nothing of the users' content leaves here, and no device's name.
//! - No vault is opened: of closed ones is told what the file system knows.

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
