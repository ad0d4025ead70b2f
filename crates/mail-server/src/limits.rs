//! The limits of the mail server.

use std::time::Duration;

/// The maximum number of open connections.
pub const CONNECTIONS_COUNT_MAX: usize = 256;

/// The maximum number of open connections of one address. A mail transfer agent opens some tens.
pub(crate) const ADDRESS_CONNECTIONS_COUNT_MAX: usize = 128;

/// The maximum memory of all messages that are being received, compressed and sealed.
pub(crate) const MEMORY_BYTES_MAX: usize = 512 << 20;

/// The memory that a message needs, as a multiple of its size: the buffer in which it is received
/// may be twice as large; the message of a recipient, its compressed form and the sealed form that
/// waits for the disk are as large as it is.
pub(crate) const MEMORY_FACTOR: usize = 5;

/// The size at which the sealed forms of a message for several recipients are stored, before it is
/// sealed for the others.
pub(crate) const SEALED_BYTES_MAX: usize = 8 << 20;

/// The maximum number of deliveries that wait for one mail vault.
pub(crate) const WAITING_COUNT_MAX: u64 = 100_000;

/// The maximum size of the deliveries that wait for one mail vault, sealed.
pub(crate) const WAITING_BYTES_MAX: u64 = 1 << 30;

/// The time in which a client must send the next bytes, or take those that the server sends.
pub(crate) const IDLE_MAX: Duration = Duration::from_mins(5);

/// The time that open connections get to end when the server stops.
pub(crate) const DRAIN_MAX: Duration = Duration::from_secs(10);

/// The number of bytes that are read from a connection at a time.
pub(crate) const READ_BYTES: usize = 64 << 10;
