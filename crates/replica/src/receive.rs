//! Receiving: what the server sent goes into the log, whatever it is.

use crdt::Message;
use rusqlite::Connection;

use crate::codec::Codec;
use crate::error::{Error, Result};
use crate::log::{self, Kept, Log};
use crate::report::Report;
use crate::sync::PROGRESS_EVERY;
use crate::{erasure, meta};

/// Puts messages of the account's plain set into the log of a file that seals, as the device that
/// wrote them would have sealed them.
pub(crate) fn keep_sealed(
    db: &Connection,
    messages: &[Message],
    report: &mut Report,
) -> Result<u64> {
    let codec = Codec::load(db)?;
    let sealed = messages.iter().filter_map(|message| {
        let content = Codec::PLAIN.open(message)?;
        Some(codec.seal(message.timestamp, content).into())
    });
    keep(db, sealed.collect(), report, |_| {})
}

/// Puts received messages into the log; returns how many were new. `progress` hears how many were
/// until then.
pub(crate) fn keep(
    db: &Connection,
    messages: Vec<protocol::Message>,
    report: &mut Report,
    mut progress: impl FnMut(u64),
) -> Result<u64> {
    let log = Log::open(db)?;
    let mut total = meta::fingerprint(db)?;
    let before = total.count;
    let mut erased = Vec::new();
    for (place, message) in messages.into_iter().enumerate() {
        if place > 0 && place.is_multiple_of(PROGRESS_EVERY) {
            progress(total.count - before);
        }
        let Ok(message) = Message::try_from(message) else {
            // Nothing can be kept under what is no timestamp.
            report.refused.unreadable += 1;
            continue;
        };
        match log.add_remote(&message, &mut total)? {
            Kept::New | Kept::Known => continue,
            Kept::Refused(refusal) => {
                report.refused.add(message.timestamp, refusal);
                continue;
            }
            Kept::Erased(one) => {
                erased.push(one);
                continue;
            }
            Kept::Conflict => {}
        }
        // The server has another device's change under a name that this one gave, too.
        meta::set_fingerprint(db, &total)?;
        become_device(db)?;
        total = meta::fingerprint(db)?;
        if matches!(log.add_remote(&message, &mut total)?, Kept::Conflict) {
            let why = "the server has another content for it".into();
            return Err(Error::Damaged { timestamp: message.timestamp.to_string(), why });
        }
    }
    meta::set_fingerprint(db, &total)?;
    if !erased.is_empty() {
        erasure::follow(db, &erased)?;
        report.erased += erased.len() as u64;
    }
    Ok(total.count - before)
}

/// Takes another node id and names the unsent changes anew.
pub(crate) fn become_device(db: &Connection) -> Result<()> {
    let old = meta::node(db)?;
    let new = meta::new_node(db)?;
    log::rename_unsent(db, old, new)
}
