//! Tests of sessions: transcripts, and properties for any input.

mod properties;
mod transcripts;

use super::*;

/// Answers events by the local part of each recipient, and keeps the messages.
pub(super) struct TestServer {
    pub(super) session: LmtpSession,
    pub(super) messages: Vec<MailTransaction>,
}

impl TestServer {
    pub(super) fn new(message_bytes_max: usize) -> Self {
        let config = LmtpConfig {
            message_bytes_max,
            recipients_count_max: 3,
            ..LmtpConfig::new("mail.example")
        };
        Self { session: LmtpSession::new(config), messages: Vec::new() }
    }

    pub(super) fn receive(&mut self, mut input: &[u8]) {
        while let Some(event) = self.session.next_event(&mut input) {
            match event {
                LmtpEvent::Recipient(address) => {
                    self.session.answer_recipient(answer_recipient(&address));
                }
                LmtpEvent::Message(transaction) => {
                    let recipients = transaction.recipients.iter();
                    let answers: Vec<_> =
                        recipients.map(|address| answer_message(address)).collect();
                    self.session.answer_message(&answers);
                    self.messages.push(transaction);
                }
            }
        }
        assert!(input.is_empty(), "without an event, all input is taken");
    }

    pub(super) fn take_output(&mut self) -> String {
        String::from_utf8(self.session.take_output()).unwrap()
    }
}

fn answer_recipient(address: &str) -> Result<(), LmtpRefusal> {
    match address.split('@').next() {
        Some("unknown") => Err(LmtpRefusal::UnknownRecipient),
        Some("full") => Err(LmtpRefusal::MailboxFull),
        Some("blocked") => Err(LmtpRefusal::MailboxFullForGood),
        Some("offline") => Err(LmtpRefusal::TemporaryFailure),
        _ => Ok(()),
    }
}

fn answer_message(address: &str) -> Result<(), LmtpRefusal> {
    match address.split('@').next() {
        Some("late") => Err(LmtpRefusal::TemporaryFailure),
        Some("nospace") => Err(LmtpRefusal::SystemFull),
        _ => Ok(()),
    }
}
