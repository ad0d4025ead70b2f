//! Appends received messages to the log, whatever they contain.

use crdt::Message;
use rusqlite::Connection;

use super::content_codec::ContentCodec;
use super::message_log::rewrite::reassign_node_id;
use super::message_log::{AppendOutcome, MessageLog};
use crate::error::{Error, Result};
use crate::inspect::erasure;
use crate::meta;
use crate::progress::PROGRESS_EVERY;
use crate::sync::sync_report::SyncReport;

/// Appends messages of the account's plain set to the log of an end-to-end encrypted file, sealed
/// as the device that wrote them would have sealed them.
pub(crate) fn keep_sealed(
    db: &Connection,
    messages: &[Message],
    report: &mut SyncReport,
) -> Result<u64> {
    let codec = ContentCodec::load(db)?;
    let sealed = messages.iter().filter_map(|message| {
        let content = ContentCodec::PLAIN.open(message)?;
        Some(codec.seal(message.timestamp, content).into())
    });
    append_received(db, sealed.collect(), report, |_| {})
}

/// Appends received messages to the log. Returns how many were new; `progress` receives that number
/// while it grows.
pub(crate) fn append_received(
    db: &Connection,
    messages: Vec<protocol::WireMessage>,
    report: &mut SyncReport,
    mut progress: impl FnMut(u64),
) -> Result<u64> {
    let log = MessageLog::open(db)?;
    let mut total = meta::fingerprint(db)?;
    let before = total.count;
    let mut erased = Vec::new();
    for (place, message) in messages.into_iter().enumerate() {
        if place > 0 && place.is_multiple_of(PROGRESS_EVERY) {
            progress(total.count - before);
        }
        let Ok(message) = Message::try_from(message) else {
            // Without a valid timestamp, a message cannot be stored.
            report.rejected.by_reason.undecodable += 1;
            continue;
        };
        match log.add_remote(&message, &mut total)? {
            AppendOutcome::New | AppendOutcome::Duplicate => continue,
            AppendOutcome::Rejected(refusal) => {
                report.rejected.add(message.timestamp, refusal);
                continue;
            }
            AppendOutcome::Erased(one) => {
                erased.push(one);
                continue;
            }
            AppendOutcome::TimestampReused => {}
        }
        // The server has another device's change under a timestamp that this device has used, too.
        meta::set_fingerprint(db, &total)?;
        reassign_node_id(db)?;
        total = meta::fingerprint(db)?;
        if matches!(log.add_remote(&message, &mut total)?, AppendOutcome::TimestampReused) {
            let reason = "the server has different content for it".into();
            return Err(Error::CorruptMessage { timestamp: message.timestamp.to_string(), reason });
        }
    }
    meta::set_fingerprint(db, &total)?;
    if !erased.is_empty() {
        erasure::apply_erasures(db, &erased)?;
        report.erased_count += erased.len() as u64;
    }
    Ok(total.count - before)
}
