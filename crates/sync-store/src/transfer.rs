//! Copying a vault from one place to another, so that devices find there what they left.
//!
//! Messages keep their order of arrival, and so their numbers: a device's cursor means the same in
//! the copy. (Where messages were deleted by hand, numbers are closed up, and devices notice by the
//! fingerprint.) A copy that broke off goes on where it stopped.

use crate::batch::Batch;
use crate::error::{Error, Result};
use crate::store::{Quota, State, Vault};

/// Messages, and bytes of contents, that are held in memory.
const COUNT_MAX: usize = 20_000;
const BYTES_MAX: usize = 8 << 20;

/// Copies what `from` has and `to` has not, devices included; returns the state of both.
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
    let (source, copied) = (from.state().await?, to.state().await?);
    let is_equal = source.fingerprint == copied.fingerprint && source.bytes == copied.bytes;
    if is_equal && to.verify().await?.is_equal() {
        Ok(copied)
    } else {
        Err(Error::CopyDiffers { original: source.fingerprint, copied: copied.fingerprint })
    }
}

async fn copy_clients(from: &Vault, to: &Vault) -> Result<()> {
    let old = to.clients().await?.into_iter().map(|client| client.id).collect();
    to.remove_clients(old).await?;
    for client in from.clients().await? {
        to.add_client(client).await?;
    }
    Ok(())
}
