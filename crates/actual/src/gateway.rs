//! Serves the endpoints that Actual's apps call, from Warren's vaults.
//!
//! One Warren account represents the single user of the published server (its password mode). Each
//! login creates a token, which is a device of that account. Each budget has a vault of its own,
//! whose id is derived from the file id with the account's key.
//!
//! ```text
//! router ─► session (token) ─► budget (vault, state) ─► files · upload · download · sync ─► error
//! ```
//!
//! # Invariants
//! - Everything that apps rely on matches the published server: statuses, reasons, media types, the
//!   order of checks. The cases in `vectors/actual/cases` run against both.
//! - A budget's gateway state is checked again in the transaction that changes it.
//! - Responses are created page by page; at most the messages of one request are in memory.

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

/// The longest pause between two requests of a busy app: importing a thousand transactions takes it
/// ten seconds.
pub const IDLE_MAX: Duration = Duration::from_mins(2);
/// Responses below this size are not worth compressing.
const COMPRESSED_BYTES_MIN: u64 = 1_024;

/// Builds the gateway's routes.
pub fn router(services: GatewayServices, settings: GatewaySettings) -> Router {
    let web = WebFiles::new(settings.web.clone(), settings.data);
    let (last_seen, uploads) = (LastSeenCache::default(), UploadLocks::default());
    let gateway = ActualGateway { services, settings, last_seen, uploads, web };
    let is_worth_it = SizeAbove::new(COMPRESSED_BYTES_MIN)
        // A budget file is a ZIP archive or encrypted, so it does not compress.
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
        // The limits of a body count its decompressed bytes.
        .layer(RequestDecompressionLayer::new())
        .layer(from_fn(cors::answer))
}

fn endpoints() -> Router<Arc<ActualGateway>> {
    // The published server never answers 405: a path with another method is like an unknown path.
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
