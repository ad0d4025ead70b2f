//! Runs a sync: drives `protocol::SyncRound` with a transport and the file.
//!
//! # Invariants
//! - Each page is stored before the next one is requested, and each acknowledgement before the next
//!   page is sent, so a killed sync continues where it stopped.
//! - No transaction is open during a network request.
//! - All received messages are applied in one transaction: at the end, and before new rows with
//!   provisional keys are sent.

pub(crate) mod account_encryption;
mod apply;
#[cfg(not(target_family = "wasm"))]
pub(crate) mod blocking;
mod enable_e2ee;
pub(crate) mod file_account;
mod push;
pub(crate) mod recovery_phrase;
pub(crate) mod sign_in;
pub(crate) mod sync_report;

use std::collections::HashSet;

use crdt::{Fingerprint, Timestamp};
use protocol::{
    DeviceState, ErrorCode, PullOutcome, PullResponse, SetReconciler, SyncRound, SyncStep,
};
use rusqlite::Connection;

use self::sync_report::{SetDiscrepancy, SyncReport};
use crate::capture::timestamping::{self, CorrectedClock};
use crate::error::{Error, Result};
use crate::inspect::devices::pending_upload_count;
use crate::log::ingest::append_received;
use crate::log::message_log;
use crate::meta::{self, ReplicaMetaKey};
use crate::progress::SyncProgress;
use crate::replica::Replica;
use crate::schema::tracked_table::TrackedTable;
use crate::tracking::schema_change;
use crate::transport::{AsyncTransport, PullParams};

/// The maximum number of messages in a page; the protocol limits its bytes.
const PAGE_COUNT_MAX: usize = 10_000;
/// A clock that is off by more than this is corrected by the server's; less may be the network.
const CLOCK_OFFSET_MS_MAX: u64 = 60_000;

/// The number of times that one sync may meet another message set, because a device enables
/// end-to-end encryption or a server is restored.
const SETS_COUNT_MAX: u32 = 3;

/// The number of unreadable messages that one sync may receive, beyond as many as the file has.
const REFUSALS_COUNT_MAX: u64 = 1_000;

/// The options of a sync, and what it needs from its caller.
pub struct SyncContext<'a> {
    /// Whether to create tables and columns that other devices declared and this file lacks. A file
    /// from [`Replica::create`] always creates them.
    pub create_missing: bool,
    /// Returns the device's clock, in milliseconds since 1970.
    pub now_ms: &'a dyn Fn() -> u64,
    /// Receives the progress of the sync.
    pub progress: &'a mut dyn FnMut(SyncProgress),
}

impl Replica {
    /// Brings this file and the server to the same set of messages, and updates the tables.
    pub async fn sync_async(
        &self,
        transport: &mut dyn AsyncTransport,
        options: SyncContext<'_>,
    ) -> Result<SyncReport> {
        let at_ms = (options.now_ms)();
        let schema_version = self.transaction(|db| {
            schema_change::follow_schema_changes(db, at_ms)?;
            schema_change::schema_version(db)
        })?;
        let mut report = SyncReport::default();
        self.register_copy(transport, &mut report).await?;
        let token = meta::get::<String>(&self.db, ReplicaMetaKey::Token)?
            .ok_or(Error::ServerNotConfigured)?;
        let session = SyncDriver {
            replica: self,
            transport,
            token,
            now: CorrectedClock { device_ms: at_ms, offset_ms: 0 },
            page_count: PAGE_COUNT_MAX,
            page_count_before: None,
            schema_version,
            sent: 0,
            to_send: 0,
            node_reassignments: 0,
            e2ee_attempts: 0,
            sets: 0,
            retimestamps: 0,
            overtaken_count: 0,
            server_ms: 0,
            clock_offset_ms: 0,
            clock_offset_before_ms: meta::get(&self.db, ReplicaMetaKey::ClockOffset)?,
            duplicates_count: 0,
            options,
            report,
        };
        session.run().await
    }
}

