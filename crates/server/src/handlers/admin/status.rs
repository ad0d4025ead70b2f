//! `GET /v1/admin`: reports whether the server has an admin token to sign in with.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;

use crate::app_state::AppState;
use crate::http::openapi::error_responses;

#[derive(Serialize, ToSchema)]
pub(super) struct AdminStatus {
    /// Whether the server has an admin token; without one, the other admin calls are refused.
    enabled: bool,
}

error_responses!(StatusErrors: []);

/// Reports whether the server has an admin token. This call needs no token.
#[utoipa::path(
    get, path = "/v1/admin", tag = "admin", operation_id = "adminStatus",
    responses((status = 200, description = "Whether the server has an admin token", body = AdminStatus), StatusErrors),
)]
pub(super) async fn status(State(app): State<Arc<AppState>>) -> Json<AdminStatus> {
    Json(AdminStatus { enabled: app.config.admin_token.is_some() })
}
