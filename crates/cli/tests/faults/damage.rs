//! These tests damage vaults on the disk: the server notices and repairs them, and devices fill in
//! what is missing.

use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use rusqlite::Connection;
use serde_json::{Value, json};

use crate::fixture::{ADMIN, FaultedServer, SendRecord, send, warren};
use crate::scenarios::{prepare_account, prepare_files};
use crate::spoil::{damaged, spoil_middle, vaults};

/// The number of rows, which fill some hundred pages of the vault.
const ROWS: i64 = 3_000;
/// The maximum number of attempts; together they take up to a minute, for a busy machine.
const ATTEMPTS_MAX: usize = 1_200;
const ATTEMPT_INTERVAL: Duration = Duration::from_millis(50);

/// A server that reads all pages of an idle vault each time, with a device `a.db` that is in sync.
struct DamageFixture {
    folder: tempfile::TempDir,
    server: Option<FaultedServer>,
}

impl DamageFixture {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("place");
        let (server, _) = prepare_account(&place);
        prepare_files(&place, &server);
        let rig = Self { folder, server: Some(server) };
        rig.insert(0..ROWS);
        rig.sync();
        rig
    }

    /// Inserts rows with these numbers into `a.db`.
    fn insert(&self, numbers: Range<i64>) {
        let mut db = Connection::open(self.place().join("a.db")).unwrap();
        let transaction = db.transaction().unwrap();
        for n in numbers {
            let row = (format!("more {n}"), "of some length, so that there are pages", n);
            transaction.execute("INSERT INTO item VALUES (?1, ?2, ?3)", row).unwrap();
        }
        transaction.commit().unwrap();
    }

    fn place(&self) -> PathBuf {
        self.folder.path().join("place")
    }

    fn server(&self) -> &FaultedServer {
        self.server.as_ref().unwrap()
    }

    fn stop(&mut self) {
        assert!(self.server.take().unwrap().stop().unwrap().success());
    }

    fn start(&mut self) {
        let server = FaultedServer::start_with(&self.place(), Vec::new(), &["--scrub-days", "0"]);
        self.server = Some(server.map_err(|(_, said)| said).unwrap());
    }

    fn vault(&self) -> PathBuf {
        vaults(&self.place().join("data")).remove(0)
    }

    fn run(&self, arguments: &[&str]) -> Result<String, String> {
        let (status, said) = warren(arguments, &self.place(), Vec::new());
        if status.is_some_and(|status| status.success()) { Ok(said) } else { Err(said) }
    }

    fn try_sync(&self) -> Result<String, String> {
        self.sync_file("a.db")
    }

    fn sync_file(&self, file: &str) -> Result<String, String> {
        self.run(&["sync", file, "--server", &self.server().address])
    }

    fn sync(&self) {
        self.try_sync().unwrap();
    }

    /// Runs the maintenance of an idle vault now.
    fn maintain(&self) -> Value {
        let call = ("POST", "/v1/admin/maintenance");
        SendRecord::default().call(self.server(), call, ADMIN, &json!({})).unwrap().value()
    }

    fn metric(&self, name: &str) -> u64 {
        self.server().metric(name)
    }

    /// Waits until a vault was quarantined and replaced.
    fn wait_for_repair(&self) {
        self.wait_until(|| self.metric("warren_repaired_files_total") == 1);
    }

    fn wait_until(&self, is_there: impl Fn() -> bool) {
        let is_there = (0..ATTEMPTS_MAX).any(|_| {
            thread::park_timeout(ATTEMPT_INTERVAL);
            is_there()
        });
        assert!(is_there, "{}", self.server().log());
    }

    /// Clones into a new device. The error is the command's output.
    fn clone_as(&self, file: &str) -> Result<String, String> {
        let sign_in = ["--server", &self.server().address, "--login", "ada"];
        let password = ["--password-file", "password.txt"];
        self.run(&[&["clone", file][..], &sign_in, &password].concat())
    }

    fn ready(&self) -> (u16, Value) {
        let url = format!("{}/readyz", self.server().address);
        let answer = send("GET", &url, &[], &[]).unwrap();
        (answer.status, answer.value())
    }

    /// Checks that a new device gets everything that `a.db` has.
    fn check_clone(&self) {
        self.clone_as("c.db").unwrap();
        assert_eq!(self.rows("c.db"), self.rows("a.db"));
        assert!(self.rows("a.db").starts_with(char::is_numeric));
    }

    /// Returns the number of a device's rows, and the sum of their numbers.
    fn rows(&self, file: &str) -> String {
        let db = Connection::open(self.place().join(file)).unwrap();
        let sql = "SELECT count(*) || ' ' || sum(n) FROM item";
        db.query_row(sql, [], |row| row.get(0)).unwrap()
    }

    /// Returns the report of a sync of a device's file.
    fn sync_report(&self, file: &str) -> Value {
        let said = self.run(&["sync", file, "--server", &self.server().address, "--json"]);
        serde_json::from_str(said.unwrap().lines().last().unwrap()).unwrap()
    }

    /// Returns what a device's file has recorded about its server.
    fn remote(&self, file: &str) -> Value {
        let said = self.run(&["status", file, "--offline", "--json"]).unwrap();
        serde_json::from_str::<Value>(said.lines().last().unwrap()).unwrap()["remote"].take()
    }

    fn inspect(&self, option: &str) -> Result<Value, String> {
        let ada = ["inspect", "--login", "ada", "--data", "data", "--password-file"];
        let said = self.run(&[&ada[..], &["password.txt", option, "--json"]].concat())?;
        Ok(serde_json::from_str(said.lines().last().unwrap()).unwrap())
    }
}

