//! Tests of opening databases with each cipher, kind of key and profile.

use std::fs;
use std::path::{Path, PathBuf};

use engine::{
    Cipher, DatabaseKey, Error, FileEncryption, Passphrase, PragmaScope, PragmaSetting, Profile,
    ReadOnlyMode, open_connection, open_read_only,
};
use rusqlite::{Connection, StatementStatus};

use crate::{encryption, fixture, insert, key, number, starts_plain};

fn with(cipher: Option<Cipher>) -> FileEncryption {
    FileEncryption::Key { key: key(), cipher }
}

fn other_key(cipher: Option<Cipher>) -> FileEncryption {
    FileEncryption::Key { key: DatabaseKey::from_bytes([8; 32]), cipher }
}

/// Creates a file with one row in it, and closes it.
fn make(path: &Path, encryption: &FileEncryption) -> Option<Cipher> {
    let (db, cipher) = open_connection(path, encryption, Profile::SERVER, false, true).unwrap();
    db.execute_batch("CREATE TABLE t (x); INSERT INTO t VALUES (42)").unwrap();
    cipher
}

fn open(path: &Path, encryption: &FileEncryption) -> Result<(Connection, Option<Cipher>), Error> {
    open_connection(path, encryption, Profile::SERVER, false, false)
}

fn check_wrong_key(path: &Path, encryption: &FileEncryption) {
    let error = open(path, encryption).unwrap_err();
    let is_expected = match (encryption, &error) {
        (FileEncryption::None, Error::NotADatabase { path: found }) => found == path,
        (FileEncryption::None, _) => false,
        (_, Error::WrongKey { path: found }) => found == path,
        (_, _) => false,
    };
    assert!(is_expected, "{error}");
}

#[test]
fn each_cipher_opens_what_it_wrote_and_nothing_else_does() {
    let directory = tempfile::tempdir().unwrap();
    for cipher in Cipher::ALL {
        let path = directory.path().join(cipher.name());
        assert_eq!(make(&path, &with(Some(cipher))), Some(cipher));
        assert!(!starts_plain(&path), "{cipher}");

        let (db, found) = open(&path, &with(Some(cipher))).unwrap();
        assert_eq!((number(&db, "SELECT x FROM t"), found), (42, Some(cipher)));
        drop(db);

        check_wrong_key(&path, &other_key(Some(cipher)));
        check_wrong_key(&path, &other_key(None));
        check_wrong_key(&path, &FileEncryption::None);
        for other in Cipher::ALL.into_iter().filter(|other| *other != cipher) {
            check_wrong_key(&path, &with(Some(other)));
        }
    }
}

#[test]
fn a_passphrase_opens_what_it_wrote_and_another_does_not() {
    let directory = tempfile::tempdir().unwrap();
    let with = |passphrase: &[u8], cipher| {
        let passphrase = Passphrase::new(passphrase.to_vec());
        FileEncryption::Passphrase { passphrase, cipher }
    };
    for cipher in Cipher::ALL {
        let path = directory.path().join(cipher.name());
        assert_eq!(make(&path, &with(b"hasen", Some(cipher))), Some(cipher));
        assert!(!starts_plain(&path), "{cipher}");
        let (db, _) = open(&path, &with(b"hasen", Some(cipher))).unwrap();
        assert_eq!(number(&db, "SELECT x FROM t"), 42);
        drop(db);
        check_wrong_key(&path, &with(b"igel", Some(cipher)));
        check_wrong_key(&path, &other_key(Some(cipher)));
        check_wrong_key(&path, &FileEncryption::None);
    }
    let aes = directory.path().join(Cipher::Aes256Cbc.name());
    assert_eq!(open(&aes, &with(b"hasen", None)).unwrap().1, Some(Cipher::Aes256Cbc));
}

#[test]
fn without_a_name_chacha20_is_made_and_aes256cbc_is_found() {
    let directory = tempfile::tempdir().unwrap();
    let made = directory.path().join("made");
    assert_eq!(make(&made, &with(None)), Some(Cipher::ChaCha20));

    let aes = directory.path().join("aes");
    make(&aes, &with(Some(Cipher::Aes256Cbc)));
    let (db, found) = open(&aes, &with(None)).unwrap();
    assert_eq!((number(&db, "SELECT x FROM t"), found), (42, Some(Cipher::Aes256Cbc)));
}

