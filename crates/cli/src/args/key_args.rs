//! Defines the arguments for the key of an encrypted file, for commands that work on any SQLite
//! file.
//!
//! # Invariants
//! - A key comes from a file or a command, never from the command line, which every user of the
//!   machine can read.
//! - Keys are zeroized, and never printed.

mod command;

use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use clap::Args;
use engine::{Cipher, DatabaseKey, FileEncryption, Passphrase};
use protocol::ErrorCode;
use replica::{FileKey, Replica};
use zeroize::Zeroizing;

use super::password::first_line;
use crate::output::CommandError;

/// Key of an encrypted file.
#[derive(Args)]
pub(crate) struct FileKeyArgs {
    /// Read the raw key from this file: 32 bytes, or 64 hex digits.
    #[arg(long, value_name = "FILE", conflicts_with = "passphrase_file")]
    key_file: Option<PathBuf>,
    /// Read the passphrase from the first line of this file.
    #[arg(long, value_name = "FILE")]
    passphrase_file: Option<PathBuf>,
}

impl FileKeyArgs {
    fn key(&self) -> anyhow::Result<Option<FileKey>> {
        if let Some(path) = &self.key_file {
            return Ok(Some(FileKey::Raw(read_key(path)?)));
        }
        let Some(path) = &self.passphrase_file else { return Ok(None) };
        let line = first_line(path)?;
        let message = || format!("the first line of {} is empty", path.display());
        ensure!(!line.is_empty(), CommandError::new(ErrorCode::InvalidKey, message()));
        Ok(Some(FileKey::Passphrase(Zeroizing::new(line.as_bytes().to_vec()))))
    }

    pub(crate) fn is_given(&self) -> bool {
        self.key_file.is_some() || self.passphrase_file.is_some()
    }

    /// Opens a tracked file.
    pub(crate) fn open(&self, file: &Path) -> anyhow::Result<Replica> {
        Ok(Replica::open_encrypted(file, self.key()?.as_ref())?)
    }
}

/// A tracked file and its key.
#[derive(Args)]
pub(crate) struct TrackedFileArgs {
    /// Tracked SQLite file.
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    #[command(flatten)]
    key: FileKeyArgs,
}

impl TrackedFileArgs {
    pub(crate) fn open(&self) -> anyhow::Result<Replica> {
        self.key.open(&self.file)
    }

    pub(crate) fn prepare(&self) -> anyhow::Result<Replica> {
        Ok(Replica::prepare_encrypted(&self.file, self.key.key()?.as_ref())?)
    }

    pub(crate) fn create(&self) -> anyhow::Result<Replica> {
        Ok(Replica::create_encrypted(&self.file, self.key.key()?.as_ref())?)
    }

    /// Opens the remains of an interrupted clone, if the file contains nothing else.
    pub(crate) fn resume(&self) -> anyhow::Result<Option<Replica>> {
        Ok(Replica::resume_encrypted(&self.file, self.key.key()?.as_ref())?)
    }
}

/// Key and cipher of an encrypted file.
#[derive(Args)]
pub(crate) struct CipherKeyArgs {
    #[command(flatten)]
    source: FileKeyArgs,
    /// Read the key from the output of this shell command: 64 hex digits, or the passphrase. Runs
    /// for each file, with the path of the file in the environment variable `WARREN_FILE`.
    #[arg(long, value_name = "COMMAND", conflicts_with_all = ["key_file", "passphrase_file"])]
    key_command: Option<String>,
    /// Cipher of the file: aegis, sqlcipher or ascon128. chacha20 and aes256cbc are detected
    /// automatically.
    #[arg(long, value_name = "NAME")]
    cipher: Option<Cipher>,
}

impl CipherKeyArgs {
    /// Returns the encryption of a file, according to the flags.
    pub(crate) fn encryption(&self, file: &Path) -> anyhow::Result<FileEncryption> {
        let cipher = self.cipher;
        let key = match &self.key_command {
            Some(command) => Some(printed_key(command, file)?),
            None => self.source.key()?,
        };
        match key {
            None => {
                let message = "--cipher requires --key-file, --passphrase-file or --key-command";
                ensure!(cipher.is_none(), CommandError::usage(message));
                Ok(FileEncryption::None)
            }
            Some(FileKey::Raw(key)) => {
                Ok(FileEncryption::Key { key: DatabaseKey::from_bytes(*key), cipher })
            }
            Some(FileKey::Passphrase(words)) => Ok(FileEncryption::Passphrase {
                passphrase: Passphrase::new(words.to_vec()),
                cipher,
            }),
        }
    }
}

fn printed_key(command: &str, file: &Path) -> anyhow::Result<FileKey> {
    let printed = command::run(command, file)?;
    if let Some(key) = from_hex(printed.trim_ascii()) {
        return Ok(FileKey::Raw(key));
    }
    let line = printed.split(|byte| *byte == b'\n').next().unwrap_or_default();
    Ok(FileKey::Passphrase(Zeroizing::new(line.trim_ascii_end().to_vec())))
}

fn read_key(path: &Path) -> anyhow::Result<Zeroizing<[u8; 32]>> {
    let bytes = std::fs::read(path).with_context(|| path.display().to_string())?;
    let bytes = Zeroizing::new(bytes);
    let key = match <[u8; 32]>::try_from(bytes.as_slice()) {
        Ok(key) => Some(Zeroizing::new(key)),
        Err(_) => from_hex(bytes.trim_ascii()),
    };
    let message = || format!("{} is not a key (32 bytes or 64 hex digits)", path.display());
    Ok(key.ok_or_else(|| CommandError::new(ErrorCode::InvalidKey, message()))?)
}

fn from_hex(digits: &[u8]) -> Option<Zeroizing<[u8; 32]>> {
    let mut key = Zeroizing::new([0; 32]);
    if digits.len() != 2 * key.len() {
        return None;
    }
    for (byte, pair) in key.iter_mut().zip(digits.chunks(2)) {
        let digit = |at: usize| char::from(pair[at]).to_digit(16);
        *byte = u8::try_from(digit(0)? << 4 | digit(1)?).ok()?;
    }
    Some(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hex_digits_are_a_key() {
        let digits = "00ff10".to_owned() + &"7".repeat(58);
        let key = from_hex(digits.as_bytes()).unwrap();
        assert_eq!((key[..4].to_vec(), key[31]), (vec![0, 255, 16, 0x77], 0x77));
        assert!(from_hex(&digits.as_bytes()[1..]).is_none());
        assert!(from_hex(digits.replace("ff", "fg").as_bytes()).is_none());
    }
}
