//! What the server says of itself.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::HeaderMap;
use serde_json::{Value, json};

use crate::gateway::Gate;
use crate::gateway::fault::Fault;

/// The release of the published server that this gateway is held to; apps compare it with theirs.
const VERSION: &str = "26.9.0";

pub(crate) async fn info() -> Json<Value> {
    Json(json!({"build": {
        "name": "@actual-app/sync-server",
        "description": "actual syncing server",
        "version": VERSION,
    }}))
}

pub(crate) async fn health() -> Json<Value> {
    Json(json!({"status": "UP"}))
}

pub(crate) async fn mode() -> &'static str {
    "production"
}

/// Whether there is an owner by name; there are names only with `OpenID`.
pub(crate) async fn owner_created() -> Json<bool> {
    Json(false)
}

/// The users who have names.
pub(crate) async fn users(
    State(gate): State<Arc<Gate>>,
    headers: HeaderMap,
) -> Result<Json<Vec<Value>>, Fault> {
    gate.session(&headers, None).await?;
    Ok(Json(Vec::new()))
}
