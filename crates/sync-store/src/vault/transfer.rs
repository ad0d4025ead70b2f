//! Copies a vault from one storage to another, so that devices can continue with the copy.
//!
//! Messages keep their order of arrival, and so their sequence numbers: a device's cursor means the
//! same in the copy. (If messages were deleted by hand, the gaps are closed, and devices notice by
//! the fingerprint.) An interrupted copy resumes where it stopped.

use std::sync::Arc;

use super::batch::MessageBatch;
use super::{Quota, Vault, VaultSummary};
use crate::error::{Error, Result};

/// The limits of messages, and of bytes of contents, in memory.
const COUNT_MAX: usize = 20_000;
const BYTES_MAX: usize = 8 << 20;

/// Copies what `to` lacks from `from`, including devices, chunks and the gateway's state, and
/// returns the summary of both.
///
/// `progress` is called with the number of copied messages. Returns [`Error::CopyDiffers`] if the
/// two differ afterwards: `to` had other messages, or `from` was changed at the same time.
pub async fn copy_vault(
    from: &Vault,
    to: &Vault,
    mut progress: impl FnMut(u64),
) -> Result<VaultSummary> {
    // The source's numbers may have gaps but are never lower, so the messages after this number
    // suffice.
    let mut cursor = to.summary().await?.cursor;
    loop {
        let page = from.page(cursor, COUNT_MAX, BYTES_MAX, None).await?;
        // A batch is stored in order of time, so each run of messages that arrived in that order is
        // a batch.
        for run in page.messages.chunk_by(|one, next| one.timestamp < next.timestamp) {
            let batch = MessageBatch::new(run.to_vec())?;
            let stored = to.store(batch, Quota::UNLIMITED, None).await?;
            progress(stored.after.fingerprint.count);
        }
        cursor = page.cursor;
        if !page.more {
            break;
        }
    }
    copy_devices(from, to).await?;
    copy_blob_chunks(from, to).await?;
    // The state comes last: it names chunks, and when it is on the disk, they are, too.
    let state = from.gateway_state().await?.state;
    to.exchange(MessageBatch::default(), Arc::new(move |_, _| Ok(state.to_vec()))).await?;
    check_gateways(from, to).await?;
    let (source, copied) = (from.summary().await?, to.summary().await?);
    let is_equal = source.fingerprint == copied.fingerprint && source.bytes == copied.bytes;
    if !is_equal {
        let (source, copied) = (source.fingerprint, copied.fingerprint);
        return Err(differs(format!("the source has {source}; the copy has {copied}")));
    }
    let verified = to.verify().await?;
    verified.is_equal().then_some(copied).ok_or_else(|| {
        let (recorded, computed) = (verified.recorded.fingerprint, verified.computed.fingerprint);
        differs(format!("the copy records {recorded}, but contains {computed}"))
    })
}

async fn copy_devices(from: &Vault, to: &Vault) -> Result<()> {
    let old = to.devices().await?.into_iter().map(|device| device.id).collect();
    to.remove_devices(old).await?;
    for device in from.devices().await? {
        to.add_device(device).await?;
    }
    Ok(())
}

async fn copy_blob_chunks(from: &Vault, to: &Vault) -> Result<()> {
    let chunks = from.chunk_ids().await?;
    // Both lists are sorted.
    for chunk in to.chunk_ids().await? {
        if chunks.binary_search(&chunk).is_err() {
            to.remove_blob(chunk.blob).await?;
        }
    }
    for id in chunks {
        let Some(content) = from.chunk(id).await? else { continue };
        if to.chunk(id).await?.as_ref() != Some(&content) {
            to.put_chunk(id, content).await?;
        }
    }
    Ok(())
}

/// Compares the data of gateways in both vaults.
async fn check_gateways(from: &Vault, to: &Vault) -> Result<()> {
    if from.gateway_state().await?.state != to.gateway_state().await?.state {
        return Err(differs("the gateway's state".to_owned()));
    }
    let chunks = from.chunk_ids().await?;
    if chunks != to.chunk_ids().await? {
        return Err(differs("the list of chunks".to_owned()));
    }
    for id in chunks {
        if from.chunk(id).await? != to.chunk(id).await? {
            return Err(differs(format!("chunk {} of blob {}", id.number, id.blob.get())));
        }
    }
    Ok(())
}

fn differs(what: String) -> Error {
    Error::CopyDiffers { what }
}
