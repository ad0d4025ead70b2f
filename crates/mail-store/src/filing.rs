//! Files deliveries: takes them from the spool, opens them, and stores them in the mail vault
//! (Format 23).
//!
//! # Invariants
//! - A delivery is filed once. The transaction that stores it also stores its number, and leaves
//!   out numbers that another process has filed in the meantime.
//! - A delivery leaves the spool only after the vault's disk has it, or when it is set aside there.
//!   So what the spool deletes comes from a transaction of this process that waited for the disk,
//!   never from a read: that also sees what another process has committed and not flushed.
//! - Deliveries are filed in the order in which they arrived.

use engine::{StaticStatement, Transaction, clock};

use crate::error::{Error, Result};
use crate::mail_vault::MailVault;
use crate::mailboxes::{self, MailboxId};
use crate::message_flags::MessageFlags;
use crate::messages::{self, NewMessage, ReceivedTime};
use crate::schema::INBOX_ID;
use crate::sealed_delivery::unseal;
use crate::spool::{MailSpool, SpooledDelivery};

/// The result of filing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FilingReport {
    /// The number of deliveries that are in the vault now and were not before.
    pub filed_count: u64,
    /// The number of deliveries that could not be opened. They stay in the spool, for the operator.
    pub set_aside_count: u64,
}

/// How far a vault has filed the deliveries of a spool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FilingState {
    /// The last delivery of this spool that was filed; 0 if the vault has filed none of it.
    filed_seq: i64,
    modseq: i64,
}

/// A delivery that is ready to be stored.
struct OpenedDelivery {
    seq: i64,
    message: NewMessage,
}

impl MailVault {
    /// Files all deliveries that wait for this vault into INBOX, in batches. `progress` is called
    /// after each batch.
    ///
    /// If the spool knows of a later state of the vault, the vault's file is an old copy: every
    /// mailbox first gets a new UIDVALIDITY.
    pub fn file_deliveries(
        &self,
        spool: &MailSpool,
        progress: &mut dyn FnMut(&FilingReport),
    ) -> Result<FilingReport> {
        // The mark is read first: another process records it after its transaction in the vault.
        let mark = spool.filed(self.id())?;
        let mut state = self.read(|db| filing_state(db, spool.id()))?;
        if let Some(mark) = mark.filter(|mark| mark.modseq > state.modseq) {
            self.write(move |db| mailboxes::renew_uid_validities(db, mark.modseq))?;
        }
        if mark.is_none_or(|mark| (mark.seq, mark.modseq) != (state.filed_seq, state.modseq)) {
            // The last filing may have ended before it deleted what it had filed, or another one
            // may be running. The disk must have their commits first.
            let spool_id = spool.id();
            state = self.write(move |db| filing_state(db, spool_id))?;
            spool.finish(self.id(), state.filed_seq, state.modseq).wait()?;
        }
        let mut report = FilingReport::default();
        loop {
            let batch = spool.batch(self.id(), state.filed_seq)?;
            let Some(last) = batch.last() else { return Ok(report) };
            let last_seq = last.seq;
            let opened = self.open_batch(spool, &batch, &mut report)?;
            let (spool_id, now_ms) = (spool.id(), clock::now_ms());
            let stored = self.write(move |db| {
                let count = store(db, spool_id, &opened, last_seq, now_ms)?;
                Ok((count, filing_state(db, spool_id)?))
            });
            let count;
            (count, state) = stored?;
            report.filed_count += u64::from(count);
            spool.finish(self.id(), state.filed_seq, state.modseq).wait()?;
            progress(&report);
        }
    }

    /// Opens deliveries. Those that do not open are set aside, on the disk.
    fn open_batch(
        &self,
        spool: &MailSpool,
        batch: &[SpooledDelivery],
        report: &mut FilingReport,
    ) -> Result<Vec<OpenedDelivery>> {
        let mut opened = Vec::with_capacity(batch.len());
        for delivery in batch {
            match self.open_delivery(delivery) {
                Ok(delivery) => opened.push(delivery),
                Err(error) => {
                    let reason = reason(&error).ok_or(error)?;
                    let now_ms = clock::now_ms();
                    spool.set_aside(self.id(), delivery.seq, reason, now_ms).wait()?;
                    report.set_aside_count += 1;
                }
            }
        }
        Ok(opened)
    }

    fn open_delivery(&self, delivery: &SpooledDelivery) -> Result<OpenedDelivery> {
        let opened = unseal(&delivery.sealed, self.delivery_key(), self.id())?;
        let received_s = i64::try_from(opened.received_ms / 1_000).unwrap_or(i64::MAX);
        let message = NewMessage {
            message: self.prepare(&opened.message)?,
            flags: MessageFlags::default(),
            received: ReceivedTime { unix_s: received_s, zone_min: 0 },
            imported_item: None,
        };
        Ok(OpenedDelivery { seq: delivery.seq, message })
    }
}

/// Returns the code of a failure that belongs to the delivery (Format 4). `None` if it does not, so
/// that the delivery can be filed later.
fn reason(error: &Error) -> Option<&'static str> {
    match error {
        Error::WrongKey => Some("wrong_key"),
        Error::UnknownVersion { .. } => Some("format_too_new"),
        Error::Damaged { .. } => Some("invalid_file"),
        Error::MessageTooLarge { .. } => Some("too_large"),
        _ => None,
    }
}

fn filing_state(db: &Transaction<'_>, spool_id: [u8; 16]) -> Result<FilingState> {
    static STATE: StaticStatement =
        StaticStatement::new("SELECT iif(spool_id IS ?1, filed_seq, 0), modseq FROM mail_state");
    let state = db.statement(&STATE)?.query_row([spool_id], |row| {
        Ok(FilingState { filed_seq: row.get(0)?, modseq: row.get(1)? })
    });
    Ok(state?)
}

/// Stores deliveries that are not filed yet, and that everything up to `last_seq` is filed. Returns
/// how many were stored.
fn store(
    db: &Transaction<'_>,
    spool_id: [u8; 16],
    opened: &[OpenedDelivery],
    last_seq: i64,
    now_ms: u64,
) -> Result<u32> {
    static RECORD: StaticStatement =
        StaticStatement::new("UPDATE mail_state SET filed_seq = ?1, spool_id = ?2");
    let filed_seq = filing_state(db, spool_id)?.filed_seq;
    let new = opened.iter().filter(|delivery| delivery.seq > filed_seq);
    let new: Vec<&NewMessage> = new.map(|delivery| &delivery.message).collect();
    let count = messages::store_new(db, MailboxId(INBOX_ID), &new, now_ms)?;
    if last_seq > filed_seq {
        db.statement(&RECORD)?.execute((last_seq, spool_id))?;
    }
    Ok(count)
}
