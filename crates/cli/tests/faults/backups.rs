//! Backups of a server that works: each is whole, and has what was acknowledged before it began.

use std::fs;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use crate::rig::{Ledger, Server, warren};
use crate::scenarios::prepare_account;

const BACKUPS: usize = 4;
/// A push is some 100 pages, so that the WAL is copied and started anew all the time.
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
            let mut ledger = Ledger::with_content_bytes(CONTENT_BYTES);
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
        let server = Server::start(&folder.path().join(&restored), Vec::new());
        let server = server.map_err(|(_, said)| said).unwrap();
        let mut ledger = Ledger::of_acknowledged(acknowledged, CONTENT_BYTES);
        assert_eq!(ledger.check_vault(&server, &token), Vec::<String>::new(), "{name}");
        assert!(ledger.push(&server, &token, 1), "{name}");
        assert!(server.stop().unwrap().success());
    }
}

#[test]
fn a_backup_that_is_not_what_was_written_is_not_restored() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("place");
    let (server, token) = prepare_account(&place);
    assert!(Ledger::default().push(&server, &token, 10));
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
    assert!(!is_ok && said.contains("not what was backed up"), "{said}");
    assert!(!folder.path().join("new").exists(), "nothing was begun");
    fs::remove_file(folder.path().join("copy/manifest.json")).unwrap();
    let (is_ok, said) = run(&["restore", "copy", "--data", "new"], folder.path());
    assert!(!is_ok && said.contains("broke off"), "{said}");
}