struct SyncDriver<'a, 'o> {
    replica: &'a Replica,
    transport: &'a mut dyn AsyncTransport,
    options: SyncContext<'o>,
    token: String,
    now: CorrectedClock,
    page_count: usize,
    /// The `page_count` before the search for a message with an invalid timestamp.
    page_count_before: Option<usize>,
    /// The version of the schema that was compared with the tracked tables.
    schema_version: i64,
    sent: u64,
    to_send: u64,
    node_reassignments: u32,
    e2ee_attempts: u32,
    /// The number of times that the server's answers came from another message set than before.
    sets: u32,
    retimestamps: u32,
    overtaken_count: u32,
    /// The server's clock in its last answer.
    server_ms: u64,
    /// The server's clock minus the device's, in this sync and in the one before.
    clock_offset_ms: i64,
    clock_offset_before_ms: Option<i64>,
    /// The number of messages pulled since the last comparison that this file already had.
    duplicates_count: u64,
    report: SyncReport,
}

impl SyncDriver<'_, '_> {
    async fn run(mut self) -> Result<SyncReport> {
        self.enable_e2ee().await?;
        let mut round = SyncRound::new();
        let outcome = loop {
            match round.next(&self.device()?) {
                SyncStep::Pull if self.pull(&mut round).await? => {}
                SyncStep::Pull => {
                    let reason = "the server sends unencrypted messages to this device".into();
                    self.follow(Error::Unreachable(reason), &mut round).await?;
                }
                SyncStep::Push => match self.push(&mut round).await {
                    Err(error @ Error::RejectedByServer { code: ErrorCode::QuotaExceeded, .. }) => {
                        // The account is full, but the messages of other devices can be applied.
                        self.apply()?;
                        return Err(error);
                    }
                    pushed => pushed?,
                },
                SyncStep::Reconcile => _ = self.reconcile().await?,
                SyncStep::Done(outcome) => break outcome,
            }
        };
        self.ask_for_loss().await;
        self.report.in_sync = outcome.in_sync;
        self.report.reconciled = outcome.reconciled;
        self.report.discrepancy =
            SetDiscrepancy::from_outcome(&outcome, self.device()?.fingerprint.count);
        self.report.server_messages_count = outcome.server.count;
        self.apply()?;
        self.report.unscrubbed = self.replica.scrub()?;
        Ok(self.report)
    }

    fn device(&self) -> Result<DeviceState> {
        let db = &self.replica.db;
        Ok(DeviceState {
            cursor: meta::number(db, ReplicaMetaKey::Cursor)?,
            has_unsent: message_log::has_unsent(db)?,
            fingerprint: meta::fingerprint(db)?,
        })
    }

    /// Pulls the messages after the cursor. Returns `false` and stores nothing if the file is
    /// end-to-end encrypted and the server offers the plain set of its account.
    async fn pull(&mut self, round: &mut SyncRound) -> Result<bool> {
        let db = &self.replica.db;
        let cursor = meta::number(db, ReplicaMetaKey::Cursor)?;
        // A new device without the recovery phrase fetches nothing that it could not show: it only
        // checks whether the account is still encrypted.
        let is_new = meta::number(db, ReplicaMetaKey::LastSyncedMs)? == 0
            && account_encryption::pending_phrase(db)?.is_none();
        let limit = if is_new && account_encryption::require_matching_mode(db).is_err() {
            1
        } else {
            self.page_count
        };
        let answer = match self.ask(cursor, limit).await {
            Err(error) => return self.shrink_pages(error, None).map(|()| true),
            Ok(answer) => answer,
        };
        if account_encryption::is_news(db, answer.encryption.as_ref())? {
            self.replica.transaction(|db| {
                account_encryption::record_server_mode(db, answer.encryption.as_ref())
            })?;
        }
        if !account_encryption::may_take(&self.replica.db, answer.in_plain)? {
            return Ok(false);
        }
        let is_far_behind = answer.more;
        let is_taken = self.ingest_page(round, answer, cursor)?;
        if is_new {
            account_encryption::require_matching_mode(&self.replica.db)?;
        }
        if is_taken && is_far_behind {
            self.stream(round).await?;
        }
        Ok(true)
    }

    /// Requests a page of the message set that the server lets this device read.
    async fn ask(&mut self, cursor: u64, limit: usize) -> Result<PullResponse> {
        let db = &self.replica.db;
        let pull = PullParams {
            cursor,
            limit,
            node_id: meta::node_id(db)?,
            unsent_count: pending_upload_count(db)?,
        };
        self.transport.pull(&self.token, &pull).await
    }