#[test]
fn a_key_for_a_plain_file_is_told_and_the_file_stays_plain() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("plain");
    assert_eq!(make(&path, &FileEncryption::None), None);
    for cipher in [None, Some(Cipher::Aegis)] {
        let error = open(&path, &with(cipher)).unwrap_err();
        assert!(matches!(error, Error::NotEncrypted { .. }), "{error}");
    }
    assert!(starts_plain(&path));
    let (db, _) = open(&path, &FileEncryption::None).unwrap();
    assert_eq!(number(&db, "PRAGMA temp_store"), 1, "plain databases keep temporary files on disk");
}

#[test]
fn a_file_that_is_no_database_is_a_wrong_key_and_stays_as_it_is() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("photo");
    let content = b"not a database, but longer than a page header ".repeat(200);
    fs::write(&path, &content).unwrap();
    check_wrong_key(&path, &FileEncryption::None);
    check_wrong_key(&path, &with(None));
    assert_eq!(fs::read(&path).unwrap(), content);
}

#[test]
fn a_missing_file_is_made_only_when_asked() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("missing");
    let error = open(&path, &with(None)).unwrap_err();
    assert!(matches!(error, Error::Io { .. }), "{error}");
    assert!(!path.exists());
    let read_only = open_connection(&path, &with(None), Profile::SERVER, true, true);
    assert!(matches!(read_only, Err(Error::Io { .. })));
    assert!(!path.exists());
}

/// Copies the files that a crash leaves: the database, and a WAL with everything that was committed
/// since the last checkpoint.
fn crashed_copy(directory: &Path, cipher: Cipher) -> PathBuf {
    let path = directory.join(format!("live {cipher} #1?.db"));
    let copy = directory.join(format!("crashed {cipher} #1?.db"));
    let (db, _) =
        open_connection(&path, &with(Some(cipher)), Profile::SERVER, false, true).unwrap();
    db.execute_batch("CREATE TABLE t (x); INSERT INTO t VALUES (42)").unwrap();
    fs::copy(&path, &copy).unwrap();
    fs::copy(wal(&path), wal(&copy)).unwrap();
    copy
}

fn wal(path: &Path) -> PathBuf {
    engine::side_file_path(path, "-wal")
}

#[test]
fn a_wrong_key_leaves_the_wal_of_a_crashed_file_alone() {
    let directory = tempfile::tempdir().unwrap();
    for cipher in Cipher::ALL {
        let path = crashed_copy(directory.path(), cipher);
        let before = fs::read(wal(&path)).unwrap();
        check_wrong_key(&path, &other_key(Some(cipher)));
        check_wrong_key(&path, &other_key(None));
        check_wrong_key(&path, &FileEncryption::None);
        assert_eq!(fs::read(wal(&path)).unwrap(), before, "{cipher}");
        let (db, _) = open(&path, &with(Some(cipher))).unwrap();
        assert_eq!(number(&db, "SELECT x FROM t"), 42, "{cipher}");
    }
}

/// Creates the files that a kill during a checkpoint leaves: page 1 refers to pages that the file
/// does not have, because they are still in the WAL.
fn killed_in_checkpoint(directory: &Path, encryption: &FileEncryption, name: &str) -> PathBuf {
    let path = directory.join(format!("live {name}"));
    let killed = directory.join(format!("killed {name}"));
    let (db, _) = open_connection(&path, encryption, Profile::SERVER, false, true).unwrap();
    db.execute_batch(
        "CREATE TABLE t (x, y); INSERT INTO t VALUES (42, NULL);
         PRAGMA wal_checkpoint(TRUNCATE); PRAGMA wal_autocheckpoint = 0",
    )
    .unwrap();
    let mut file = fs::read(&path).unwrap();
    db.execute_batch("INSERT INTO t VALUES (0, randomblob(100000))").unwrap();
    fs::copy(wal(&path), wal(&killed)).unwrap();
    db.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)").unwrap();
    let page_bytes = usize::try_from(number(&db, "PRAGMA page_size")).unwrap();
    file[..page_bytes].copy_from_slice(&fs::read(&path).unwrap()[..page_bytes]);
    fs::write(&killed, file).unwrap();
    killed
}

