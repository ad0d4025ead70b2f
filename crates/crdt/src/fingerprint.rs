//! Computes the fingerprint of a set of messages: their count, and the sum of their hashes.
//!
//! Addition commutes and has an inverse, so messages are added in any order, two halves of a set
//! can be added up, and equal sets have equal fingerprints. It is a sum instead of XOR, because two
//! copies of one item must not cancel (`docs/reference/formats/2-message.md`).

use std::fmt;
use std::ops::{AddAssign, SubAssign};

use crate::Timestamp;

/// The count and digest of a set of messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fingerprint {
    /// The number of messages in the set.
    pub count: u64,
    /// The sum of the messages' hashes modulo 2¹²⁸.
    pub digest: u128,
}

impl Fingerprint {
    /// Returns the fingerprint of the set with one message.
    pub fn from_message(timestamp: Timestamp, content: &[u8]) -> Self {
        let mut hasher = blake3::Hasher::new();
        hasher.update(&timestamp.to_bytes()).update(content);
        let hash = hasher.finalize();
        let (half, _) = hash.as_bytes().split_first_chunk().expect("a BLAKE3 hash has 32 bytes");
        Self { count: 1, digest: u128::from_be_bytes(*half) }
    }

    /// Returns the last 64 bits of the digest, which two sides compare while they search for a
    /// difference. For a sum of fingerprints, it is the sum of their short digests.
    #[expect(clippy::cast_possible_truncation, reason = "takes exactly these 64 bits")]
    pub fn short_digest(&self) -> u64 {
        self.digest as u64
    }

    /// Returns the digest as on the wire: 16 bytes, big-endian.
    pub fn digest_bytes(&self) -> [u8; 16] {
        self.digest.to_be_bytes()
    }
}

impl AddAssign for Fingerprint {
    fn add_assign(&mut self, other: Self) {
        self.count += other.count;
        self.digest = self.digest.wrapping_add(other.digest);
    }
}

impl SubAssign for Fingerprint {
    fn sub_assign(&mut self, other: Self) {
        self.count -= other.count;
        self.digest = self.digest.wrapping_sub(other.digest);
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let noun = if self.count == 1 { "message" } else { "messages" };
        write!(f, "{} {noun}, {:032x}", self.count, self.digest)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::NodeId;

    fn sum(items: &[(u64, Vec<u8>)]) -> Fingerprint {
        let mut total = Fingerprint::default();
        for (millis, content) in items {
            total +=
                Fingerprint::from_message(Timestamp::new(*millis, 0, NodeId(1)).unwrap(), content);
        }
        total
    }

    #[test]
    fn the_hash_is_the_documented_one() {
        // The expected digest is by another implementation of BLAKE3 (Python's `blake3`), of the 16
        // timestamp bytes and "hi".
        let t: Timestamp = "2026-11-21T06:30:00.123Z-00AB-a1b2c3d4e5f60718".parse().unwrap();
        let digest = format!("{:032x}", Fingerprint::from_message(t, b"hi").digest);
        assert_eq!(digest, "ea413217a09e6734dc0d751dfed97f3a");
    }

    #[test]
    fn content_and_timestamp_both_count_and_copies_do_not_cancel() {
        let a = sum(&[(1, b"a".to_vec())]);
        assert_ne!(a, sum(&[(2, b"a".to_vec())]));
        assert_ne!(a, sum(&[(1, b"b".to_vec())]));
        assert_ne!(sum(&[(1, b"a".to_vec()), (1, b"a".to_vec())]).digest, 0);
    }

    proptest! {
        #[test]
        fn order_and_grouping_do_not_matter(
            mut items in prop::collection::vec((0u64..1000, prop::collection::vec(any::<u8>(), 0..20)), 0..40),
            cut in any::<prop::sample::Index>(),
        ) {
            let whole = sum(&items);
            let (left, right) = items.split_at(cut.index(items.len() + 1));
            let mut halves = sum(left);
            halves += sum(right);
            prop_assert_eq!(halves, whole);
            halves -= sum(right);
            prop_assert_eq!(halves, sum(left));
            items.reverse();
            prop_assert_eq!(sum(&items), whole);
        }
    }
}
