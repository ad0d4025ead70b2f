//! A delivery as plaintext: when it arrived, both addresses, and the compressed message.
//!
//! ```text
//! received  sender          recipient       size    frame
//! 8 bytes   length + bytes  length + bytes  LEB128  zstd, to the end
//! ```
//!
//! Anyone who has the public key can seal any plaintext, so a reader trusts none of it.
//!
//! # Invariants
//! - One delivery has one encoding, except for its frame: numbers have their shortest form.
//! - Decoding allocates at most `size` bytes for the message, and that is limited. The frame is
//!   decompressed straight into them, without a window, and may not claim another size.

use std::fmt;

use zstd::zstd_safe;

use crate::error::{Error, Result};
use crate::leb128;
use crate::limits::{ADDRESS_BYTES_MAX, MESSAGE_BYTES_MAX};

/// zstd's own default: slower levels gain a few percent on mail.
const COMPRESSION_LEVEL: i32 = 3;

/// The first bytes of a zstd frame with content (RFC 8878, section 3.1.1).
const FRAME_MAGIC: [u8; 4] = 0xFD2F_B528_u32.to_le_bytes();

/// The most bytes of a number: four have 28 bits, enough for [`MESSAGE_BYTES_MAX`].
const NUMBER_BYTES_MAX: u32 = 4;

/// The most bytes before the frame.
const PREFIX_BYTES_MAX: usize =
    size_of::<u64>() + 2 * ADDRESS_BYTES_MAX + 3 * NUMBER_BYTES_MAX as usize;

/// One message for one recipient, as the server received it.
#[derive(Clone, PartialEq, Eq)]
pub struct MailDelivery {
    /// When the server received it, in milliseconds since 1970.
    pub received_ms: u64,
    /// The address in MAIL FROM; empty for a bounce.
    pub sender: String,
    /// The address in RCPT TO.
    pub recipient: String,
    /// The message with the header fields that the server added.
    pub message: Vec<u8>,
}

/// Hides the addresses and the message, so that no log shows them.
impl fmt::Debug for MailDelivery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MailDelivery")
            .field("received_ms", &self.received_ms)
            .field("message_bytes", &self.message.len())
            .finish_non_exhaustive()
    }
}

impl MailDelivery {
    /// Returns `header_bytes` zeros and the plaintext, in a vector with room for `rest_bytes` more.
    ///
    /// Returns [`Error::AddressTooLong`] or [`Error::MessageTooLarge`] for what the format does not
    /// allow.
    pub(super) fn encode(&self, header_bytes: usize, rest_bytes: usize) -> Result<Vec<u8>> {
        let size = self.message.len();
        if size > MESSAGE_BYTES_MAX {
            return Err(Error::MessageTooLarge { bytes: size as u64 });
        }
        // The vector must not grow, because that would leave copies of the addresses in memory.
        let frame_bytes_max = zstd_safe::compress_bound(size);
        let bytes_max = header_bytes + PREFIX_BYTES_MAX + frame_bytes_max + rest_bytes;
        let mut encoded = Vec::with_capacity(bytes_max);
        encoded.resize(header_bytes, 0);
        encoded.extend_from_slice(&self.received_ms.to_be_bytes());
        for address in [&self.sender, &self.recipient] {
            if address.len() > ADDRESS_BYTES_MAX {
                return Err(Error::AddressTooLong);
            }
            leb128::write(&mut encoded, address.len() as u64);
            encoded.extend_from_slice(address.as_bytes());
        }
        leb128::write(&mut encoded, size as u64);
        let start = encoded.len();
        encoded.resize(start + frame_bytes_max, 0);
        let frame = &mut encoded[start..];
        let written = zstd::bulk::compress_to_buffer(&self.message, frame, COMPRESSION_LEVEL)
            .expect("the buffer has the size that zstd asks for");
        encoded.truncate(start + written);
        Ok(encoded)
    }

    /// Reads the plaintext of a sealed delivery. Returns [`Error::Damaged`] if it does not have the
    /// format.
    pub fn decode(mut plaintext: &[u8]) -> Result<Self> {
        let rest = &mut plaintext;
        let received = rest.split_off(..size_of::<u64>()).and_then(|bytes| bytes.try_into().ok());
        let received = received.ok_or(corrupt("the time of a delivery"))?;
        let sender = read_address(rest).ok_or(corrupt("the sender of a delivery"))?;
        let recipient = read_address(rest).ok_or(corrupt("the recipient of a delivery"))?;
        let size = read_number(rest, MESSAGE_BYTES_MAX).ok_or(corrupt("the size of a message"))?;
        let message = decompress(rest, size).ok_or(corrupt("the frame of a message"))?;
        Ok(Self { received_ms: u64::from_be_bytes(received), sender, recipient, message })
    }
}

const fn corrupt(what: &'static str) -> Error {
    Error::Damaged { what }
}

fn read_address(rest: &mut &[u8]) -> Option<String> {
    let length = read_number(rest, ADDRESS_BYTES_MAX)?;
    String::from_utf8(rest.split_off(..length)?.to_vec()).ok()
}

/// Reads a number of at most `max`.
fn read_number(rest: &mut &[u8], max: usize) -> Option<usize> {
    leb128::read(rest).and_then(|number| usize::try_from(number).ok()).filter(|n| *n <= max)
}

/// Decompresses a message of exactly `size` bytes from exactly one frame.
fn decompress(frame: &[u8], size: usize) -> Option<Vec<u8>> {
    // zstd would also accept several frames, and frames that it skips.
    let is_whole = frame.starts_with(&FRAME_MAGIC)
        && zstd_safe::find_frame_compressed_size(frame) == Ok(frame.len());
    let claimed = zstd_safe::get_frame_content_size(frame).ok()?;
    if !is_whole || claimed.is_some_and(|claimed| claimed != size as u64) {
        return None;
    }
    let mut message = vec![0; size];
    let written = zstd::bulk::decompress_to_buffer(frame, &mut message).ok()?;
    (written == size).then_some(message)
}
