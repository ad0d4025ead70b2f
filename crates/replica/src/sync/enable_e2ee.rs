//! Enables end-to-end encryption of an account, or follows the device that did, before a sync
//! round.
//!
//! ```text
//! pending phrase ─► encrypt ─┬─ stale cursor ─► pull the plain set ─► again, with its fingerprint
//!                            └─ done ─────────► seal the log, restart at cursor 0
//! ```
//! The request comes first, whatever this file has recorded: the file may be in the e2ee set
//! already, by a request whose answer was lost.
//!
//! An encrypted file gets here when its server was restored from an older backup. If another device
//! has encrypted the account again since, this one follows, and ignores the plain set. If its user
//! encrypts the account again, the messages of the plain set are sealed as they arrive.

use bytes::Bytes;
use crdt::{EncryptionMode, Fingerprint, Message};
use protocol::{DeviceState, EnableE2eeRequest, ErrorCode, SyncRound, SyncStep};

use super::{SyncDriver, fingerprint};
use crate::capture::timestamping;
use crate::error::{Error, RecoveryPhraseError, Result};
use crate::log::ingest::keep_sealed;
use crate::log::message_log;
use crate::meta::{self, ReplicaMetaKey};
use crate::schema::tracked_table::TrackedTable;
use crate::sync::account_encryption::{self, PendingPhrase};
use crate::sync::recovery_phrase;

/// The number of times that the plain set may change during its download, because other devices
/// push until one of them has started encrypting.
const TRIES_MAX: u32 = 8;

impl SyncDriver<'_, '_> {
    /// Enables end-to-end encryption if a phrase is pending.
    pub(super) async fn enable_e2ee(&mut self) -> Result<()> {
        let Some(pending) = account_encryption::pending_phrase(&self.replica.db)? else {
            return Ok(());
        };
        let is_sealed = recovery_phrase::load(&self.replica.db)?.is_some();
        let takes_plain = pending.may_enable_e2ee || !is_sealed;
        let mut holds = takes_plain.then(Fingerprint::default);
        for _ in 0..TRIES_MAX {
            match self.encrypt(&pending, holds).await {
                Err(Error::RejectedByServer { code: ErrorCode::StaleCursor, .. })
                    if takes_plain =>
                {
                    let taken =
                        if is_sealed { self.seal_plain().await } else { self.take_plain().await };
                    holds = Some(taken?.unwrap_or_default());
                }
                Err(Error::RejectedByServer { code: ErrorCode::EncryptionMismatch, .. }) => {
                    return self.abandon_phrase().await;
                }
                answer => {
                    answer?;
                    return self.encrypt_log(&pending);
                }
            }
        }
        let reason = "the account kept changing while it was downloaded: sync again".into();
        Err(Error::Unreachable(reason))
    }

    /// Handles a server that offers the plain set to this device although the file is encrypted,
    /// for example after a restored backup. It follows the account again once, and fails with
    /// `refusal` otherwise.
    pub(super) async fn follow(&mut self, refusal: Error, round: &mut SyncRound) -> Result<()> {
        let Some(own) = recovery_phrase::load(&self.replica.db)? else {
            // If another device has encrypted the account just now, the next pull reports it.
            self.replica.transaction(account_encryption::reset)?;
            return Err(refusal);
        };
        if self.e2ee_attempts > 0 {
            return Err(refusal);
        }
        self.e2ee_attempts += 1;
        self.replica.transaction(|db| account_encryption::set_pending_phrase(db, &own, false))?;
        self.enable_e2ee().await?;
        *round = SyncRound::new();
        Ok(())
    }

    async fn encrypt(&mut self, pending: &PendingPhrase, holds: Option<Fingerprint>) -> Result<()> {
        let key_id = EncryptionMode::EndToEnd(pending.phrase.key().id());
        let key_id = Bytes::copy_from_slice(key_id.as_bytes());
        let request = EnableE2eeRequest {
            key_id,
            holds: holds.map(Into::into),
            start: pending.may_enable_e2ee,
        };
        self.transport.encrypt(&self.token, &request).await
    }