#[test]
fn a_page_that_is_spoilt_is_found_when_the_vault_is_idle_and_devices_fill_in_the_rest() {
    let mut rig = DamageFixture::new();
    rig.stop();
    rig.start();
    rig.sync();
    // The first run begins to count; everything is in the file afterwards.
    rig.maintain();
    assert!(rig.maintain()["scrubbed_pages_count"].as_u64().unwrap() > 100);
    spoil_middle(&rig.vault());
    let spoilt = fs::read(rig.vault()).unwrap();
    assert_eq!(rig.maintain()["failed_count"], 1);
    rig.wait_for_repair();
    assert_eq!(fs::read(damaged(&rig.vault())).unwrap(), spoilt);
    assert_eq!(rig.metric("warren_damaged_files_total"), 1);
    assert_eq!(rig.metric("warren_vaults_damaged"), 0);
    let before = count(&rig);
    rig.sync();
    let after = count(&rig);
    assert!((ROWS / 2..after).contains(&before), "{before} messages of {after} were carried over");
    rig.check_clone();
    rig.stop();
    assert_eq!(rig.inspect("--verify").unwrap()["verified"], true);
    remove_account(&rig);
    assert!(!has_damaged_files(&rig.place().join("data")), "its content goes with the account");
}

/// Returns the number of messages in the server's vault file.
fn count(rig: &DamageFixture) -> i64 {
    rig.inspect("--verify").unwrap()["messages_count"].as_i64().unwrap()
}

fn remove_account(rig: &DamageFixture) {
    rig.run(&["account", "remove", "ada", "--data", "data", "--yes"]).unwrap();
}

fn has_damaged_files(data: &Path) -> bool {
    let folders = fs::read_dir(data.join("vaults")).unwrap();
    let mut files = folders.flat_map(|folder| fs::read_dir(folder.unwrap().path()).unwrap());
    files.any(|file| file.unwrap().file_name().to_str().unwrap().contains("damaged"))
}

#[test]
fn whoever_meets_a_spoilt_page_is_told_to_come_back_and_then_all_is_well() {
    let mut rig = DamageFixture::new();
    rig.stop();
    spoil_middle(&rig.vault());
    rig.start();
    let said = rig.clone_as("early.db").unwrap_err();
    assert!(said.contains("unavailable"), "{said}");
    rig.wait_for_repair();
    rig.sync();
    rig.check_clone();
}

#[test]
fn a_vault_that_does_not_open_starts_anew_and_its_devices_send_everything() {
    let mut rig = DamageFixture::new();
    rig.stop();
    let garbage = vec![0x5a; 40_000];
    fs::write(rig.vault(), &garbage).unwrap();
    rig.start();
    let loss = &rig.sync_report("a.db")["server_loss"];
    assert!(
        loss["repaired_ms"].is_u64() && loss["missing_count"].is_null(),
        "it cannot know: {loss}"
    );
    assert_eq!(fs::read(damaged(&rig.vault())).unwrap(), garbage);
    assert_eq!(rig.metric("warren_repaired_files_total"), 1);
    rig.check_clone();
}

