//! Writes responses: bodies in the accepted encoding, refusals as the one error body. Counts each.
//!
//! # Invariants
//! - Every refusal passes through `finish`, which writes its body and, if it is internal, logs it
//!   once.

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use axum::Extension;
use axum::body::{Body, HttpBody};
use axum::extract::{MatchedPath, Request, State};
use axum::http::header::{CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use engine::clock;
use protocol::{ErrorCode, ErrorResponse};
use serde::Serialize;

use super::extract::BodyEncoding;
use super::peer::{RequestPeer, UnreadBodyMarker};
use super::socket::LINGER_BYTES_MAX;
use crate::admission::body::BodyLimits;
use crate::admission::hosts::AllowedHosts;
use crate::admission::memory::MemoryReservation;
use crate::admission::unread_body::UnreadBody;
use crate::app_state::AppState;
use crate::error::ApiError;

/// A response with an encoded body.
pub(crate) struct ApiResponse {
    status: StatusCode,
    media_type: &'static str,
    body: Vec<u8>,
    reservation: Option<MemoryReservation>,
}

impl ApiResponse {
    pub(crate) fn ok(encoding: BodyEncoding, body: &(impl Serialize + prost::Message)) -> Self {
        Self::new(StatusCode::OK, encoding, body)
    }

    pub(crate) fn created(
        encoding: BodyEncoding,
        body: &(impl Serialize + prost::Message),
    ) -> Self {
        Self::new(StatusCode::CREATED, encoding, body)
    }

    fn new(
        status: StatusCode,
        encoding: BodyEncoding,
        body: &(impl Serialize + prost::Message),
    ) -> Self {
        let (media_type, body) = match encoding {
            BodyEncoding::Json => (protocol::JSON, to_json(body)),
            BodyEncoding::Protobuf => (protocol::PROTOBUF, body.encode_to_vec()),
        };
        Self { status, media_type, body, reservation: None }
    }

    /// Keeps memory reserved until the response has been sent.
    pub(crate) fn with_reservation(self, reservation: MemoryReservation) -> Self {
        Self { reservation: Some(reservation), ..self }
    }
}

impl IntoResponse for ApiResponse {
    fn into_response(self) -> Response {
        let headers = [(CONTENT_TYPE, HeaderValue::from_static(self.media_type))];
        let body = match self.reservation {
            Some(reservation) => reservation.into_bytes(self.body),
            None => self.body.into(),
        };
        (self.status, headers, body).into_response()
    }
}

pub(crate) fn to_json(body: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(body).expect("what the server answers has a JSON form")
}

/// The outermost layer but one: writes refusals and counts every response.
pub(crate) async fn finish(
    State(app): State<Arc<AppState>>,
    Extension(peer): Extension<RequestPeer>,
    request: Request,
    next: Next,
) -> Response {
    let encoding = BodyEncoding::from_accept(request.headers());
    let method = request.method().clone();
    let route = request.extensions().get::<MatchedPath>().cloned();
    let route = route.as_ref().map_or("none", MatchedPath::as_str);
    let has_body = !request.body().is_end_stream();
    let (request, rest) =
        if peer.is_proxy && has_body { UnreadBody::split_from(request) } else { (request, None) };
    let started = clock::now();
    let mut response = next.run(request).await;
    let error = response.extensions_mut().remove::<Arc<ApiError>>();
    let is_unread = response.extensions_mut().remove::<UnreadBodyMarker>().is_some();
    let is_refused = (error.is_some() || is_unread) && has_body;
    peer.is_refused.store(is_refused, Ordering::Relaxed);
    if is_refused {
        // The unread rest of the body is never read, so the client needs a new connection.
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        if let Some(rest) = rest {
            let wait_max = app.config.request_timeout;
            let limits = BodyLimits { bytes_max: LINGER_BYTES_MAX, wait_max, is_long: false };
            rest.discard(limits).await;
        }
    }
    if let Some(error) = error {
        if let Some(cause) = &error.cause {
            tracing::error!(%method, route, code = %error.code, %cause, "request failed");
        }
        write_error(&mut response, &error, encoding);
    }
    app.metrics.record_response(&method, route, response.status(), clock::now() - started);
    response
}

/// Refuses requests for a host name that is not the server's.
pub(crate) async fn check_host(
    State(hosts): State<Arc<AllowedHosts>>,
    request: Request,
    next: Next,
) -> Response {
    match hosts.check(&request) {
        Ok(()) => next.run(request).await,
        Err(error) => error.into_response(),
    }
}

/// Writes an error body and keeps existing headers, such as `Allow` with `method_not_allowed`.
fn write_error(response: &mut Response, error: &ApiError, encoding: BodyEncoding) {
    let status = error.code.http_status().and_then(|status| StatusCode::from_u16(status).ok());
    let status = status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let body = ErrorResponse::new(error.code, error.message.clone());
    let reply = ApiResponse::new(status, encoding, &body);
    *response.status_mut() = reply.status;
    *response.body_mut() = Body::from(reply.body);
    let headers = response.headers_mut();
    headers.remove(CONTENT_LENGTH);
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(reply.media_type));
    if let Some(retry_after_s) = error.retry_after_s {
        headers.insert(RETRY_AFTER, HeaderValue::from(retry_after_s));
    }
    if error.code == ErrorCode::InvalidToken {
        headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
}

/// Creates the response of the layer that catches panics. The panic's message goes to the log.
pub(crate) fn panic_response(panic: Box<dyn Any + Send>) -> Response {
    let text = match panic.downcast::<String>() {
        Ok(text) => *text,
        Err(panic) => {
            panic.downcast::<&str>().map_or_else(|_| String::new(), |text| (*text).into())
        }
    };
    ApiError::internal(format!("panicked: {text}")).into_response()
}

pub(crate) async fn method_not_allowed() -> ApiError {
    ApiError::from_code(ErrorCode::MethodNotAllowed)
}

#[cfg(test)]
mod tests {
    use accounts::KdfCost;
    use axum::Router;
    use axum::middleware::from_fn_with_state;
    use axum::routing::get;
    use http_body_util::BodyExt;
    use tower::ServiceExt;
    use tower_http::catch_panic::CatchPanicLayer;

    use super::*;
    use crate::config::Config;

    #[tokio::test]
    async fn what_a_panic_says_does_not_leave() {
        let data = tempfile::tempdir().unwrap();
        let kdf = KdfCost::insecure_for_tests(1);
        let config = Config { data: data.path().to_owned(), kdf, ..Config::default() };
        let app = Arc::new(AppState::open(config, None).unwrap());
        let panicking = get(|| async { panic!("a secret") as &'static str });
        let router = Router::new()
            .route("/", panicking)
            .layer(CatchPanicLayer::custom(panic_response))
            .layer(from_fn_with_state(app, finish));
        let mut request = Request::new(Body::empty());
        let address = std::net::Ipv4Addr::LOCALHOST.into();
        request.extensions_mut().insert(RequestPeer {
            address,
            is_proxy: false,
            is_refused: Arc::default(),
        });
        let response = router.oneshot(request).await.unwrap();
        assert_eq!(response.status(), StatusCode::INTERNAL_SERVER_ERROR);
        let body = response.into_body().collect().await.unwrap().to_bytes();
        let body: ErrorResponse = serde_json::from_slice(&body).unwrap();
        assert_eq!(body.code(), Some(ErrorCode::Internal));
        assert_eq!(body.message(), ErrorCode::Internal.meaning());
    }
}
