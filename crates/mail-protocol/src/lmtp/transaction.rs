//! A mail transaction: one message with its envelope (RFC 5321 §3.3).

/// A message as a client handed it over, with its envelope.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct MailTransaction {
    /// The client's name in LHLO. It can be any text without control characters.
    pub client_name: String,
    /// The address in MAIL FROM, without brackets and route; empty for a bounce.
    pub sender: String,
    /// The accepted recipients, in their order: the addresses in RCPT TO as the client wrote them,
    /// without brackets and route. They have no control characters and are at most
    /// [`ADDRESS_BYTES_MAX`](crate::ADDRESS_BYTES_MAX) long; otherwise they can be any text.
    pub recipients: Vec<String>,
    /// The bytes of the message as they arrived, without the dots that the client added.
    pub message: Vec<u8>,
}
