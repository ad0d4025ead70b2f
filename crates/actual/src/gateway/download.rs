//! Sends budget files from a vault: the whole file, or the requested range (RFC 9110, §14).

use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use axum::extract::State;
use axum::http::header::{
    ACCEPT_RANGES, CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE,
    ETAG, IF_NONE_MATCH, LAST_MODIFIED, RANGE,
};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http_range_header::parse_range_header;
use server::{MemoryOwner, StreamAborted, body_from_channel};
use sync_store::{BlobChunkId, BlobId, Vault};
use tokio::sync::mpsc;

use crate::gateway::error::{ActualError, page};
use crate::gateway::head::RequestHead;
use crate::gateway::session::text;
use crate::gateway::state::ActualGateway;
use crate::gateway::upload::PIECE_BYTES;
use crate::gateway_state::BudgetFile;

pub(crate) const MEDIA_TYPE: &str = "application/octet-stream";
/// The number of chunks that may wait for the network.
const PIECES_WAITING_MAX: usize = 1;

pub(crate) async fn download(
    State(gateway): State<Arc<ActualGateway>>,
    head: RequestHead,
) -> Result<Response, ActualError> {
    let session = gateway.session(&head, None).await?;
    let holder = MemoryOwner::for_account(session.unlocked.account, head.address);
    let file_id = text(&head.headers, "x-actual-file-id");
    let file_id = file_id.ok_or(ActualError::Text("Single file ID is required"))?;
    let open = gateway.budget(&session, &file_id, ActualError::USER_OR_FILE_NOT_FOUND).await?;
    let file = open.budget.file.ok_or_else(|| ActualError::internal("a budget without a file"))?;
    let tag = format!("W/\"{:x}-{:x}\"", file.bytes, file.modified_ms);
    let modified = UNIX_EPOCH + Duration::from_millis(file.modified_ms);
    let modified = httpdate::fmt_http_date(modified);
    let mut response = if text(&head.headers, IF_NONE_MATCH.as_str()).as_ref() == Some(&tag) {
        StatusCode::NOT_MODIFIED.into_response()
    } else {
        match range(&head.headers, file.bytes) {
            Ok(range) => part(gateway, open.vault, holder, file, range)?,
            Err(RangeNotSatisfiable) => return Ok(not_there(file.bytes)),
        }
    };
    let disposition = format!("attachment;filename={file_id}");
    for (name, value) in [
        (ACCEPT_RANGES, "bytes"),
        (CACHE_CONTROL, "public, max-age=0"),
        (CONTENT_DISPOSITION, &disposition),
        (ETAG, &tag),
        (LAST_MODIFIED, &modified),
    ] {
        response.headers_mut().insert(name, HeaderValue::try_from(value).expect("ASCII"));
    }
    Ok(response)
}

/// An error for a range without any byte of the file.
struct RangeNotSatisfiable;

/// Parses the requested range; `None` means the whole file, which also answers several ranges at
/// once.
fn range(
    headers: &HeaderMap,
    bytes: u64,
) -> Result<Option<RangeInclusive<u64>>, RangeNotSatisfiable> {
    let Some(asked) = text(headers, RANGE.as_str()) else { return Ok(None) };
    let Ok(ranges) = parse_range_header(&asked) else { return Ok(None) };
    match ranges.validate(bytes).or(Err(RangeNotSatisfiable))?.as_slice() {
        [range] => Ok(Some(range.clone())),
        _ => Ok(None),
    }
}

fn not_there(bytes: u64) -> Response {
    let mut response = page("Range Not Satisfiable");
    *response.status_mut() = StatusCode::RANGE_NOT_SATISFIABLE;
    let range = HeaderValue::try_from(format!("bytes */{bytes}")).expect("ASCII");
    response.headers_mut().insert(CONTENT_RANGE, range);
    response
}

fn part(
    gateway: Arc<ActualGateway>,
    vault: Vault,
    holder: MemoryOwner,
    file: BudgetFile,
    range: Option<RangeInclusive<u64>>,
) -> Result<Response, ActualError> {
    let blob = BlobId::new(file.blob).ok_or_else(|| ActualError::internal("no blob's number"))?;
    let (start, end) = range.as_ref().map_or((0, file.bytes), |r| (*r.start(), *r.end() + 1));
    let (sender, receiver) = mpsc::channel(PIECES_WAITING_MAX);
    let chunks = BlobSender { gateway, vault, holder, blob };
    tokio::spawn(chunks.send(start, end, sender));
    let mut response = body_from_channel(receiver).into_response();
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(MEDIA_TYPE));
    headers.insert(CONTENT_LENGTH, HeaderValue::from(end - start));
    if let Some(range) = range {
        let text = format!("bytes {}-{}/{}", range.start(), range.end(), file.bytes);
        headers.insert(CONTENT_RANGE, HeaderValue::try_from(text).expect("ASCII"));
        *response.status_mut() = StatusCode::PARTIAL_CONTENT;
    }
    Ok(response)
}

/// A file that is being sent.
struct BlobSender {
    gateway: Arc<ActualGateway>,
    vault: Vault,
    holder: MemoryOwner,
    blob: BlobId,
}

impl BlobSender {
    /// Sends chunk after chunk. If an upload replaces the file during this, the response is
    /// aborted, and the app tries again.
    async fn send(self, start: u64, end: u64, to: mpsc::Sender<Result<Bytes, StreamAborted>>) {
        let mut place = start;
        while place < end {
            let chunk = self.read(place, end).await;
            let is_broken = chunk.is_err();
            place += chunk.as_ref().map_or(0, |chunk| chunk.len() as u64);
            if to.send(chunk).await.is_err() || is_broken {
                return;
            }
        }
    }

    /// Reads a chunk from `place` to its end or the range's end: at least one byte. The memory
    /// reservation lasts until the bytes are sent.
    async fn read(&self, place: u64, end: u64) -> Result<Bytes, StreamAborted> {
        let (number, skipped) = (place / PIECE_BYTES as u64, place % PIECE_BYTES as u64);
        let number = u32::try_from(number).or(Err(StreamAborted))?;
        let mut reservation = self.gateway.services.memory_reservation(self.holder);
        reservation.grow_to(PIECE_BYTES).await.or(Err(StreamAborted))?;
        let chunk = self.vault.chunk(BlobChunkId { blob: self.blob, number }).await;
        let chunk = chunk.map_err(|error| {
            tracing::error!(%error, "cannot read a budget's file");
            StreamAborted
        })?;
        let skipped = usize::try_from(skipped).or(Err(StreamAborted))?;
        let chunk = chunk.filter(|chunk| chunk.len() > skipped).ok_or(StreamAborted)?;
        let rest = chunk.slice(skipped..);
        let length = rest.len().min(usize::try_from(end - place).unwrap_or(usize::MAX));
        Ok(reservation.into_bytes(rest.slice(..length)))
    }
}
