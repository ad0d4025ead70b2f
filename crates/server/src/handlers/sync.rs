//! `/v1/sync`: pushes messages, pulls those after a cursor, and streams all of them.
//!
//! # Invariants
//! - A push is acknowledged once its messages are on the disk; a refused push stores none of them.
//! - A pull holds one page in memory, a stream at most [`STREAM_PAGES_MAX`] + 2. Each page has a
//!   memory reservation until it has been sent.

use std::ops::Range;
use std::sync::Arc;

use accounts::MessageSet;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::HeaderValue;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use crdt::{EncryptionMode, NodeId, Timestamp};
use engine::clock;
use protocol::{DRIFT_MS_MAX, ErrorCode, PullResponse, PushRequest, PushResponse, WireMessage};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use sync_store::{DeviceActivity, LostMessages, MessageBatch, MessagePage, StoreOutcome};
use tokio::sync::mpsc;
use tower_http::compression::{CompressionLayer, CompressionLevel};
use utoipa::IntoParams;
use utoipa_axum::router::{OpenApiRouter, UtoipaMethodRouterExt};
use utoipa_axum::routes;

use crate::admission::memory::{MESSAGE_BYTES, MemoryReservation, page_bytes};
use crate::app_state::AppState;
use crate::blocking::blocking;
use crate::error::ApiError;
use crate::handlers::encryption;
use crate::http::extract::{AuthenticatedDevice, BodyEncoding, RawBody, check_count, malformed};
use crate::http::openapi::{BODY, TOKEN, error_responses};
use crate::http::response::{ApiResponse, to_json};
use crate::http::stream_body::{self, StreamAborted};
use crate::subscribers::MessageSetKey;

/// The number of messages in a response if the request names no limit: about a megabyte of
/// ordinary changes.
const LIMIT_DEFAULT: usize = 10_000;

/// The size of a page in bytes when memory is short.
pub(super) const PAGE_BYTES_MIN: usize = 1 << 20;
/// The size of a stream's page in bytes (at most, and when memory is short), and the number of
/// pages that may wait for the network.
const STREAM_PAGE_BYTES_MAX: usize = 256 << 10;
const STREAM_PAGE_BYTES_MIN: usize = 64 << 10;
const STREAM_PAGES_MAX: usize = 1;
/// The maximum number of unsent changes that a device may report; no device can have more.
const UNSENT_COUNT_MAX: u64 = 1 << 40;

pub(crate) fn router() -> OpenApiRouter<Arc<AppState>> {
    // Higher levels cost more time than they save, except on the slowest links.
    let compression = CompressionLayer::new().quality(CompressionLevel::Fastest);
    OpenApiRouter::new()
        .routes(routes!(push, pull))
        .routes(UtoipaMethodRouterExt::layer(routes!(full), compression))
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct PushQuery {
    /// The number of changes that the device still has to send after these.
    unsent_count: Option<u64>,
}

error_responses!(PushErrors: BODY, TOKEN, [
    ClockDrift, EncryptionMismatch, InvalidTimestamp, QuotaExceeded, StaleCursor, TimestampConflict
]);

/// Stores messages. Known messages are counted, but not stored again. All or nothing.
#[utoipa::path(
    post, path = "/v1/sync/delta", tag = "sync", operation_id = "push",
    security(("token" = [])),
    params(PushQuery),
    request_body = PushRequest,
    responses((status = 200, description = "All messages are on the disk", body = PushResponse), PushErrors),
)]
async fn push(
    State(app): State<Arc<AppState>>,
    encoding: BodyEncoding,
    device: AuthenticatedDevice,
    query: Result<Query<PushQuery>, QueryRejection>,
    body: RawBody,
) -> Result<ApiResponse, ApiError> {
    let Query(PushQuery { unsent_count }) = query.map_err(|error| malformed(&error))?;
    check_unsent(unsent_count)?;
    app.check_disk()?;
    let now_ms = clock::now_ms();
    let messages_count_max = app.config.messages_count_max;
    // The memory stays reserved until everything is stored.
    let set_id = device.session.message_set.id;
    let decode = move || decode(body, messages_count_max, set_id);
    let (mode, batch, _room) = blocking(decode).await?;
    encryption::check_mode_before_store(&app, &device, mode, batch.is_empty()).await?;
    check_drift(&device, &batch, now_ms).await?;
    let seen = DeviceActivity { unsent_count, ..device.activity(now_ms) };
    let AuthenticatedDevice { session, vault, .. } = &device;
    let stored = vault.store(batch, app.quota(session), Some(seen)).await?;
    encryption::check_mode_after_store(&app, &device, mode).await?;
    app.metrics.record_push(stored.stored, stored.known);
    if stored.stored > 0 {
        app.subscribers.notify_stored(MessageSetKey::for_session(session), stored.after);
    }
    Ok(ApiResponse::ok(encoding, &to_answer(&stored, session.message_set.id, now_ms)))
}

