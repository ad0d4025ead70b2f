//! Budget files on their way out of a vault: whole, or a part that was asked for (RFC 9110, §14).

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
use server::Holder;
use server::stream::{self, Broken};
use sync_store::{BlobId, PieceId, Vault};
use tokio::sync::mpsc;

use crate::gateway::Gate;
use crate::gateway::fault::{Fault, page};
use crate::gateway::head::Head;
use crate::gateway::session::text;
use crate::gateway::upload::PIECE_BYTES;
use crate::record::BudgetFile;

pub(crate) const MEDIA_TYPE: &str = "application/octet-stream";
/// Pieces that wait for the network.
const PIECES_WAITING_MAX: usize = 1;

pub(crate) async fn download(State(gate): State<Arc<Gate>>, head: Head) -> Result<Response, Fault> {
    let session = gate.session(&head, None).await?;
    let holder = Holder::of_account(session.unlocked.account, head.address);
    let file_id = text(&head.headers, "x-actual-file-id");
    let file_id = file_id.ok_or(Fault::Text("Single file ID is required"))?;
    let open = gate.budget(&session, &file_id, Fault::USER_OR_FILE_NOT_FOUND).await?;
    let file = open.budget.file.ok_or_else(|| Fault::internal("a budget without a file"))?;
    let tag = format!("W/\"{:x}-{:x}\"", file.bytes, file.modified_ms);
    let modified = UNIX_EPOCH + Duration::from_millis(file.modified_ms);
    let modified = httpdate::fmt_http_date(modified);
    let mut response = if text(&head.headers, IF_NONE_MATCH.as_str()).as_ref() == Some(&tag) {
        StatusCode::NOT_MODIFIED.into_response()
    } else {
        match range(&head.headers, file.bytes) {
            Ok(range) => part(gate, open.vault, holder, file, range)?,
            Err(NotThere) => return Ok(not_there(file.bytes)),
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

/// None of the bytes that were asked for are there.
struct NotThere;

/// The part that is asked for; `None` for all of it. Several parts at once are all of it, too.
fn range(headers: &HeaderMap, bytes: u64) -> Result<Option<RangeInclusive<u64>>, NotThere> {
    let Some(asked) = text(headers, RANGE.as_str()) else { return Ok(None) };
    let Ok(ranges) = parse_range_header(&asked) else { return Ok(None) };
    match ranges.validate(bytes).or(Err(NotThere))?.as_slice() {
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
    gate: Arc<Gate>,
    vault: Vault,
    holder: Holder,
    file: BudgetFile,
    range: Option<RangeInclusive<u64>>,
) -> Result<Response, Fault> {
    let blob = BlobId::new(file.blob).ok_or_else(|| Fault::internal("no blob's number"))?;
    let (start, end) = range.as_ref().map_or((0, file.bytes), |r| (*r.start(), *r.end() + 1));
    let (sender, receiver) = mpsc::channel(PIECES_WAITING_MAX);
    let pieces = Pieces { gate, vault, holder, blob };
    tokio::spawn(pieces.send(start, end, sender));
    let mut response = stream::body(receiver).into_response();
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
struct Pieces {
    gate: Arc<Gate>,
    vault: Vault,
    holder: Holder,
    blob: BlobId,
}

impl Pieces {
    /// Sends piece after piece. If an upload replaces the file meanwhile, the answer breaks off,
    /// and the app asks again.
    async fn send(self, start: u64, end: u64, to: mpsc::Sender<Result<Bytes, Broken>>) {
        let mut place = start;
        while place < end {
            let piece = self.read(place, end).await;
            let is_broken = piece.is_err();
            place += piece.as_ref().map_or(0, |piece| piece.len() as u64);
            if to.send(piece).await.is_err() || is_broken {
                return;
            }
        }
    }

    /// What a place's piece has from there to the end: at least a byte. It has its room until it is
    /// sent.
    async fn read(&self, place: u64, end: u64) -> Result<Bytes, Broken> {
        let (number, skipped) = (place / PIECE_BYTES as u64, place % PIECE_BYTES as u64);
        let number = u32::try_from(number).or(Err(Broken))?;
        let mut room = self.gate.services.room(self.holder);
        room.grow_to(PIECE_BYTES).await.or(Err(Broken))?;
        let piece = self.vault.piece(PieceId { blob: self.blob, number }).await;
        let piece = piece.map_err(|error| {
            tracing::error!(%error, "reading a budget's file");
            Broken
        })?;
        let skipped = usize::try_from(skipped).or(Err(Broken))?;
        let piece = piece.filter(|piece| piece.len() > skipped).ok_or(Broken)?;
        let rest = piece.slice(skipped..);
        let length = rest.len().min(usize::try_from(end - place).unwrap_or(usize::MAX));
        Ok(room.keep(rest.slice(..length)))
    }
}
