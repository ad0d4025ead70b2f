//! The limits of a mail vault, and of the messages in it.

/// The maximum size of a message: 50 MiB as it arrives, and the header fields that a server puts
/// before it.
pub const MESSAGE_BYTES_MAX: usize = (50 << 20) + (4 << 10);

/// The maximum length of an address, as RFC 5321 limits a path.
pub const ADDRESS_BYTES_MAX: usize = 256;

/// The maximum number of parts of a message that are recorded. Later parts belong to the last one.
pub(crate) const PARTS_COUNT_MAX: usize = 1_000;

/// The maximum depth of parts. Deeper parts are the body of the part at the last level.
pub(crate) const PARTS_DEPTH_MAX: u8 = 20;

/// The maximum length of a header that is read. Fields after it are ignored, but stored.
pub(crate) const HEADER_BYTES_MAX: usize = 256 << 10;

/// The maximum length of a header field such as `Content-Type` that is read. A file name of 255
/// characters needs at most 3 KiB.
pub(crate) const CONTENT_FIELD_BYTES_MAX: usize = 4 << 10;

/// The maximum length of all such fields of a header that are read.
pub(crate) const CONTENT_FIELDS_BYTES_MAX: usize = 8 << 10;

/// The maximum number of mailboxes of a mail vault.
pub(crate) const MAILBOXES_COUNT_MAX: u32 = 10_000;

/// The maximum depth of mailboxes in mailboxes.
pub(crate) const MAILBOXES_DEPTH_MAX: usize = 20;

/// The maximum length of one level of a mailbox's name, in bytes of UTF-8.
pub(crate) const MAILBOX_NAME_BYTES_MAX: usize = 255;

/// The maximum number of keywords of a mail vault: one bit each, next to the five flags.
pub(crate) const KEYWORDS_COUNT_MAX: u32 = 58;

/// The maximum number of bytes in one row of `content`, before compression.
pub(crate) const CONTENT_BYTES_MAX: usize = 128 << 10;

/// The minimum size of a part that is stored on its own, so that equal parts are stored once.
pub(crate) const SHARED_BYTES_MIN: usize = 16 << 10;
