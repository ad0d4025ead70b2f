//! Randomness: the only file of this crate that requests it from the operating system.

/// Fills `bytes` with randomness.
///
/// # Panics
/// Panics if the operating system provides no randomness, because secrets cannot be created then.
pub(crate) fn fill(bytes: &mut [u8]) {
    getrandom::fill(bytes).expect("the operating system gives random bytes");
}

/// Returns random bytes that are not secret: a salt or a nonce.
pub(crate) fn bytes<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    fill(&mut bytes);
    bytes
}
