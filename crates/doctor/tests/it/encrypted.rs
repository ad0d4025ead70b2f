//! Tests that encrypted files get the same findings, with their key.

use std::path::Path;

use doctor::{DoctorReport, Error, ExamineOptions, FindingCode, examine};
use engine::{Cipher, DatabaseKey, FileEncryption, Passphrase, Profile, open_connection};

use crate::fixture::{DoctorFixture, codes, the};

fn key() -> FileEncryption {
    FileEncryption::Key { key: DatabaseKey::from_bytes([7; 32]), cipher: None }
}

fn passphrase(text: &str, cipher: Option<Cipher>) -> FileEncryption {
    FileEncryption::Passphrase { passphrase: Passphrase::new(text.as_bytes().to_vec()), cipher }
}

/// Creates a file and deletes most of its rows.
fn make(path: &Path, encryption: &FileEncryption) {
    let profile = Profile::by_name("server").unwrap();
    let (db, _) = open_connection(path, encryption, profile, false, true).unwrap();
    db.execute_batch(
        "PRAGMA application_id = 42; PRAGMA user_version = 1;
         CREATE TABLE t (id INTEGER PRIMARY KEY, x TEXT);
         WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5000)
         INSERT INTO t SELECT i, printf('%0500d', i) FROM n;
         DELETE FROM t WHERE id > 1000",
    )
    .unwrap();
    db.close().unwrap();
}

fn report(path: &Path, encryption: &FileEncryption) -> DoctorReport {
    examine(path, encryption, &ExamineOptions::default()).unwrap()
}

#[test]
fn encrypted_files_get_the_same_findings() {
    let fixture = DoctorFixture::new();
    let ways = [
        ("key", key()),
        ("passphrase", passphrase("hasen", None)),
        ("aegis", passphrase("hasen", Some(Cipher::Aegis))),
    ];
    for (name, encryption) in ways {
        let path = fixture.at(name);
        make(&path, &encryption);
        let report = report(&path, &encryption);
        let finding = the(&report, FindingCode::Fragmented);
        assert_eq!(finding.details["pages_count"].as_u64(), report.file.pages_count);
        assert_ne!(report.file.cipher, Some("none"));
        assert!(report.skipped.is_empty(), "{report:#?}");
    }
}

#[test]
fn a_cipher_without_tags_is_named() {
    let fixture = DoctorFixture::new();
    for (cipher, expected) in [(Cipher::Aes256Cbc, true), (Cipher::ChaCha20, false)] {
        let path = fixture.at(cipher.name());
        let encryption = passphrase("hasen", Some(cipher));
        make(&path, &encryption);
        let found =
            codes(&report(&path, &encryption)).contains(&FindingCode::CipherUnauthenticated);
        assert_eq!(found, expected, "{cipher}");
    }
}

#[test]
fn a_page_that_somebody_changed_does_not_authenticate() {
    let fixture = DoctorFixture::new();
    let path = fixture.at("a.db");
    make(&path, &key());
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[4096 * 3 + 100] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    assert!(codes(&report(&path, &key())).contains(&FindingCode::PageBroken));
}

#[test]
fn a_wrong_key_is_told_as_such() {
    let fixture = DoctorFixture::new();
    let path = fixture.at("a.db");
    make(&path, &key());
    let refusal = |encryption: &FileEncryption| {
        examine(&path, encryption, &ExamineOptions::default()).unwrap_err()
    };
    assert!(matches!(refusal(&passphrase("igel", None)), Error::WrongKey(_)));
    assert!(matches!(refusal(&FileEncryption::None), Error::NotADatabase(_)));
    let plain = fixture.make("plain.db", "CREATE TABLE t (x)");
    let error = examine(&plain, &key(), &ExamineOptions::default()).unwrap_err();
    assert!(matches!(error, Error::WrongKey { .. }));
}

/// Checks that no fix uses a shell: without the key, a shell would consider the journal invalid,
/// delete it, and leave half a transaction.
#[test]
fn no_mend_of_an_encrypted_file_opens_it_without_its_key() {
    let fixture = DoctorFixture::new();
    let (live, path) = (fixture.at("live.db"), fixture.at("a.db"));
    make(&live, &key());
    let profile = Profile::by_name("server").unwrap();
    let (db, _) = open_connection(&live, &key(), profile, false, true).unwrap();
    db.execute_batch(
        "PRAGMA journal_mode = DELETE; PRAGMA cache_size = 2; BEGIN; UPDATE t SET x = x || '!'",
    )
    .unwrap();
    std::fs::copy(&live, &path).unwrap();
    std::fs::copy(fixture.at("live.db-journal"), fixture.at("a.db-journal")).unwrap();
    let found = report(&path, &key());
    assert!(found.integrity.complete, "{found:#?}");
    let finding = the(&found, FindingCode::HotJournal);
    for finding in &found.findings {
        assert!(!matches!(finding.fix, doctor::Fix::Shell(_)), "{finding:?}");
    }
    assert!(finding.fix.to_string().contains("lacks the key"), "{finding:?}");
}
