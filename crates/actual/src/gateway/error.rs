//! Defines the one list of reasons why a request is refused, and how they are sent to apps.
//!
//! A plain text is the reason itself; apps parse JSON only if the media type says so. Apps treat
//! every status 500 as `internal`.

use axum::body::Body;
use axum::http::header::{CONTENT_TYPE, RETRY_AFTER};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::json;
use server::{BodyError, LoginError, OverloadError, TooManyAttempts, UnreadBodyMarker};
use sync_store::BoxError;

use crate::gateway::json_response::JsonUtf8;

/// The media type that the published server uses for a reason in plain text.
const REASON: &str = "text/html; charset=utf-8";

/// The reason why a request is refused.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ActualError {
    #[error("token-not-found")]
    TokenNotFound,
    #[error("invalid-password")]
    InvalidPassword,
    #[error("already-bootstrapped")]
    AlreadyBootstrapped,
    #[error("no-auth-method-selected")]
    NoAuthMethod,
    #[error("invalid-login-settings")]
    InvalidLoginSettings,
    #[error("max-one-method-allowed")]
    MaxOneMethod,
    #[error("openid-not-configured")]
    NoOpenId,
    #[error("invalid-prefs")]
    InvalidPrefs,
    /// The header of a trusted proxy contains no password.
    #[error("invalid-header")]
    InvalidHeader,
    #[error("proxy-not-trusted")]
    ProxyNotTrusted,
    #[error("too-many-requests")]
    TooManyLogins { retry_after_s: u64 },
    #[error("since-required")]
    SinceRequired,
    #[error("fileId-required")]
    FileIdRequired,
    /// The text of a timestamp is not in canonical form.
    #[error("timestamp-not-canonical")]
    NotCanonical,
    /// A reason in plain text, with status 400.
    #[error("{0}")]
    Text(&'static str),
    /// The file does not exist; for the endpoint that reports this in JSON.
    #[error("file-not-found")]
    NoFileInfo,
    /// An exception of the published server, which it shows as a page for people.
    #[error("{1}")]
    Page(StatusCode, &'static str),
    /// The body was not sent as a budget file.
    #[error("the body is not a budget file")]
    NotAFile,
    #[error("the body is too large")]
    TooLarge,
    #[error("the rest of the body did not arrive")]
    Timeout,
    #[error("busy")]
    Busy,
    /// The disk is full, so no part of the request was stored.
    #[error("disk-full")]
    DiskFull,
    /// An error that only the log describes.
    #[error("{0}")]
    Internal(BoxError),
}

impl ActualError {
    pub(crate) const NEEDS_UPLOAD: Self = Self::Text("file-needs-upload");
    pub(crate) const OLD_VERSION: Self = Self::Text("file-old-version");
    pub(crate) const KEY_MISMATCH: Self = Self::Text("file-key-mismatch");
    pub(crate) const HAS_RESET: Self = Self::Text("file-has-reset");
    pub(crate) const HAS_NEW_KEY: Self = Self::Text("file-has-new-key");
    pub(crate) const FILE_NOT_FOUND: Self = Self::Text("file-not-found");
    pub(crate) const USER_OR_FILE_NOT_FOUND: Self = Self::Text("User or file not found");
    pub(crate) const INVALID_FILE_ID: Self = Self::Text("invalid fileId");

    pub(crate) fn thrown(what: &'static str) -> Self {
        Self::Page(StatusCode::INTERNAL_SERVER_ERROR, what)
    }

    pub(crate) fn malformed(what: &'static str) -> Self {
        Self::Page(StatusCode::BAD_REQUEST, what)
    }

    pub(crate) fn internal(cause: impl Into<BoxError>) -> Self {
        Self::Internal(cause.into())
    }

    fn status(&self) -> StatusCode {
        match self {
            Self::Page(status, _) => *status,
            // The published server uses status 200 here; apps read the body.
            Self::InvalidHeader | Self::ProxyNotTrusted => StatusCode::OK,
            Self::TokenNotFound => StatusCode::UNAUTHORIZED,
            Self::TooManyLogins { .. } => StatusCode::TOO_MANY_REQUESTS,
            Self::SinceRequired | Self::FileIdRequired | Self::NotCanonical => {
                StatusCode::UNPROCESSABLE_ENTITY
            }
            Self::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Timeout => StatusCode::REQUEST_TIMEOUT,
            Self::Busy => StatusCode::SERVICE_UNAVAILABLE,
            Self::DiskFull => StatusCode::INSUFFICIENT_STORAGE,
            Self::NotAFile | Self::Internal(_) => StatusCode::INTERNAL_SERVER_ERROR,
            _ => StatusCode::BAD_REQUEST,
        }
    }

    fn body(&self) -> Response {
        let reason = self.to_string();
        match self {
            Self::Text(_) | Self::Timeout | Self::Busy | Self::DiskFull => {
                ([(CONTENT_TYPE, REASON)], Body::from(reason)).into_response()
            }
            Self::Page(..) | Self::TooLarge => page(&reason),
            Self::TokenNotFound => JsonUtf8(
                json!({"status": "error", "reason": "unauthorized", "details": "token-not-found"}),
            )
            .into_response(),
            Self::SinceRequired | Self::FileIdRequired | Self::NotCanonical => JsonUtf8(
                json!({"details": reason, "reason": "unprocessable-entity", "status": "error"}),
            )
            .into_response(),
            Self::NotAFile => JsonUtf8(json!({"status": "error"})).into_response(),
            Self::Internal(_) => {
                JsonUtf8(json!({"status": "error", "reason": "internal-error"})).into_response()
            }
            _ => JsonUtf8(json!({"status": "error", "reason": reason})).into_response(),
        }
    }
}

/// Builds a page for people like the published server's error pages; `text` must not need escaping.
pub(crate) fn page(text: &str) -> Response {
    let page = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <title>Error</title>\n</head>\n<body>\n<pre>{text}</pre>\n</body>\n</html>\n"
    );
    ([(CONTENT_TYPE, REASON)], page).into_response()
}

