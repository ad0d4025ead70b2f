//! Derives the key that apps encrypt a budget with from the user's password, and decrypts with it.
//!
//! Source: `@actual-app/core` 26.9.0, `server/encryption/`. The salt is used as text, although it
//! looks like base64.

use std::num::NonZeroU32;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use ring::pbkdf2::{PBKDF2_HMAC_SHA512, derive};
use serde::Deserialize;
use zeroize::Zeroizing;

use crate::export::error::ExportError;
use crate::gateway_state::BudgetKey;

const ROUNDS: NonZeroU32 = NonZeroU32::new(10_000).expect("it is not 0");
const KEY_BYTES: usize = 32;

pub(super) struct AppKey(LessSafeKey);

/// The content of an encrypted message.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub(super) struct EncryptedData {
    #[prost(bytes = "bytes", tag = "1")]
    iv: Bytes,
    #[prost(bytes = "bytes", tag = "2")]
    auth_tag: Bytes,
    #[prost(bytes = "bytes", tag = "3")]
    data: Bytes,
}

/// The parameters with which a file was encrypted: JSON, with its bytes in base64.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct EncryptionMeta {
    iv: String,
    auth_tag: String,
}

/// An encrypted sample that shows whether a password is right.
#[derive(Deserialize)]
struct KeyTest {
    value: String,
    meta: EncryptionMeta,
}

impl AppKey {
    /// Derives the key of a budget, and refuses a password that the budget does not use.
    pub(super) fn from_password(budget: &BudgetKey, password: &str) -> Result<Self, ExportError> {
        let salt = budget.salt.as_deref().unwrap_or_default();
        let mut bytes = Zeroizing::new([0; KEY_BYTES]);
        let secret = password.as_bytes();
        derive(PBKDF2_HMAC_SHA512, ROUNDS, salt.as_bytes(), secret, &mut *bytes);
        let key = UnboundKey::new(&AES_256_GCM, &*bytes).expect("it has the right length");
        let key = Self(LessSafeKey::new(key));
        if let Some(test) = &budget.test {
            let test: KeyTest = from_json(test)?;
            key.open_with(&test.meta, from_base64(&test.value)?)?;
        }
        Ok(key)
    }

    /// Decrypts a file with the parameters in `meta`.
    pub(super) fn open_file(&self, meta: &str, sealed: Vec<u8>) -> Result<Vec<u8>, ExportError> {
        self.open_with(&from_json(meta)?, sealed)
    }

    pub(super) fn open(&self, sealed: EncryptedData) -> Result<Vec<u8>, ExportError> {
        self.open_in_place(&sealed.iv, &sealed.auth_tag, sealed.data.into())
    }

    fn open_with(&self, meta: &EncryptionMeta, sealed: Vec<u8>) -> Result<Vec<u8>, ExportError> {
        self.open_in_place(&from_base64(&meta.iv)?, &from_base64(&meta.auth_tag)?, sealed)
    }

    fn open_in_place(
        &self,
        iv: &[u8],
        tag: &[u8],
        mut data: Vec<u8>,
    ) -> Result<Vec<u8>, ExportError> {
        let nonce = Nonce::try_assume_unique_for_key(iv).or(Err(ExportError::WrongKeyPassword))?;
        data.extend_from_slice(tag);
        let opened = self.0.open_in_place(nonce, Aad::empty(), &mut data);
        let length = opened.or(Err(ExportError::WrongKeyPassword))?.len();
        data.truncate(length);
        Ok(data)
    }
}

fn from_json<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, ExportError> {
    serde_json::from_str(text)
        .map_err(|why| ExportError::damaged("invalid encryption metadata", why))
}

fn from_base64(text: &str) -> Result<Vec<u8>, ExportError> {
    STANDARD.decode(text).map_err(|why| ExportError::damaged("invalid encryption metadata", why))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The expected values come from Node's `crypto`, called as the apps call it.
    #[test]
    fn a_key_is_made_and_used_as_apps_do() {
        let test = r#"{"value": "2qJ2KvDCMgc=", "meta": {"keyId": "k", "algorithm": "aes-256-gcm",
            "iv": "AAECAwQFBgcICQoL", "authTag": "jWPfV3trMAFH+1W2jZ8o7w=="}}"#;
        let budget = BudgetKey {
            id: Some("k".to_owned()),
            salt: Some("c2FsdA==".to_owned()),
            test: Some(test.to_owned()),
        };
        let key = AppKey::from_password(&budget, "battery staple ☂").unwrap();
        let test: KeyTest = from_json(test).unwrap();
        let opened = key.open_with(&test.meta, from_base64(&test.value).unwrap()).unwrap();
        assert_eq!(opened, b"a budget");
        for password in ["battery staple", ""] {
            let wrong = AppKey::from_password(&budget, password);
            assert!(matches!(wrong, Err(ExportError::WrongKeyPassword)), "{password}");
        }
        let spoiled = key.open_with(&test.meta, from_base64("2qJ2KvDCMgd=").unwrap_or_default());
        assert!(matches!(spoiled, Err(ExportError::WrongKeyPassword)));
    }
}
