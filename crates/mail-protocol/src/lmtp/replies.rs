//! The texts of all replies: status code (RFC 5321 §4.2), enhanced code (RFC 3463), words for people.

/// The reason why the server does not accept a recipient or does not store a message for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LmtpRefusal {
    /// The address does not exist (550 5.1.1).
    UnknownRecipient,
    /// The recipient has no room for the message; the client tries again later (452 4.2.2).
    MailboxFull,
    /// The recipient has no room for the message; the client returns it to its sender (552 5.2.2).
    MailboxFullForGood,
    /// The server cannot do it at the moment; the client tries again later (451 4.3.0).
    TemporaryFailure,
    /// The server has no disk space or memory left; the client tries again later (452 4.3.1).
    SystemFull,
    /// The message is larger than the server accepts (552 5.3.4).
    MessageTooLarge,
}

impl LmtpRefusal {
    pub(super) fn reply(self) -> &'static str {
        match self {
            Self::UnknownRecipient => "550 5.1.1 no such recipient",
            Self::MailboxFull => "452 4.2.2 the mailbox is full, try again later",
            Self::MailboxFullForGood => "552 5.2.2 the mailbox is full",
            Self::TemporaryFailure => "451 4.3.0 temporary failure, try again later",
            Self::SystemFull => "452 4.3.1 the server is full, try again later",
            Self::MessageTooLarge => "552 5.3.4 the message is too large",
        }
    }
}

pub(super) const GOODBYE: &str = "221 2.0.0 goodbye";
pub(super) const DONE: &str = "250 2.0.0 done";
pub(super) const MESSAGE_STORED: &str = "250 2.0.0 message stored";
pub(super) const SENDER_ACCEPTED: &str = "250 2.1.0 sender accepted";
pub(super) const RECIPIENT_ACCEPTED: &str = "250 2.1.5 recipient accepted";
pub(super) const NOT_VERIFIED: &str = "252 2.5.0 use RCPT to check an address";
pub(super) const SEND_MESSAGE: &str = "354 end the message with a line that is a single dot";

pub(super) const TOO_MANY_ERRORS: &str = "421 4.7.0 too many errors";
pub(super) const TOO_MANY_RECIPIENTS: &str = "452 4.5.3 too many recipients";

pub(super) const LHLO_ONLY: &str = "500 5.5.1 this is LMTP, use LHLO";
pub(super) const LINE_TOO_LONG: &str = "500 5.5.2 line too long";
pub(super) const UNKNOWN_COMMAND: &str = "500 5.5.2 unknown command";
pub(super) const BAD_RECIPIENT: &str = "501 5.1.3 bad recipient address";
pub(super) const BAD_SENDER: &str = "501 5.1.7 bad sender address";
pub(super) const BAD_ARGUMENTS: &str = "501 5.5.4 bad arguments";
pub(super) const NOT_IMPLEMENTED: &str = "502 5.5.1 command not implemented";
pub(super) const LHLO_FIRST: &str = "503 5.5.1 send LHLO first";
pub(super) const MAIL_FIRST: &str = "503 5.5.1 send MAIL first";
pub(super) const RCPT_FIRST: &str = "503 5.5.1 no valid recipients";
pub(super) const SECOND_MAIL: &str = "503 5.5.1 a transaction has already begun";
pub(super) const UNKNOWN_PARAMETER: &str = "555 5.5.4 parameter not supported";
