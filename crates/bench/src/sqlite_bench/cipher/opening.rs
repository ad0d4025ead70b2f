//! Measures the cost of opening an encrypted file, which is mostly the time to derive a key from a
//! passphrase.

use std::io::Read;
use std::path::Path;
use std::time::Duration;

use anyhow::ensure;
use engine::clock::now;
use rusqlite::Connection;

use crate::measure::RoundSample;
use crate::sqlite_bench::execute_plan::choose;
use crate::suite::{BenchCase, BenchSection};

pub(crate) const NONE: &str = "none";

/// The secret that opens a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OpeningSecret {
    None,
    RawKey,
    Passphrase,
}

/// The ciphers that derive a key from any input.
const WITHOUT_RAW_KEYS: [&str; 3] = ["aes256cbc", "aes128cbc", "rc4"];

/// Returns a section with a small file for each cipher and each kind of secret, in `folder`.
pub(super) fn section<'a>(folder: &Path, ciphers: &[&'a str]) -> anyhow::Result<BenchSection<'a>> {
    let mut cases = Vec::new();
    for &cipher in ciphers {
        for (secret, name) in secrets(cipher) {
            let path = folder.join(&name);
            let db = open(&path, cipher, secret)?;
            db.execute_batch("PRAGMA journal_mode = WAL; CREATE TABLE t (x)")?;
            db.close().map_err(|(_, error)| error)?;
            check_header(&path, cipher)?;
            let run = move |duration| measure(&path, cipher, secret, duration);
            cases.push(BenchCase::new(name, run));
        }
    }
    let without = WITHOUT_RAW_KEYS.join(", ");
    Ok(BenchSection {
        name: "open".to_owned(),
        unit: "opens",
        title: format!(
            "opening a small file, setting the key, and the first read; closing is not counted \
             ({without} do not accept raw keys; they derive a key from any input)"
        ),
        cases,
    })
}

fn secrets(cipher: &str) -> Vec<(OpeningSecret, String)> {
    let mut secrets = Vec::new();
    if cipher == NONE {
        secrets.push((OpeningSecret::None, cipher.to_owned()));
        return secrets;
    }
    if !WITHOUT_RAW_KEYS.contains(&cipher) {
        secrets.push((OpeningSecret::RawKey, format!("{cipher}, raw key")));
    }
    secrets.push((OpeningSecret::Passphrase, format!("{cipher}, passphrase")));
    secrets
}

fn measure(
    path: &Path,
    cipher: &str,
    secret: OpeningSecret,
    duration: Duration,
) -> anyhow::Result<RoundSample> {
    let (start, mut count, mut elapsed) = (now(), 0, Duration::ZERO);
    while count == 0 || start.elapsed() < duration {
        let begin = now();
        let db = open(path, cipher, secret)?;
        elapsed += begin.elapsed();
        count += 1;
        db.close().map_err(|(_, error)| error)?;
    }
    Ok(RoundSample::each(count, elapsed))
}

fn open(path: &Path, cipher: &str, secret: OpeningSecret) -> anyhow::Result<Connection> {
    let db = Connection::open(path)?;
    if secret != OpeningSecret::None {
        choose(&db, cipher)?;
    }
    match secret {
        OpeningSecret::None => {}
        OpeningSecret::RawKey => sqlite3mc_sys::set_key(&db, &[7; 32])?,
        OpeningSecret::Passphrase => {
            sqlite3mc_sys::set_passphrase(&db, b"correct horse battery staple")?;
        }
    }
    db.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()))?;
    Ok(db)
}

/// Checks that exactly a file without cipher begins like the file format specifies
/// (<https://www.sqlite.org/fileformat.html>).
pub(crate) fn check_header(path: &Path, cipher: &str) -> anyhow::Result<()> {
    const PLAIN: &[u8; 16] = b"SQLite format 3\0";
    let mut header = [0; PLAIN.len()];
    std::fs::File::open(path)?.read_exact(&mut header)?;
    ensure!(
        (header == *PLAIN) == (cipher == NONE),
        "the file for {cipher} begins with {}",
        header.escape_ascii()
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_opens_with_its_secret_alone() {
        let folder = tempfile::tempdir().unwrap();
        let section = section(folder.path(), &[NONE, "chacha20", "aes256cbc"]).unwrap();
        let names: Vec<&str> = section.cases.iter().map(|case| case.name.as_str()).collect();
        let expected = [NONE, "chacha20, raw key", "chacha20, passphrase", "aes256cbc, passphrase"];
        assert_eq!(names, expected);
        let path = folder.path().join("chacha20, raw key");
        assert!(open(&path, "chacha20", OpeningSecret::RawKey).is_ok());
        assert!(open(&path, "chacha20", OpeningSecret::Passphrase).is_err());
        assert!(open(&path, "aegis", OpeningSecret::RawKey).is_err());
        for mut case in section.cases {
            assert!((case.run)(Duration::ZERO).unwrap().transactions == 1, "{}", case.name);
        }
    }
}
