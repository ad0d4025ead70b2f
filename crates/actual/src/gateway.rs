//! The gateway: the endpoints that Actual's apps call, answered from Warren's vaults.
//!
//! One Warren account stands for the published server's one user (its password mode). Each login
//! gets a token of its own, which is a device of that account; each budget has a vault of its own,
//! found by its file id with the account's key.
//!
//! ```text
//! router ─► session (token) ─► budget (vault, record) ─► files · blob · sync ─► fault
//! ```
//!
//! # Invariants
//! - What apps look at is as the published server has it: statuses, reasons, media types, the order
//!   of checks. `vectors/actual/cases` holds both to it.
//! - A budget's record is checked again in the transaction that changes it.
//! - Answers are made page by page; a request's messages are the most that is held in memory.

mod account;
mod budget;
mod cors;
mod download;
mod error;
mod fallback;
mod files;
mod form;
mod head;
mod info;
mod json_response;
mod last_seen;
mod session;
pub(crate) mod state;
mod sync;
mod upload;
mod upload_locks;
mod web_files;

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::middleware::from_fn;
use axum::routing::{MethodRouter, any};
use server::GatewayServices;
use tower_http::compression::predicate::{NotForContentType, Predicate, SizeAbove};
use tower_http::compression::{CompressionLayer, CompressionLevel};
use tower_http::decompression::RequestDecompressionLayer;

pub(crate) use self::budget::is_id;
use self::last_seen::LastSeenCache;
use self::state::{ActualGateway, GatewaySettings};
pub(crate) use self::upload::PIECE_BYTES;
use self::upload_locks::UploadLocks;
use self::web_files::WebFiles;

/// Longer than an app is busy between two requests: importing a thousand transactions takes it
/// ten seconds.
pub const IDLE_MAX: Duration = Duration::from_mins(2);
/// Answers below this are not worth compressing.
const COMPRESSED_BYTES_MIN: u64 = 1_024;

/// The routes.
pub fn router(services: GatewayServices, settings: GatewaySettings) -> Router {
    let web = WebFiles::new(settings.web.clone(), settings.data);
    let (last_seen, uploads) = (LastSeenCache::default(), UploadLocks::default());
    let gateway = ActualGateway { services, settings, last_seen, uploads, web };
    let is_worth_it = SizeAbove::new(COMPRESSED_BYTES_MIN)
        // A budget file is a ZIP archive, or encrypted.
        .and(NotForContentType::new(download::MEDIA_TYPE))
        .and(NotForContentType::IMAGES);
    let compression = CompressionLayer::new()
        .gzip(true)
        .quality(CompressionLevel::Fastest)
        .compress_when(is_worth_it);
    endpoints()
        .fallback(fallback::fallback)
        .with_state(Arc::new(gateway))
        .layer(compression)
        // Its limits count what comes out of it.
        .layer(RequestDecompressionLayer::new())
        .layer(from_fn(cors::answer))
}

fn endpoints() -> Router<Arc<ActualGateway>> {
    // By another method an endpoint is no endpoint: no answer here is 405.
    let path = || -> MethodRouter<Arc<ActualGateway>> { any(fallback::fallback) };
    Router::new()
        .route("/account/needs-bootstrap", path().get(account::needs_bootstrap))
        .route("/account/login-methods", path().get(account::login_methods))
        .route("/account/bootstrap", path().post(account::bootstrap))
        .route("/account/login", path().post(account::login))
        .route("/account/validate", path().get(account::validate))
        .route("/account/change-password", path().post(account::change_password))
        .route("/account/server-prefs", path().post(account::server_prefs))
        .route("/sync/sync", path().post(sync::sync))
        .route("/sync/list-user-files", path().get(files::list))
        .route("/sync/get-user-file-info", path().get(files::info))
        .route("/sync/download-user-file", path().get(download::download))
        .route("/sync/upload-user-file", path().post(upload::upload))
        .route("/sync/user-get-key", path().post(files::get_key))
        .route("/sync/user-create-key", path().post(files::create_key))
        .route("/sync/reset-user-file", path().post(files::reset))
        .route("/sync/update-user-filename", path().post(files::rename))
        .route("/sync/delete-user-file", path().post(files::delete))
        .route("/admin/owner-created", path().get(info::owner_created))
        .route("/admin/owner-created/", path().get(info::owner_created))
        .route("/admin/users", path().get(info::users))
        .route("/admin/users/", path().get(info::users))
        .route("/akahu/status", path().post(info::no_bank))
        .route("/enablebanking/status", path().post(info::no_bank))
        .route("/gocardless/status", path().post(info::no_bank))
        .route("/pluggyai/status", path().post(info::no_bank))
        .route("/simplefin/status", path().post(info::no_bank))
        .route("/info", path().get(info::info))
        .route("/health", path().get(info::health))
        .route("/mode", path().get(info::mode))
}
