//! Passwords: bytes that only the key derivation and keyed hashers can read.
//!
//! # Invariants
//! - The text is zeroized on drop, even if it is refused. There is no `Debug`, `Display` or
//!   `PartialEq`.

use std::hash::{Hash, Hasher};

use zeroize::Zeroizing;

use crate::error::{Error, Result};
use crate::limits::{PASSWORD_BYTES_MAX, PASSWORD_BYTES_MIN};

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

    /// Parses a password by the rule of Actual's apps, which have no minimum length except 1.
    pub fn parse_any_length(text: impl Into<Zeroizing<String>>) -> Result<Self> {
        let text = text.into();
        if (1..=PASSWORD_BYTES_MAX).contains(&text.len()) {
            Ok(Self(text))
        } else {
            Err(Error::InvalidPassword)
        }
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

/// Lets a caller recognize a password that is tried again, without storing it.
impl Hash for Password {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_bytes().hash(state);
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
    fn any_length_but_none() {
        let is_accepted = |length: usize| Password::parse_any_length("p".repeat(length)).is_ok();
        assert_eq!([0, 1, 7, 1024, 1025].map(is_accepted), [false, true, true, true, false]);
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
