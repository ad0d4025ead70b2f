//! Mail protocols without input and output: sessions as state machines, on bytes that callers move.
//!
//! So far there is LMTP, in which a mail transfer agent hands over messages.
//!
//! # Invariants
//! - Nothing here does I/O, reads a clock, or knows where mail is stored.
//! - No input makes this crate panic, and each buffer has a limit.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod lmtp;

pub use lmtp::{
    ADDRESS_BYTES_MAX, LmtpConfig, LmtpEvent, LmtpRefusal, LmtpSession, MESSAGE_BYTES_MAX,
    MailTransaction, RECIPIENTS_COUNT_MAX, trace_header,
};
