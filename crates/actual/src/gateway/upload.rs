//! Stores uploaded budget files in a vault, chunk by chunk.
//!
//! # Invariants
//! - A file exists once its gateway state names it, and then all its chunks exist: the state is
//!   written last, in a transaction that finds these chunks and removes those of the previous file.
//! - A failed upload removes its own chunks only if no gateway state can name them. After an error
//!   that leaves this open, the next upload removes them.
//! - Only one upload per budget runs in this process. If two processes upload, the later state
//!   wins.
//! - No file is in memory as a whole.
//!
//! # Not here
//! - Downloads → `download.rs`.

use std::sync::Arc;

use accounts::VaultId;
use axum::extract::{Request, State};
use axum::http::HeaderMap;
use bytes::BytesMut;
use percent_encoding::percent_decode_str;
use serde_json::json;
use server::{GatewayServices, IncomingBody, MemoryOwner};
use sync_store::{BlobChunkId, BlobId, CompleteBlob, Error, UpdateStateFn, Vault};
use uuid::Uuid;

use crate::gateway::budget::{EncryptMetaKey, check_upload, is_id};
use crate::gateway::error::ActualError;
use crate::gateway::form::raw;
use crate::gateway::head::RequestHead;
use crate::gateway::json_response::JsonUtf8;
use crate::gateway::session::{AppSession, text};
use crate::gateway::state::ActualGateway;
use crate::gateway_state::{BudgetFile, BudgetState};
use crate::trie::MerkleTrie;

/// The size of every chunk except the last (Format 15). Several transactions of this size cost no
/// more than a single large one.
pub(crate) const PIECE_BYTES: usize = 256 << 10;

/// Memory of an upload: a chunk, the received part of the next, and one that is being written.
const UPLOAD_ROOM_BYTES: usize = 3 * PIECE_BYTES;
/// The headers of an upload.
#[derive(Clone)]
struct UploadHeaders {
    file_id: String,
    name: String,
    group_id: Option<String>,
    format: Option<String>,
    meta: Option<String>,
    key: EncryptMetaKey,
}

impl UploadHeaders {
    fn from_headers(headers: &HeaderMap) -> Result<Self, ActualError> {
        let missing = ActualError::Text("single x-actual-name is required");
        let has_name = headers.contains_key("x-actual-name");
        let name = has_name.then(|| text(headers, "x-actual-name").unwrap_or_default());
        let name = decode(&name.ok_or(missing)?);
        let name = name.ok_or(ActualError::thrown("x-actual-name is not percent-encoded"))?;
        let file_id = text(headers, "x-actual-file-id");
        let file_id = file_id.ok_or(ActualError::Text("fileId is required"))?;
        if !is_id(&file_id) {
            return Err(ActualError::INVALID_FILE_ID);
        }
        let group_id = text(headers, "x-actual-group-id");
        if group_id.as_deref().is_some_and(|group| !is_id(group)) {
            return Err(ActualError::Text("invalid groupId"));
        }
        let format = text(headers, "x-actual-format");
        let meta = text(headers, "x-actual-encrypt-meta");
        let key = EncryptMetaKey::from_meta(meta.as_deref())?;
        Ok(Self { file_id, name, group_id, format, meta, key })
    }

    /// Returns the update of a budget's gateway state once its file is stored.
    fn amend(&self, file: BudgetFile) -> UpdateStateFn {
        let (upload, new_group) = (self.clone(), Uuid::new_v4().to_string());
        Arc::new(move |record, _| {
            let mut no_messages = Vec::new();
            MerkleTrie::new().encode(&mut no_messages);
            let (mut budget, trie) = match BudgetState::decode_record(record)? {
                // The published server answers 500 here, too: the id can never be used again.
                Some((budget, _)) if budget.is_deleted => {
                    return Err(ActualError::internal(
                        "the file was deleted; its id is not used again",
                    )
                    .into());
                }
                Some((budget, trie)) => {
                    check_upload(&budget, upload.group_id.as_deref(), &upload.key)?;
                    (budget, trie)
                }
                None => {
                    let (file_id, created_ms) = (upload.file_id.clone(), file.modified_ms);
                    (
                        BudgetState { file_id, created_ms, ..BudgetState::default() },
                        &no_messages[..],
                    )
                }
            };
            let group_id = budget.group_id.get_or_insert_with(|| new_group.clone());
            debug_assert!(is_id(group_id), "a UUID is an id");
            budget.name = Some(upload.name.clone());
            budget.format.clone_from(&upload.format);
            budget.encrypt_meta.clone_from(&upload.meta);
            budget.file = Some(file);
            let mut record = Vec::new();
            budget.encode_header(&mut record);
            record.extend_from_slice(trie);
            Ok(record)
        })
    }
}

/// Decodes like `decodeURIComponent`; `None` where that throws.
fn decode(text: &str) -> Option<String> {
    let mut escapes = text.split('%').skip(1);
    let is_hex = |escape: &str| {
        let digits = escape.as_bytes().get(..2);
        digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
    };
    escapes.all(is_hex).then(|| percent_decode_str(text).decode_utf8().ok())?.map(Into::into)
}

