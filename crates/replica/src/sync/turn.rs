//! Turns an account from plain to sealed, or follows the device that has: before the round.
//!
//! ```text
//! pending phrase ─► encrypt ─┬─ behind ─► take the plain set ─► again, with its fingerprint
//!                            └─ done ───► seal the log, begin again at cursor 0
//! ```
//! The server is asked first, whatever this file knows: it may be in the sealed set already, by a
//! request whose answer was lost.
//!
//! A file that is sealed already gets here when its server was restored from a backup of before. If
//! another device has turned the account again since, it follows, and takes nothing of the plain
//! set. If its user turns the account again, what the plain set has by now is sealed as it arrives.

use bytes::Bytes;
use crdt::{ContentForm, Fingerprint, Message};
use protocol::{Device, EncryptRequest, ErrorCode, Round, Step};

use super::{Session, fingerprint};
use crate::error::{Error, PhraseError, Result};
use crate::form::{self, Pending};
use crate::log;
use crate::meta::{self, Key};
use crate::phrase;
use crate::receive::keep_sealed;
use crate::stamp;
use crate::table::Table;

/// Other devices may push while this one pulls; until one has begun, that goes on.
const TRIES_MAX: u32 = 8;

impl Session<'_, '_> {
    /// Nothing, unless a phrase waits for it.
    pub(super) async fn turn(&mut self) -> Result<()> {
        let Some(pending) = form::pending(&self.replica.db)? else { return Ok(()) };
        let is_sealed = phrase::load(&self.replica.db)?.is_some();
        let takes_plain = pending.begins || !is_sealed;
        let mut holds = takes_plain.then(Fingerprint::default);
        for _ in 0..TRIES_MAX {
            match self.encrypt(&pending, holds).await {
                Err(Error::Refused { code: ErrorCode::Behind, .. }) if takes_plain => {
                    let taken =
                        if is_sealed { self.seal_plain().await } else { self.take_plain().await };
                    holds = Some(taken?.unwrap_or_default());
                }
                Err(Error::Refused { code: ErrorCode::FormMismatch, .. }) => {
                    return self.give_up().await;
                }
                answer => {
                    answer?;
                    return self.seal(&pending);
                }
            }
        }
        let why = "the account changed each time before all of it was here: sync again".into();
        Err(Error::Unreachable(why))
    }

    /// The server takes this device for one that reads the plain set, though the file is sealed:
    /// after a restored backup, say. It follows again, once; else it ends with `refusal`.
    pub(super) async fn follow(&mut self, refusal: Error, round: &mut Round) -> Result<()> {
        let Some(own) = phrase::load(&self.replica.db)? else {
            // If another device has settled it this moment, the next pull says how.
            self.replica.transaction(form::forget)?;
            return Err(refusal);
        };
        if self.turns > 0 {
            return Err(refusal);
        }
        self.turns += 1;
        self.replica.transaction(|db| form::set_pending(db, &own, false))?;
        self.turn().await?;
        *round = Round::new();
        Ok(())
    }

    async fn encrypt(&mut self, pending: &Pending, holds: Option<Fingerprint>) -> Result<()> {
        let key_id = ContentForm::Sealed(pending.phrase.key().id());
        let key_id = Bytes::copy_from_slice(key_id.as_bytes());
        let request =
            EncryptRequest { key_id, holds: holds.map(Into::into), begin: pending.begins };
        self.transport.encrypt(&self.token, &request).await
    }

    /// Takes all of the plain set. Returns its fingerprint, if nothing of it is missing here.
    async fn take_plain(&mut self) -> Result<Option<Fingerprint>> {
        let mut round = Round::new();
        loop {
            // What is not sent yet will be sent sealed.
            let fingerprint = log::sent_fingerprint(&self.replica.db)?;
            let sent = Device { has_unsent: false, fingerprint, ..self.device()? };
            match round.next(&sent) {
                Step::Pull => _ = self.pull(&mut round).await?,
                Step::Reconcile => return self.reconcile().await,
                Step::Done(outcome) => return Ok(outcome.equal.then_some(outcome.server)),
                Step::Push => return Ok(None),
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
                    self.smaller_pages(error, None)?;
                    continue;
                }
                Ok(answer) => answer,
            };
            self.compare_clocks(answer.now_ms);
            let all = fingerprint(answer.fingerprint.as_ref())?;
            let messages = answer.messages.into_iter().map(Message::try_from);
            let messages: Vec<_> = messages.collect::<Result<_, _>>().map_err(nonsense)?;
            for message in &messages {
                taken += Fingerprint::of(message.timestamp, &message.content);
            }
            let (now, report) = (self.now, &mut self.report);
            report.received += self.replica.transaction(|db| {
                report.add_renumbered(stamp::stamp(db, &Table::all(db)?, now)?);
                keep_sealed(db, &messages, report)
            })?;
            let has_moved = answer.cursor > cursor;
            cursor = answer.cursor;
            if !answer.more || !has_moved || taken.count > all.count {
                return Ok((taken == all).then_some(all));
            }
        }
    }

    /// The server does not put this file into a sealed set: says what the account is. The phrase
    /// is forgotten, unless the account is nothing yet.
    async fn give_up(&mut self) -> Result<()> {
        let cursor = meta::number(&self.replica.db, Key::Cursor)?;
        let answer = self.ask(cursor, 1).await?;
        self.replica.transaction(|db| form::note(db, answer.form.as_ref()))?;
        let account = answer.form.as_ref().and_then(protocol::ContentForm::to_crdt);
        let why = match account {
            None => return Err(PhraseError::Unproved.into()),
            Some(ContentForm::Plain) => PhraseError::AccountPlain,
            Some(ContentForm::Sealed(_)) => PhraseError::Wrong,
        };
        self.replica.transaction(form::drop_pending)?;
        Err(why.into())
    }

    fn seal(&mut self, pending: &Pending) -> Result<()> {
        // The sealed set brings again what the plain one has brought.
        self.repeats = 0;
        let (now, report) = (self.now, &mut self.report);
        self.replica.transaction(|db| {
            // What was changed here until now belongs to the log that is sealed.
            report.add_renumbered(stamp::stamp(db, &Table::all(db)?, now)?);
            form::turn(db, pending)
        })
    }
}

fn nonsense(source: impl std::fmt::Display) -> Error {
    Error::Unreachable(format!("it sent nonsense: {source}"))
}
