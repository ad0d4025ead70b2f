//! Imports one budget from the old server's files into a vault.
//!
//! # Invariants
//! - Memory holds at most a page of messages and a chunk of the file, and the trie.
//! - The gateway state is written last: without it there is no budget.

use std::fs;
use std::io::Read as _;
use std::path::Path;
use std::sync::Arc;
use std::time::UNIX_EPOCH;

use bytes::Bytes;
use crdt::{Message, Timestamp};
use rusqlite::{OptionalExtension, Rows as SqlRows};
use sync_store::{BlobChunkId, BlobId, MessageBatch, Vault};

use crate::content;
use crate::gateway::PIECE_BYTES;
use crate::gateway_state::{BudgetFile, BudgetState};
use crate::import::error::ImportError;
use crate::import::old_file::OldFile;
use crate::import::report::{ImportProgress, ImportedBudget, RowExamples};
use crate::import::source_server::{SourceBudget, SourceServer};
use crate::trie::MerkleTrie;

/// Limits of the messages in one transaction: their count, and the bytes of their contents.
const PAGE_COUNT_MAX: usize = 10_000;
const PAGE_BYTES_MAX: usize = 8 << 20;

/// The imported messages of a budget, and their trie.
#[derive(Default)]
struct ImportedMessages {
    count: u64,
    bytes: u64,
    not_canonical: RowExamples,
    trie: MerkleTrie,
    trie_fault: Option<String>,
}

pub(super) async fn import_budget(
    vault: &Vault,
    published: &SourceServer,
    file: &SourceBudget,
    created_ms: u64,
    progress: &mut ImportProgress<'_>,
) -> Result<ImportedBudget, ImportError> {
    let blob = put_file(vault, &published.blob_path(file)).await?;
    let taken = match published.group_path(file) {
        Some(path) => put_messages(vault, &path, progress).await?,
        None => ImportedMessages::default(),
    };
    let budget = BudgetState {
        file_id: file.id.clone(),
        group_id: file.group_id.clone(),
        name: file.name.clone(),
        format: file.format.clone(),
        encrypt_meta: file.encrypt_meta.clone(),
        key: file.key.clone(),
        is_deleted: file.is_deleted,
        file: blob,
        created_ms,
    };
    let mut record = Vec::new();
    budget.encode_header(&mut record);
    taken.trie.encode(&mut record);
    vault.exchange(MessageBatch::default(), Arc::new(move |_, _| Ok(record.clone()))).await?;
    Ok(ImportedBudget {
        file_id: budget.file_id,
        group_id: budget.group_id,
        name: budget.name,
        deleted: budget.is_deleted,
        encrypted: budget.key.id.is_some(),
        messages_count: taken.count,
        content_bytes: taken.bytes,
        file_bytes: blob.map(|blob| blob.bytes),
        trie_fault: taken.trie_fault,
        not_canonical: taken.not_canonical,
    })
}

/// Writes the budget's file in chunks; `None` if there is none.
async fn put_file(vault: &Vault, path: &Path) -> Result<Option<BudgetFile>, ImportError> {
    let error = || ImportError::io(path);
    let mut file = match fs::File::open(path) {
        Ok(file) => file,
        Err(missing) if missing.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(error()(source)),
    };
    let modified = file.metadata().and_then(|metadata| metadata.modified()).map_err(error())?;
    // The time is rounded as in Node, because the old server uses it in the file's entity tag.
    let modified = modified.duration_since(UNIX_EPOCH).unwrap_or_default();
    let modified_ms = (modified.as_nanos() + 500_000) / 1_000_000;
    let (blob, mut bytes) = (BlobId::generate(), 0);
    for number in 0..BlobChunkId::COUNT_MAX {
        let mut chunk = Vec::with_capacity(PIECE_BYTES);
        (&mut file).take(PIECE_BYTES as u64).read_to_end(&mut chunk).map_err(error())?;
        if chunk.is_empty() {
            break;
        }
        bytes += chunk.len() as u64;
        vault.put_chunk(BlobChunkId { blob, number }, chunk.into()).await?;
    }
    let modified_ms = u64::try_from(modified_ms).unwrap_or_default();
    Ok(Some(BudgetFile { blob: blob.get(), bytes, modified_ms }))
}

