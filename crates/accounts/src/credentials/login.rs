//! Logins: the names of users, in their one stored form.
//!
//! # Invariants
//! - A login has 1 to 64 of `a-z 0-9 . _ @ + -`, the first a letter or a digit, so it is safe in a
//!   log line, a URL and a terminal.
//! - A login is in lower case, so that `Ada` and `ada` are one account.
//!
//! # Not here
//! - File names, which come from [`crate::VaultId`] and never from a login.

use std::fmt;

use crate::error::{Error, Result};

const LOGIN_BYTES_MAX: usize = 64;

/// A valid login, in lower case.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Login(String);

impl Login {
    pub fn parse(text: &str) -> Result<Self> {
        let begins_well = text.bytes().next().is_some_and(|first| first.is_ascii_alphanumeric());
        if begins_well && text.len() <= LOGIN_BYTES_MAX && text.bytes().all(is_allowed) {
            Ok(Self(text.to_ascii_lowercase()))
        } else {
            Err(Error::InvalidLogin)
        }
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn is_allowed(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"._@+-".contains(&byte)
}

pub(crate) fn login_of_column(text: &str) -> Result<Login> {
    Login::parse(text).or(Err(Error::Damaged { what: "a login" }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Option<&str>) {
        let parsed = Login::parse(text);
        match expected {
            Some(login) => assert_eq!(parsed.unwrap().as_str(), login),
            None => assert!(matches!(parsed, Err(Error::InvalidLogin)), "{text:?}"),
        }
    }

    #[test]
    fn the_grammar_is_closed() {
        check("ada", Some("ada"));
        check("Ada.Lovelace+1@Example-Host_2", Some("ada.lovelace+1@example-host_2"));
        check("7", Some("7"));
        check(&"a".repeat(64), Some(&"a".repeat(64)));
        check(&"a".repeat(65), None);
        for text in
            ["", ".", "..", "../x", "a/b", "a\\b", "-a", "_a", "@a", " ada", "ada ", "a\0b", "a\nb"]
        {
            check(text, None);
        }
        // These are not ASCII, though they look or lower-case like it: a Cyrillic a, a dotted I,
        // the Kelvin sign.
        for text in ["аda", "İda", "\u{212a}"] {
            check(text, None);
        }
    }
}