pub(super) fn to_answer(stored: &StoreOutcome, set_id: u64, now_ms: u64) -> PushResponse {
    let StoreOutcome { stored, known, after } = *stored;
    let fingerprint = Some(after.fingerprint.into());
    PushResponse {
        stored_count: stored,
        known_count: known,
        cursor: after.cursor,
        fingerprint,
        server_time_ms: now_ms,
        set_id,
    }
}

/// Decodes and checks a push: the part that uses the processor and not the disk.
fn decode(
    body: RawBody,
    messages_count_max: usize,
    set_id: u64,
) -> Result<(EncryptionMode, MessageBatch, MemoryReservation), ApiError> {
    body.check_count(messages_count_max, "messages")?;
    let (request, reservation): (PushRequest, _) = body.decode()?;
    check_count(request.messages.len(), messages_count_max, "messages")?;
    let mode = encryption::parse_encryption_mode(&request.key_id)?;
    if request.expected_cursor.is_some() && request.set_id != set_id {
        return Err(ApiError::from_code(ErrorCode::StaleCursor));
    }
    let messages: Vec<_> = request.messages.into_iter().map(check).collect::<Result<_, _>>()?;
    encryption::check_contents(mode, messages.iter())?;
    let batch = MessageBatch::new(messages)?;
    Ok((mode, batch.with_expected_cursor(request.expected_cursor), reservation))
}

fn check_unsent(unsent_count: Option<u64>) -> Result<(), ApiError> {
    if unsent_count.is_none_or(|count| count <= UNSENT_COUNT_MAX) {
        return Ok(());
    }
    let message = format!("unsent_count must be at most {UNSENT_COUNT_MAX}");
    Err(ApiError::new(ErrorCode::Malformed, message))
}

pub(super) fn check(message: WireMessage) -> Result<crdt::Message, ApiError> {
    let message = crdt::Message::try_from(message).ok();
    let message = message.filter(|message| message.timestamp != Timestamp::ZERO);
    message.ok_or_else(|| ApiError::from_code(ErrorCode::InvalidTimestamp))
}

