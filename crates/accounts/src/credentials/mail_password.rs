//! Mail passwords: 130 random bits for one mail program, which open the mail vault of an account and
//! nothing else.
//!
//! ```text
//! text      26 symbols of base32 (a–z, 2–7), written in groups: abcde-fghij-…
//! hash      HKDF-SHA256(symbols, info "warren mail password hash 1"), 32 bytes, stored and indexed
//! wrapping  HKDF-SHA256(symbols, info "warren mail key 1"), 32 bytes, never stored
//! ```
//! The bits are random, so no slow hash is needed: a mail program that connects often costs the
//! server nothing. The lookup by hash leaks nothing, as for device tokens (`token.rs`).
//!
//! # Invariants
//! - The symbols are zeroized on drop, and there is no `Debug`.

use zeroize::Zeroizing;

use super::key_wrap::WrappingKey;
use super::random;
use super::token::derive;

const HASH_INFO: &[u8] = b"warren mail password hash 1";
const WRAPPING_INFO: &[u8] = b"warren mail key 1";

/// The symbols, each of which stands for 5 bits. There is no 0 or 1, which look like letters.
const SYMBOLS: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";

const SYMBOLS_COUNT: usize = 26;

/// The number of symbols in a group of the text; the last group has one more.
const GROUP_SYMBOLS: usize = 5;

/// A mail password.
pub struct MailPassword(Zeroizing<[u8; SYMBOLS_COUNT]>);

impl MailPassword {
    pub(crate) fn generate() -> Self {
        let mut symbols = Zeroizing::new([0; SYMBOLS_COUNT]);
        random::fill(symbols.as_mut());
        for symbol in symbols.iter_mut() {
            // 256 is a multiple of 32, so each symbol is equally likely.
            *symbol = SYMBOLS[usize::from(*symbol % 32)];
        }
        Self(symbols)
    }

    /// Parses a text in upper or lower case, with or without hyphens and spaces. Returns `None` if
    /// it is not a mail password.
    pub fn parse(text: &str) -> Option<Self> {
        let mut symbols = Zeroizing::new([0; SYMBOLS_COUNT]);
        let mut count = 0;
        for byte in text.bytes().filter(|byte| !matches!(byte, b'-' | b' ')) {
            let byte = byte.to_ascii_lowercase();
            if !SYMBOLS.contains(&byte) {
                return None;
            }
            *symbols.get_mut(count)? = byte;
            count += 1;
        }
        (count == SYMBOLS_COUNT).then_some(Self(symbols))
    }

    /// Returns the text that the user gives to the mail program. Do not log it.
    pub fn to_text(&self) -> Zeroizing<String> {
        let mut text = Zeroizing::new(String::with_capacity(SYMBOLS_COUNT + 4));
        for (index, symbol) in self.0.iter().enumerate() {
            if index > 0 && index % GROUP_SYMBOLS == 0 && index < SYMBOLS_COUNT - 1 {
                text.push('-');
            }
            text.push(char::from(*symbol));
        }
        text
    }

    pub(crate) fn hash(&self) -> [u8; 32] {
        *derive(self.0.as_ref(), HASH_INFO)
    }

    pub(crate) fn wrapping_key(&self) -> WrappingKey {
        WrappingKey::new(derive(self.0.as_ref(), WRAPPING_INFO))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_leads_back_to_the_password_however_it_is_typed() {
        let password = MailPassword::generate();
        let text = password.to_text();
        assert_eq!((text.len(), text.matches('-').count()), (30, 4), "{}", *text);
        let typed = [text.to_uppercase(), text.replace('-', ""), format!(" {} ", *text)];
        for text in typed.iter().chain([&*text]) {
            assert!(MailPassword::parse(text).unwrap().0 == password.0, "{text}");
        }
        assert!(MailPassword::generate().0 != password.0);
    }

    #[test]
    fn no_other_text_is_a_password() {
        let text = "a".repeat(SYMBOLS_COUNT);
        assert!(MailPassword::parse(&text).is_some());
        let (short, long) = (&text[1..], format!("{text}a"));
        for other in ["", short, &long, &format!("{short}1"), &format!("{short}ä")] {
            assert!(MailPassword::parse(other).is_none(), "{other}");
        }
    }

    #[test]
    fn the_derived_values_are_those_of_the_format() {
        let password = MailPassword::parse("abcde-fghij-klmno-pqrst-uvwxyz").unwrap();
        // Computed with Python's hmac and hashlib.
        assert_eq!(
            crate::id::hex(&password.hash()),
            "ad6fdd194f1a919796ea3aff9caefa92e7c60ac3930335db92a95e1ab2037c53"
        );
    }
}