pub(crate) async fn upload(
    State(gateway): State<Arc<ActualGateway>>,
    request: Request,
) -> Result<JsonUtf8, ActualError> {
    gateway.check_disk()?;
    let head = RequestHead::from_request(&request);
    let session = gateway.session(&head, None).await?;
    let holder = MemoryOwner::for_account(session.unlocked.account, head.address);
    let upload = UploadHeaders::from_headers(request.headers())?;
    let id = session.unlocked.sub_vault_id(&upload.file_id);
    let _turn = gateway.uploads.lock(&id).await?;
    let found = gateway.find(&session, &upload.file_id).await?;
    if let Some(open) = found.as_ref().filter(|open| !open.budget.is_deleted) {
        check_upload(&open.budget, upload.group_id.as_deref(), &upload.key)?;
    }
    let body = raw(&gateway, request, ActualError::NotAFile).await?;
    let bytes_max = usize::try_from(gateway.settings.upload_bytes_max).unwrap_or(usize::MAX);
    let body = gateway.incoming(body, bytes_max, true);
    let mut reservation = gateway.services.memory_reservation(holder);
    reservation.grow_to(UPLOAD_ROOM_BYTES).await?;
    let vault = match found {
        Some(open) => open.vault,
        None => gateway.add_vault(&session, id).await?,
    };
    let blob = BlobId::generate();
    let received = match gateway.receive(&vault, blob, body).await {
        Ok(received) => received,
        Err(fault) => {
            discard(&vault, blob).await;
            return Err(fault);
        }
    };
    let modified_ms = gateway.services.now_ms();
    let file = BudgetFile { blob: blob.get(), bytes: received.bytes, modified_ms };
    let whole = CompleteBlob { id: blob, chunks_count: received.chunks_count };
    let exchanged = match vault.replace_blob(whole, upload.amend(file)).await {
        Ok(exchanged) => exchanged,
        Err(error) => {
            if matches!(error, Error::Declined(_)) {
                discard(&vault, blob).await;
            }
            return Err(error.into());
        }
    };
    let written = BudgetState::decode_record(&exchanged.state)?;
    let (budget, _) =
        written.ok_or_else(|| ActualError::internal("a record that was not written"))?;
    Ok(JsonUtf8(json!({"status": "ok", "groupId": budget.group_id})))
}

/// Removes the chunks of a blob that no gateway state names or ever will. If this fails, the next
/// upload removes them.
async fn discard(vault: &Vault, blob: BlobId) {
    if let Err(error) = vault.remove_blob(blob).await {
        tracing::warn!(%error, "cannot remove the remains of an interrupted upload");
    }
}

/// A received body, which is stored in chunks.
struct ReceivedBlob {
    bytes: u64,
    chunks_count: u32,
}

impl ActualGateway {
    /// Returns an error if the disk is full, so that nothing is stored.
    pub(crate) fn check_disk(&self) -> Result<(), ActualError> {
        if self.services.is_disk_full() { Err(ActualError::DiskFull) } else { Ok(()) }
    }

    async fn add_vault(&self, session: &AppSession, id: VaultId) -> Result<Vault, ActualError> {
        let (account, vault) = (session.unlocked.account, id.clone());
        let add =
            move |services: &GatewayServices| services.accounts().add_sub_vault(account, &vault);
        self.services.blocking(add).await??;
        self.open(&session.unlocked.sub_vault(&id)).await
    }

    /// Writes the chunks of a body.
    async fn receive(
        &self,
        vault: &Vault,
        blob: BlobId,
        mut body: IncomingBody,
    ) -> Result<ReceivedBlob, ActualError> {
        let (mut buffer, mut bytes, mut number) = (BytesMut::new(), 0, 0);
        loop {
            let data = body.next().await?;
            let is_end = data.is_none();
            buffer.extend_from_slice(&data.unwrap_or_default());
            while buffer.len() >= PIECE_BYTES || (is_end && !buffer.is_empty()) {
                let chunk = buffer.split_to(buffer.len().min(PIECE_BYTES)).freeze();
                bytes += chunk.len() as u64;
                if number == BlobChunkId::COUNT_MAX {
                    return Err(ActualError::TooLarge);
                }
                vault.put_chunk(BlobChunkId { blob, number }, chunk).await?;
                number += 1;
            }
            if is_end {
                return Ok(ReceivedBlob { bytes, chunks_count: number });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_decoded_as_javascript_does() {
        assert_eq!(decode("My%20Finances%20%E2%98%82").unwrap(), "My Finances ☂");
        assert_eq!(decode("a+b").unwrap(), "a+b");
        for text in ["%", "%2", "%zz", "100%", "%ff", "%E2%98"] {
            assert_eq!(decode(text), None, "{text}");
        }
    }
}
