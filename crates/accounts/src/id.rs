//! Ids of accounts, vaults and devices. Those of vaults and devices are random, so that they reveal
//! no facts and cannot be guessed.
//!
//! # Invariants
//! - A [`VaultId`] is 32 and a [`DeviceId`] 16 lower-case hex digits, so a path that is built from
//!   one stays in its directory.

use std::fmt::{self, Write};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use crate::credentials::random;
use crate::error::{Error, Result};

/// The id of an account's row. It is never used again, even after the account is removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AccountId(pub(crate) i64);

impl AccountId {
    /// Creates the id of an account that no data directory has.
    pub const fn for_tests(number: i64) -> Self {
        Self(number)
    }
}

/// The directory of the vaults in a data directory.
pub const VAULTS_DIRECTORY: &str = "vaults";

/// The id of a vault.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct VaultId(String);

/// The id of a device.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DeviceId(String);

/// The id of a mail password.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MailPasswordId(String);

impl VaultId {
    const DIGITS: usize = 32;

    pub fn generate() -> Self {
        Self::from_bytes(&random::bytes::<16>())
    }

    pub fn from_bytes(bytes: &[u8; 16]) -> Self {
        Self(hex(bytes))
    }

    pub fn to_bytes(&self) -> [u8; 16] {
        let number = u128::from_str_radix(&self.0, 16);
        number.expect("it has 32 hex digits").to_be_bytes()
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the path of the vault's file in a data directory. 256 subdirectories keep each one
    /// small.
    pub fn path(&self, data: &Path) -> PathBuf {
        data.join(VAULTS_DIRECTORY).join(&self.0[..2]).join(format!("{}.sqlite", self.0))
    }

    /// Returns the vault of a file, if it is one: the accounts file has another kind of name.
    pub fn from_path(path: &Path) -> Option<Self> {
        path.file_stem()?.to_str()?.parse().ok()
    }
}

impl DeviceId {
    const DIGITS: usize = 16;

    pub fn generate() -> Self {
        Self(hex(&random::bytes::<8>()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl MailPasswordId {
    const DIGITS: usize = 16;

    pub(crate) fn generate() -> Self {
        Self(hex(&random::bytes::<8>()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for VaultId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for DeviceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for MailPasswordId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Parses an id. Any other text is an unknown password: [`Error::NotFound`].
impl FromStr for MailPasswordId {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        parse(text, Self::DIGITS).map(Self)
    }
}

/// Parses an id. Any other text is an unknown vault: [`Error::NotFound`].
impl FromStr for VaultId {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        parse(text, Self::DIGITS).map(Self)
    }
}

/// Parses an id. Any other text is an unknown device: [`Error::NotFound`].
impl FromStr for DeviceId {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        parse(text, Self::DIGITS).map(Self)
    }
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        write!(text, "{byte:02x}").expect("a String takes all that is written to it");
        text
    })
}

fn parse(text: &str, digits: usize) -> Result<String> {
    let is_id =
        text.len() == digits && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    if is_id { Ok(text.to_owned()) } else { Err(Error::NotFound) }
}

pub(crate) fn vault_of_column(text: &str) -> Result<VaultId> {
    text.parse().or(Err(Error::Damaged { what: "a vault's name" }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_its_own_text_is_an_id() {
        let vault = VaultId::generate();
        assert_eq!(vault.as_str().parse::<VaultId>().unwrap(), vault);
        assert_eq!(VaultId::from_bytes(&vault.to_bytes()), vault);
        assert_ne!(vault, VaultId::generate());
        let device = DeviceId::generate();
        assert_eq!(device.to_string().parse::<DeviceId>().unwrap(), device);
        for text in [
            "",
            "0",
            "0123456789ABCDEF",
            "0123456789abcde/",
            "../../0123456789",
            "0123456789abcdef0",
        ] {
            assert!(matches!(text.parse::<DeviceId>(), Err(Error::NotFound)), "{text:?}");
            assert!(matches!(text.parse::<VaultId>(), Err(Error::NotFound)), "{text:?}");
        }
    }

    #[test]
    fn a_vault_lies_in_the_folder_of_its_first_two_digits() {
        let vault: VaultId = "ab0123456789abcdef0123456789abcd".parse().unwrap();
        assert_eq!(
            vault.path(Path::new("/data")),
            Path::new("/data/vaults/ab/ab0123456789abcdef0123456789abcd.sqlite")
        );
    }
}