#[test]
fn a_file_that_was_killed_in_a_checkpoint_opens_with_its_wal() {
    let directory = tempfile::tempdir().unwrap();
    let ciphers = Cipher::ALL.into_iter().map(|cipher| (with(Some(cipher)), cipher.name()));
    for (encryption, name) in ciphers.chain([(FileEncryption::None, "plain")]) {
        let path = killed_in_checkpoint(directory.path(), &encryption, name);
        let before = fs::read(wal(&path)).unwrap();
        if matches!(encryption, FileEncryption::Key { .. }) {
            check_wrong_key(&path, &other_key(None));
        }
        assert_eq!(fs::read(wal(&path)).unwrap(), before, "{name}");
        let (db, _) = open(&path, &encryption).unwrap();
        assert_eq!(number(&db, "SELECT sum(x) + max(length(y)) FROM t"), 100_042, "{name}");
        assert_eq!(read(&db, "integrity_check"), "ok", "{name}");
    }
}

#[test]
fn a_file_whose_first_page_was_torn_in_a_checkpoint_opens_with_its_wal() {
    let directory = tempfile::tempdir().unwrap();
    for cipher in Cipher::ALL {
        let encryption = with(Some(cipher));
        let path = killed_in_checkpoint(directory.path(), &encryption, cipher.name());
        let mut file = fs::read(&path).unwrap();
        file[512..1_024].fill(0xaa);
        fs::write(&path, file).unwrap();
        let before = fs::read(wal(&path)).unwrap();
        check_wrong_key(&path, &other_key(None));
        check_wrong_key(&path, &other_key(Some(cipher)));
        assert_eq!(fs::read(wal(&path)).unwrap(), before, "{cipher}");
        let (db, found) = open(&path, &encryption).unwrap();
        assert_eq!(found, Some(cipher));
        assert_eq!(number(&db, "SELECT sum(x) + max(length(y)) FROM t"), 100_042, "{cipher}");
        assert_eq!(read(&db, "integrity_check"), "ok", "{cipher}");
    }
}

#[test]
fn every_profile_takes_effect_on_a_plain_and_on_an_encrypted_file() {
    let directory = tempfile::tempdir().unwrap();
    for profile in Profile::all() {
        let plain = directory.path().join(format!("{}.plain", profile.name));
        check_profile(&plain, &FileEncryption::None, profile);
        let encrypted = directory.path().join(format!("{}.encrypted", profile.name));
        if profile.pragmas().any(|p| p.name == "mmap_size" && p.value != "0") {
            let error =
                open_connection(&encrypted, &encryption(), profile, false, true).unwrap_err();
            assert!(
                matches!(error, Error::PragmaNotApplied { pragma: "mmap_size", .. }),
                "{}: {error}",
                profile.name
            );
            assert!(!encrypted.exists(), "refused before the file is made");
        } else {
            check_profile(&encrypted, &encryption(), profile);
        }
    }
}

/// Creates a file with `profile`, and reads each setting back from a writer and a reader that open
/// the file again.
fn check_profile(path: &Path, encryption: &FileEncryption, profile: &Profile) {
    let (creator, cipher) = open_connection(path, encryption, profile, false, true).unwrap();
    creator.execute_batch("CREATE TABLE t (x)").unwrap();
    for read_only in [false, true] {
        let (db, _) = open_connection(path, encryption, profile, read_only, false).unwrap();
        for pragma in profile.pragmas().filter(|p| !read_only || p.scope == PragmaScope::Always) {
            let wanted = match pragma.name {
                "temp_store" if cipher.is_some() => "2",
                _ => pragma.read_back,
            };
            assert_eq!(read(&db, pragma.name), wanted, "{}: {}", profile.name, pragma.name);
        }
        if cipher.is_some() {
            assert_eq!(read(&db, "temp_store"), "2", "{}", profile.name);
        }
    }
}

fn read(db: &Connection, name: &str) -> String {
    db.query_row(&format!("PRAGMA {name}"), [], |row| {
        row.get::<_, String>(0).or_else(|_| row.get::<_, i64>(0).map(|value| value.to_string()))
    })
    .unwrap()
}

