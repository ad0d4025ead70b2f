//! `/v1/sync/events`: notifies a device when its vault has new messages.
//!
//! # Invariants
//! - The first event contains the vault's current state. Each later change of the state is sent,
//!   alone or merged with later ones.
//! - Before each event and each keep-alive, the device is looked up: a revoked device receives no
//!   further events. A revocation over HTTP makes every subscriber of the account check at once; a
//!   revocation in the data directory ends the stream within [`KEEP_ALIVE`].
//! - A subscriber holds neither its token nor its vault.
//!
//! # Not here
//! - Devices that do not read what they are sent → `http/socket.rs`.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use accounts::DeviceSession;
use axum::Extension;
use axum::extract::State;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::http::{HeaderName, HeaderValue};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use hyper::body::{Body, Frame};
use protocol::VaultState;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app_state::AppState;
use crate::blocking::blocking;
use crate::error::ApiError;
use crate::http::extract::AuthenticatedDevice;
use crate::http::openapi::{TOKEN, error_responses};
use crate::http::peer::RequestPeer;
use crate::subscribers::{MessageSetKey, Subscriber};

/// The interval of keep-alives: less than the minute after which proxies and routers drop a silent
/// connection.
const KEEP_ALIVE: Duration = Duration::from_secs(20);
/// An empty SSE comment, which event readers ignore.
const COMMENT: &[u8] = b":\n\n";
/// A header that makes nginx pass on data at once.
const ACCEL_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

pub(crate) fn router() -> OpenApiRouter<Arc<AppState>> {
    OpenApiRouter::new().routes(routes!(events))
}

error_responses!(EventsErrors: TOKEN, []);

/// Streams the state of the vault, first at once and then after each push that stored something
/// new: Server-Sent Events named `cursor` with a `VaultState` as data and its cursor as id.
///
/// Comments between the events keep the connection alive. The stream ends when the device is
/// revoked or the server stops.
#[utoipa::path(
    get, path = "/v1/sync/events", tag = "sync", operation_id = "events",
    security(("token" = [])),
    responses(
        (status = 200, description = "The events, until the client disconnects", content_type = "text/event-stream", body = String),
        EventsErrors,
    ),
)]
async fn events(
    State(app): State<Arc<AppState>>,
    Extension(RequestPeer { address, .. }): Extension<RequestPeer>,
    device: AuthenticatedDevice,
) -> Result<Response, ApiError> {
    let AuthenticatedDevice { session, vault, .. } = device;
    // Subscribe first: a push before the state is read is part of it, and a later push causes an
    // update.
    let listener = app.subscribers.subscribe(MessageSetKey::for_session(&session), address).await?;
    let state = vault.summary().await?;
    let first = VaultState::new(state.cursor, state.fingerprint).to_event().into();
    let listening = EventSubscription { app, listener, session, told_cursor: state.cursor };
    let headers = [
        (CONTENT_TYPE, HeaderValue::from_static(protocol::EVENT_STREAM)),
        (CACHE_CONTROL, HeaderValue::from_static("no-store")),
        (ACCEL_BUFFERING, HeaderValue::from_static("no")),
    ];
    let body = EventStreamBody { first: Some(first), next: Box::pin(listening.next()) };
    Ok((headers, axum::body::Body::new(body)).into_response())
}

/// A subscription between two events.
struct EventSubscription {
    app: Arc<AppState>,
    listener: Subscriber,
    session: DeviceSession,
    /// The newest cursor that was sent to the device.
    told_cursor: u64,
}

impl EventSubscription {
    /// Waits for the next bytes to send. Returns `None` at the end.
    async fn next(mut self) -> Option<(Bytes, Self)> {
        let heard = tokio::time::timeout(KEEP_ALIVE, self.listener.hear()).await;
        let is_over = matches!(heard, Ok(None));
        if is_over || !self.may_listen().await {
            return None;
        }
        let update = *self.listener.updates.borrow_and_update();
        let newer = update.state.filter(|state| state.cursor > self.told_cursor);
        let bytes = newer.map_or(Bytes::from_static(COMMENT), |state| {
            self.told_cursor = state.cursor;
            VaultState::new(state.cursor, state.fingerprint).to_event().into()
        });
        Some((bytes, self))
    }

    /// Checks whether the device may still subscribe to this set. If the accounts cannot be read,
    /// the stream ends and the device may reconnect.
    async fn may_listen(&self) -> bool {
        let (app, client) = (Arc::clone(&self.app), self.session.device_id.clone());
        let is_e2ee = self.session.message_set.e2ee_vault.is_some();
        let found = blocking(move || {
            Ok(app
                .accounts
                .message_set(&client)?
                .is_some_and(|set| set.e2ee_vault.is_some() == is_e2ee))
        });
        found.await.unwrap_or_else(|error| {
            tracing::warn!(code = %error.code, cause = ?error.cause, "closed an event stream");
            false
        })
    }
}

/// The body of the response.
struct EventStreamBody {
    first: Option<Bytes>,
    next: NextEvent,
}

/// A future of the next bytes and of the subscription that continues after them.
type NextEvent = Pin<Box<dyn Future<Output = Option<(Bytes, EventSubscription)>> + Send>>;

impl Body for EventStreamBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if let Some(first) = self.first.take() {
            return Poll::Ready(Some(Ok(Frame::data(first))));
        }
        Poll::Ready(ready!(self.next.as_mut().poll(context)).map(|(bytes, listening)| {
            self.next = Box::pin(listening.next());
            Ok(Frame::data(bytes))
        }))
    }
}
