//! Handles requests for information about the server.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Html;
use serde_json::{Value, json};

use crate::gateway::error::ActualError;
use crate::gateway::form::FormBody;
use crate::gateway::head::RequestHead;
use crate::gateway::json_response::JsonUtf8;
use crate::gateway::state::ActualGateway;

/// The release of the published server that this gateway is tested against.
const VERSION: &str = "26.9.0";

/// Returns the version. Apps compare it with theirs, so the served web app receives its own
/// version.
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

/// Returns the published server's own setting, which no app requests.
pub(crate) async fn mode() -> Html<&'static str> {
    Html("development")
}

/// Returns whether there is an owner with a name; only `OpenID` has names.
pub(crate) async fn owner_created() -> JsonUtf8 {
    JsonUtf8(Value::Bool(false))
}

/// Returns the users who have names: none.
pub(crate) async fn users(
    State(gateway): State<Arc<ActualGateway>>,
    head: RequestHead,
) -> Result<JsonUtf8, ActualError> {
    gateway.session(&head, None).await?;
    Ok(JsonUtf8(Value::Array(Vec::new())))
}

/// Returns whether a service gives access to banks: none does.
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
