//! The router: all routes, and the layers that surround every handler.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::header::ALLOW;
use axum::http::{HeaderValue, Method};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Router};
use protocol::ErrorCode;
use utoipa_axum::router::OpenApiRouter;

use super::{cors, openapi, response};
use crate::admission::hosts::AllowedHosts;
use crate::app_state::AppState;
use crate::error::ApiError;
use crate::gateway::{self, Gateway, GatewayMount};
use crate::handlers::{
    accounts, admin, devices, encryption, erase, events, health, reconcile, sync,
};

/// Creates the router of the API, of the gateways under a path and, for all other paths, of the
/// site.
pub(crate) fn router(
    app: &Arc<AppState>,
    gateways: &[Gateway],
    hosts: Arc<AllowedHosts>,
) -> Router {
    let calls = OpenApiRouter::with_openapi(openapi::base())
        .merge(accounts::router())
        .merge(admin::router())
        .merge(devices::router())
        .merge(sync::router())
        .merge(reconcile::router())
        .merge(encryption::router())
        .merge(erase::router())
        .merge(events::router())
        .merge(openapi::router());
    let (mut calls, mut document) = calls.split_for_parts();
    if let Some(layer) = cors::layer(&app.config.origins) {
        // Set the fallback before the layer; otherwise it would answer preflights.
        calls = calls.method_not_allowed_fallback(response::method_not_allowed).layer(layer);
    }
    let (operation, operation_document) = health::router().split_for_parts();
    document.merge(operation_document);
    let document = openapi::OpenApiDocument::new(&document, &app.config);
    let router = calls
        .merge(operation)
        .fallback(answer)
        .method_not_allowed_fallback(response::method_not_allowed)
        .layer(Extension(document))
        .with_state(Arc::clone(app));
    let under_path = |router: Router, gateway: &Gateway| match gateway.mount {
        GatewayMount::Path(path) => router.nest(path, gateway.router.clone()),
        GatewayMount::Listener(_) => router,
    };
    gateway::wrap_router(gateways.iter().fold(router, under_path), app, hosts)
}

/// Answers requests for which the API has no call.
pub(crate) async fn answer(State(app): State<Arc<AppState>>, request: Request) -> Response {
    let Some(asset) = app.site.find(request.uri().path()) else {
        return ApiError::from_code(ErrorCode::NotFound).into_response();
    };
    if [Method::GET, Method::HEAD].contains(request.method()) {
        return asset.answer(request.headers());
    }
    let allowed = [(ALLOW, HeaderValue::from_static("GET,HEAD"))];
    (allowed, ApiError::from_code(ErrorCode::MethodNotAllowed)).into_response()
}
