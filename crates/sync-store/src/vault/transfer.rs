//! Copying a vault from one place to another, so that devices find there what they left.
//!
//! Messages keep their order of arrival, and so their numbers: a device's cursor means the same in
//! the copy. (Where messages were deleted by hand, numbers are closed up, and devices notice by the
//! fingerprint.) A copy that broke off goes on where it stopped.

use std::sync::Arc;

use super::batch::MessageBatch;
use super::{Quota, Vault, VaultSummary};
use crate::error::{Error, Result};

/// Messages, and bytes of contents, that are held in memory.
const COUNT_MAX: usize = 20_000;
const BYTES_MAX: usize = 8 << 20;

/// Copies what `from` has and `to` has not, devices, chunks and the gateway's state included;
/// returns the summary of both.
///
/// `progress` is told how many messages are done. [`Error::CopyDiffers`] if the two are not equal
/// afterwards: `to` had other messages, or `from` was changed meanwhile.
pub async fn copy_vault(
    from: &Vault,
    to: &Vault,
    mut progress: impl FnMut(u64),
) -> Result<VaultSummary> {
    // Numbers at the source have gaps at most, so what comes after this number is enough.
    let mut cursor = to.summary().await?.cursor;
    loop {
        let page = from.page(cursor, COUNT_MAX, BYTES_MAX, None).await?;
        // A batch is stored in order of time: a run of messages that arrived in that order each.
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
    // Last: it names chunks, and when it is on the disk they are.
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
    // In order, both.
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

/// Compares what gateways keep.
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
