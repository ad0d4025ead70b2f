//! Exports a budget as the archive that Actual's apps import: the file that an app uploaded last,
//! with all later messages applied, just as an app does when it opens the budget on a new device.
//!
//! ```text
//! vault ─┬─ chunks ──► key ─► archive ─► replay (SQLite, in memory) ─► archive
//!        └─ messages ► key ───────────────┘
//! ```
//!
//! # Invariants
//! - An archive contains all messages; otherwise the export fails.
//! - Nothing is written to a disk.
//! - The archive contains no token and names no server, though the uploaded file may contain both.
//!
//! # Not here
//! - Migrations of the budget's tables: only the apps have them. A message for a column that the
//!   file lacks is an error.

mod archive;
mod error;
mod key;
mod replay;

use bytes::Bytes;
use crdt::Timestamp;
use prost::Message as _;
use serde_json::{Map, Value};
use sync_store::{BlobChunkId, BlobId};
use tokio::runtime::Handle;

pub use self::archive::BudgetArchive;
pub use self::error::ExportError;
use self::key::{AppKey, EncryptedData};
use self::replay::{CellMessage, Replay};
use crate::content::{self};
use crate::gateway::PIECE_BYTES;
use crate::gateway_state::BudgetFile;
use crate::inventory::StoredBudget;
use crate::since;

/// Limits of a page of messages in memory: their count, and the bytes of their contents.
const PAGE_COUNT_MAX: usize = 10_000;
const PAGE_BYTES_MAX: usize = 1 << 20;
/// Members of a budget's metadata that concern one server or one device.
const METADATA_OF_A_DEVICE: [&str; 6] =
    ["cloudFileId", "encryptKeyId", "groupId", "lastSyncedTimestamp", "lastUploaded", "userId"];

/// An exported budget, which Actual's apps can import.
pub struct ExportedBudget {
    /// The budget as a ZIP archive.
    pub archive: Vec<u8>,
    /// The name that the apps show for the budget.
    pub name: Option<String>,
    /// The number of messages that the uploaded file lacked and that the export applied.
    pub applied_messages_count: u64,
}

impl StoredBudget {
    /// Returns whether [`Self::export`] needs the password that the apps encrypt the budget with.
    pub fn is_encrypted(&self) -> bool {
        self.budget.encrypt_meta.is_some() || self.budget.key.id.is_some()
    }

    /// Creates the archive; blocks. `password` is the one that the apps encrypt with.
    pub fn export(
        &self,
        runtime: &Handle,
        password: Option<&str>,
    ) -> Result<ExportedBudget, ExportError> {
        let file = self.budget.file.ok_or(ExportError::NoFile)?;
        let key = match password {
            _ if !self.is_encrypted() => None,
            Some(password) => Some(AppKey::from_password(&self.budget.key, password)?),
            None => return Err(ExportError::Encrypted),
        };
        let mut uploaded = runtime.block_on(self.read_file(file))?;
        if let Some(meta) = &self.budget.encrypt_meta {
            uploaded = key.as_ref().ok_or(ExportError::Encrypted)?.open_file(meta, uploaded)?;
        }
        let BudgetArchive { database, mut metadata } = BudgetArchive::read(&uploaded)?;
        drop(uploaded);
        let mut replay = Replay::open(database)?;
        runtime.block_on(self.replay(&mut replay, key.as_ref()))?;
        let replayed = replay.finish()?;
        metadata.extend(replayed.preferences);
        make_portable(&mut metadata);
        let name = metadata.get("budgetName").and_then(Value::as_str).map(str::to_owned);
        let applied_messages_count = replayed.messages_count;
        let archive = BudgetArchive { database: replayed.database, metadata }.write()?;
        Ok(ExportedBudget { archive, name, applied_messages_count })
    }

    async fn read_file(&self, file: BudgetFile) -> Result<Vec<u8>, ExportError> {
        let blob = BlobId::new(file.blob).ok_or(ExportError::NoFile)?;
        let bytes = usize::try_from(file.bytes).or(Err(ExportError::TooLarge))?;
        let mut whole = Vec::with_capacity(bytes);
        for number in 0..bytes.div_ceil(PIECE_BYTES) {
            let number = u32::try_from(number).or(Err(ExportError::TooLarge))?;
            let chunk = self.vault.chunk(BlobChunkId { blob, number }).await?;
            whole.extend_from_slice(&chunk.ok_or(ExportError::Changed)?);
        }
        if whole.len() == bytes { Ok(whole) } else { Err(ExportError::Changed) }
    }

    async fn replay(&self, replay: &mut Replay, key: Option<&AppKey>) -> Result<(), ExportError> {
        let mut next = Some(Timestamp::ZERO);
        while let Some(start) = next {
            let cursor = self.snapshot.cursor;
            let page =
                self.vault.messages_from(start, cursor, PAGE_COUNT_MAX, PAGE_BYTES_MAX).await?;
            for message in &page {
                let (is_encrypted, content) = content::unpack(&message.content)?;
                let change = decode(is_encrypted, content, key)?;
                replay.apply(message.timestamp, &change)?;
            }
            next = page.last().and_then(|last| since::following(last.timestamp));
        }
        Ok(())
    }
}

fn decode(
    is_encrypted: bool,
    content: Bytes,
    key: Option<&AppKey>,
) -> Result<CellMessage, ExportError> {
    let damaged = |why| ExportError::damaged("cannot read a change that an app made", why);
    if !is_encrypted {
        return CellMessage::decode(content).map_err(damaged);
    }
    let sealed = EncryptedData::decode(content).map_err(damaged)?;
    let opened = key.ok_or(ExportError::Encrypted)?.open(sealed)?;
    CellMessage::decode(&opened[..]).map_err(damaged)
}

/// Removes everything that belongs to one device: the importing device then uses a node id of its
/// own.
fn make_portable(metadata: &mut Map<String, Value>) {
    for member in METADATA_OF_A_DEVICE {
        metadata.remove(member);
    }
    metadata.insert("resetClock".to_owned(), Value::Bool(true));
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn metadata_keeps_nothing_of_the_server_and_no_token() {
        let mut metadata = json!({
            "id": "Home-1", "budgetName": "Home", "cloudFileId": "f", "groupId": "g",
            "lastUploaded": "2026-11-01", "encryptKeyId": "k", "resetClock": false,
            "lastSyncedTimestamp": "2026", "userId": "a-token",
        });
        let metadata = metadata.as_object_mut().unwrap();
        make_portable(metadata);
        let expected = json!({"id": "Home-1", "budgetName": "Home", "resetClock": true});
        assert_eq!(json!(metadata), expected);
    }
}
