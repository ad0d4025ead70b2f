//! What no endpoint answers: a file of the web app, or the page that says so.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse, Response};

use crate::gateway::error::page;
use crate::gateway::head::RequestHead;
use crate::gateway::state::ActualGateway;

/// What no endpoint answers.
pub(crate) async fn fallback(
    State(gateway): State<Arc<ActualGateway>>,
    request: Request,
) -> Response {
    // Nothing under this path answers anybody without a token.
    if request.uri().path().starts_with("/sync")
        && let Err(fault) = gateway.session(&RequestHead::from_request(&request), None).await
    {
        return fault.into_response();
    }
    let is_read = [Method::GET, Method::HEAD].contains(request.method());
    let found = if is_read { gateway.web.file(request).await } else { None };
    found.unwrap_or_else(|| (StatusCode::NOT_FOUND, page("nothing is here")).into_response())
}
