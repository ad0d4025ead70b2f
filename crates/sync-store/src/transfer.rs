//! Copying a vault from one place to another, so that devices find there what they left.
//!
//! Messages keep their order of arrival, and so their numbers: a device's cursor means the same in
//! the copy. (Where messages were deleted by hand, numbers are closed up, and devices notice by the
//! fingerprint.) A copy that broke off goes on where it stopped.

use std::sync::Arc;

use crate::batch::Batch;
use crate::error::{Error, Result};
use crate::store::{Quota, State, Vault};

/// Messages, and bytes of contents, that are held in memory.
const COUNT_MAX: usize = 20_000;
const BYTES_MAX: usize = 8 << 20;

/// Copies what `from` has and `to` has not, devices, pieces and the record included; returns the
/// state of both.
///
/// `progress` is told how many messages are done. [`Error::CopyDiffers`] if the two are not equal
/// afterwards: `to` had other messages, or `from` was changed meanwhile.
pub async fn copy(from: &Vault, to: &Vault, mut progress: impl FnMut(u64)) -> Result<State> {
    // Numbers at the source have gaps at most, so what comes after this number is enough.
    let mut cursor = to.state().await?.cursor;
    loop {
        let page = from.page(cursor, COUNT_MAX, BYTES_MAX, None).await?;
        // A batch is stored in order of time: a run of messages that arrived in that order each.
        for run in page.messages.chunk_by(|one, next| one.timestamp < next.timestamp) {
            let batch = Batch::new(run.to_vec())?;
            let stored = to.store(batch, Quota::UNLIMITED, None).await?;
            progress(stored.after.fingerprint.count);
        }
        cursor = page.cursor;
        if !page.more {
            break;
        }
    }
    copy_clients(from, to).await?;
    copy_pieces(from, to).await?;
    // Last: it names pieces, and when it is on the disk they are.
    let record = from.record().await?.record;
    to.exchange(Batch::default(), Arc::new(move |_, _| Ok(record.to_vec()))).await?;
    check_gateways(from, to).await?;
    let (source, copied) = (from.state().await?, to.state().await?);
    let is_equal = source.fingerprint == copied.fingerprint && source.bytes == copied.bytes;
    if !is_equal {
        let (source, copied) = (source.fingerprint, copied.fingerprint);
        return Err(differs(format!("here {source}; there {copied}")));
    }
    let verified = to.verify().await?;
    verified.is_equal().then_some(copied).ok_or_else(|| {
        let (recorded, computed) = (verified.recorded.fingerprint, verified.computed.fingerprint);
        differs(format!("there {recorded} is recorded, and {computed} found"))
    })
}

async fn copy_clients(from: &Vault, to: &Vault) -> Result<()> {
    let old = to.clients().await?.into_iter().map(|client| client.id).collect();
    to.remove_clients(old).await?;
    for client in from.clients().await? {
        to.add_client(client).await?;
    }
    Ok(())
}

async fn copy_pieces(from: &Vault, to: &Vault) -> Result<()> {
    let pieces = from.pieces().await?;
    // In order, both.
    for piece in to.pieces().await? {
        if pieces.binary_search(&piece).is_err() {
            to.remove_blob(piece.blob).await?;
        }
    }
    for id in pieces {
        let Some(content) = from.piece(id).await? else { continue };
        if to.piece(id).await?.as_ref() != Some(&content) {
            to.put_piece(id, content).await?;
        }
    }
    Ok(())
}

/// Compares what gateways keep.
async fn check_gateways(from: &Vault, to: &Vault) -> Result<()> {
    if from.record().await?.record != to.record().await?.record {
        return Err(differs("the record".to_owned()));
    }
    let pieces = from.pieces().await?;
    if pieces != to.pieces().await? {
        return Err(differs("which pieces there are".to_owned()));
    }
    for id in pieces {
        if from.piece(id).await? != to.piece(id).await? {
            return Err(differs(format!("piece {} of blob {}", id.number, id.blob.get())));
        }
    }
    Ok(())
}

fn differs(what: String) -> Error {
    Error::CopyDiffers { what }
}
