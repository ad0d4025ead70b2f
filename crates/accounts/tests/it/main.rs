//! Tests of accounts in a real file: passwords, devices, and secrets that the file must not reveal.
#![expect(clippy::unwrap_used, clippy::panic, reason = "these are tests, and so are their helpers")]

use std::path::Path;
use std::sync::Arc;

use accounts::{
    AccountLimits, Accounts, DEVICES_COUNT_MAX, DeviceCredentials, DeviceId, DeviceToken, Error,
    KdfCost, Login, MailAddress, Password, UnlockedAccount,
};
use engine::{Databases, EngineLimits};
use rusqlite::Connection;
use tempfile::TempDir;

mod account_recovery;
mod admin_queries;
mod devices;
mod encryption_mode;
mod mail_addresses;
mod mail_passwords;
mod mail_vaults;
mod passwords;
mod revocations;
mod secrets;
mod sub_vaults;

const KDF: KdfCost = KdfCost::insecure_for_tests(1);
const NOW: u64 = 1_795_000_000_000;

/// A data directory and the accounts in it.
struct AccountsFixture {
    accounts: Arc<Accounts>,
    databases: Databases,
    data: TempDir,
}

/// Bytes instead of a public key: this crate only stores them.
const MAIL_KEY: &[u8] = b"a public key";

impl AccountsFixture {
    fn new() -> Self {
        let data = TempDir::new().unwrap();
        let (accounts, databases) = open(data.path(), KDF);
        Self { accounts, databases, data }
    }

    fn add(&self, name: &str) -> UnlockedAccount {
        self.accounts.add(&login(name), &password(name), NOW).unwrap()
    }

    /// Adds an account that has a mail vault.
    fn add_with_mail(&self, name: &str) -> UnlockedAccount {
        let unlocked = self.add(name);
        self.accounts.record_mail_vault(&unlocked.mail_vault(), MAIL_KEY).unwrap();
        unlocked
    }

    fn add_address(&self, name: &str, text: &str) -> Result<(), Error> {
        self.accounts.add_mail_address(&login(name), &address(text))
    }

    fn unlock(&self, name: &str) -> UnlockedAccount {
        self.accounts.unlock(&login(name), &password(name)).unwrap()
    }

    fn register(
        &self,
        unlocked: &UnlockedAccount,
        registered_by: Option<&DeviceId>,
    ) -> DeviceCredentials {
        self.accounts.register(unlocked, registered_by, NOW).unwrap()
    }

    /// Opens a separate connection, as an attacker or a repair would.
    fn sql(&self) -> Connection {
        Connection::open(self.data.path().join("accounts.sqlite")).unwrap()
    }
}

/// Opens the accounts as a separate process does.
fn open(data: &Path, kdf: KdfCost) -> (Arc<Accounts>, Databases) {
    let databases = Databases::start(EngineLimits::default()).unwrap();
    let accounts = Accounts::open(&databases, data, kdf).unwrap();
    (Arc::new(accounts), databases)
}

#[test]
fn an_accounts_file_of_an_older_format_is_refused_and_stays() {
    let data = TempDir::new().unwrap();
    let file = data.path().join("accounts.sqlite");
    let older = "CREATE TABLE client (id TEXT PRIMARY KEY); PRAGMA user_version = 11";
    Connection::open(&file).unwrap().execute_batch(older).unwrap();
    let databases = Databases::start(EngineLimits::default()).unwrap();
    let error = Accounts::open(&databases, data.path(), KDF).err().unwrap();
    let expected = engine::Error::SchemaTooOld { found: 11, oldest: 12 };
    assert!(error.to_string().contains(&expected.to_string()), "{error}");
    let version = "SELECT user_version FROM pragma_user_version";
    let found: u32 = Connection::open(&file).unwrap().query_row(version, [], |r| r.get(0)).unwrap();
    assert_eq!(found, 11);
}

fn login(name: &str) -> Login {
    Login::parse(name).unwrap()
}

fn address(text: &str) -> MailAddress {
    MailAddress::parse(text).unwrap()
}

/// Returns the password of a fixture's account.
fn password(name: &str) -> Password {
    secret(&format!("{name}'s secret password"))
}

fn secret(text: &str) -> Password {
    Password::parse(text.to_owned()).unwrap()
}

fn is_unknown(fixture: &AccountsFixture, token: &DeviceToken) -> bool {
    let authenticated = fixture.accounts.authenticate(token);
    let unlocked = fixture.accounts.unlock_by_token(token);
    match (authenticated, unlocked) {
        (Ok(_), Ok(_)) => false,
        (Err(Error::InvalidToken), Err(Error::InvalidToken)) => true,
        (authenticated, unlocked) => panic!("{authenticated:?}, {unlocked:?}"),
    }
}
