//! A folder with a server's data and some devices' files, and the comparisons between them.

use std::fs;
use std::path::{Path, PathBuf};

use accounts::{Accounts, KdfCost, Login, Password, UnlockedAccount};
use engine::{Databases, EngineLimits};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::processes::{self, ServeProcess, json, sql, warren};

/// The server's admin token.
pub(crate) const ADMIN: &str = "the-operators-token";
pub(crate) const PASSWORD: &str = "a pass-phrase of ada's own";

/// The sample database Chinook, next to the repository.
pub(crate) const CHINOOK: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data/chinook.sqlite");
/// The numbers of its tables and rows.
pub(crate) const CHINOOK_TABLES: usize = 11;
pub(crate) const CHINOOK_ROWS: usize = 15_607;

/// The directory for measurements: temporary files that survive a restart, so they are not in
/// memory (FHS 3.0, 5.15).
pub(crate) const DISK: &str = "/var/tmp";

/// A folder with the account `ada` in its `data`.
pub(crate) struct SyncFixture {
    folder: TempDir,
    /// The server's data directory.
    pub(crate) data: String,
    /// A file with ada's password.
    pub(crate) password: String,
}

impl SyncFixture {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
        let (data, password) = (at("data"), at("password.txt"));
        fs::write(&password, format!("{PASSWORD}\n")).unwrap();
        let place = Self { folder, data, password };
        let added = place.operator(&["account", "add", "ada"]);
        assert_eq!(added["login"], "ada");
        place
    }

    /// Returns a file's path.
    pub(crate) fn at(&self, name: &str) -> String {
        self.folder.path().join(name).to_str().unwrap().to_owned()
    }

    /// Writes a file with this line, and returns its path.
    pub(crate) fn write(&self, name: &str, line: &str) -> String {
        let path = self.at(name);
        fs::write(&path, format!("{line}\n")).unwrap();
        path
    }

    /// Copies the sample database to a writable file.
    pub(crate) fn chinook(&self, name: &str) -> String {
        let path = self.at(name);
        fs::write(&path, fs::read(CHINOOK).unwrap()).unwrap();
        path
    }

    /// Adds an account, and returns a file with its password.
    pub(crate) fn add_account(&self, login: &str) -> String {
        let password = self.write(&format!("{login}.txt"), &format!("a pass-phrase of {login}'s"));
        json(&["account", "add", login, "--data", &self.data, "--password-file", &password]);
        password
    }

    pub(crate) fn serve(&self) -> ServeProcess {
        ServeProcess::start(&self.data, &[])
    }

    /// Starts the server at an address that devices already have.
    pub(crate) fn serve_at(&self, address: &str) -> ServeProcess {
        let data = &self.data;
        let serve = ["serve", "--listen", address, "--json", "--log", "error", "--data", data];
        ServeProcess::new(processes::start(&serve))
    }

    /// Runs `warren …` on the data directory, with ada's password.
    #[track_caller]
    pub(crate) fn operator(&self, command: &[&str]) -> Value {
        json(&[command, &["--data", &self.data, "--password-file", &self.password]].concat())
    }

    /// Runs such a command that must end with status 4, because it finds differences.
    #[track_caller]
    pub(crate) fn operator_finding_differences(&self, command: &[&str]) -> Value {
        let options = ["--data", &self.data, "--password-file", &self.password, "--json"];
        let ran = warren(&[command, &options].concat());
        assert_eq!(ran.status.code(), Some(4), "{}{}", ran.stdout, ran.stderr);
        ran.value()
    }

    /// Runs the first `warren sync` or `clone` of a file.
    #[track_caller]
    pub(crate) fn sign_in(&self, command: &str, file: &str, address: &str) -> Value {
        json(&[&[command, file], &self.first_time(address)[..]].concat())
    }

    /// Returns the options of the first `sync` or `clone` of a file.
    pub(crate) fn first_time<'a>(&'a self, address: &'a str) -> [&'a str; 6] {
        ["--server", address, "--login", "ada", "--password-file", &self.password]
    }

    /// Asserts that the vault has this many messages and that its fingerprint is theirs.
    #[track_caller]
    pub(crate) fn check_vault(&self, count: u64) {
        let vault = self.operator(&["inspect", "--login", "ada", "--verify"]);
        let count = &json!(count);
        assert_eq!((&vault["messages_count"], &vault["cursor"]), (count, count), "{vault}");
        assert_eq!(vault["verified"], true, "{vault}");
        assert_eq!(vault["storage"]["cipher"], "chacha20", "{vault}");
    }

    /// Returns ada's account with her vault's key, which no command shows.
    pub(crate) fn unlock(&self, password: &str) -> UnlockedAccount {
        let databases = Databases::start(EngineLimits::default()).unwrap();
        let accounts = Accounts::open(&databases, Path::new(&self.data), KdfCost::DEFAULT).unwrap();
        let login = Login::parse("ada").unwrap();
        let password = Password::parse(password.to_owned()).unwrap();
        accounts.unlock(&login, &password).unwrap()
    }
}

