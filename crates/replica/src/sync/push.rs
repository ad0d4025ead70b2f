//! The sync's push: a page of unsent messages, and what a device does about each refusal.

use bytes::Bytes;
use crdt::Change;
use protocol::{ErrorCode, PushRequest, Pushed, Round};

use super::{Progress, Session, enter, fingerprint};
use crate::codec::Codec;
use crate::devices::to_send;
use crate::error::{Error, Result};
use crate::log::{self, Holds, Log, UnsentPage};
use crate::meta::{self, Key};
use crate::receive::become_device;
use crate::value::literals;
use crate::{counted, form};

/// Content bytes of a page that is sent: leaves room for framing within the server's body limit.
const PAGE_BYTES_MAX: usize = protocol::PAGE_BYTES_MAX;
/// How often one sync may find that it shares a node id: once is enough, unless ids are drawn
/// badly.
const RENAMES_COUNT_MAX: u32 = 3;

/// How often what the server refuses as too far ahead is stamped again in one sync: after what it
/// should hold; as if it held nothing ahead; and what a comparison then brings.
const RESTAMPS_COUNT_MAX: u32 = 3;

/// How often others may push between a pull and a push that has to follow it, in one sync.
const OVERTAKINGS_COUNT_MAX: u32 = 50;

impl Session<'_, '_> {
    pub(super) async fn push(&mut self, round: &mut Round) -> Result<()> {
        let db = &self.replica.db;
        let counted = counted::is_any(db)?;
        if counted && log::is_unmerged(db)? {
            // Another device may have given the same keys.
            self.apply()?;
        }
        self.replica.transaction(form::settle)?;
        if self.sent == 0 {
            self.to_send = log::unsent_count(db)?;
        }
        let codec = Codec::load(db)?;
        let page = self.unsent_page(&codec)?;
        let unsent = to_send(db)?.saturating_sub(page.messages.len() as u64);
        let request = PushRequest {
            messages: page.messages.iter().cloned().map(Into::into).collect(),
            key_id: Bytes::copy_from_slice(codec.form().as_bytes()),
            after: if counted { Some(meta::number(db, Key::Cursor)?) } else { None },
            set_id: meta::number(db, Key::CursorSet)?,
        };
        let answer = match self.transport.push(&self.token, &request, unsent).await {
            Err(Error::Refused { code: ErrorCode::TimestampConflict, .. })
                if self.renames < RENAMES_COUNT_MAX =>
            {
                self.renames += 1;
                self.report.became_device = true;
                return self.replica.transaction(become_device);
            }
            Err(Error::Refused { code: ErrorCode::ClockDrift, .. })
                if self.restamps < RESTAMPS_COUNT_MAX =>
            {
                let holds = if self.restamps == 0 { Holds::Sent } else { Holds::NothingAhead };
                self.restamps += 1;
                let server_ms = self.server_ms;
                return self.replica.transaction(|db| log::restamp_unsent(db, server_ms, holds));
            }
            Err(Error::Refused { code: ErrorCode::Behind, .. })
                if self.overtakings < OVERTAKINGS_COUNT_MAX =>
            {
                self.overtakings += 1;
                round.overtaken();
                return Ok(());
            }
            Err(error @ Error::Refused { code: ErrorCode::FormMismatch, .. }) => {
                return self.follow(error, round).await;
            }
            Err(error @ Error::Refused { code: ErrorCode::InvalidTimestamp, .. }) => {
                return self.set_aside(error, &page);
            }
            Err(error) => return self.smaller_pages(error, Some(&page)),
            Ok(answer) => answer,
        };
        let pushed = Pushed {
            stored: answer.stored,
            cursor: answer.cursor,
            fingerprint: fingerprint(answer.fingerprint.as_ref())?,
        };
        self.replica.transaction(|db| {
            page.mark_sent(db)?;
            let cursor = enter(db, answer.set_id)?;
            meta::set_number(db, Key::Cursor, pushed.cursor_after(cursor))
        })?;
        self.sent += page.messages.len() as u64;
        self.report.sent += answer.stored;
        (self.options.progress)(Progress::Sent(self.sent, self.sent.max(self.to_send)));
        round.pushed(pushed);
        Ok(())
    }

    /// A page of what is to be sent, in the form of the account's messages.
    fn unsent_page(&self, codec: &Codec) -> Result<UnsentPage> {
        let page = UnsentPage::read(&self.replica.db, self.page_count, PAGE_BYTES_MAX)?;
        if page.messages.is_empty() {
            let why = "it is to be sent, and cannot be found".into();
            return Err(Error::Damaged { timestamp: "of an unsent change".into(), why });
        }
        if let Some(foreign) = page.messages.iter().find(|one| !codec.is_own_form(&one.content)) {
            let why = "it is to be sent, and not of the account's form".into();
            return Err(Error::Damaged { timestamp: foreign.timestamp.to_string(), why });
        }
        Ok(page)
    }

    /// The server calls a timestamp of the page invalid. It is looked for in halves, and its message
    /// set aside, so that it holds up no other.
    fn set_aside(&mut self, refusal: Error, page: &UnsentPage) -> Result<()> {
        if let [message] = &page.messages[..] {
            let timestamp = message.timestamp;
            if !self.replica.transaction(|db| log::set_aside(db, timestamp))? {
                return Err(refusal);
            }
            self.page_count = self.page_count_before.take().unwrap_or(self.page_count);
            return Ok(());
        }
        self.page_count_before.get_or_insert(self.page_count);
        self.page_count = page.messages.len() / 2;
        Ok(())
    }

    /// A server, or a proxy in front of it, may be set to less than what is usual: what is too
    /// large is tried again in halves.
    pub(super) fn smaller_pages(&mut self, error: Error, page: Option<&UnsentPage>) -> Result<()> {
        if !error.is_too_large() {
            return Err(error);
        }
        let count = page.map_or(self.page_count, |page| page.messages.len());
        if count > 1 {
            self.page_count = count / 2;
            return Ok(());
        }
        let log = Log::open(&self.replica.db)?;
        let change = page.and_then(|page| log.decode(page.messages.first()?).ok());
        let row = match change {
            Some(Change::Write { table, key, .. }) => {
                format!("the row of {table} with key {}", literals(&key))
            }
            Some(Change::Part { bytes }) => {
                format!("a part of a large value ({} bytes)", bytes.len())
            }
            _ => return Err(error),
        };
        Err(match error {
            Error::Refused { code, message } => {
                Error::Refused { code, message: format!("{message}: {row}") }
            }
            _ => Error::ProxyLimit { row },
        })
    }
}
