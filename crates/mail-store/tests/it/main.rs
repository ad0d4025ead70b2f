//! Tests of mail vaults in real files.
#![expect(clippy::unwrap_used, reason = "these are tests, and so are their helpers")]

use std::fs;
use std::path::{Path, PathBuf};

use accounts::{Accounts, KdfCost, Login, Password, UnlockedAccount};
use engine::{Databases, EngineLimits};
use mail_store::{
    INBOX, MailVault, Mailbox, MailboxId, MessageFlags, NewMessage, ReceivedTime, StoredMessage,
};
use rusqlite::Connection;
use tempfile::TempDir;

mod bytes;
mod exports;
mod file;
mod invariants;
mod maildir_imports;
mod mbox_imports;
mod shared_parts;
mod texts;
mod wal_frames;

/// The time at which the fixtures' messages arrived, in seconds since 1970.
const RECEIVED_S: i64 = 1_795_924_800;

/// A mail vault in a data directory of its own. Its invariants are checked at the end of each test.
struct VaultFixture {
    vault: MailVault,
    unlocked: UnlockedAccount,
    _databases: Databases,
    data: TempDir,
}

impl VaultFixture {
    fn new() -> Self {
        let data = TempDir::new().unwrap();
        let databases = Databases::start(EngineLimits::default()).unwrap();
        let cost = KdfCost::insecure_for_tests(1);
        let accounts = Accounts::open(&databases, data.path(), cost).unwrap();
        let (login, password) = (Login::parse("ada").unwrap(), "a secret password".to_owned());
        let password = Password::parse(password).unwrap();
        let unlocked = accounts.add(&login, &password, 0).unwrap().mail_vault();
        let vault = MailVault::open(&databases, data.path(), &unlocked, 0).unwrap();
        Self { vault, unlocked, _databases: databases, data }
    }

    /// Opens the vault as a second process does.
    fn open_again(&self) -> (Databases, MailVault) {
        let databases = Databases::start(EngineLimits::default()).unwrap();
        let vault = MailVault::open(&databases, self.data.path(), &self.unlocked, 0).unwrap();
        (databases, vault)
    }

    fn file(&self) -> PathBuf {
        self.unlocked.vault.path(self.data.path())
    }

    /// Opens the file as another program does that has the key.
    fn sql(&self) -> Connection {
        let sql = Connection::open(self.file()).unwrap();
        let key: Vec<String> =
            self.unlocked.key.as_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
        let key = key.concat();
        let pragmas = format!("PRAGMA cipher = 'chacha20'; PRAGMA key = 'raw:{key}'");
        sql.execute_batch(&pragmas).unwrap();
        sql
    }

    fn number(&self, sql: &str) -> i64 {
        self.sql().query_row(sql, [], |row| row.get(0)).unwrap()
    }

    fn new_message(&self, bytes: &[u8], flags: &[&str], unix_s: i64) -> NewMessage {
        let mut message_flags = MessageFlags::default();
        for flag in flags {
            message_flags.insert(flag);
        }
        NewMessage {
            message: self.vault.prepare(bytes).unwrap(),
            flags: message_flags,
            received: ReceivedTime { unix_s, zone_min: 0 },
            imported_item: None,
        }
    }

    /// Stores messages that were not read, in one transaction.
    fn store(&self, mailbox: MailboxId, messages: &[&[u8]]) {
        let new = messages.iter().map(|bytes| self.new_message(bytes, &[], RECEIVED_S)).collect();
        assert_eq!(self.vault.store(mailbox, new).unwrap() as usize, messages.len());
    }

    fn inbox(&self) -> MailboxId {
        self.vault.find_mailbox(INBOX).unwrap()
    }

    fn mailbox(&self, path: &str) -> Mailbox {
        self.vault.mailboxes().unwrap().into_iter().find(|found| found.path == path).unwrap()
    }

    /// Returns the messages of a mailbox in the order of their UIDs.
    fn messages(&self, path: &str) -> Vec<StoredMessage> {
        let mailbox = self.vault.find_mailbox(path).unwrap();
        let uids = self.vault.uids(mailbox, 0, u32::MAX).unwrap();
        uids.iter().map(|uid| self.vault.message(mailbox, *uid).unwrap().unwrap()).collect()
    }

    /// Returns the messages of a mailbox as texts.
    fn texts(&self, path: &str) -> Vec<String> {
        let messages = self.messages(path).into_iter();
        messages.map(|message| String::from_utf8_lossy(&message.bytes).into_owned()).collect()
    }

    /// A path in the data directory, for the files of a test.
    fn path(&self, name: &str) -> PathBuf {
        self.data.path().canonicalize().unwrap().join(name)
    }
}

impl Drop for VaultFixture {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            invariants::check(&self.sql());
        }
    }
}

/// Returns the messages in `tests/messages`, sorted by their names.
fn corpus() -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/messages");
    let mut paths: Vec<PathBuf> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "eml"));
    paths.sort();
    assert!(paths.len() >= 40, "only {} messages", paths.len());
    paths.iter().map(|path| fs::read(path).unwrap()).collect()
}

/// Returns messages of the corpus with random changes. The same seed gives the same messages.
fn mutated_messages(seed: u64, count: usize) -> Vec<Vec<u8>> {
    let corpus = corpus();
    let mut random = SeededNumbers(seed);
    let mutated = |_| {
        let mut message = corpus[random.below(corpus.len())].clone();
        for _ in 0..=random.below(8) {
            let at = random.below(message.len() + 1);
            let end = (at + random.below(60)).min(message.len());
            let other = &corpus[random.below(corpus.len())];
            let from = random.below(other.len());
            let piece = &other[from..(from + random.below(60)).min(other.len())];
            let breaks =
                [&b"\n"[..], b"\r\n", b"\r", b"\n\n", b"\nFrom ", b"\n>From ", b"\0", b"\xff"];
            let replacement = match random.below(3) {
                0 => piece,
                1 => breaks[random.below(breaks.len())],
                _ => b"",
            };
            message.splice(at..end, replacement.iter().copied());
        }
        message
    };
    (0..count).map(mutated).collect()
}

/// Numbers that look random (`SplitMix64`).
struct SeededNumbers(u64);

impl SeededNumbers {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut number = self.0;
        number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((number ^ (number >> 31)) % end as u64).unwrap()
    }
}
