//! The routes, with what surrounds every handler.

use std::sync::Arc;

use axum::{Extension, Router};
use utoipa_axum::router::OpenApiRouter;

use crate::app::App;
use crate::gateway::{self, Gateway, Place};
use crate::handlers::{accounts, admin, clients, events, health, reconcile, sync};
use crate::{openapi, respond};

/// The API, and the gateways that are under a path.
pub(crate) fn router(app: &Arc<App>, gateways: &[Gateway]) -> Router {
    let routes = OpenApiRouter::with_openapi(openapi::base())
        .merge(accounts::router())
        .merge(admin::router())
        .merge(clients::router())
        .merge(sync::router())
        .merge(reconcile::router())
        .merge(events::router())
        .merge(health::router())
        .merge(openapi::router());
    let (router, document) = routes.split_for_parts();
    let document = openapi::Document::new(&document, &app.config);
    let router = router
        .fallback(respond::not_found)
        .method_not_allowed_fallback(respond::method_not_allowed)
        .layer(Extension(document))
        .with_state(Arc::clone(app));
    let under_path = |router: Router, gateway: &Gateway| match gateway.place {
        Place::Path(path) => router.nest(path, gateway.router.clone()),
        Place::Listener(_) => router,
    };
    gateway::surround(gateways.iter().fold(router, under_path), app)
}
