//! Packs the content of a message of Actual's apps into a Warren message: a flag for whether the
//! app encrypted it, then the app's bytes.
//!
//! # Not here
//! - The timestamp: it is the message's own.
//! - The meaning of the app's bytes, which no server can know.

use bytes::{BufMut, Bytes, BytesMut};

const PLAIN: u8 = 0;
const ENCRYPTED: u8 = 1;

/// An error for a content that [`pack`] did not produce.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a message's content is damaged")]
pub struct DamagedContent;

/// Packs everything of an envelope except its timestamp.
pub fn pack(is_encrypted: bool, content: &Bytes) -> Bytes {
    pack_into(&mut BytesMut::with_capacity(packed_bytes(content)), is_encrypted, content)
}

/// Does the same as [`pack`], but takes the memory from a buffer: the contents of a request share
/// one allocation if the buffer's capacity is the sum of their [`packed_bytes`].
pub fn pack_into(buffer: &mut BytesMut, is_encrypted: bool, content: &Bytes) -> Bytes {
    buffer.reserve(packed_bytes(content));
    buffer.put_u8(if is_encrypted { ENCRYPTED } else { PLAIN });
    buffer.extend_from_slice(content);
    buffer.split().freeze()
}

/// Returns the length of a content after [`pack`].
pub fn packed_bytes(content: &Bytes) -> usize {
    1 + content.len()
}

/// Returns the arguments of [`pack`], without a copy.
pub fn unpack(packed: &Bytes) -> Result<(bool, Bytes), DamagedContent> {
    match packed.first() {
        Some(&flag @ (PLAIN | ENCRYPTED)) => Ok((flag == ENCRYPTED, packed.slice(1..))),
        _ => Err(DamagedContent),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_flag_comes_first() {
        assert_eq!(pack(false, &Bytes::from_static(b"ab"))[..], *b"\0ab");
        assert_eq!(pack(true, &Bytes::new())[..], *b"\x01");
    }

    #[test]
    fn other_first_bytes_are_damage() {
        for packed in [&b""[..], b"\x02", b"\xffab"] {
            assert_eq!(unpack(&Bytes::from_static(packed)), Err(DamagedContent));
        }
    }

    #[test]
    fn contents_of_a_request_lie_side_by_side() {
        let contents = [Bytes::from_static(b"one"), Bytes::new(), Bytes::from_static(b"three")];
        let mut buffer = BytesMut::with_capacity(contents.iter().map(packed_bytes).sum());
        let packed = contents.each_ref().map(|content| pack_into(&mut buffer, true, content));
        assert_eq!(packed[1].as_ptr(), packed[0].as_ptr_range().end);
        assert_eq!(packed[2].as_ptr(), packed[1].as_ptr_range().end);
    }

    proptest! {
        #[test]
        fn packing_round_trips(is_encrypted: bool, content: Vec<u8>) {
            let content = Bytes::from(content);
            prop_assert_eq!(unpack(&pack(is_encrypted, &content)), Ok((is_encrypted, content)));
        }
    }
}
