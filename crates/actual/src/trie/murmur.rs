//! Computes `MurmurHash3` x86 32-bit with seed 0 (Austin Appleby, public domain, `smhasher`).

/// Hashes any bytes.
pub(super) fn hash(bytes: &[u8]) -> u32 {
    let (blocks, tail) = bytes.as_chunks::<4>();
    let mut hash = 0;
    for block in blocks {
        hash ^= mix(u32::from_le_bytes(*block));
        hash = u32::rotate_left(hash, 13).wrapping_mul(5).wrapping_add(0xe654_6b64);
    }
    let mut last = [0; 4];
    last[..tail.len()].copy_from_slice(tail);
    hash ^= mix(u32::from_le_bytes(last));
    // The length is taken modulo 2³², as in the original.
    #[expect(clippy::cast_possible_truncation, reason = "takes exactly these 32 bits")]
    let length = bytes.len() as u32;
    finish(hash ^ length)
}

fn mix(block: u32) -> u32 {
    block.wrapping_mul(0xcc9e_2d51).rotate_left(15).wrapping_mul(0x1b87_3593)
}

fn finish(mut hash: u32) -> u32 {
    hash = (hash ^ (hash >> 16)).wrapping_mul(0x85eb_ca6b);
    hash = (hash ^ (hash >> 13)).wrapping_mul(0xc2b2_ae35);
    hash ^ (hash >> 16)
}

#[cfg(test)]
mod tests {
    use super::hash;

    /// The list at <https://stackoverflow.com/a/31929528>, which was computed with the original.
    #[test]
    fn the_published_examples_with_seed_0() {
        for (bytes, expected) in [
            (&b""[..], 0),
            (&[0xff; 4][..], 0x7629_3b50),
            (&[0x21, 0x43, 0x65, 0x87][..], 0xf55b_516b),
            (&[0x21, 0x43, 0x65][..], 0x7e4a_8634),
            (&[0x21, 0x43][..], 0xa0f7_b07a),
            (&[0x21][..], 0x7266_1cf4),
            (&[0; 4][..], 0x2362_f9de),
            (&[0; 3][..], 0x85f0_b427),
            (&[0; 2][..], 0x30f4_c306),
            (&[0; 1][..], 0x514e_28b7),
            (&b"Hello, world!"[..], 0xc036_3e43),
        ] {
            assert_eq!(hash(bytes), expected, "{bytes:x?}");
        }
    }
}
