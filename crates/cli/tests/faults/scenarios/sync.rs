//! A scenario of pushes, of syncs of two files that have a server, and of maintenance.

use std::fs;
use std::path::Path;

use rusqlite::Connection;
use serde_json::json;

use super::{FaultRun, FaultScenario, prepare_account, register};
use crate::fixture::{ADMIN, FaultedServer, PASSWORD, warren};

pub(crate) struct SyncScenario {
    token: String,
}

/// The rows that exist from the beginning, and the rows that a device adds.
const BASE_ROWS: i64 = 50;
const ADDED_ROWS: i64 = 200;
/// The number of base rows that the other device edits.
const EDITED_ROWS: i64 = 40;

impl FaultScenario for SyncScenario {
    type Left = ();

    const NAME: &'static str = "sync";

    fn prepare(base: &Path) -> Self {
        let (server, token) = prepare_account(base);
        prepare_files(base, &server);
        assert!(server.stop().unwrap().success());
        Self { token }
    }

    fn run(&self, server: &FaultedServer, run: &mut FaultRun) {
        for _ in 0..3 {
            run.ledger.push(server, &self.token, 40);
        }
        edit_and_sync(run, server);
        run.ledger.call(server, ("POST", "/v1/admin/maintenance"), ADMIN, &json!({}));
        run.ledger.push(server, &self.token, 40);
    }

    fn is_back(&self, server: &FaultedServer, run: &mut FaultRun, (): &mut ()) -> bool {
        run.ledger.push(server, &self.token, 1)
            && register(&mut run.ledger, server, &self.token, "", "probe").is_some()
    }

    fn check(&self, server: &FaultedServer, run: &mut FaultRun, (): &()) -> Vec<String> {
        let mut wrong = check_files(run, server);
        wrong.extend(run.ledger.check_vault(server, &self.token));
        wrong
    }
}

/// Prepares two files, `a.db` and a clone `b.db`. Each run replaces their server's address.
pub(crate) fn prepare_files(base: &Path, server: &FaultedServer) {
    let password = base.join("password.txt");
    fs::write(&password, format!("{PASSWORD}\n")).unwrap();
    let db = Connection::open(base.join("a.db")).unwrap();
    db.execute_batch("CREATE TABLE item (id TEXT PRIMARY KEY, text TEXT, n INTEGER)").unwrap();
    for n in 0..BASE_ROWS {
        let row = (format!("base {n}"), format!("text {n}"), n);
        db.execute("INSERT INTO item VALUES (?1, ?2, ?3)", row).unwrap();
    }
    drop(db);
    let password = password.to_str().unwrap();
    let sign_in = ["--server", &server.address, "--login", "ada", "--password-file", password];
    for command in [
        &["track", "a.db", "--all"][..],
        &[&["sync", "a.db"][..], &sign_in].concat(),
        &[&["clone", "b.db"][..], &sign_in].concat(),
    ] {
        let (status, said) = warren(command, base, Vec::new());
        assert!(status.unwrap().success(), "{command:?}: {said}");
    }
}

/// Edits both files, and syncs them with each other.
pub(super) fn edit_and_sync(run: &mut FaultRun, server: &FaultedServer) {
    edit(run, "a.db", |db| {
        for n in 0..ADDED_ROWS {
            let row = (format!("added {n}"), "of a", n);
            db.execute("INSERT OR REPLACE INTO item VALUES (?1, ?2, ?3)", row)?;
        }
        Ok(())
    });
    sync(run, server, "a.db");
    edit(run, "b.db", |db| {
        let sql = "UPDATE item SET text = 'of b' WHERE id LIKE 'base %' AND n < ?1";
        db.execute(sql, [EDITED_ROWS]).map(drop)
    });
    sync(run, server, "b.db");
    sync(run, server, "a.db");
}

fn edit(run: &FaultRun, file: &str, work: impl FnOnce(&Connection) -> rusqlite::Result<()>) {
    let mut db = Connection::open(run.folder.join(file)).unwrap();
    let transaction = db.transaction().unwrap();
    work(&transaction).unwrap();
    transaction.commit().unwrap();
}

/// Runs `warren sync`, under the faults if they are in the device's folder.
pub(super) fn sync(run: &mut FaultRun, server: &FaultedServer, file: &str) -> bool {
    let environment = match &run.device_control {
        Some(control) => control.environment(&run.folder, None),
        None => Vec::new(),
    };
    let command = ["sync", file, "--server", &server.address];
    let (status, said) = warren(&command, &run.folder, environment);
    let is_ok = status.is_some_and(|status| status.success());
    if !is_ok {
        let said = said.trim().lines().last().unwrap_or_default();
        let said = if status.is_none() { "it HANGS" } else { said };
        run.ledger.record_error(format!("sync: {}", said.chars().take(100).collect::<String>()));
    }
    is_ok
}

/// Syncs until both files have everything, and returns what is wrong with them then.
pub(super) fn check_files(run: &mut FaultRun, server: &FaultedServer) -> Vec<String> {
    let mut wrong = Vec::new();
    for file in ["a.db", "b.db", "a.db"] {
        if !sync(run, server, file) {
            wrong.push(format!("SYNC of {file} fails afterwards: {:?}", run.ledger.codes));
        }
    }
    let rows = ["a.db", "b.db"].map(|file| {
        let db = Connection::open(run.folder.join(file)).unwrap();
        let check: String = db.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
        if check != "ok" {
            wrong.push(format!("CORRUPT: {file}: {check}"));
        }
        let mut statement = db.prepare("SELECT id, text, n FROM item ORDER BY id").unwrap();
        let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)));
        let rows: rusqlite::Result<Vec<(String, String, i64)>> = rows.unwrap().collect();
        rows.unwrap()
    });
    let base = (0..BASE_ROWS).map(|n| {
        let text = if n < EDITED_ROWS { "of b".to_owned() } else { format!("text {n}") };
        (format!("base {n}"), text, n)
    });
    let added = (0..ADDED_ROWS).map(|n| (format!("added {n}"), "of a".to_owned(), n));
    let mut expected: Vec<_> = base.chain(added).collect();
    expected.sort();
    if rows[0] != rows[1] {
        wrong.push(format!("DIVERGED: {} and {} rows", rows[0].len(), rows[1].len()));
    } else if rows[0] != expected {
        wrong.push(format!("ROWS: {} of {} as they were written", rows[0].len(), expected.len()));
    }
    wrong
}