/// Refuses timestamps that are further ahead than this clock and the vault's newest message
/// explain. Devices must be able to continue after any accepted timestamp
/// (`docs/reference/formats/1-timestamp.md`).
async fn check_drift(
    device: &AuthenticatedDevice,
    batch: &MessageBatch,
    now_ms: u64,
) -> Result<(), ApiError> {
    let latest_ms = batch.timestamps().map(Timestamp::millis).max().unwrap_or(0);
    if latest_ms <= now_ms.saturating_add(DRIFT_MS_MAX) {
        return Ok(());
    }
    let newest = sync_store::newest_timestamp(device.vault.as_ref()).await?;
    let count = batch.timestamps().count() as u64;
    let may_follow = newest.is_some_and(|newest| latest_ms <= newest.millis() + count);
    if may_follow { Ok(()) } else { Err(ApiError::from_code(ErrorCode::ClockDrift)) }
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct PullQuery {
    /// The sequence number up to which the device has everything. Default: 0.
    #[serde(default)]
    cursor: u64,
    /// The maximum number of messages in the response.
    #[param(minimum = 1, default = 10_000)]
    limit: Option<usize>,
    /// The node id in the timestamps of the device's changes: 16 lower-case hex digits.
    #[param(value_type = Option<String>, pattern = "^[0-9a-f]{16}$")]
    #[serde(default, deserialize_with = "canonical_node_id")]
    node_id: Option<NodeId>,
    /// The number of changes that the device still has to send.
    unsent_count: Option<u64>,
}

/// Parses a node id. Only the canonical spelling is accepted, as everywhere.
fn canonical_node_id<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<NodeId>, D::Error> {
    let text = String::deserialize(deserializer)?;
    let node_id = u64::from_str_radix(&text, 16).ok().map(NodeId);
    let is_canonical = |node_id: &NodeId| node_id.to_string() == text;
    let expected = || D::Error::custom("node_id must have 16 lower-case hex digits");
    node_id.filter(is_canonical).map(Some).ok_or_else(expected)
}

error_responses!(PullErrors: TOKEN, [TooLarge]);

/// Returns the messages that arrived after a cursor.
#[utoipa::path(
    get, path = "/v1/sync/delta", tag = "sync", operation_id = "pull",
    security(("token" = [])),
    params(PullQuery),
    responses((status = 200, description = "The messages in order of arrival", body = PullResponse), PullErrors),
)]
async fn pull(
    State(app): State<Arc<AppState>>,
    encoding: BodyEncoding,
    device: AuthenticatedDevice,
    query: Result<Query<PullQuery>, QueryRejection>,
) -> Result<ApiResponse, ApiError> {
    let Query(PullQuery { cursor, limit, node_id, unsent_count }) =
        query.map_err(|error| malformed(&error))?;
    let count_max = app.config.messages_count_max;
    let limit = limit.unwrap_or(LIMIT_DEFAULT.min(count_max));
    if limit == 0 {
        return Err(ApiError::new(ErrorCode::Malformed, "limit must be at least 1"));
    }
    if limit > count_max {
        let message = format!("limit must be at most {count_max}");
        return Err(ApiError::new(ErrorCode::TooLarge, message));
    }
    check_unsent(unsent_count)?;
    let now_ms = clock::now_ms();
    let seen = DeviceActivity { node_id, unsent_count, ..device.activity(now_ms) };
    let most = protocol::PAGE_BYTES_MAX;
    let limits =
        PageLimits { cursor, count_max: limit, bytes_max: most, bytes_min: PAGE_BYTES_MIN };
    let (page, reservation) = read(&app, &device, limits, seen).await?;
    app.metrics.record_pull(page.messages.len());
    encryption::clear_plain(&app, &device).await?;
    let set = device.session.message_set.clone();
    blocking(move || {
        Ok(ApiResponse::ok(encoding, &to_response(page, &set, now_ms))
            .with_reservation(reservation))
    })
    .await
}

/// Limits of a page of messages after a cursor.
struct PageLimits {
    cursor: u64,
    count_max: usize,
    /// The maximum size of the contents in bytes; `bytes_min` applies when memory is short.
    bytes_max: usize,
    bytes_min: usize,
}

/// Reads a page and reserves the memory that it needs.
async fn read(
    app: &AppState,
    device: &AuthenticatedDevice,
    limits: PageLimits,
    seen: DeviceActivity,
) -> Result<(MessagePage, MemoryReservation), ApiError> {
    let PageLimits { cursor, count_max, bytes_max, bytes_min } = limits;
    let mut reservation = app.memory_reservation(device.holder);
    let bytes_max = reservation.reserve_page(bytes_max, bytes_min).await?;
    let count_max = count_max.min(bytes_max / MESSAGE_BYTES);
    loop {
        let page = device.vault.page(cursor, count_max, bytes_max, Some(seen.clone())).await?;
        let bytes = page_bytes(&page.messages);
        if reservation.try_grow_to_page(bytes) {
            return Ok((page, reservation));
        }
        // The page's last message is very long.
        drop(page);
        reservation.wait_for_page(bytes).await?;
    }
}

