//! These tests check that a revoked device stays revoked, whichever backup is restored, and
//! however a restore ends.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::fixture::{FaultedServer, PASSWORD, SendRecord, warren};
use crate::injection::places;
use crate::scenarios::{RegisteredDevice, prepare_account, register};
use crate::shim::operation::{CHANGES, WRITE};
use crate::shim::{FaultMode, ShimControl};

const NEW_PASSWORD: &str = "the new one";

/// A server's folder, a backup, and the devices that were revoked on the server since.
struct RestoreFixture {
    folder: TempDir,
    ledger: SendRecord,
    /// The token of the device that is not revoked.
    token: String,
    /// The devices that were revoked since the backup, in this order.
    revoked: Vec<RegisteredDevice>,
}

impl RestoreFixture {
    /// Registers one more device for each function of `revoke`, which then revokes it.
    fn new(revoke: &[fn(&mut Self, &FaultedServer, &RegisteredDevice)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (server, token) = prepare_account(&folder.path().join("place"));
        let mut ledger = SendRecord::default();
        assert!(ledger.push(&server, &token, 10));
        let register = |_| register(&mut ledger, &server, &token, "", "lost").unwrap();
        let devices: Vec<_> = revoke.iter().map(register).collect();
        let mut world = Self { folder, ledger, token, revoked: Vec::new() };
        world.succeed(&["backup", "copy", "--data", "place/data"]);
        for (revoke, device) in revoke.iter().zip(devices) {
            revoke(&mut world, &server, &device);
            world.revoked.push(device);
        }
        assert!(server.stop().unwrap().success());
        world
    }

    fn path(&self, path: &str) -> PathBuf {
        self.folder.path().join(path)
    }

    /// Runs a command, asserts that it succeeds, and returns its output.
    fn succeed(&self, arguments: &[&str]) -> String {
        let (is_ok, said) = self.run(arguments);
        assert!(is_ok, "{said}");
        said
    }

    fn run(&self, arguments: &[&str]) -> (bool, String) {
        let (status, said) = warren(arguments, self.folder.path(), Vec::new());
        (status.is_some_and(|status| status.success()), said)
    }

    fn revoke(&mut self, server: &FaultedServer, device: &RegisteredDevice) {
        let path = format!("/v1/devices/{}", device.id);
        let token = self.token.clone();
        let revoked = self.ledger.call(server, ("DELETE", &path), &token, &Value::Null);
        assert_eq!(revoked.unwrap().status, 204);
    }

    /// Revokes a device, and cuts off the end of its line, as when the disk was full in the middle
    /// of it.
    fn revoke_and_tear(&mut self, server: &FaultedServer, device: &RegisteredDevice) {
        self.revoke(server, device);
        let path = self.path("place/data/revocations");
        let list = fs::read(&path).unwrap();
        fs::write(&path, &list[..list.len() - 5]).unwrap();
    }

    fn change_password(&mut self, server: &FaultedServer, device: &RegisteredDevice) {
        self.revoke(server, device);
        let body = json!({"login": "ada", "password": PASSWORD, "new_password": NEW_PASSWORD});
        let changed = self.ledger.call(server, ("PUT", "/v1/accounts/password"), "", &body);
        assert_eq!(changed.unwrap().status, 204);
    }

    /// Returns the status with which a server on `PLACE/data` answers each of the revoked devices.
    /// The remaining device must have all its messages.
    fn statuses(&mut self, place: &str) -> Vec<u16> {
        let server = FaultedServer::start(&self.path(place), Vec::new()).map_err(|(_, said)| said);
        let server = server.unwrap();
        let ask = |device: &RegisteredDevice| {
            let call = ("GET", "/v1/sync/delta?cursor=0");
            self.ledger.call(&server, call, &device.token, &Value::Null).unwrap().status
        };
        let statuses = self.revoked.iter().map(ask).collect();
        assert_eq!(self.ledger.check_vault(&server, &self.token), Vec::<String>::new());
        assert!(server.stop().unwrap().success());
        statuses
    }

    /// Returns the output of `account list`, or `None` if the directory cannot be opened.
    fn accounts(&self, data: &str) -> Option<Value> {
        let (is_ok, said) = self.run(&["account", "list", "--data", data, "--json"]);
        is_ok.then(|| serde_json::from_str(&said).unwrap())
    }

    fn log(&self, place: &str) -> String {
        fs::read_to_string(self.path(place).join("server.log")).unwrap()
    }
}

#[test]
fn a_torn_revocation_is_reported_and_keeps_no_other_from_being_applied() {
    let mut world = RestoreFixture::new(&[
        RestoreFixture::revoke,
        RestoreFixture::revoke_and_tear,
        RestoreFixture::revoke,
        RestoreFixture::change_password,
    ]);
    // The first line is empty, and each of the others is a revocation.
    let is_reported = |said: &str| said.contains("skipped damaged line 3;");
    let said = world.succeed(&["backup", "newer", "--data", "place/data"]);
    assert!(is_reported(&said), "{said}");
    let said = world.succeed(&["restore", "newer", "--check"]);
    assert!(is_reported(&said) && said.contains("verified, except"), "{said}");
    let said = world.succeed(&["restore", "newer", "--check", "--json"]);
    let list = &serde_json::from_str::<Value>(&said).unwrap()["revocations"][0];
    assert_eq!(
        (&list["revocations_count"], &list["damaged_lines"]),
        (&json!(4), &json!([3])),
        "{said}"
    );
    let said = world.succeed(&["restore", "copy", "--check"]);
    assert!(!is_reported(&said) && !said.contains("verified, except"), "{said}");

    fs::create_dir(world.path("new")).unwrap();
    let list = "place/data/revocations";
    let said = world.succeed(&["restore", "copy", "--data", "new/data", "--revocations", list]);
    assert!(is_reported(&said) && said.contains("applied 4 revocations"), "{said}");
    assert_eq!(world.statuses("new"), [401, 200, 401, 401]);
    let log = world.log("new");
    assert!(log.contains("skipped damaged lines in the revocation list"), "{log}");
    assert!(!log.contains("was older than the list"), "{log}");
}

#[test]
fn a_server_applies_the_list_to_an_accounts_file_that_is_older() {
    let mut world = RestoreFixture::new(&[RestoreFixture::revoke, RestoreFixture::change_password]);
    let accounts = "accounts.sqlite";
    fs::copy(world.path("copy").join(accounts), world.path("place/data").join(accounts)).unwrap();
    assert_eq!(world.statuses("place"), [401, 401]);
    assert!(world.log("place").contains("was older than the list"));
    let server =
        FaultedServer::start(&world.path("place"), Vec::new()).map_err(|(_, said)| said).unwrap();
    let log = world.log("place");
    assert_eq!(log.matches("was older than the list").count(), 1, "{log}");
    let ledger = &mut world.ledger;
    assert!(register(ledger, &server, "", PASSWORD, "former").is_none());
    assert!(register(ledger, &server, "", NEW_PASSWORD, "newest").is_some());
}

#[test]
fn a_list_that_is_none_is_refused_before_anything_is_made() {
    let world = RestoreFixture::new(&[RestoreFixture::revoke]);
    for (list, why) in
        [("place/data/none", "No such file"), ("copy/manifest.json", "is not a revocation list")]
    {
        for what in [&["--data", "new"][..], &["--check"]] {
            let arguments = [&["restore", "copy", "--revocations", list], what].concat();
            let (is_ok, said) = world.run(&arguments);
            assert!(!is_ok && said.contains(why), "{said}");
        }
    }
    assert!(!world.path("new").exists());
}

/// Returns what is missing from a directory that can be opened but has only a part of a restore.
/// `accounts` are the accounts that it has.
fn check_complete(world: &RestoreFixture, data: &str, accounts: &Value) -> Option<String> {
    // The backup has two devices, and one was revoked since.
    let devices_count = &accounts[0]["devices_count"];
    let mut names: Vec<_> = fs::read_dir(world.path(data))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| !name.starts_with("accounts.sqlite-"))
        .collect();
    names.sort();
    let is_complete = names == ["accounts.sqlite", "revocations", "server.lock", "vaults"];
    (*devices_count != 1 || !is_complete).then(|| format!("{devices_count} devices, {names:?}"))
}

