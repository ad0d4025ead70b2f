//! Deliveries: decides which recipients exist, and stores messages for them, sealed, in the spool.
//!
//! # Invariants
//! - A message is accepted for a recipient only when the disk has it.
//! - No log line contains an address, a subject or a text of a message.

use std::net::IpAddr;
use std::sync::Arc;

use accounts::{Accounts, MailRecipient, VaultId};
use engine::{clock, run_blocking};
use mail_protocol::{LmtpRefusal, MailTransaction, trace_header};
use mail_store::{MailDelivery, MailPublicKey, MailSpool, seal};

use crate::counters::MailCounters;
use crate::error::{Error, Result};
use crate::limits::SEALED_BYTES_MAX;
use crate::room::MailRoom;

/// The places where mail goes.
pub(crate) struct DeliveryTarget {
    pub(crate) accounts: Accounts,
    pub(crate) spool: MailSpool,
    pub(crate) room: MailRoom,
    pub(crate) counters: MailCounters,
    /// The name of the server in `Received`.
    pub(crate) server_name: String,
}

/// The result of sealing a message for its next recipients.
struct SealedChunk {
    deliveries: Vec<(VaultId, Vec<u8>)>,
    /// The answer for each recipient, if the deliveries are stored.
    answers: Vec<Result<(), LmtpRefusal>>,
}

/// A message, and the client that sent it.
struct IncomingMessage {
    transaction: MailTransaction,
    peer: IpAddr,
    now_ms: u64,
}

impl DeliveryTarget {
    /// Decides whether there is a recipient with this address who has any room.
    pub(crate) async fn check_recipient(
        self: &Arc<Self>,
        address: String,
    ) -> Result<(), LmtpRefusal> {
        let target = Arc::clone(self);
        let found = run_blocking(move || {
            let recipient = target.find_recipient(&address)?;
            target.take_room(&recipient, None)
        });
        let answer = found.await.unwrap_or_else(|error| Err(refuse(&error.into())));
        if answer.is_err() {
            self.counters.count_answers(&[answer]);
        }
        answer
    }

    /// Stores a message for all its recipients. Returns the answer for each, in their order.
    pub(crate) async fn deliver(
        self: &Arc<Self>,
        transaction: MailTransaction,
        peer: IpAddr,
    ) -> Vec<Result<(), LmtpRefusal>> {
        let count = transaction.recipients.len();
        let message = IncomingMessage { transaction, peer, now_ms: clock::now_ms() };
        let message = Arc::new(message);
        let mut answers = Vec::with_capacity(count);
        while answers.len() < count {
            let (target, sealed, first) = (Arc::clone(self), Arc::clone(&message), answers.len());
            let chunk = run_blocking(move || target.seal_chunk(&sealed, first)).await;
            let stored = match chunk {
                Ok(chunk) => self.store(chunk, message.now_ms).await,
                Err(error) => vec![Err(refuse(&error.into())); count - first],
            };
            answers.extend(stored);
        }
        self.counters.count_answers(&answers);
        answers
    }

    /// Stores deliveries, and returns the answers for their recipients.
    async fn store(&self, chunk: SealedChunk, now_ms: u64) -> Vec<Result<(), LmtpRefusal>> {
        let SealedChunk { deliveries, mut answers } = chunk;
        if let Err(error) = self.spool.deliver_all(deliveries, now_ms).await {
            let refusal = refuse(&error.into());
            for answer in answers.iter_mut().filter(|answer| answer.is_ok()) {
                *answer = Err(refusal);
            }
        }
        answers
    }

    /// Seals a message for the recipients from number `first` on, until the sealed forms reach
    /// [`SEALED_BYTES_MAX`].
    fn seal_chunk(&self, message: &IncomingMessage, first: usize) -> SealedChunk {
        let mut chunk = SealedChunk { deliveries: Vec::new(), answers: Vec::new() };
        let mut bytes = 0;
        for address in message.transaction.recipients.iter().skip(first) {
            if bytes >= SEALED_BYTES_MAX {
                break;
            }
            // The recipient may have been removed, or have no room, since it was accepted.
            let sealed = self.find_recipient(address).and_then(|recipient| {
                let sealed = self.seal_for(message, address, &recipient);
                let sealed = sealed.map_err(|error| refuse(&error))?;
                self.take_room(&recipient, Some(sealed.len() as u64))?;
                Ok((recipient.vault, sealed))
            });
            chunk.answers.push(sealed.map(|(vault, sealed)| {
                bytes += sealed.len();
                chunk.deliveries.push((vault, sealed));
            }));
        }
        chunk
    }

    fn find_recipient(&self, address: &str) -> Result<MailRecipient, LmtpRefusal> {
        let found = self.accounts.find_recipient(address).map_err(|error| refuse(&error.into()))?;
        found.ok_or(LmtpRefusal::UnknownRecipient)
    }

    /// Takes the room for a sealed delivery; without one, checks whether there is any.
    fn take_room(&self, recipient: &MailRecipient, bytes: Option<u64>) -> Result<(), LmtpRefusal> {
        let taken = self.room.take(&self.spool, recipient, bytes);
        taken.map_err(|error| refuse(&error))?.map_or(Ok(()), Err)
    }

    fn seal_for(
        &self,
        message: &IncomingMessage,
        address: &str,
        recipient: &MailRecipient,
    ) -> Result<Vec<u8>> {
        let IncomingMessage { transaction, peer, now_ms } = message;
        let header = trace_header(transaction, address, *peer, &self.server_name, *now_ms);
        let delivery = MailDelivery {
            received_ms: *now_ms,
            sender: transaction.sender.clone(),
            recipient: address.to_owned(),
            message: [header.as_bytes(), &transaction.message].concat(),
        };
        let public_key = MailPublicKey::from_bytes(&recipient.public_key)?;
        Ok(seal(&delivery, &public_key, &recipient.vault)?)
    }
}

/// Logs an error, and returns the refusal with which the client tries again.
fn refuse(error: &Error) -> LmtpRefusal {
    if let Error::Store(mail_store::Error::MessageTooLarge { .. }) = error {
        return LmtpRefusal::MessageTooLarge;
    }
    tracing::error!("cannot deliver a message: {error}");
    let is_full = error.is_disk_full();
    if is_full { LmtpRefusal::SystemFull } else { LmtpRefusal::TemporaryFailure }
}