fn to_response(page: MessagePage, set: &MessageSet, now_ms: u64) -> PullResponse {
    let MessagePage { messages, cursor, more, fingerprint, loss } = page;
    let messages = messages.into_iter().map(WireMessage::from).collect();
    PullResponse {
        messages,
        cursor,
        more,
        fingerprint: Some(fingerprint.into()),
        server_time_ms: now_ms,
        encryption: set.encryption_mode.map(Into::into),
        set_id: set.id,
        in_plain: set.is_in_plain(),
        loss: loss.map(|LostMessages { at_ms, count, devices_away }| protocol::ServerLoss {
            repaired_ms: at_ms,
            missing_count: count,
            devices_away,
        }),
    }
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct FullQuery {
    /// The cursor to resume from after an interrupted stream. Default: 0.
    #[serde(default)]
    cursor: u64,
}

error_responses!(FullErrors: TOKEN, []);

/// Streams everything after a cursor as `PullResponse`s: one per line, or each after its length as
/// a varint.
///
/// The stream ends with the message that was newest when it started; if `more` is true on its last
/// page, continue with `GET /v1/sync/delta`. A stream that is interrupted closes the connection.
#[utoipa::path(
    get, path = "/v1/sync/full", tag = "sync", operation_id = "full",
    security(("token" = [])),
    params(FullQuery),
    responses(
        (status = 200, description = "The messages in order of arrival; gzip if accepted", content(
            (PullResponse = "application/x-ndjson"), ("application/x-protobuf-seq"),
        )),
        FullErrors,
    ),
)]
async fn full(
    State(app): State<Arc<AppState>>,
    encoding: BodyEncoding,
    device: AuthenticatedDevice,
    query: Result<Query<FullQuery>, QueryRejection>,
) -> Result<Response, ApiError> {
    let Query(FullQuery { cursor }) = query.map_err(|error| malformed(&error))?;
    let end = device.vault.summary().await?.cursor;
    let (sender, receiver) = mpsc::channel(STREAM_PAGES_MAX);
    tokio::spawn(send_pages(app, Arc::new(device), encoding, cursor..end, sender));
    let media_type = match encoding {
        BodyEncoding::Json => protocol::NDJSON,
        BodyEncoding::Protobuf => protocol::PROTOBUF_SEQUENCE,
    };
    let headers = [(CONTENT_TYPE, HeaderValue::from_static(media_type))];
    Ok((headers, stream_body::body_from_channel(receiver)).into_response())
}

/// Sends pages until the end, or until the client is gone.
async fn send_pages(
    app: Arc<AppState>,
    device: Arc<AuthenticatedDevice>,
    encoding: BodyEncoding,
    cursors: Range<u64>,
    sender: mpsc::Sender<Result<Bytes, StreamAborted>>,
) {
    let mut cursor = cursors.start;
    loop {
        let page = stream_page(&app, &device, encoding, cursor).await;
        let page = page.map_err(|error| {
            if error.code == ErrorCode::Busy {
                tracing::debug!(message = %error.message, "a response stream was interrupted");
            } else {
                let (code, cause) = (&error.code, &error.cause);
                tracing::error!(%code, ?cause, "a response stream was interrupted");
            }
            StreamAborted
        });
        // After the end or an error, there is no further page to read.
        cursor = page.as_ref().map_or(u64::MAX, |(_, last)| *last);
        let is_sent = sender.send(page.map(|(bytes, _)| bytes)).await.is_ok();
        if !is_sent || cursor >= cursors.end {
            return;
        }
    }
}

async fn stream_page(
    app: &AppState,
    device: &AuthenticatedDevice,
    encoding: BodyEncoding,
    cursor: u64,
) -> Result<(Bytes, u64), ApiError> {
    let (count_max, now_ms) = (app.config.messages_count_max, clock::now_ms());
    let (bytes_max, bytes_min) = (STREAM_PAGE_BYTES_MAX, STREAM_PAGE_BYTES_MIN);
    let limits = PageLimits { cursor, count_max, bytes_max, bytes_min };
    let (page, reservation) = read(app, device, limits, device.activity(now_ms)).await?;
    let (last, set) = (page.cursor, device.session.message_set.clone());
    app.metrics.record_pull(page.messages.len());
    let encode =
        move || Ok(reservation.into_bytes(encode(&to_response(page, &set, now_ms), encoding)));
    Ok((blocking(encode).await?, last))
}

fn encode(page: &PullResponse, encoding: BodyEncoding) -> Vec<u8> {
    match encoding {
        BodyEncoding::Json => {
            let mut line = to_json(page);
            line.push(b'\n');
            line
        }
        BodyEncoding::Protobuf => prost::Message::encode_length_delimited_to_vec(page),
    }
}
