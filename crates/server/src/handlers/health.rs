//! Calls for operators and visitors: liveness, readiness, metrics and the front page.

use std::sync::Arc;

use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{Html, IntoResponse, Response};
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app_state::AppState;
use crate::blocking::blocking;
use crate::error::ApiError;
use crate::handlers::metrics;
use crate::http::extract::ObserverAuth;
use crate::http::openapi::{OPERATOR, error_responses};
use crate::metrics::readiness::Readiness;

/// The content type with the version of the text format that Prometheus requests.
const PROMETHEUS_TEXT: &str = "text/plain; version=0.0.4";

pub(crate) fn router() -> OpenApiRouter<Arc<AppState>> {
    OpenApiRouter::new()
        .routes(routes!(health))
        .routes(routes!(ready))
        .routes(routes!(metrics))
        .routes(routes!(index))
}

/// The server is running.
#[derive(Serialize, ToSchema)]
#[schema(as = Health)]
struct Liveness {
    #[schema(example = "ok")]
    status: &'static str,
}

/// Reports whether the server is running.
#[utoipa::path(
    get, path = "/healthz", tag = "operation", operation_id = "health",
    responses((status = 200, description = "The server is running", body = Liveness)),
)]
async fn health() -> axum::Json<Liveness> {
    axum::Json(Liveness { status: "ok" })
}

/// Reports whether the server accepts writes.
#[utoipa::path(
    get, path = "/readyz", tag = "operation", operation_id = "ready",
    responses(
        (status = 200, description = "The server accepts writes", body = Readiness),
        (status = 503, description = "The server does not accept writes at the moment", body = Readiness),
    ),
)]
async fn ready(State(app): State<Arc<AppState>>) -> Response {
    let readiness = Readiness::from_app(&app);
    let status = if readiness.ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    (status, axum::Json(readiness)).into_response()
}

error_responses!(MetricsErrors: OPERATOR, []);

/// Returns counters and the state of the open vaults' files in Prometheus' text format.
///
/// Requires the admin token. Without an admin token, the server answers only requests from its own
/// machine.
#[utoipa::path(
    get, path = "/metrics", tag = "operation", operation_id = "metrics",
    security((), ("adminToken" = [])),
    responses(
        (status = 200, description = "The metrics", body = String, content_type = "text/plain"),
        MetricsErrors,
    ),
)]
async fn metrics(
    State(app): State<Arc<AppState>>,
    _: ObserverAuth,
) -> Result<impl IntoResponse, ApiError> {
    let text = blocking(move || Ok(metrics::render(&app))).await?;
    Ok(([(CONTENT_TYPE, PROMETHEUS_TEXT)], text))
}

/// Returns the first page of the site; without a site, a page about the server.
#[utoipa::path(
    get, path = "/", tag = "operation", operation_id = "index",
    responses((status = 200, description = "The page", body = String, content_type = "text/html")),
)]
async fn index(State(app): State<Arc<AppState>>, headers: HeaderMap) -> Response {
    let page = || Html(include_str!("index.html")).into_response();
    app.site.find("/").map_or_else(page, |asset| asset.answer(&headers))
}
