//! Tests of the vault's file: its tables, its numbers, and its encryption.

use std::collections::BTreeMap;

use mail_store::{Error, MAIL_APPLICATION_ID};

use super::*;

const FORMAT: &str = include_str!("../../../../docs/reference/formats/24-mail-vault.md");

/// Reads the tables and columns of a format's page: a table whose header begins with the name in
/// backticks, and whose rows begin with columns in backticks.
fn documented_tables() -> BTreeMap<String, Vec<String>> {
    let mut tables: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut table = None;
    for line in FORMAT.lines() {
        let Some(cells) = line.strip_prefix("| `") else {
            table = table.filter(|_| line.starts_with('|'));
            continue;
        };
        let (first, _) = cells.split_once('|').unwrap();
        let mut names = first.split(',').map(|name| name.trim_matches([' ', '`']).to_owned());
        match &table {
            None => {
                let name = names.next().unwrap();
                tables.insert(name.clone(), Vec::new());
                table = Some(name);
            }
            Some(table) => tables.get_mut(table).unwrap().extend(names),
        }
    }
    tables
}

#[test]
fn the_tables_are_those_of_the_format() {
    let fixture = VaultFixture::new();
    let sql = fixture.sql();
    let mut columns = sql
        .prepare(
            "SELECT m.name, c.name FROM sqlite_schema AS m JOIN pragma_table_info(m.name) AS c
             WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite_%' ORDER BY m.name, c.cid",
        )
        .unwrap();
    let rows = columns.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
    let mut tables: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (table, column) in rows.map(Result::unwrap) {
        tables.entry(table).or_default().push(column);
    }
    assert!(tables.len() >= 9, "{tables:?}");
    assert_eq!(documented_tables(), tables);
    let is_strict = "SELECT count(*) FROM pragma_table_list
                     WHERE strict = 0 AND schema = 'main' AND name NOT LIKE 'sqlite_%'";
    assert_eq!(fixture.number(is_strict), 0);
    assert_eq!(fixture.number("PRAGMA application_id"), i64::from(MAIL_APPLICATION_ID));
    assert_eq!(fixture.number("PRAGMA user_version"), 1);
}

#[test]
fn a_foreign_key_begins_an_index_of_its_table() {
    let fixture = VaultFixture::new();
    let unindexed = "SELECT count(*) FROM sqlite_schema AS m, pragma_foreign_key_list(m.name) AS f
                     WHERE NOT EXISTS (
                         SELECT 1 FROM pragma_index_list(m.name) AS l,
                             pragma_index_info(l.name) AS i
                         WHERE i.seqno = 0 AND i.name = f.\"from\")";
    assert_eq!(fixture.number(unindexed), 0);
    let all = "SELECT count(*) FROM sqlite_schema AS m, pragma_foreign_key_list(m.name)";
    assert_eq!(fixture.number(all), 2);
}

#[test]
fn no_file_contains_a_text_of_a_message() {
    let fixture = VaultFixture::new();
    let subject = "Subject: a secret that no file contains\r\n";
    let attachment = "0123456789abcdef".repeat(2_000);
    let message = format!(
        "{subject}Content-Type: multipart/mixed; boundary=x\r\n\r\n--x\r\n\r\nplain words of a body\
         \r\n--x\r\nContent-Type: a/b; name=report.pdf\r\n\r\n{attachment}\r\n--x--\r\n"
    );
    let mailbox = fixture.vault.find_or_create_mailbox("Private folder").unwrap();
    fixture.store(mailbox, &[message.as_bytes(), b"From: ada@example.org\n\nshort"]);
    assert_eq!(fixture.texts("Private folder")[0], message);

    let file = fixture.file();
    let mut wal = file.clone().into_os_string();
    wal.push("-wal");
    let (bytes, log) = (fs::read(&file).unwrap(), fs::read(wal).unwrap());
    assert!(!log.is_empty(), "the messages are in the WAL");
    for text in [
        "a secret that",
        "plain words",
        "report.pdf",
        "0123456789abcdef",
        "Private folder",
        "ada@example.org",
        "INBOX",
        "CREATE TABLE",
        "SQLite format 3",
    ] {
        for bytes in [&bytes, &log] {
            assert!(!bytes.windows(text.len()).any(|window| window == text.as_bytes()), "{text}");
        }
    }
    let key = fixture.unlocked.key.as_bytes();
    assert!(!bytes.windows(key.len()).any(|window| window == key));
}

#[test]
fn another_key_does_not_open_the_file() {
    let fixture = VaultFixture::new();
    let sql = Connection::open(fixture.file()).unwrap();
    let key = "ab".repeat(32);
    sql.execute_batch(&format!("PRAGMA cipher = 'chacha20'; PRAGMA key = 'raw:{key}'")).unwrap();
    assert!(sql.prepare("SELECT count(*) FROM sqlite_schema").is_err());
}

#[test]
fn the_last_uid_is_given_and_then_the_mailbox_is_full() {
    let fixture = VaultFixture::new();
    fixture.sql().execute("UPDATE mailbox SET uid_next = 4294967293 WHERE id = 1", []).unwrap();
    let three = || (0..3).map(|_| fixture.new_message(b"text", &[], 0)).collect::<Vec<_>>();
    let refused = fixture.vault.store(fixture.inbox(), three()).unwrap_err();
    assert!(matches!(refused, Error::UidsUsedUp { .. }), "{refused}");
    assert!(fixture.messages(INBOX).is_empty());
    fixture.store(fixture.inbox(), &[b"one", b"two"]);
    let listed = fixture.vault.list(fixture.inbox(), u32::MAX, 10).unwrap();
    let uids: Vec<u32> = listed.iter().map(|entry| entry.uid).collect();
    assert_eq!(uids, [u32::MAX - 1, u32::MAX - 2]);
    assert_eq!(fixture.number("SELECT last_message_id FROM mail_state"), 2);
}

#[test]
fn names_of_mailboxes_have_one_form_and_limits() {
    let fixture = VaultFixture::new();
    let vault = &fixture.vault;
    let created = vault.find_or_create_mailbox("Größe/a").unwrap();
    assert_eq!(vault.find_mailbox("Gro\u{308}ße/a").unwrap(), created);
    for inbox in ["inbox", "InBoX", INBOX] {
        assert_eq!(vault.find_or_create_mailbox(inbox).unwrap(), fixture.inbox());
    }
    assert_ne!(vault.find_or_create_mailbox("a/inbox").unwrap(), fixture.inbox());
    assert!(vault.find_mailbox("a/INBOX").is_err());
    let names = ["", "/", "a/", "/a", "a//b", "%", "a*", "a\0", "\u{85}", "\n"];
    let long = ["x".repeat(256), ["x"; 21].join("/")];
    for name in names.into_iter().chain(long.iter().map(String::as_str)) {
        let error = vault.find_or_create_mailbox(name).unwrap_err();
        assert!(matches!(error, Error::InvalidMailboxName { .. }), "{name:?}: {error}");
        assert!(matches!(vault.find_mailbox(name), Err(Error::MailboxNotFound { .. })));
    }
    vault.find_or_create_mailbox(&long[0][1..]).unwrap();
    vault.find_or_create_mailbox(&long[1][2..]).unwrap();
}
