//! The server's side of an LMTP session (RFC 2033).
//!
//! A client sends commands, each in one line, and then a message. The session gets the bytes of the
//! connection, writes replies, and returns an event when it needs a decision:
//!
//! ```text
//! next_event ──► Recipient(address) ──► answer_recipient ──┐
//!     ▲    └───► Message(transaction) ──► answer_message ──┤
//!     └────────────────────────────────────────────────────┘
//! ```
//!
//! The session reads no further than an event, so commands that the client sent in advance
//! (RFC 2920) wait for the answer in the caller's buffer.
//!
//! The extensions are 8BITMIME (RFC 6152), ENHANCEDSTATUSCODES (RFC 2034), PIPELINING (RFC 2920),
//! SIZE (RFC 1870) and SMTPUTF8 (RFC 6531).
//!
//! # Invariants
//! - Replies and events do not depend on how the input is divided.
//! - A message that the session accepted gets one reply for each accepted recipient, in the order of
//!   the recipients (RFC 2033 §4.2).
//! - No reply contains text of the client.
//! - The session stores at most one command line and one message, within their limits.
//!
//! # Not here
//! - The grammar of commands → `lmtp/command.rs`. The end of a message → `lmtp/message_receiver.rs`.
//! - Time-outs, and which addresses exist → the caller.

mod command;
mod line_buffer;
mod message_receiver;
mod replies;
mod trace_header;
mod transaction;

use std::mem;

use self::command::LmtpCommand;
use self::line_buffer::LineBuffer;
use self::message_receiver::MessageReceiver;

pub use self::command::ADDRESS_BYTES_MAX;
pub use self::replies::LmtpRefusal;
pub use self::trace_header::trace_header;
pub use self::transaction::MailTransaction;

/// Default limit of a message in bytes: 50 MiB.
pub const MESSAGE_BYTES_MAX: usize = 50 * 1024 * 1024;

/// Default limit of the recipients of a message. A server must take 100 (RFC 5321 §4.5.3.1.8).
pub const RECIPIENTS_COUNT_MAX: usize = 100;

/// The number of errors of the client since the last message after which the session closes.
const ERRORS_COUNT_MAX: u32 = 20;

/// The name and the limits of a server.
#[derive(Debug, Clone)]
pub struct LmtpConfig {
    /// The host name of the server, for the greeting. It must not contain spaces or line ends.
    pub server_name: String,
    /// Limit of a message in bytes.
    pub message_bytes_max: usize,
    /// Limit of the accepted recipients of a message.
    pub recipients_count_max: usize,
}

impl LmtpConfig {
    /// Returns the configuration with the default limits.
    pub fn new(server_name: impl Into<String>) -> Self {
        Self {
            server_name: server_name.into(),
            message_bytes_max: MESSAGE_BYTES_MAX,
            recipients_count_max: RECIPIENTS_COUNT_MAX,
        }
    }
}

/// A question to the caller. The session continues after the answer.
#[derive(Debug, PartialEq, Eq)]
pub enum LmtpEvent {
    /// The client names a recipient, by an address as in [`MailTransaction::recipients`].
    /// [`LmtpSession::answer_recipient`] answers.
    Recipient(String),
    /// A message is complete. [`LmtpSession::answer_message`] answers.
    Message(MailTransaction),
}

/// An LMTP session on one connection.
///
/// ```
/// use mail_protocol::{LmtpConfig, LmtpEvent, LmtpSession};
///
/// let mut session = LmtpSession::new(LmtpConfig::new("mail.example"));
/// let mut input: &[u8] = b"LHLO mta.example\r\nMAIL FROM:<>\r\nRCPT TO:<ada@mail.example>\r\n";
/// while let Some(event) = session.next_event(&mut input) {
///     match event {
///         LmtpEvent::Recipient(_address) => session.answer_recipient(Ok(())),
///         LmtpEvent::Message(transaction) => {
///             session.answer_message(&vec![Ok(()); transaction.recipients.len()]);
///         }
///     }
/// }
/// assert!(session.take_output().ends_with(b"250 2.1.5 recipient accepted\r\n"));
/// ```
pub struct LmtpSession {
    config: LmtpConfig,
    phase: LmtpPhase,
    line: LineBuffer,
    client_name: Option<String>,
    /// The transaction between MAIL and DATA.
    transaction: Option<MailTransaction>,
    output: Vec<u8>,
    errors_count: u32,
}