/// Interrupts a restore at one operation, and then repeats it without a fault.
fn interrupt(world: &RestoreFixture, control: &ShimControl, number: u64) -> Option<String> {
    let list = world.path("place/data/revocations");
    let data = format!("new{number}");
    let restore = ["restore", "copy", "--data", &data, "--revocations", list.to_str().unwrap()];
    let folder = fs::canonicalize(world.folder.path()).unwrap();
    let environment = control.environment(&folder.join(&data), None);
    let (status, said) = warren(&restore, &folder, environment);
    let hit = control.hit().unwrap_or_else(|| "nothing".to_owned());
    control.disarm();
    let is_done = status.is_some_and(|status| status.success());
    if said.contains("panicked") {
        return Some(format!("{hit}: {said}"));
    }
    let accounts = world.accounts(&data);
    if let Some(wrong) = accounts.and_then(|accounts| check_complete(world, &data, &accounts)) {
        return Some(format!("{hit}: {wrong}"));
    }
    // Either the restore is complete, or it can be repeated now.
    let (is_done_again, said) = world.run(&restore);
    let is_right = is_done_again != said.contains("is not empty") && !(is_done && is_done_again);
    match world.accounts(&data) {
        Some(accounts) if is_right => check_complete(world, &data, &accounts),
        _ => Some(format!("{hit}: again: {said}")),
    }
}

