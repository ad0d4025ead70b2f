//! What the server says of itself.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Html;
use serde_json::{Value, json};

use crate::gateway::Gate;
use crate::gateway::fault::Fault;
use crate::gateway::form::Form;
use crate::gateway::head::Head;
use crate::gateway::said::Said;

/// The release of the published server that this gateway is held to.
const VERSION: &str = "26.9.0";

/// Apps compare the version with theirs: the web app that is served sees its own.
pub(crate) async fn info(State(gate): State<Arc<Gate>>) -> Said {
    let version = gate.web.version().unwrap_or(VERSION);
    Said(json!({"build": {
        "name": "@actual-app/sync-server",
        "description": "actual syncing server",
        "version": version,
    }}))
}

pub(crate) async fn health() -> Said {
    Said(json!({"status": "UP"}))
}

/// The published server's own setting, which no app asks for.
pub(crate) async fn mode() -> Html<&'static str> {
    Html("development")
}

/// Whether there is an owner by name; there are names only with `OpenID`.
pub(crate) async fn owner_created() -> Said {
    Said(Value::Bool(false))
}

/// The users who have names.
pub(crate) async fn users(State(gate): State<Arc<Gate>>, head: Head) -> Result<Said, Fault> {
    gate.session(&head, None).await?;
    Ok(Said(Value::Array(Vec::new())))
}

/// Whether there is access to banks through a service: there is none.
pub(crate) async fn no_bank(
    State(gate): State<Arc<Gate>>,
    head: Head,
    form: Form,
) -> Result<Said, Fault> {
    gate.session(&head, form.token()).await?;
    Ok(Said(json!({"status": "ok", "data": {"configured": false}})))
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
