//! Turns an account from plain to sealed, or follows the device that has: before the round.
//!
//! ```text
//! pending phrase ─► encrypt ─┬─ behind ─► pull what is left of the plain set ─► again
//!                            └─ done ───► seal the log, begin anew at cursor 0
//! ```
//! The server is asked first, whatever this file knows: it may be in the sealed set already, by a
//! request whose answer was lost.

use bytes::Bytes;
use crdt::ContentForm;
use protocol::{EncryptRequest, ErrorCode, Round, Step};

use super::Session;
use crate::error::{Error, PhraseError, Result};
use crate::form::{self, Pending};
use crate::meta::{self, Key};
use crate::phrase;
use crate::stamp;
use crate::table::Table;

/// Other devices may push while this one pulls; until one has begun, that goes on.
const TRIES_MAX: u32 = 8;

impl Session<'_, '_> {
    /// Nothing, unless a phrase waits for it.
    pub(super) async fn turn(&mut self) -> Result<()> {
        let Some(pending) = form::pending(&self.replica.db)? else { return Ok(()) };
        for _ in 0..TRIES_MAX {
            match self.encrypt(&pending).await {
                Err(Error::Refused { code: ErrorCode::Behind, .. }) => self.catch_up().await?,
                Err(Error::Refused { code: ErrorCode::FormMismatch, .. }) => {
                    return self.give_up().await;
                }
                answer => {
                    answer?;
                    return self.seal(&pending);
                }
            }
        }
        let why = "other devices send faster than this one receives: try again".into();
        Err(Error::Unreachable(why))
    }

    /// A push was refused as not of the account's form, though the file is encrypted: the server
    /// takes this device for one that reads the plain set, after a restored backup, say. It follows
    /// again, once.
    pub(super) async fn other_form(&mut self, refusal: Error, round: &mut Round) -> Result<()> {
        let own = phrase::load(&self.replica.db)?;
        // If another device has settled it this moment, the next pull says how.
        self.replica.transaction(form::forget)?;
        let Some(own) = own.filter(|_| self.turns == 0) else { return Err(refusal) };
        self.turns += 1;
        self.replica.transaction(|db| form::set_pending(db, &own, false))?;
        self.turn().await?;
        *round = Round::new();
        Ok(())
    }

    async fn encrypt(&mut self, pending: &Pending) -> Result<()> {
        let key_id = ContentForm::Sealed(pending.phrase.key().id());
        let key_id = Bytes::copy_from_slice(key_id.as_bytes());
        let cursor = meta::number(&self.replica.db, Key::Cursor)?;
        let request = EncryptRequest { key_id, cursor, begin: pending.begins };
        self.transport.encrypt(&self.token, &request).await
    }

    /// Takes what is left of the plain set.
    async fn catch_up(&mut self) -> Result<()> {
        let mut round = Round::new();
        while round.next(&self.device()?) == Step::Pull {
            self.pull(&mut round).await?;
        }
        Ok(())
    }

    /// The phrase is not this account's: says what the account is, and forgets the phrase.
    async fn give_up(&mut self) -> Result<()> {
        self.catch_up().await?;
        let account = form::of_account(&self.replica.db)?;
        self.replica.transaction(form::drop_pending)?;
        let is_sealed = matches!(account, Some(ContentForm::Sealed(_)));
        let why = if is_sealed { PhraseError::Wrong } else { PhraseError::AccountPlain };
        Err(why.into())
    }

    fn seal(&mut self, pending: &Pending) -> Result<()> {
        let (now, report) = (self.now, &mut self.report);
        self.replica.transaction(|db| {
            // What was changed here until now belongs to the log that is sealed.
            report.add_renumbered(stamp::stamp(db, &Table::all(db)?, now)?);
            form::turn(db, pending)
        })
    }
}
