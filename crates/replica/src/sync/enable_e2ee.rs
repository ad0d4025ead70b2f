//! Turns an account from plain to sealed, or follows the device that has: before the round.
//!
//! ```text
//! pending phrase ─► encrypt ─┬─ behind ─► take the plain set ─► again, with its fingerprint
//!                            └─ done ───► seal the log, begin again at cursor 0
//! ```
//! The server is asked first, whatever this file knows: it may be in the e2ee set already, by a
//! request whose answer was lost.
//!
//! A file that is sealed already gets here when its server was restored from a backup of before. If
//! another device has turned the account again since, it follows, and takes nothing of the plain
//! set. If its user turns the account again, what the plain set has by now is sealed as it arrives.

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

/// Other devices may push while this one pulls; until one has begun, that goes on.
const TRIES_MAX: u32 = 8;

impl SyncDriver<'_, '_> {
    /// Nothing, unless a phrase waits for it.
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

    /// The server takes this device for one that reads the plain set, though the file is sealed:
    /// after a restored backup, say. It follows again, once; else it ends with `refusal`.
    pub(super) async fn follow(&mut self, refusal: Error, round: &mut SyncRound) -> Result<()> {
        let Some(own) = recovery_phrase::load(&self.replica.db)? else {
            // If another device has settled it this moment, the next pull says how.
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

    /// Takes all of the plain set. Returns its fingerprint, if nothing of it is missing here.
    async fn take_plain(&mut self) -> Result<Option<Fingerprint>> {
        let mut round = SyncRound::new();
        loop {
            // What is not sent yet will be sent sealed.
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

    /// Takes all of the plain set into a sealed file, from the beginning on. Returns its
    /// fingerprint, if it did not change meanwhile.
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

    /// The server does not put this file into an e2ee set: says what the account is. The phrase
    /// is forgotten, unless the account is nothing yet.
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
        // The e2ee set brings again what the plain one has brought.
        self.duplicates_count = 0;
        let (now, report) = (self.now, &mut self.report);
        self.replica.transaction(|db| {
            // What was changed here until now belongs to the log that is sealed.
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