/// Runs `warren sync` on a file that is already registered.
#[track_caller]
pub(crate) fn sync(file: &str) -> Value {
    let report = json(&["sync", file]);
    check_report(&report);
    report
}

/// Asserts that both sides are equal, and that they did not have to reconcile: that would hide
/// messages that were lost on the way.
#[track_caller]
pub(crate) fn check_report(report: &Value) {
    assert_eq!(
        (&report["in_sync"], &report["reconciled"]),
        (&json!(true), &json!(false)),
        "{report}"
    );
}

#[track_caller]
pub(crate) fn track_all(file: &str) -> Value {
    json(&["track", file, "--all"])
}

/// Returns every row of every table of the user's, with the values' storage classes, sorted.
pub(crate) fn rows(file: &str) -> Vec<String> {
    let selects = sql(
        file,
        "SELECT 'SELECT ' || quote(name) || (
             SELECT group_concat(' || ''|'' || quote(\"' || c.name || '\")', '')
             FROM (SELECT name FROM pragma_table_info(t.name) ORDER BY cid) c
         ) || ' FROM \"' || name || '\";'
         FROM sqlite_schema t
         WHERE type = 'table' AND name NOT LIKE 'warren\\_%' ESCAPE '\\' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'",
    );
    let mut rows: Vec<String> = sql(file, &selects).lines().map(str::to_owned).collect();
    rows.sort();
    rows
}

/// Asserts that two files have the same rows, and that none of them refers to a missing row.
#[track_caller]
pub(crate) fn check_equal(a: &str, b: &str) -> Vec<String> {
    let (of_a, of_b) = (rows(a), rows(b));
    if let Some((a, b)) = of_a.iter().zip(&of_b).find(|(a, b)| a != b) {
        panic!("rows differ, first here:\n{a}\n{b}");
    }
    assert_eq!(of_a.len(), of_b.len());
    for file in [a, b] {
        assert_eq!(sql(file, "PRAGMA foreign_key_check; PRAGMA integrity_check;"), "ok");
    }
    of_a
}

/// Asserts that a file has no changes left to send.
#[track_caller]
pub(crate) fn check_all_sent(file: &str) -> Value {
    let status = json(&["status", file]);
    assert_eq!(
        (&status["unsent_count"], &status["pending_count"]),
        (&json!(0), &json!(0)),
        "{status}"
    );
    status
}

/// Returns the token of a file's device.
pub(crate) fn token(file: &str) -> String {
    sql(file, "SELECT value FROM warren_meta WHERE key = 'token'")
}

/// Returns the devices that `warren device list` prints for a file.
pub(crate) fn devices(file: &str) -> Vec<Value> {
    let list = json(&["device", "list", file]);
    list["devices"].as_array().unwrap().clone()
}

/// Asserts that `warren sync` fails with this code.
#[track_caller]
pub(crate) fn check_sync_refused(file: &str, code: &str) {
    warren(&["sync", file, "--json"]).refused(code);
}

/// Inserts rows with these ids into the table `entry` of a file, as another program does.
pub(crate) fn entries(file: &str, ids: std::ops::Range<u64>) {
    let (start, end) = (ids.start, ids.end);
    processes::sql(
        file,
        &format!(
            "INSERT INTO entry WITH RECURSIVE n(i) AS (SELECT {start} UNION ALL SELECT i + 1 FROM n WHERE i + 1 < {end})
             SELECT i, 'entry number ' || i, i / 8.0 FROM n"
        ),
    );
}

/// Returns every file below a folder, whatever its name.
pub(crate) fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(files_below(&path));
        } else {
            files.push(path);
        }
    }
    files
}
