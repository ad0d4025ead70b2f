//! These tests make backups of a working server: each one is complete, and has everything that was
//! acknowledged before it began.

use std::fs;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use serde_json::{Value, json};

use crate::fixture::{FaultedServer, PASSWORD, SendRecord, warren};
use crate::scenarios::{prepare_account, register};

const BACKUPS: usize = 4;
/// The number of messages per push: some 100 pages, so that the WAL is checkpointed and restarted
/// all the time.
const PUSH_COUNT: u64 = 200;
const CONTENT_BYTES: usize = 2_000;

fn run(arguments: &[&str], folder: &Path) -> (bool, String) {
    let (status, said) = warren(arguments, folder, Vec::new());
    (status.is_some_and(|status| status.success()), said)
}

#[test]
fn backups_of_a_working_server_have_what_was_acknowledged_before() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("place");
    let (server, token) = prepare_account(&place);
    let (pushed, is_over) = (Mutex::new(0), AtomicBool::new(false));
    let mut acknowledged = Vec::new();
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut ledger = SendRecord::with_content_bytes(CONTENT_BYTES);
            while !is_over.load(Ordering::SeqCst) {
                assert!(ledger.push(&server, &token, PUSH_COUNT));
                *pushed.lock().unwrap() += PUSH_COUNT;
            }
        });
        for number in 0..BACKUPS {
            while *pushed.lock().unwrap() < PUSH_COUNT * (number as u64 + 1) * 10 {
                thread::yield_now();
            }
            acknowledged.push(*pushed.lock().unwrap());
            let name = format!("backup{number}");
            let (is_ok, said) = run(&["backup", &name, "--data", "place/data"], folder.path());
            assert!(is_ok, "{said}");
        }
        is_over.store(true, Ordering::SeqCst);
    });
    assert!(server.stop().unwrap().success());

    for (number, acknowledged) in acknowledged.into_iter().enumerate() {
        let (name, restored) = (format!("backup{number}"), format!("restored{number}"));
        let data = format!("{restored}/data");
        fs::create_dir(folder.path().join(&restored)).unwrap();
        let (is_ok, said) = run(&["restore", &name, "--data", &data], folder.path());
        assert!(is_ok, "{said}");
        let server = FaultedServer::start(&folder.path().join(&restored), Vec::new());
        let server = server.map_err(|(_, said)| said).unwrap();
        let mut ledger = SendRecord::from_acknowledged(acknowledged, CONTENT_BYTES);
        assert_eq!(ledger.check_vault(&server, &token), Vec::<String>::new(), "{name}");
        assert!(ledger.push(&server, &token, 1), "{name}");
        assert!(server.stop().unwrap().success());
    }
}

#[test]
fn a_restore_brings_no_revoked_device_back_and_no_former_password() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("place");
    let (server, token) = prepare_account(&place);
    let mut ledger = SendRecord::default();
    let lost = register(&mut ledger, &server, &token, "", "lost").unwrap();
    assert!(ledger.push(&server, &token, 10));
    let (is_ok, said) = run(&["backup", "copy", "--data", "place/data"], folder.path());
    assert!(is_ok, "{said}");
    let revoke = format!("/v1/devices/{}", lost.id);
    let revoked = ledger.call(&server, ("DELETE", &revoke), &token, &Value::Null).unwrap();
    let change = json!({"login": "ada", "password": PASSWORD, "new_password": "the new one"});
    let changed = ledger.call(&server, ("PUT", "/v1/accounts/password"), "", &change).unwrap();
    assert_eq!((revoked.status, changed.status), (204, 204));
    assert!(server.stop().unwrap().success());

    let list = "place/data/revocations";
    for (data, lists) in [("without/data", &[][..]), ("with/data", &["--revocations", list])] {
        fs::create_dir(folder.path().join(data).parent().unwrap()).unwrap();
        let restore = [&["restore", "copy", "--data", data][..], lists].concat();
        let (is_ok, said) = run(&restore, folder.path());
        assert!(is_ok, "{said}");
        let place = folder.path().join(data).parent().unwrap().to_owned();
        let server = FaultedServer::start(&place, Vec::new()).map_err(|(_, said)| said).unwrap();
        let is_newest = !lists.is_empty();
        let call = ("GET", "/v1/sync/delta?cursor=0");
        let status = ledger.call(&server, call, &lost.token, &Value::Null).unwrap().status;
        assert_eq!(status, if is_newest { 401 } else { 200 }, "{data}");
        let former = register(&mut ledger, &server, "", PASSWORD, "former").is_some();
        let newest = register(&mut ledger, &server, "", "the new one", "newest").is_some();
        assert_eq!((former, newest), (!is_newest, is_newest), "{data}");
        assert_eq!(ledger.check_vault(&server, &token), Vec::<String>::new());
        assert!(server.stop().unwrap().success());
    }
}

#[test]
fn a_backup_that_is_not_what_was_written_is_not_restored() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("place");
    let (server, token) = prepare_account(&place);
    assert!(SendRecord::default().push(&server, &token, 10));
    let backup = ["backup", "copy", "--data", "place/data", "--json"];
    assert!(run(&backup, folder.path()).0);
    assert!(!run(&backup, folder.path()).0, "it is there already");
    assert!(run(&["restore", "copy", "--check"], folder.path()).0);
    let (is_ok, said) = run(&["restore", "copy", "--data", "place/data"], folder.path());
    assert!(!is_ok && said.contains("in use by warren serve"), "{said}");
    assert!(server.stop().unwrap().success());
    let (is_ok, said) = run(&["restore", "copy", "--data", "place/data"], folder.path());
    assert!(!is_ok && said.contains("not empty"), "{said}");

    let accounts = folder.path().join("copy/accounts.sqlite");
    let mut content = fs::read(&accounts).unwrap();
    content[5_000] ^= 1;
    fs::write(&accounts, content).unwrap();
    let (is_ok, said) = run(&["restore", "copy", "--data", "new"], folder.path());
    assert!(!is_ok && said.contains("does not match the manifest"), "{said}");
    assert!(!folder.path().join("new").exists(), "nothing was begun");
    fs::remove_file(folder.path().join("copy/manifest.json")).unwrap();
    let (is_ok, said) = run(&["restore", "copy", "--data", "new"], folder.path());
    assert!(!is_ok && said.contains("not a complete backup"), "{said}");
}
