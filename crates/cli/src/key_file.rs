//! The key of an encrypted SQLite file, from a file.

use std::path::PathBuf;

use anyhow::Context;
use clap::Args;
use engine::{Encryption, Key};
use zeroize::{Zeroize, Zeroizing};

/// How an encrypted file is opened.
#[derive(Args)]
pub(crate) struct KeyFile {
    /// The file is encrypted: read its key, 32 bytes or 64 hex digits, from this file.
    #[arg(long, value_name = "FILE")]
    key_file: Option<PathBuf>,
}

impl KeyFile {
    /// As the engine takes it.
    pub(crate) fn encryption(&self) -> anyhow::Result<Encryption> {
        let Some(path) = &self.key_file else { return Ok(Encryption::None) };
        let bytes = std::fs::read(path).map(Zeroizing::new);
        let bytes = bytes.with_context(|| path.display().to_string())?;
        let key = parse(&bytes)
            .with_context(|| format!("{}: a key is 32 bytes or 64 hex digits", path.display()))?;
        Ok(Encryption::Key { key, cipher: None })
    }
}

fn parse(bytes: &[u8]) -> Option<Key> {
    let mut key: [u8; 32] = if let Ok(key) = bytes.try_into() {
        key
    } else {
        let digits: [u8; 64] = bytes.trim_ascii_end().try_into().ok()?;
        let digit = |digit: u8| char::from(digit).to_digit(16).and_then(|it| u8::try_from(it).ok());
        let mut key = [0; 32];
        for (byte, pair) in key.iter_mut().zip(digits.as_chunks::<2>().0) {
            *byte = digit(pair[0])? << 4 | digit(pair[1])?;
        }
        key
    };
    let parsed = Key::from_bytes(key);
    key.zeroize();
    Some(parsed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_bytes_or_hex_digits() {
        let bytes: [u8; 32] = std::array::from_fn(|index| u8::try_from(index * 7).unwrap());
        let hex = bytes.map(|byte| format!("{byte:02x}")).concat();
        for text in [&bytes[..], hex.as_bytes(), format!("{}\n", hex.to_uppercase()).as_bytes()] {
            assert_eq!(parse(text).unwrap().as_bytes(), &bytes);
        }
        for wrong in [&b""[..], &bytes[1..], &hex.as_bytes()[1..], &[b'x'; 64]] {
            assert!(parse(wrong).is_none());
        }
    }
}
