//! Checks that the accounts file contains no data that opens a vault.

use std::fs;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rusqlite::params;

use super::*;

/// Returns the bytes of all files in the data directory, including the WAL.
fn raw_bytes(data: &Path) -> Vec<u8> {
    let files = fs::read_dir(data).unwrap().map(|entry| entry.unwrap().path());
    files.flat_map(|path| fs::read(path).unwrap()).collect()
}

fn contains(bytes: &[u8], wanted: &[u8]) -> bool {
    bytes.windows(wanted.len()).any(|window| window == wanted)
}

#[test]
fn the_files_hold_no_key_no_token_and_no_password() {
    let fixture = AccountsFixture::new();
    let ada = fixture.add("ada");
    let device = fixture.register(&ada, None);
    let new = secret("the second password");
    fixture.accounts.change_password(&login("ada"), &password("ada"), &new).unwrap();
    fixture.accounts.unlock_by_token(&device.token).unwrap();
    let mail = ada.mail_vault();
    fixture.accounts.record_mail_vault(&mail, MAIL_KEY).unwrap();
    let phone = fixture.accounts.add_mail_password(&ada, "Ada's telephone", NOW).unwrap();
    let recovery = fixture.accounts.create_recovery_secret(&ada).unwrap();

    let raw = raw_bytes(fixture.data.path());
    assert!(!contains(&raw, recovery.as_bytes()));
    assert!(contains(&raw, ada.vault.as_str().as_bytes()), "the scan sees what is there");
    assert!(contains(&raw, device.device_id.as_str().as_bytes()));
    let text = device.token.to_text();
    let secret_text = text.strip_prefix("warren_").unwrap();
    assert!(!contains(&raw, ada.key.as_bytes()));
    assert!(!contains(&raw, b"secret password"));
    assert!(!contains(&raw, b"second password"));
    assert!(!contains(&raw, secret_text.as_bytes()));
    assert!(!contains(&raw, &URL_SAFE_NO_PAD.decode(secret_text).unwrap()));
    assert!(contains(&raw, phone.id.as_str().as_bytes()));
    let text = phone.password.to_text();
    for secret in [text.as_bytes(), text.replace('-', "").as_bytes(), b"telephone"] {
        assert!(!contains(&raw, secret));
    }
    assert!(!contains(&raw, mail.key.as_bytes()));
}

#[test]
fn a_revoked_wrap_does_not_stay_in_the_file() {
    let fixture = AccountsFixture::new();
    let ada = fixture.add("ada");
    let device = fixture.register(&ada, None);
    fixture.register(&ada, None);
    let wrapped: Vec<u8> = fixture
        .sql()
        .query_row(
            "SELECT wrapped_key FROM device WHERE id = ?1",
            [device.device_id.as_str()],
            |row| row.get(0),
        )
        .unwrap();
    let AccountsFixture { accounts, databases, data } = fixture;
    assert!(contains(&raw_bytes(data.path()), &wrapped));
    accounts.revoke(ada.account, &device.device_id).unwrap();
    // Closing empties the WAL.
    drop((accounts, databases));
    assert!(!contains(&raw_bytes(data.path()), &wrapped));
}

#[test]
fn a_passwords_wrap_opens_on_no_other_accounts_row() {
    let fixture = AccountsFixture::new();
    let (_ada, _eve) = (fixture.add("ada"), fixture.add("eve"));
    // Eve copies her password's wrap with its salt to Ada's account. If the wrap were not bound to
    // the vault, her password would be accepted there, and Ada's vault would be opened with a wrong
    // key.
    let copied = fixture.sql().execute(
        "UPDATE account SET (kdf_salt, wrapped_key) =
             (SELECT kdf_salt, wrapped_key FROM account WHERE login = 'eve') WHERE login = 'ada'",
        [],
    );
    assert_eq!(copied.unwrap(), 1);
    let unlocked = fixture.accounts.unlock(&login("ada"), &password("eve"));
    assert!(matches!(unlocked, Err(Error::WrongPassword)), "{unlocked:?}");
}

/// Copies the wrap of `source`, and the hash by which it is found, to `target`'s row.
fn check_moved_wrap(
    fixture: &AccountsFixture,
    source: &DeviceCredentials,
    target: &DeviceCredentials,
) {
    let sql = fixture.sql();
    let (hash, wrap): ([u8; 32], Vec<u8>) = sql
        .query_row(
            "DELETE FROM device WHERE id = ?1 RETURNING token_hash, wrapped_key",
            [source.device_id.as_str()],
            |row| Ok((row.get(0)?, row.get(1)?)),
        )
        .unwrap();
    let moved = sql.execute(
        "UPDATE device SET token_hash = ?1, wrapped_key = ?2 WHERE id = ?3",
        params![hash, wrap, target.device_id.as_str()],
    );
    assert_eq!(moved.unwrap(), 1);
    let session = fixture.accounts.authenticate(&source.token).unwrap();
    assert_eq!(session.device_id, target.device_id);
    let unlocked = fixture.accounts.unlock_by_token(&source.token);
    assert!(matches!(unlocked, Err(Error::Damaged { .. })), "{unlocked:?}");
}

#[test]
fn a_tokens_wrap_opens_on_no_other_devices_row() {
    let fixture = AccountsFixture::new();
    let (ada, eve) = (fixture.add("ada"), fixture.add("eve"));
    let (adas, eves) = (fixture.register(&ada, None), fixture.register(&eve, None));
    check_moved_wrap(&fixture, &eves, &adas);
    let (first, second) = (fixture.register(&eve, None), fixture.register(&eve, None));
    check_moved_wrap(&fixture, &first, &second);
}

#[test]
fn no_debug_output_shows_a_key() {
    let fixture = AccountsFixture::new();
    let ada = fixture.add("ada");
    let shown = format!("{ada:?}");
    assert!(shown.contains("Key(..)"), "{shown}");
}