#[test]
fn inspect_repairs_a_vault_while_no_server_runs() {
    let mut rig = DamageFixture::new();
    let refused = rig.inspect("--repair").unwrap_err();
    assert!(refused.contains("warren serve"), "{refused}");
    rig.stop();
    assert_eq!(rig.inspect("--repair").unwrap()["repaired"], json!([]));
    spoil_middle(&rig.vault());
    let repaired = rig.inspect("--repair").unwrap()["repaired"][0].clone();
    assert!(repaired["damage"].as_str().unwrap().contains("is damaged"), "{repaired}");
    let quarantined_path = repaired["quarantined_path"].as_str().unwrap();
    assert!(quarantined_path.ends_with(".damaged"), "{repaired}");
    assert!(damaged(&rig.vault()).exists());
    // The second time, the operator should examine the disk first.
    spoil_middle(&rig.vault());
    let refused = rig.inspect("--repair").unwrap_err();
    assert!(refused.contains("an earlier .damaged file"), "{refused}");
    fs::remove_file(damaged(&rig.vault())).unwrap();
    rig.inspect("--repair").unwrap();
    rig.start();
    rig.sync();
    rig.check_clone();
}

#[test]
fn a_second_damage_is_repaired_as_soon_as_the_file_of_the_first_is_moved_away() {
    let mut rig = DamageFixture::new();
    rig.stop();
    spoil_middle(&rig.vault());
    rig.start();
    rig.clone_as("first.db").unwrap_err();
    rig.wait_for_repair();
    rig.sync();
    // After the restart, no page of the file is in memory.
    rig.stop();
    spoil_middle(&rig.vault());
    rig.start();
    rig.wait_until(|| rig.clone_as("second.db").unwrap_err().contains("server_damaged"));
    let (status, ready) = rig.ready();
    assert_eq!((status, &ready["damaged_vaults_count"]), (200, &json!(1)));
    assert_eq!(rig.metric("warren_repaired_files_total"), 0);

    fs::rename(damaged(&rig.vault()), rig.place().join("first.damaged")).unwrap();
    let said = rig.clone_as("third.db").unwrap_err();
    assert!(said.contains("damaged") || said.contains("unavailable"), "{said}");
    rig.wait_for_repair();
    assert_eq!(rig.ready().1["damaged_vaults_count"], 0);
    rig.sync();
    rig.check_clone();
}

#[test]
fn a_vault_that_does_not_open_for_the_second_time_is_repaired_without_a_restart() {
    let mut rig = DamageFixture::new();
    rig.stop();
    fs::write(damaged(&rig.vault()), "of an earlier damage").unwrap();
    fs::write(rig.vault(), vec![0x5a; 40_000]).unwrap();
    rig.start();
    let said = rig.try_sync().unwrap_err();
    assert!(said.contains("server_damaged"), "{said}");
    fs::remove_file(damaged(&rig.vault())).unwrap();
    rig.sync();
    rig.check_clone();
}

#[test]
fn a_server_whose_accounts_are_damaged_is_not_ready() {
    let mut rig = DamageFixture::new();
    rig.stop();
    spoil_middle(&rig.place().join("data/accounts.sqlite"));
    rig.start();
    let said = rig.try_sync().unwrap_err();
    assert!(said.contains("server_damaged"), "{said}");
    rig.wait_until(|| rig.ready().0 == 503);
    assert_eq!(rig.ready().1["accounts_damaged"], true);
}

#[test]
fn devices_hear_what_a_repaired_vault_has_lost_until_it_has_come_back() {
    let mut rig = DamageFixture::new();
    rig.clone_as("c.db").unwrap();
    // Most of the vault exists only in `a.db`.
    rig.insert(ROWS..3 * ROWS);
    rig.sync();
    rig.stop();
    spoil_middle(&rig.vault());
    rig.start();
    rig.clone_as("meets-it.db").unwrap_err();
    rig.wait_for_repair();

    let first = rig.sync_report("c.db");
    let missing = first["server_loss"]["missing_count"].as_u64().unwrap();
    assert!(missing > 0 && first["in_sync"] == true, "{first}");
    let away = first["server_loss"]["devices_away"].as_array().unwrap();
    assert!(away[0].as_str().unwrap().starts_with("a.db"), "it was here last: {away:?}");
    let said = rig.sync_file("c.db").unwrap();
    let lost = format!("the server lost {missing} change");
    assert!(said.replace(',', "").contains(&lost), "{said}");
    assert!(said.contains(away[0].as_str().unwrap()), "{said}");
    assert_eq!(rig.remote("c.db")["server_loss"], first["server_loss"]);
    assert!(
        rig.server().log().contains(&format!("\"count\":{missing}}}")),
        "{}",
        rig.server().log()
    );

    let second = rig.sync_report("a.db");
    assert_eq!(second["server_loss"], Value::Null, "it sent what was missing: {second}");
    let third = rig.sync_report("c.db");
    assert_eq!(third["server_loss"], Value::Null, "{third}");
    assert_eq!(rig.remote("c.db")["server_loss"], Value::Null);
    assert_eq!(rig.rows("c.db"), rig.rows("a.db"));
}