    /// Pulls the whole plain set. Returns its fingerprint if all of it is here.
    async fn take_plain(&mut self) -> Result<Option<Fingerprint>> {
        let mut round = SyncRound::new();
        loop {
            // Unsent messages will be sent sealed.
            let fingerprint = message_log::sent_fingerprint(&self.replica.db)?;
            let sent = DeviceState { has_unsent: false, fingerprint, ..self.device()? };
            match round.next(&sent) {
                SyncStep::Pull => _ = self.pull(&mut round).await?,
                SyncStep::Reconcile => return self.reconcile().await,
                SyncStep::Done(outcome) => return Ok(outcome.in_sync.then_some(outcome.server)),
                SyncStep::Push => return Ok(None),
            }
        }
    }

    /// Pulls the whole plain set into an encrypted file, from cursor 0. Returns its fingerprint if
    /// it did not change during the download.
    async fn seal_plain(&mut self) -> Result<Option<Fingerprint>> {
        let (mut cursor, mut taken) = (0, Fingerprint::default());
        loop {
            let limit = self.page_count;
            let answer = match self.ask(cursor, limit).await {
                Err(error) => {
                    self.shrink_pages(error, None)?;
                    continue;
                }
                Ok(answer) => answer,
            };
            self.compare_clocks(answer.server_time_ms);
            let all = fingerprint(answer.fingerprint.as_ref())?;
            let messages = answer.messages.into_iter().map(Message::try_from);
            let messages: Vec<_> = messages.collect::<Result<_, _>>().map_err(nonsense)?;
            for message in &messages {
                taken += Fingerprint::from_message(message.timestamp, &message.content);
            }
            let (now, report) = (self.now, &mut self.report);
            report.received_count += self.replica.transaction(|db| {
                report.add_renumbered(timestamping::timestamp_pending(
                    db,
                    &TrackedTable::all(db)?,
                    now,
                )?);
                keep_sealed(db, &messages, report)
            })?;
            let has_moved = answer.cursor > cursor;
            cursor = answer.cursor;
            if !answer.more || !has_moved || taken.count > all.count {
                return Ok((taken == all).then_some(all));
            }
        }
    }

    /// Handles a server that does not put this file into an e2ee set: reports the account's mode as
    /// an error. The phrase is forgotten, unless the mode is undecided.
    async fn abandon_phrase(&mut self) -> Result<()> {
        let cursor = meta::number(&self.replica.db, ReplicaMetaKey::Cursor)?;
        let answer = self.ask(cursor, 1).await?;
        self.replica.transaction(|db| {
            account_encryption::record_server_mode(db, answer.encryption.as_ref())
        })?;
        let account = answer.encryption.as_ref().and_then(protocol::WireEncryptionMode::to_crdt);
        let reason = match account {
            None => return Err(RecoveryPhraseError::Unverified.into()),
            Some(EncryptionMode::Plain) => RecoveryPhraseError::AccountNotEncrypted,
            Some(EncryptionMode::EndToEnd(_)) => RecoveryPhraseError::Wrong,
        };
        self.replica.transaction(account_encryption::clear_pending_phrase)?;
        Err(reason.into())
    }

    fn encrypt_log(&mut self, pending: &PendingPhrase) -> Result<()> {
        // The e2ee set contains the messages of the plain set again.
        self.duplicates_count = 0;
        let (now, report) = (self.now, &mut self.report);
        self.replica.transaction(|db| {
            // The local changes up to now belong to the log that is sealed.
            report.add_renumbered(timestamping::timestamp_pending(
                db,
                &TrackedTable::all(db)?,
                now,
            )?);
            account_encryption::enable_e2ee(db, pending)
        })
    }
}

fn nonsense(source: impl std::fmt::Display) -> Error {
    Error::Unreachable(format!("invalid response: {source}"))
}