#[test]
fn a_restore_that_is_interrupted_leaves_nothing_that_a_server_would_open() {
    const EIO: i32 = 5;
    const ENOSPC: i32 = 28;
    let mut world = RestoreFixture::new(&[RestoreFixture::revoke]);
    let control = ShimControl::new(world.folder.path());
    let mut number = 0;
    let mut wrong = Vec::new();
    for (mode, operations, errno, short) in [
        // This kills between any two operations.
        (FaultMode::KillBefore, CHANGES, 0, usize::MAX),
        (FaultMode::KillTorn, WRITE, 0, 5),
        (FaultMode::Once, CHANGES, EIO, 8),
        (FaultMode::From, CHANGES, ENOSPC, 8),
    ] {
        control.arm(mode, 0, operations, errno);
        assert_eq!(interrupt(&world, &control, number), None);
        let count = control.count();
        assert!(count > 5, "{count} operations are no restore");
        for at in places(count, crate::count(short)) {
            number += 1;
            control.arm(mode, at, operations, errno);
            let found = interrupt(&world, &control, number);
            wrong.extend(found.map(|found| format!("{mode:?} {at} of {count}: {found}")));
        }
        number += 1;
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    // A server accepts the directory that results from all of them.
    fs::create_dir(world.path("last")).unwrap();
    fs::rename(world.path(&format!("new{}", number - 1)), world.path("last/data")).unwrap();
    assert_eq!(world.statuses("last"), [401]);
}

#[test]
fn a_server_does_not_open_a_directory_whose_restore_has_not_finished() {
    let world = RestoreFixture::new(&[RestoreFixture::revoke]);
    let restore = ["restore", "copy", "--data", "new/data"];
    fs::create_dir_all(world.path("new/data/restoring")).unwrap();
    let (_, said) = FaultedServer::start(&world.path("new"), Vec::new()).err().unwrap();
    assert!(said.contains("\"unfinished_restore\""), "{said}");
    // This is the state after an interruption between the last moves.
    let accounts = world.path("new/data/accounts.sqlite");
    fs::copy(world.path("copy/accounts.sqlite"), &accounts).unwrap();
    let (is_ok, said) = world.run(&["backup", "half", "--data", "new/data"]);
    assert!(!is_ok && said.contains("is incomplete"), "{said}");
    let add = ["account", "add", "eve", "--data", "new/data", "--password-file", "secret"];
    fs::write(world.path("secret"), PASSWORD).unwrap();
    let (is_ok, said) = world.run(&add);
    assert!(!is_ok && said.contains("is incomplete"), "{said}");
    world.succeed(&restore);
    // A restore does not remove files of other programs.
    for name in ["notes.txt", "restoring"] {
        let path: &Path = &world.path("other").join(name);
        fs::create_dir_all(path).unwrap();
    }
    let (is_ok, said) = world.run(&["restore", "copy", "--data", "other"]);
    assert!(!is_ok && said.contains("is not empty"), "{said}");
    assert!(world.path("other/notes.txt").exists());
}
