//! A password: bytes that only the key derivation sees.
//!
//! # Invariants
//! - The text is zeroised on drop, also when it is refused. There is no `Debug`, `Display` or
//!   `PartialEq`.

use zeroize::Zeroizing;

use crate::error::{Error, Result};

pub(crate) const PASSWORD_BYTES_MIN: usize = 8;
/// Longer ones add no strength, only work for whoever reads them.
pub(crate) const PASSWORD_BYTES_MAX: usize = 1024;

/// A password of acceptable length.
pub struct Password(Zeroizing<String>);

impl Password {
    pub fn parse(text: impl Into<Zeroizing<String>>) -> Result<Self> {
        let text = text.into();
        if (PASSWORD_BYTES_MIN..=PASSWORD_BYTES_MAX).contains(&text.len()) {
            Ok(Self(text))
        } else {
            Err(Error::InvalidPassword)
        }
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(length: usize, is_accepted: bool) {
        let parsed = Password::parse("p".repeat(length));
        match parsed {
            Ok(password) => assert!(is_accepted && password.as_bytes().len() == length, "{length}"),
            Err(Error::InvalidPassword) => assert!(!is_accepted, "{length}"),
            Err(error) => panic!("{length}: {error}"),
        }
    }

    #[test]
    fn eight_to_a_thousand_and_twenty_four_bytes() {
        check(0, false);
        check(7, false);
        check(8, true);
        check(1024, true);
        check(1025, false);
    }
}