/// Stores the messages of a group; none if its file does not exist, as before the first sync.
async fn put_messages(
    vault: &Vault,
    path: &Path,
    progress: &mut ImportProgress<'_>,
) -> Result<ImportedMessages, ImportError> {
    let Some(group) = OldFile::open(path)? else { return Ok(ImportedMessages::default()) };
    let sql = "SELECT timestamp, is_encrypted, content FROM messages_binary ORDER BY timestamp";
    let mut statement = group.db.prepare(sql).map_err(ImportError::old(path))?;
    let mut rows = statement.query([]).map_err(ImportError::old(path))?;
    let mut taken = ImportedMessages::default();
    loop {
        let before = taken.not_canonical.rows_count;
        let page = next_page(&mut rows, &mut taken).map_err(ImportError::old(path))?;
        let skipped = taken.not_canonical.rows_count - before;
        if page.is_empty() && skipped == 0 {
            break;
        }
        let count = page.len() as u64;
        let as_it_is = Arc::new(|record: &[u8], _: &[Timestamp]| Ok(record.to_vec()));
        vault.exchange(MessageBatch::new_keeping_first(page), as_it_is).await?;
        taken.count += count;
        progress.add(count + skipped);
    }
    let sql = "SELECT merkle FROM messages_merkles";
    let recorded = group.db.query_row(sql, [], |row| row.get::<_, Option<String>>(0)).optional();
    let recorded = recorded.map_err(ImportError::old(path))?.flatten();
    match check(recorded.as_deref(), &taken) {
        Ok(trie) => taken.trie = trie,
        Err(fault) => {
            taken.trie.prune();
            taken.trie_fault = Some(fault);
        }
    }
    Ok(taken)
}

/// Reads the next messages and counts them in `taken`.
fn next_page(
    rows: &mut SqlRows<'_>,
    taken: &mut ImportedMessages,
) -> rusqlite::Result<Vec<Message>> {
    let (mut page, mut bytes) = (Vec::new(), 0);
    while page.len() < PAGE_COUNT_MAX && bytes < PAGE_BYTES_MAX {
        let Some(row) = rows.next()? else { break };
        // The value should be a text, but the old server's column accepts anything.
        let text = row.get_ref(0)?.as_bytes_or_null()?.unwrap_or_default();
        let parsed = str::from_utf8(text).ok().and_then(|text| text.parse::<Timestamp>().ok());
        let Some(timestamp) = parsed else {
            taken.not_canonical.add(text);
            continue;
        };
        let is_encrypted = row.get::<_, Option<i64>>(1)? == Some(1);
        let bytes_of_app = row.get_ref(2)?.as_bytes_or_null()?.unwrap_or_default();
        let content = content::pack(is_encrypted, &Bytes::copy_from_slice(bytes_of_app));
        bytes += content.len();
        taken.bytes += bytes_of_app.len() as u64;
        taken.trie.insert(timestamp);
        page.push(Message { timestamp, content });
    }
    Ok(page)
}

/// Returns the recorded trie if it matches the imported messages, or else a description of the
/// fault.
fn check(recorded: Option<&str>, taken: &ImportedMessages) -> Result<MerkleTrie, String> {
    let trie =
        MerkleTrie::from_json(recorded.unwrap_or("{}")).map_err(|error| error.to_string())?;
    let said = |root: Option<i32>| root.map_or("none".to_owned(), |hash| hash.to_string());
    if trie.root() != taken.trie.root() {
        let (recorded, computed) = (said(trie.root()), said(taken.trie.root()));
        return Err(format!("its hash is {recorded}, but the messages have {computed}"));
    }
    if taken.not_canonical.rows_count > 0 {
        return Err("it includes messages that were skipped".to_owned());
    }
    Ok(trie)
}
