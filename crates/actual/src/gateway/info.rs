//! What the server says of itself.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Html;
use serde_json::{Value, json};

use crate::gateway::error::ActualError;
use crate::gateway::form::FormBody;
use crate::gateway::head::RequestHead;
use crate::gateway::json_response::JsonUtf8;
use crate::gateway::state::ActualGateway;

/// The release of the published server that this gateway is held to.
const VERSION: &str = "26.9.0";

/// Apps compare the version with theirs: the web app that is served sees its own.
pub(crate) async fn info(State(gateway): State<Arc<ActualGateway>>) -> JsonUtf8 {
    let version = gateway.web.version().unwrap_or(VERSION);
    JsonUtf8(json!({"build": {
        "name": "@actual-app/sync-server",
        "description": "actual syncing server",
        "version": version,
    }}))
}

pub(crate) async fn health() -> JsonUtf8 {
    JsonUtf8(json!({"status": "UP"}))
}

/// The published server's own setting, which no app asks for.
pub(crate) async fn mode() -> Html<&'static str> {
    Html("development")
}

/// Whether there is an owner by name; there are names only with `OpenID`.
pub(crate) async fn owner_created() -> JsonUtf8 {
    JsonUtf8(Value::Bool(false))
}

/// The users who have names.
pub(crate) async fn users(
    State(gateway): State<Arc<ActualGateway>>,
    head: RequestHead,
) -> Result<JsonUtf8, ActualError> {
    gateway.session(&head, None).await?;
    Ok(JsonUtf8(Value::Array(Vec::new())))
}

/// Whether there is access to banks through a service: there is none.
pub(crate) async fn no_bank(
    State(gateway): State<Arc<ActualGateway>>,
    head: RequestHead,
    form: FormBody,
) -> Result<JsonUtf8, ActualError> {
    gateway.session(&head, form.token()).await?;
    Ok(JsonUtf8(json!({"status": "ok", "data": {"configured": false}})))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_for_actualpy_are_of_the_same_release() {
        let packages: Value = serde_json::from_str(include_str!("../../../../web/package.json"))
            .expect("npm reads it, too");
        assert_eq!(packages["devDependencies"]["@actual-app/web"], VERSION);
    }
}
