//! `GET /v1/admin`: whether there is anything to sign in to.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;

use crate::app_state::AppState;
use crate::http::openapi::error_responses;

#[derive(Serialize, ToSchema)]
pub(super) struct AdminStatus {
    /// Whether the server has an operator's token; without one the other calls let nobody in.
    enabled: bool,
}

error_responses!(StatusErrors: []);

/// Whether the server has an operator's token. Anybody may ask.
#[utoipa::path(
    get, path = "/v1/admin", tag = "admin", operation_id = "adminStatus",
    responses((status = 200, description = "whether it has", body = AdminStatus), StatusErrors),
)]
pub(super) async fn status(State(app): State<Arc<AppState>>) -> Json<AdminStatus> {
    Json(AdminStatus { enabled: app.config.admin_token.is_some() })
}