impl IntoResponse for ActualError {
    fn into_response(self) -> Response {
        if let Self::Internal(cause) = &self {
            tracing::error!(%cause, "a request of an Actual app failed");
        }
        let mut response = self.body();
        *response.status_mut() = self.status();
        if let Self::TooManyLogins { retry_after_s } = self {
            response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(retry_after_s));
        }
        // The body may be unread; if it was read, this only costs another connection.
        if matches!(self, Self::TooLarge | Self::Timeout | Self::TokenNotFound | Self::Text(_)) {
            response.extensions_mut().insert(UnreadBodyMarker);
        }
        response
    }
}

impl From<accounts::Error> for ActualError {
    fn from(error: accounts::Error) -> Self {
        use accounts::Error as E;
        match error {
            E::InvalidToken => Self::TokenNotFound,
            E::WrongPassword | E::InvalidPassword => Self::InvalidPassword,
            E::AccountExists => Self::AlreadyBootstrapped,
            E::Engine(error) => error.into(),
            error => Self::internal(error),
        }
    }
}

impl From<engine::Error> for ActualError {
    fn from(error: engine::Error) -> Self {
        match error {
            engine::Error::DiskFull { .. } => Self::DiskFull,
            error if error.is_temporary() => {
                tracing::warn!(%error, "a request of an Actual app must be repeated");
                Self::Busy
            }
            error => Self::internal(error),
        }
    }
}

impl From<sync_store::Error> for ActualError {
    fn from(error: sync_store::Error) -> Self {
        use sync_store::Error as E;
        match error {
            E::Declined(cause) => match cause.downcast::<Self>() {
                Ok(fault) => *fault,
                Err(cause) => Self::Internal(cause),
            },
            E::BlobIncomplete | E::Busy(_) | E::Unavailable(_) => Self::Busy,
            E::Engine(error) => error.into(),
            error => Self::internal(error),
        }
    }
}

impl From<OverloadError> for ActualError {
    fn from(_: OverloadError) -> Self {
        Self::Busy
    }
}

impl From<TooManyAttempts> for ActualError {
    fn from(TooManyAttempts { retry_after_s }: TooManyAttempts) -> Self {
        Self::TooManyLogins { retry_after_s }
    }
}

impl From<LoginError> for ActualError {
    fn from(error: LoginError) -> Self {
        match error {
            LoginError::TooManyAttempts(error) => error.into(),
            LoginError::Overload(error) => error.into(),
            LoginError::Accounts(error) => error.into(),
        }
    }
}

impl From<BodyError> for ActualError {
    fn from(error: BodyError) -> Self {
        match error {
            BodyError::TooLarge(_) => Self::TooLarge,
            // The sender of a broken body is gone and reads no response.
            BodyError::Timeout | BodyError::Broken(_) => Self::Timeout,
            BodyError::Overload(error) => error.into(),
        }
    }
}

impl From<crate::gateway_state::DamagedGatewayState> for ActualError {
    fn from(error: crate::gateway_state::DamagedGatewayState) -> Self {
        Self::internal(error)
    }
}

impl From<crate::trie::DamagedTrie> for ActualError {
    fn from(error: crate::trie::DamagedTrie) -> Self {
        Self::internal(error)
    }
}
