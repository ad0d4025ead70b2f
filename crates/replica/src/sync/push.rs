//! Pushes pages of unsent messages, and reacts to each kind of refusal.

use bytes::Bytes;
use crdt::Change;
use protocol::{ErrorCode, PushOutcome, PushRequest, SyncRound};

use super::{SyncDriver, enter_set, fingerprint};
use crate::capture::provisional_keys;
use crate::error::{Error, Result};
use crate::inspect::devices::pending_upload_count;
use crate::log::content_codec::ContentCodec;
use crate::log::message_log::rewrite::reassign_node_id;
use crate::log::message_log::{self, AssumedServerState, MessageLog, UnsentPage};
use crate::meta::{self, ReplicaMetaKey};
use crate::progress::SyncProgress;
use crate::sql_value::key_to_literals;
use crate::sync::account_encryption;

/// The maximum content bytes of a pushed page, which leaves room for framing within the server's
/// body limit.
const PAGE_BYTES_MAX: usize = protocol::PAGE_BYTES_MAX;
/// The number of times that one sync may find that it shares a node id. Once is enough, unless
/// random numbers are weak.
const NODE_REASSIGNMENTS_MAX: u32 = 3;

/// The number of times that one sync gives new timestamps to messages that the server rejects as
/// too far ahead: after the messages that the server should hold, then as if it held none ahead,
/// then for messages that a comparison marks as unsent.
const RETIMESTAMPS_MAX: u32 = 3;

/// The number of times that other devices may push between this device's pull and the push that
/// must follow it, in one sync.
const OVERTAKEN_COUNT_MAX: u32 = 50;

impl SyncDriver<'_, '_> {
    pub(super) async fn push(&mut self, round: &mut SyncRound) -> Result<()> {
        let db = &self.replica.db;
        let has_provisional = provisional_keys::is_any(db)?;
        if has_provisional && message_log::has_unmerged(db)? {
            // Another device may have assigned the same keys.
            self.apply()?;
        }
        self.replica.transaction(account_encryption::fix_encryption_mode)?;
        if self.sent == 0 {
            self.to_send = message_log::unsent_count(db)?;
        }
        let codec = ContentCodec::load(db)?;
        let page = self.unsent_page(&codec)?;
        let unsent = pending_upload_count(db)?.saturating_sub(page.messages.len() as u64);
        let request = PushRequest {
            messages: page.messages.iter().cloned().map(Into::into).collect(),
            key_id: Bytes::copy_from_slice(codec.encryption_mode().as_bytes()),
            expected_cursor: if has_provisional {
                Some(meta::number(db, ReplicaMetaKey::Cursor)?)
            } else {
                None
            },
            set_id: meta::number(db, ReplicaMetaKey::CursorSet)?,
        };
        let answer = match self.transport.push(&self.token, &request, unsent).await {
            Err(Error::RejectedByServer { code: ErrorCode::TimestampConflict, .. })
                if self.node_reassignments < NODE_REASSIGNMENTS_MAX =>
            {
                self.node_reassignments += 1;
                self.report.registered_copy = true;
                return self.replica.transaction(reassign_node_id);
            }
            Err(Error::RejectedByServer { code: ErrorCode::ClockDrift, .. })
                if self.retimestamps < RETIMESTAMPS_MAX =>
            {
                return self.retimestamp_unsent();
            }
            Err(Error::RejectedByServer { code: ErrorCode::StaleCursor, .. })
                if self.overtaken_count < OVERTAKEN_COUNT_MAX =>
            {
                self.overtaken_count += 1;
                round.handle_stale_cursor();
                return Ok(());
            }
            Err(error @ Error::RejectedByServer { code: ErrorCode::EncryptionMismatch, .. }) => {
                return self.follow(error, round).await;
            }
            Err(error @ Error::RejectedByServer { code: ErrorCode::InvalidTimestamp, .. }) => {
                return self.set_aside(error, &page);
            }
            Err(error) => return self.shrink_pages(error, Some(&page)),
            Ok(answer) => answer,
        };
        let pushed = PushOutcome {
            stored: answer.stored_count,
            cursor: answer.cursor,
            fingerprint: fingerprint(answer.fingerprint.as_ref())?,
        };
        self.replica.transaction(|db| {
            page.mark_sent(db)?;
            let cursor = enter_set(db, answer.set_id)?;
            meta::set_number(db, ReplicaMetaKey::Cursor, pushed.cursor_after(cursor))
        })?;
        self.sent += page.messages.len() as u64;
        self.report.sent_count += answer.stored_count;
        (self.options.progress)(SyncProgress::Sent(self.sent, self.sent.max(self.to_send)));
        round.handle_push(pushed);
        Ok(())
    }

    fn retimestamp_unsent(&mut self) -> Result<()> {
        let holds = if self.retimestamps == 0 {
            AssumedServerState::HasAllSent
        } else {
            AssumedServerState::HasNothingAhead
        };
        self.retimestamps += 1;
        let server_ms = self.server_ms;
        self.replica.transaction(|db| message_log::retimestamp_unsent(db, server_ms, holds))
    }

    /// Returns a page of unsent messages, in the account's encryption mode.
    fn unsent_page(&self, codec: &ContentCodec) -> Result<UnsentPage> {
        let page = UnsentPage::read(&self.replica.db, self.page_count, PAGE_BYTES_MAX)?;
        if page.messages.is_empty() {
            let reason = "it is queued for sending but missing".into();
            return Err(Error::CorruptMessage { timestamp: "of an unsent change".into(), reason });
        }
        if let Some(foreign) = page.messages.iter().find(|one| !codec.is_own_form(&one.content)) {
            let reason = "its encryption does not match the account's".into();
            return Err(Error::CorruptMessage { timestamp: foreign.timestamp.to_string(), reason });
        }
        Ok(page)
    }

    /// Searches the message of the page whose timestamp the server rejects as invalid, by halving
    /// pages, and sets it aside, so that it does not delay others.
    fn set_aside(&mut self, refusal: Error, page: &UnsentPage) -> Result<()> {
        if let [message] = &page.messages[..] {
            let timestamp = message.timestamp;
            if !self.replica.transaction(|db| message_log::set_aside(db, timestamp))? {
                return Err(refusal);
            }
            self.page_count = self.page_count_before.take().unwrap_or(self.page_count);
            return Ok(());
        }
        self.page_count_before.get_or_insert(self.page_count);
        self.page_count = page.messages.len() / 2;
        Ok(())
    }

    /// Halves the page, because a server, or a proxy in front of it, may have unusually low limits.
    pub(super) fn shrink_pages(&mut self, error: Error, page: Option<&UnsentPage>) -> Result<()> {
        if !error.is_too_large() {
            return Err(error);
        }
        let count = page.map_or(self.page_count, |page| page.messages.len());
        if count > 1 {
            self.page_count = count / 2;
            return Ok(());
        }
        let log = MessageLog::open(&self.replica.db)?;
        let change = page.and_then(|page| log.decode(page.messages.first()?).ok());
        let row = match change {
            Some(Change::Write { table, key, .. }) => {
                format!("the row of {table} with key {}", key_to_literals(&key))
            }
            Some(Change::Chunk { bytes }) => {
                format!("part of a large value ({} bytes)", bytes.len())
            }
            _ => return Err(error),
        };
        Err(match error {
            Error::RejectedByServer { code, message } => {
                Error::RejectedByServer { code, message: format!("{message}: {row}") }
            }
            _ => Error::ProxyBodyLimit { row },
        })
    }
}
