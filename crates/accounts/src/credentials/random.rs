//! Randomness: the one place of this crate that asks the operating system for it.

/// # Panics
/// If the operating system has no randomness to give; nothing secret can be made then.
pub(crate) fn fill(bytes: &mut [u8]) {
    getrandom::fill(bytes).expect("the operating system gives random bytes");
}

/// Random bytes that are no secret: a salt, a nonce.
pub(crate) fn bytes<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    fill(&mut bytes);
    bytes
}
