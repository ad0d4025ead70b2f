//! The web app: the files of the npm package `@actual-app/web`, with what a browser needs to give
//! it shared memory.

use std::path::PathBuf;
use std::sync::Arc;

use axum::Router;
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName, HeaderValue,
};
use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::any_service;
use tower_http::services::{ServeDir, ServeFile};
use tower_http::set_header::SetResponseHeaderLayer;

use crate::gateway::Gate;

const OPENER_POLICY: HeaderName = HeaderName::from_static("cross-origin-opener-policy");
const EMBEDDER_POLICY: HeaderName = HeaderName::from_static("cross-origin-embedder-policy");
/// The app compiles a worker from a `blob:` and evaluates formulas.
const POLICY: &str = "default-src 'self' blob:; img-src 'self' blob: data:; \
                      script-src 'self' 'unsafe-eval' blob:; style-src 'self' 'unsafe-inline'; \
                      font-src 'self' data:; connect-src http: https:";

/// Everything that is no endpoint: files, and the app itself for its own paths.
pub(crate) fn router(folder: Option<PathBuf>) -> Router<Arc<Gate>> {
    let header =
        |name, value| SetResponseHeaderLayer::overriding(name, HeaderValue::from_static(value));
    let router = match folder {
        Some(folder) => {
            let app = ServeFile::new(folder.join("index.html"));
            let files = ServeDir::new(folder).append_index_html_on_directories(false);
            Router::new().fallback_service(any_service(files.fallback(app)))
        }
        None => Router::new().fallback(not_found),
    };
    router
        .layer(header(OPENER_POLICY, "same-origin"))
        .layer(header(EMBEDDER_POLICY, "require-corp"))
        .layer(header(CONTENT_SECURITY_POLICY, POLICY))
        .layer(header(CACHE_CONTROL, "public, max-age=0"))
}

async fn not_found(method: Method) -> Response {
    let text = format!("Cannot {method} this path");
    (StatusCode::NOT_FOUND, [(CONTENT_TYPE, "text/html; charset=utf-8")], text).into_response()
}