    /// Updates the reported loss of the server, because this sync may have sent what was lost.
    async fn ask_for_loss(&mut self) {
        if self.report.server_loss.is_none() || self.report.sent_count == 0 {
            return;
        }
        let Ok(cursor) = meta::number(&self.replica.db, ReplicaMetaKey::Cursor) else { return };
        // The sync is done; without an answer, the next sync updates the loss.
        if let Ok(answer) = self.ask(cursor, 1).await {
            self.report.server_loss = answer.loss;
        }
    }

    /// Receives all further messages in one answer, without a round trip for each page. Each page
    /// is stored before the next one is read.
    async fn stream(&mut self, round: &mut SyncRound) -> Result<()> {
        let mut cursor = meta::number(&self.replica.db, ReplicaMetaKey::Cursor)?;
        let mut pages = self.transport.stream(&self.token, cursor).await?;
        while let Some(answer) = pages.next().await? {
            if !self.ingest_page(round, answer, cursor)? {
                return Ok(());
            }
            cursor = meta::number(&self.replica.db, ReplicaMetaKey::Cursor)?;
        }
        Ok(())
    }

    /// Stores a page. Returns `false` if its set is not the cursor's: the next pull begins at 0.
    fn ingest_page(
        &mut self,
        round: &mut SyncRound,
        answer: PullResponse,
        cursor: u64,
    ) -> Result<bool> {
        self.compare_clocks(answer.server_time_ms);
        self.report.server_loss = answer.loss;
        let db = &self.replica.db;
        if meta::number(db, ReplicaMetaKey::CursorSet)? != answer.set_id {
            self.replica.transaction(|db| enter_set(db, answer.set_id))?;
        }
        if meta::number(db, ReplicaMetaKey::Cursor)? < cursor {
            self.sets += 1;
            if self.sets > SETS_COUNT_MAX {
                return Err(Error::Unreachable("the server keeps changing message sets".into()));
            }
            self.duplicates_count = 0;
            *round = SyncRound::new();
            return Ok(false);
        }
        let pulled = PullOutcome {
            cursor: answer.cursor,
            more: answer.more,
            fingerprint: fingerprint(answer.fingerprint.as_ref())?,
        };
        self.report.server_messages_count = pulled.fingerprint.count;
        let now = self.now;
        let node = meta::node_id(&self.replica.db)?;
        let count = answer.messages.len() as u64;
        if answer.more && count == 0 {
            return Err(Error::Unreachable("the server sent an empty page before the end".into()));
        }
        let report = &mut self.report;
        let refused_before = report.rejected.count();
        let received = report.received_count;
        let total = pulled.fingerprint.count;
        let progress = &mut *self.options.progress;
        let mut tell = |received: u64| {
            progress(SyncProgress::Received(received, total.max(received)));
        };
        let new = self.replica.transaction(|db| {
            // The first pull brings the server's time; from then on local changes can be
            // timestamped.
            report.add_renumbered(timestamping::timestamp_pending(
                db,
                &TrackedTable::all(db)?,
                now,
            )?);
            let new = append_received(db, answer.messages, report, |new| tell(received + new))?;
            meta::set_number(db, ReplicaMetaKey::Cursor, pulled.cursor.max(cursor))?;
            Ok(new)
        })?;
        tell(received + new);
        self.report.received_count += new;
        let refused = self.report.rejected.count() - refused_before;
        self.duplicates_count += count - new - refused;
        let known_count = meta::fingerprint(&self.replica.db)?.count;
        if self.duplicates_count > known_count {
            return Err(Error::Unreachable("the server keeps sending the same changes".into()));
        }
        if self.report.rejected.count() > known_count + REFUSALS_COUNT_MAX {
            return Err(Error::Unreachable("the server keeps sending unreadable messages".into()));
        }
        self.report.registered_copy |= meta::node_id(&self.replica.db)? != node;
        round.handle_pull(pulled, cursor);
        Ok(true)
    }

