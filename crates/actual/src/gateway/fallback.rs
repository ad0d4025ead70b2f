//! Handles requests that match no endpoint: returns a file of the web app, or an error page.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse, Response};

use crate::gateway::error::page;
use crate::gateway::head::RequestHead;
use crate::gateway::state::ActualGateway;

/// Returns a file of the web app, or status 404.
pub(crate) async fn fallback(
    State(gateway): State<Arc<ActualGateway>>,
    request: Request,
) -> Response {
    // Every path under `/sync` requires a token.
    if request.uri().path().starts_with("/sync")
        && let Err(fault) = gateway.session(&RequestHead::from_request(&request), None).await
    {
        return fault.into_response();
    }
    let is_read = [Method::GET, Method::HEAD].contains(request.method());
    let found = if is_read { gateway.web.file(request).await } else { None };
    found.unwrap_or_else(|| (StatusCode::NOT_FOUND, page("nothing is here")).into_response())
}