enum LmtpPhase {
    Command,
    /// The caller decides about the last recipient of the transaction.
    RecipientEvent,
    Content(MessageReceiver),
    /// The caller stores the message for this number of recipients.
    MessageEvent(usize),
    Closed,
}

impl LmtpSession {
    /// Begins a session, with the greeting as its first output.
    pub fn new(config: LmtpConfig) -> Self {
        let mut session = Self {
            config,
            phase: LmtpPhase::Command,
            line: LineBuffer::default(),
            client_name: None,
            transaction: None,
            output: Vec::new(),
            errors_count: 0,
        };
        session.reply(&format!("220 {} LMTP ready", session.config.server_name));
        session
    }

    /// Takes bytes from the front of `input` until an event needs an answer.
    ///
    /// Without an event, it takes all of `input`. While an event waits for its answer, it takes
    /// none and returns no further event.
    pub fn next_event(&mut self, input: &mut &[u8]) -> Option<LmtpEvent> {
        while !input.is_empty() {
            let event = match &mut self.phase {
                LmtpPhase::Command => {
                    let line = self.line.take_line(input)?;
                    self.receive_line(line)
                }
                LmtpPhase::Content(receiver) => {
                    if !receiver.receive(input) {
                        return None;
                    }
                    self.end_message()
                }
                LmtpPhase::RecipientEvent | LmtpPhase::MessageEvent(_) => return None,
                LmtpPhase::Closed => {
                    *input = &[];
                    None
                }
            };
            if event.is_some() {
                return event;
            }
        }
        None
    }

    /// Accepts or refuses the recipient of the last event.
    ///
    /// # Panics
    /// If no [`LmtpEvent::Recipient`] waits for an answer.
    pub fn answer_recipient(&mut self, answer: Result<(), LmtpRefusal>) {
        assert!(matches!(self.phase, LmtpPhase::RecipientEvent), "no recipient waits");
        self.phase = LmtpPhase::Command;
        match (answer, &mut self.transaction) {
            (Err(refusal), Some(transaction)) => {
                transaction.recipients.pop();
                self.reply(refusal.reply());
            }
            _ => self.reply(replies::RECIPIENT_ACCEPTED),
        }
    }

    /// Reports for each recipient of the message, in their order, whether it was stored.
    ///
    /// # Panics
    /// If no [`LmtpEvent::Message`] waits for an answer, or it has another number of recipients.
    pub fn answer_message(&mut self, answers: &[Result<(), LmtpRefusal>]) {
        let LmtpPhase::MessageEvent(recipients_count) = self.phase else {
            unreachable!("no message waits");
        };
        assert_eq!(answers.len(), recipients_count, "one answer for each recipient");
        self.phase = LmtpPhase::Command;
        for answer in answers {
            match answer {
                Ok(()) => self.reply(replies::MESSAGE_STORED),
                Err(refusal) => self.reply(refusal.reply()),
            }
        }
    }

    /// Returns how many bytes of an incomplete message the session stores.
    pub fn message_bytes(&self) -> usize {
        match &self.phase {
            LmtpPhase::Content(receiver) => receiver.message_bytes(),
            _ => 0,
        }
    }

    /// Frees the bytes of an incomplete message, and stores no more of it. At its end, each
    /// recipient gets the refusal, and no event follows. Does nothing if no message is arriving.
    pub fn discard_message(&mut self, refusal: LmtpRefusal) {
        if let LmtpPhase::Content(receiver) = &mut self.phase {
            receiver.discard(refusal);
        }
    }

    /// Returns the replies since the last call, to send to the client in one write. They grow with
    /// the commands in the input, so a caller takes them after each piece of it.
    pub fn take_output(&mut self) -> Vec<u8> {
        mem::take(&mut self.output)
    }

    /// Returns whether the session is over. The caller sends the last output and disconnects.
    pub fn is_closed(&self) -> bool {
        matches!(self.phase, LmtpPhase::Closed)
    }

    fn reply(&mut self, line: &str) {
        self.output.extend_from_slice(line.as_bytes());
        self.output.extend_from_slice(b"\r\n");
    }

    fn close(&mut self, line: &str) {
        self.reply(line);
        self.phase = LmtpPhase::Closed;
    }

    /// Replies to an error of the client.
    fn reply_to_error(&mut self, line: &str) {
        self.errors_count += 1;
        if self.errors_count < ERRORS_COUNT_MAX {
            self.reply(line);
        } else {
            self.close(replies::TOO_MANY_ERRORS);
        }
    }