    /// Compares the clocks. The server's is a hint: it counts if the last sync found the same.
    fn compare_clocks(&mut self, server_ms: u64) {
        let device_ms = (self.options.now_ms)();
        let off = server_ms.cast_signed().saturating_sub(device_ms.cast_signed());
        let confirms = |before: i64| off.abs_diff(before) <= CLOCK_OFFSET_MS_MAX;
        let counts = off.unsigned_abs() > CLOCK_OFFSET_MS_MAX
            && self.clock_offset_before_ms.is_some_and(confirms);
        let offset_ms = if counts { off } else { 0 };
        self.clock_offset_ms = off;
        self.server_ms = server_ms;
        self.report.clock_offset_ms = offset_ms;
        self.now = CorrectedClock { device_ms, offset_ms };
    }

    /// Reconciles both sets: takes the messages that this device lacks, and marks those that the
    /// server lacks. Returns the fingerprint of the server's set if this file now holds all of it.
    async fn reconcile(&mut self) -> Result<Option<Fingerprint>> {
        self.duplicates_count = 0;
        // The fingerprint of the messages that both sides have in the end.
        let (items, mut common) = message_log::entries(&self.replica.db)?;
        // The recorded fingerprint may be what is wrong.
        self.replica.transaction(|db| meta::set_fingerprint(db, &common))?;
        let mut reconcile = SetReconciler::new(items);
        let mut first = None;
        while let Some(request) = reconcile.request() {
            let answer = match self.transport.reconcile(&self.token, &request).await {
                Err(error) if error.is_too_large() && reconcile.shrink_requests() => continue,
                answer => answer?,
            };
            // All messages up to the first answer's cursor took part in the comparison.
            let server = fingerprint(answer.fingerprint.as_ref())?;
            first.get_or_insert((answer.set_id, answer.cursor, server));
            let found = reconcile.handle_response(answer.diffs);
            let found = found.map_err(|nonsense| Error::Unreachable(nonsense.to_string()))?;
            let (report, now) = (&mut self.report, self.now);
            let received = report.received_count;
            let progress = &mut *self.options.progress;
            let mut tell = |received| progress(SyncProgress::Received(received, received));
            let new = self.replica.transaction(|db| {
                // Erasures change the states of rows, to which local changes refer.
                report.add_renumbered(timestamping::timestamp_pending(
                    db,
                    &TrackedTable::all(db)?,
                    now,
                )?);
                common -= message_log::fingerprint_of(db, &found.wanted)?;
                found.missing.iter().filter_map(identity).for_each(|one| common += one);
                let unsendable = message_log::mark_unsent(db, &found.wanted)?;
                let others = found.missing.iter().map(|one| one.timestamp.clone());
                let others: HashSet<_> = others.collect();
                let lacks = |timestamp: &Timestamp| !others.contains(&timestamp.to_bytes()[..]);
                let lacking: Vec<_> = unsendable.into_iter().filter(lacks).collect();
                message_log::forget_unsendable(db, &lacking, &mut report.rejected)?;
                append_received(db, found.missing, report, |new| tell(received + new))
            })?;
            tell(received + new);
            self.report.received_count += new;
        }
        let (set_id, cursor, server) = first.unwrap_or_default();
        self.replica.transaction(|db| {
            enter_set(db, set_id)?;
            meta::set_cursor(db, set_id, cursor)
        })?;
        Ok((common == server).then_some(server))
    }
}

/// Returns the cursor in this set. In another set than before it is 0, and the server gets messages
/// that were set aside again.
fn enter_set(db: &Connection, set_id: u64) -> Result<u64> {
    if meta::number(db, ReplicaMetaKey::CursorSet)? != set_id {
        meta::set_cursor(db, set_id, 0)?;
        message_log::restore_all(db)?;
    }
    meta::number(db, ReplicaMetaKey::Cursor)
}

fn identity(message: &protocol::WireMessage) -> Option<Fingerprint> {
    let timestamp = Timestamp::from_bytes(&message.timestamp).ok()?;
    Some(Fingerprint::from_message(timestamp, &message.content))
}

fn fingerprint(wire: Option<&protocol::WireFingerprint>) -> Result<Fingerprint> {
    let fingerprint = wire.and_then(protocol::WireFingerprint::to_crdt);
    fingerprint.ok_or_else(|| Error::Unreachable("response without a fingerprint".into()))
}
