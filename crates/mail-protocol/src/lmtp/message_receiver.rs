//! The receiver of a message: finds its end and removes the dots that the client added.
//!
//! The client puts a dot before each line that begins with a dot, and ends the message with a line
//! that is a single dot (RFC 5321 §4.5.2). Only CR LF ends a line here. A server that also accepted
//! LF or CR would see the end of a message where the client sees text, and would execute the text
//! after it as commands ("SMTP smuggling").

use std::mem;

use super::replies::LmtpRefusal;
use super::transaction::MailTransaction;

pub(super) struct MessageReceiver {
    transaction: MailTransaction,
    bytes_max: usize,
    position: LinePosition,
    /// The reason why the message is not stored.
    refusal: Option<LmtpRefusal>,
}

/// The part of a line to which the next byte belongs.
#[derive(Clone, Copy)]
enum LinePosition {
    Start,
    /// After a dot at the start of a line. The dot is not stored.
    AfterDot,
    /// After such a dot and CR. The CR is stored only if the line continues.
    AfterDotCr,
    Middle,
    AfterCr,
}

impl MessageReceiver {
    pub(super) fn new(transaction: MailTransaction, bytes_max: usize) -> Self {
        Self { transaction, bytes_max, position: LinePosition::Start, refusal: None }
    }

    /// Takes bytes from `input` up to the end of the message, and returns whether it was reached.
    pub(super) fn receive(&mut self, input: &mut &[u8]) -> bool {
        while let Some((byte, rest)) = input.split_first() {
            self.position = match (self.position, byte) {
                (LinePosition::Start, b'.') => {
                    *input = rest;
                    LinePosition::AfterDot
                }
                (LinePosition::AfterDot, b'\r') => {
                    *input = rest;
                    LinePosition::AfterDotCr
                }
                (LinePosition::AfterDotCr, b'\n') => {
                    *input = rest;
                    return true;
                }
                (LinePosition::AfterDotCr, _) => {
                    self.store(b"\r");
                    LinePosition::AfterCr
                }
                (LinePosition::AfterCr, b'\n') => {
                    *input = rest;
                    self.store(b"\n");
                    LinePosition::Start
                }
                _ => self.receive_run(input),
            };
        }
        false
    }

    /// Stores the input up to a CR.
    fn receive_run(&mut self, input: &mut &[u8]) -> LinePosition {
        let cr = input.iter().position(|byte| *byte == b'\r');
        let (run, rest) = input.split_at(cr.map_or(input.len(), |cr| cr + 1));
        *input = rest;
        self.store(run);
        if cr.is_some() { LinePosition::AfterCr } else { LinePosition::Middle }
    }

    fn store(&mut self, bytes: &[u8]) {
        if self.message_bytes() + bytes.len() > self.bytes_max {
            self.discard(LmtpRefusal::MessageTooLarge);
        }
        if self.refusal.is_none() {
            self.transaction.message.extend_from_slice(bytes);
        }
    }

    /// Stores no more of the message. The first reason counts.
    pub(super) fn discard(&mut self, refusal: LmtpRefusal) {
        self.refusal.get_or_insert(refusal);
        drop(mem::take(&mut self.transaction.message));
    }

    pub(super) fn message_bytes(&self) -> usize {
        self.transaction.message.len()
    }

    pub(super) fn recipients_count(&self) -> usize {
        self.transaction.recipients.len()
    }

    pub(super) fn into_transaction(self) -> Result<MailTransaction, LmtpRefusal> {
        self.refusal.map_or(Ok(self.transaction), Err)
    }
}
