//! Errors at the start of a server and refusals of requests, with the one mapping from errors to
//! codes.
//!
//! # Invariants
//! - The texts of refusals are written here; an internal error's own text stays in the log.
//! - A refused request has stored no data, except that `unavailable` after a failed flush leaves
//!   open whether the disk has it.

use std::borrow::Cow;
use std::error::Error as StdError;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use axum::response::{IntoResponse, Response};
use protocol::ErrorCode;

/// The crate's result type.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The reasons why a server does not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    #[error("cannot listen on {address}: {source}")]
    Listen { address: SocketAddr, source: std::io::Error },
    #[error(transparent)]
    Tls(#[from] TlsError),
    #[error(transparent)]
    Accounts(#[from] accounts::Error),
    #[error(transparent)]
    Engine(#[from] engine::Error),
    #[error(transparent)]
    Store(#[from] sync_store::Error),
}

/// The seconds after which a client should retry while others are served. A request that waited
/// for a permit keeps its place until then.
pub(crate) const RETRY_AFTER_S: u64 = 2;

/// The reasons why the server cannot serve a request now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OverloadError {
    /// Other requests are waiting already; the client should try again.
    #[error("{0}")]
    Busy(&'static str),
    #[error("the server is stopping")]
    Stopping,
}

impl From<OverloadError> for ApiError {
    fn from(overload: OverloadError) -> Self {
        match overload {
            OverloadError::Busy(what) => {
                Self { retry_after_s: Some(RETRY_AFTER_S), ..Self::new(ErrorCode::Busy, what) }
            }
            OverloadError::Stopping => Self::new(ErrorCode::Unavailable, overload.to_string()),
        }
    }
}

/// A refused request: its code and message.
#[derive(Debug)]
pub(crate) struct ApiError {
    pub(crate) code: ErrorCode,
    pub(crate) message: Cow<'static, str>,
    pub(crate) retry_after_s: Option<u64>,
    /// The underlying error, for the log only.
    pub(crate) cause: Option<Box<dyn StdError + Send + Sync>>,
}

impl ApiError {
    pub(crate) fn new(code: ErrorCode, message: impl Into<Cow<'static, str>>) -> Self {
        Self { code, message: message.into(), retry_after_s: None, cause: None }
    }

    /// Creates an error whose message is the code's own meaning.
    pub(crate) fn from_code(code: ErrorCode) -> Self {
        Self::new(code, code.meaning())
    }

    pub(crate) fn internal(cause: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        Self { cause: Some(cause.into()), ..Self::from_code(ErrorCode::Internal) }
    }

    fn caused(code: ErrorCode, cause: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        Self { cause: Some(cause.into()), ..Self::from_code(code) }
    }
}

impl From<accounts::Error> for ApiError {
    fn from(error: accounts::Error) -> Self {
        use accounts::Error as E;
        match error {
            E::AccountExists => Self::from_code(ErrorCode::AccountExists),
            E::InvalidLogin => Self::from_code(ErrorCode::InvalidLogin),
            E::InvalidPassword => Self::from_code(ErrorCode::InvalidPassword),
            E::InvalidToken => Self::from_code(ErrorCode::InvalidToken),
            E::NotFound => Self::from_code(ErrorCode::NotFound),
            E::WrongPassword => Self::from_code(ErrorCode::WrongPassword),
            E::KeyMismatch => Self::new(ErrorCode::EncryptionMismatch, error.to_string()),
            E::TooManyDevices { .. } => Self::new(ErrorCode::QuotaExceeded, error.to_string()),
            // The accounts file is never repaired automatically.
            E::Engine(error) if error.is_damage() => Self::caused(ErrorCode::ServerDamaged, error),
            E::Engine(error) => error.into(),
            error => Self::internal(error),
        }
    }
}

impl From<sync_store::Error> for ApiError {
    fn from(error: sync_store::Error) -> Self {
        use sync_store::Error as E;
        match error {
            E::StaleCursor => Self::new(ErrorCode::StaleCursor, error.to_string()),
            E::TimestampConflict { .. } => {
                Self::new(ErrorCode::TimestampConflict, error.to_string())
            }
            E::QuotaExceeded { .. } => Self::new(ErrorCode::QuotaExceeded, error.to_string()),
            E::Busy(_) => Self::caused(ErrorCode::Busy, error),
            E::Unavailable(_) => Self::caused(ErrorCode::Unavailable, error),
            E::Engine(error) => error.into(),
            error => Self::internal(error),
        }
    }
}

impl From<engine::Error> for ApiError {
    fn from(error: engine::Error) -> Self {
        use engine::Error as E;
        match error {
            E::Busy => Self::from_code(ErrorCode::Busy),
            E::Closed => Self::new(ErrorCode::Unavailable, "the server is stopping"),
            E::DiskFull { .. } => Self::caused(ErrorCode::ServerDiskFull, error),
            E::AlreadyQuarantined { .. } => Self::caused(ErrorCode::ServerDamaged, error),
            error if error.is_temporary() => Self::caused(ErrorCode::Unavailable, error),
            error => Self::internal(error),
        }
    }
}

/// Creates an empty response. `response::finish` writes the body, in the encoding that the request
/// accepts.
impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let mut response = Response::default();
        response.extensions_mut().insert(Arc::new(self));
        response
    }
}

/// The paths of a certificate and its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// The certificate and the chain to one that clients trust, in PEM (RFC 7468).
    pub certificates: PathBuf,
    /// The certificate's private key, in PEM.
    pub key: PathBuf,
}

/// The reasons why a certificate cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    #[error("{}: {source}", .path.display())]
    Io { path: PathBuf, source: std::io::Error },
    #[error("{}: {source}", .path.display())]
    Pem { path: PathBuf, source: rustls::pki_types::pem::Error },
    #[error("{} contains no certificate", .path.display())]
    NoCertificate { path: PathBuf },
    #[error("{} and {}: {source}", .files.certificates.display(), .files.key.display())]
    Unusable { files: TlsFiles, source: rustls::Error },
}
