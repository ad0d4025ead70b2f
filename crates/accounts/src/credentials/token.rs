//! Device tokens: 256 random bits that authenticate the device and unwrap the vault's key.
//!
//! ```text
//! token     32 random bytes; as text `warren_` and 43 characters of base64url without padding
//! hash      HKDF-SHA256(token, info "warren token hash 1"), 32 bytes, stored and indexed
//! wrapping  HKDF-SHA256(token, info "warren vault key 1"), 32 bytes, never stored
//! ```
//! The hash reveals no information about the wrapping key: HKDF's outputs for different infos are
//! independent.
//!
//! Apps for another server bring, or expect, tokens of another form: a *foreign* text. Its token is
//! HKDF-SHA256(text, info "warren foreign token 1"), so all else is the same.
//!
//! A token is looked up by its hash through an index, in a time that depends on the compared
//! hashes. That leaks no information: to learn where a comparison ends, an attacker would have to
//! choose hashes, but can only choose tokens; and a known hash leads back neither to a token nor to
//! the key.
//!
//! # Invariants
//! - The bytes are zeroized on drop, and there is no `Debug`.
//! - One token has one text: the parser refuses any text that the encoder does not write.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hkdf::Hkdf;
use sha2::Sha256;
use zeroize::Zeroizing;

use super::key_wrap::WrappingKey;
use super::random;
use crate::error::{Error, Result};

const PREFIX: &str = "warren_";
const HASH_INFO: &[u8] = b"warren token hash 1";
const WRAPPING_INFO: &[u8] = b"warren vault key 1";
const FOREIGN_INFO: &[u8] = b"warren foreign token 1";

/// The minimum length of a foreign text. A UUID has 36 characters, of which 122 bits are random.
const FOREIGN_BYTES_MIN: usize = 32;
const FOREIGN_BYTES_MAX: usize = 1_024;

/// The length of 32 bytes in base64 without padding.
const BASE64_CHARACTERS: usize = 43;

/// A device's secret token.
#[derive(Clone)]
pub struct DeviceToken(Zeroizing<[u8; 32]>);

/// The hash by which the server recognizes a token.
pub(crate) type TokenHash = [u8; 32];

impl DeviceToken {
    pub(crate) fn generate() -> Self {
        let mut token = Self(Zeroizing::new([0; 32]));
        random::fill(token.0.as_mut());
        token
    }

    pub fn parse(text: &str) -> Result<Self> {
        let encoded = text.strip_prefix(PREFIX).filter(|rest| rest.len() == BASE64_CHARACTERS);
        let encoded = encoded.ok_or(Error::InvalidToken)?;
        let mut token = Self(Zeroizing::new([0; 32]));
        match URL_SAFE_NO_PAD.decode_slice(encoded, token.0.as_mut()) {
            Ok(32) => Ok(token),
            _ => Err(Error::InvalidToken),
        }
    }

    /// Derives the token of a text that another server issued or its apps expect. The caller must
    /// ensure at least 122 random bits. Returns [`Error::InvalidToken`] if the text is too short or
    /// too long.
    pub fn from_foreign_text(text: &str) -> Result<Self> {
        if !(FOREIGN_BYTES_MIN..=FOREIGN_BYTES_MAX).contains(&text.len()) {
            return Err(Error::InvalidToken);
        }
        Ok(Self(derive(text.as_bytes(), FOREIGN_INFO)))
    }

    /// Returns the text that the device stores. Do not log it.
    pub fn to_text(&self) -> Zeroizing<String> {
        let mut text = Zeroizing::new(String::with_capacity(PREFIX.len() + BASE64_CHARACTERS));
        text.push_str(PREFIX);
        URL_SAFE_NO_PAD.encode_string(self.0.as_ref(), &mut text);
        text
    }

    pub(crate) fn hash(&self) -> TokenHash {
        *self.derive(HASH_INFO)
    }

    pub(crate) fn wrapping_key(&self) -> WrappingKey {
        WrappingKey::new(self.derive(WRAPPING_INFO))
    }

    fn derive(&self, info: &[u8]) -> Zeroizing<[u8; 32]> {
        derive(self.0.as_ref(), info)
    }
}

/// Derives a secret for one purpose, `info`, with HKDF-SHA256 (RFC 5869) without a salt.
pub(crate) fn derive(secret: &[u8], info: &[u8]) -> Zeroizing<[u8; 32]> {
    let mut output = Zeroizing::new([0; 32]);
    Hkdf::<Sha256>::new(None, secret)
        .expand(info, output.as_mut())
        .expect("32 bytes are one block of the expansion");
    output
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_leads_back_to_the_token() {
        let token = DeviceToken::generate();
        let text = token.to_text();
        assert_eq!(text.len(), 50);
        assert!(DeviceToken::parse(&text).unwrap().0 == token.0);
        assert!(DeviceToken::generate().0 != token.0);
    }

    #[test]
    fn no_other_text_is_a_token() {
        let zeros = format!("warren_{}", "A".repeat(43));
        assert!(DeviceToken::parse(&zeros).is_ok());
        let not_canonical = format!("warren_{}B", "A".repeat(42));
        let long = format!("{zeros}A");
        let padded = format!("{zeros}=");
        let spaced = format!(" {zeros}");
        for text in
            ["", "warren_", &zeros[..49], &zeros[7..], &not_canonical, &long, &padded, &spaced]
        {
            assert!(matches!(DeviceToken::parse(text), Err(Error::InvalidToken)), "{text:?}");
        }
    }

    #[test]
    fn a_foreign_text_is_one_token_of_its_own() {
        let text = "7b0bd29a-2b62-4d3c-9d4c-0f3d3b6a4c11";
        let token = DeviceToken::from_foreign_text(text).unwrap();
        assert!(token.0 == DeviceToken::from_foreign_text(text).unwrap().0);
        assert!(token.0 != DeviceToken::from_foreign_text(&text.replace('7', "8")).unwrap().0);
        let warren = DeviceToken::generate().to_text();
        assert!(
            DeviceToken::from_foreign_text(&warren).unwrap().0
                != DeviceToken::parse(&warren).unwrap().0
        );
        for text in ["", &text[..31], &"x".repeat(1_025)] {
            assert!(
                matches!(DeviceToken::from_foreign_text(text), Err(Error::InvalidToken)),
                "{text:?}"
            );
        }
    }

    #[test]
    fn derived_values_are_those_of_the_format() {
        // The values were computed with Python's hmac according to RFC 5869, for the token 00 01 02
        // … 1f.
        let token = DeviceToken(Zeroizing::new(std::array::from_fn(|i| u8::try_from(i).unwrap())));
        let hex = |bytes: [u8; 32]| bytes.map(|byte| format!("{byte:02x}")).concat();
        assert_eq!(
            hex(token.hash()),
            "5cc7aeefc559eb28c851da4c5990b00da284a8b805d1c7c8d66301fd621ca5c4"
        );
        assert_eq!(
            hex(*token.derive(WRAPPING_INFO)),
            "2bf5a1b4330a4c7af0db825c4b52cae62deb31ea0245d918072cb5655c03ddd7"
        );
    }
}