#[test]
fn a_page_size_is_set_when_the_file_is_made_and_left_alone_later() {
    const LARGE_PAGES: Profile = Profile {
        name: "large-pages",
        about: "",
        base: &[],
        changes: &[
            PragmaSetting {
                name: "page_size",
                value: "8192",
                read_back: "8192",
                scope: PragmaScope::Creation,
            },
            PragmaSetting {
                name: "journal_mode",
                value: "WAL",
                read_back: "wal",
                scope: PragmaScope::Writing,
            },
        ],
    };
    let directory = tempfile::tempdir().unwrap();
    for (name, encryption) in [("plain", FileEncryption::None), ("encrypted", encryption())] {
        let path = directory.path().join(name);
        let (db, _) = open_connection(&path, &encryption, &LARGE_PAGES, false, true).unwrap();
        db.execute_batch("CREATE TABLE t (x)").unwrap();
        drop(db);
        let (db, _) = open(&path, &encryption).unwrap();
        assert_eq!(number(&db, "PRAGMA page_size"), 8192, "{name}");
    }
}

#[test]
fn a_schema_with_a_double_quoted_string_still_loads() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("legacy");
    make(&path, &FileEncryption::None);
    let (db, _) = open(&path, &FileEncryption::None).unwrap();
    db.execute_batch(
        "PRAGMA writable_schema = ON;
         INSERT INTO sqlite_schema VALUES ('table', 'u', 'u', 0, 'CREATE TABLE u (x CHECK (x <> \"no\"))');
         UPDATE sqlite_schema SET rootpage = (SELECT rootpage FROM sqlite_schema WHERE name = 't')
         WHERE name = 'u';
         DELETE FROM sqlite_schema WHERE name = 't';",
    )
    .unwrap();
    drop(db);
    let (db, _) = open(&path, &FileEncryption::None).unwrap();
    assert_eq!(number(&db, "SELECT x FROM u"), 42);
    db.execute("INSERT INTO u VALUES ('no')", []).unwrap_err();
}

#[test]
fn an_untouched_file_stays_alone() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.db");
    make(&path, &encryption());
    let names = || {
        let entries = fs::read_dir(directory.path()).unwrap();
        let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        names
    };
    let open = |encryption: &FileEncryption, how| open_read_only(&path, encryption, how);
    let (db, cipher) = open(&encryption(), ReadOnlyMode::Immutable).unwrap();
    assert_eq!((number(&db, "SELECT x FROM t"), cipher), (42, Some(Cipher::ChaCha20)));
    db.execute_batch("DELETE FROM t").unwrap_err();
    drop(db);
    assert_eq!(names(), ["a.db"]);

    // While another connection writes, content that is only in the WAL is visible.
    let (writer, _) = self::open(&path, &encryption()).unwrap();
    writer.execute_batch("UPDATE t SET x = 43").unwrap();
    let (before, wal) = (names(), fs::read(directory.path().join("a.db-wal")).unwrap());
    let (db, _) = open(&encryption(), ReadOnlyMode::Shared).unwrap();
    assert_eq!(number(&db, "SELECT x FROM t"), 43);
    drop(db);
    assert_eq!(names(), before);
    assert!(fs::read(directory.path().join("a.db-wal")).unwrap() == wal);
    assert_eq!(number(&writer, "SELECT x FROM t"), 43);

    let error = open(&other_key(None), ReadOnlyMode::Shared).unwrap_err();
    assert!(matches!(error, Error::WrongKey { .. }), "{error}");
    let error = open(&FileEncryption::None, ReadOnlyMode::Shared).unwrap_err();
    assert!(matches!(error, Error::NotADatabase { .. }), "{error}");
}

#[test]
fn a_limit_that_is_bound_anew_plans_nothing_anew() {
    let fixture = fixture();
    let database = fixture.open("plans.sqlite");
    for x in 0..10 {
        insert(&database, x).wait().unwrap();
    }
    let plans = database.read(|db| {
        let mut statement = db.prepare("SELECT x FROM t WHERE x >= ?1 ORDER BY x LIMIT ?2")?;
        for (least, limit) in [(1, 2), (3, 4), (5, 1)] {
            let rows = statement.query_map((least, limit), |row| row.get::<_, i64>(0))?;
            assert_eq!(rows.count(), usize::try_from(limit).unwrap());
        }
        Ok::<_, Error>(statement.get_status(StatementStatus::RePrepare))
    });
    assert_eq!(plans.unwrap(), 0);
}