    fn receive_line(&mut self, line: Result<Vec<u8>, &'static str>) -> Option<LmtpEvent> {
        let line = match line {
            Ok(line) => line,
            Err(reply) => {
                self.reply_to_error(reply);
                return None;
            }
        };
        let outcome = LmtpCommand::parse(&line).and_then(|command| self.run(command));
        outcome.unwrap_or_else(|reply| {
            self.reply_to_error(reply);
            None
        })
    }

    /// Runs a command. The error is the reply to an error of the client.
    fn run(&mut self, command: LmtpCommand<'_>) -> Result<Option<LmtpEvent>, &'static str> {
        match command {
            LmtpCommand::Lhlo(client_name) => self.greet(client_name),
            LmtpCommand::Mail { sender, size } => self.begin_transaction(sender, size)?,
            LmtpCommand::Rcpt(address) => return self.add_recipient(address),
            LmtpCommand::Data => self.begin_message()?,
            LmtpCommand::Rset => {
                self.transaction = None;
                self.reply(replies::DONE);
            }
            LmtpCommand::Noop => self.reply(replies::DONE),
            LmtpCommand::Vrfy => self.reply(replies::NOT_VERIFIED),
            // The client may send the message right after BDAT (RFC 3030). Its lines must not be
            // taken for commands.
            LmtpCommand::Bdat => self.close(replies::NOT_IMPLEMENTED),
            LmtpCommand::Quit => self.close(replies::GOODBYE),
        }
        Ok(None)
    }

    fn greet(&mut self, client_name: &str) {
        self.client_name = Some(client_name.to_owned());
        self.transaction = None;
        let greeting = format!(
            "250-{}\r\n250-8BITMIME\r\n250-ENHANCEDSTATUSCODES\r\n250-PIPELINING\r\n\
             250-SIZE {}\r\n250 SMTPUTF8",
            self.config.server_name, self.config.message_bytes_max
        );
        self.reply(&greeting);
    }

    fn begin_transaction(&mut self, sender: &str, size: usize) -> Result<(), &'static str> {
        let client_name = self.client_name.as_ref().ok_or(replies::LHLO_FIRST)?;
        if self.transaction.is_some() {
            return Err(replies::SECOND_MAIL);
        }
        if size > self.config.message_bytes_max {
            self.reply(LmtpRefusal::MessageTooLarge.reply());
            return Ok(());
        }
        self.transaction = Some(MailTransaction {
            client_name: client_name.clone(),
            sender: sender.to_owned(),
            ..MailTransaction::default()
        });
        self.reply(replies::SENDER_ACCEPTED);
        Ok(())
    }

    fn add_recipient(&mut self, address: &str) -> Result<Option<LmtpEvent>, &'static str> {
        let transaction = self.transaction.as_mut().ok_or(replies::MAIL_FIRST)?;
        if transaction.recipients.len() >= self.config.recipients_count_max {
            self.reply(replies::TOO_MANY_RECIPIENTS);
            return Ok(None);
        }
        transaction.recipients.push(address.to_owned());
        self.phase = LmtpPhase::RecipientEvent;
        Ok(Some(LmtpEvent::Recipient(address.to_owned())))
    }

    fn begin_message(&mut self) -> Result<(), &'static str> {
        let transaction = self
            .transaction
            .take_if(|transaction| !transaction.recipients.is_empty())
            .ok_or(replies::RCPT_FIRST)?;
        let receiver = MessageReceiver::new(transaction, self.config.message_bytes_max);
        self.phase = LmtpPhase::Content(receiver);
        self.reply(replies::SEND_MESSAGE);
        Ok(())
    }

    fn end_message(&mut self) -> Option<LmtpEvent> {
        let phase = mem::replace(&mut self.phase, LmtpPhase::Command);
        let LmtpPhase::Content(receiver) = phase else { return None };
        self.errors_count = 0;
        let recipients_count = receiver.recipients_count();
        match receiver.into_transaction() {
            Ok(transaction) => {
                self.phase = LmtpPhase::MessageEvent(recipients_count);
                Some(LmtpEvent::Message(transaction))
            }
            Err(refusal) => {
                for _ in 0..recipients_count {
                    self.reply(refusal.reply());
                }
                None
            }
        }
    }
}

#[cfg(test)]
mod tests;
