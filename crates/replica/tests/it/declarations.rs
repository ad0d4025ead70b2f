//! Tests of declarations from untrusted devices: whatever they contain, they run only the
//! statements that create the tables that they name, and the sync continues.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use crdt::{Message, NodeId, Timestamp};
use replica::{Replica, SyncContext, SyncReport};
use rusqlite::Connection;
use rusqlite::hooks::{AuthAction, AuthContext, Authorization};

use crate::hostile::{self, EDITED, EDITS, LINES, SCHEMA, SECRET};
use crate::support::{MORNING_MS, MemoryServer, TestDevice, shape};

/// Number of cases of a round.
const ROUND_CASES_COUNT: usize = 12;

/// Returns the action on the victim's connection if no sync may take it.
fn offence(context: &AuthContext<'_>, has_diary: bool) -> Option<String> {
    use AuthAction as A;
    let is_warrens = |name: &str| name.to_ascii_lowercase().starts_with("warren_");
    let is_diary = |name: &str| has_diary && name.eq_ignore_ascii_case("diary");
    let bad = match context.action {
        A::Attach { .. } | A::Detach { .. } | A::CreateView { .. } | A::CreateTempTable { .. } => {
            true
        }
        A::CreateVtable { .. }
        | A::DropVtable { .. }
        | A::DropTable { .. }
        | A::DropIndex { .. } => true,
        A::CreateTempTrigger { .. } | A::CreateTempIndex { .. } | A::CreateTempView { .. } => true,
        A::CreateTrigger { trigger_name, .. } => !is_warrens(trigger_name),
        A::CreateTable { table_name } => is_warrens(table_name) || is_diary(table_name),
        A::Insert { table_name } | A::Delete { table_name } => is_diary(table_name),
        A::Update { table_name, .. } | A::Read { table_name, .. } => is_diary(table_name),
        A::AlterTable { table_name, .. } => is_diary(table_name),
        A::Function { function_name } => {
            ["load_extension", "writefile", "readfile"].contains(&function_name)
        }
        _ => false,
    };
    bad.then(|| format!("{:?}", context.action))
}

/// Syncs and creates missing tables, while an authorizer checks every statement.
fn watched_sync(device: &TestDevice, server: &mut MemoryServer) -> SyncReport {
    server.now_ms.set(MORNING_MS + 10_000);
    // The test opens the connection itself, so that it can set an authorizer.
    let mut db = Connection::open(&device.path).unwrap();
    let sql = "SELECT value FROM warren_meta WHERE key = 'identity'";
    let identity: String = db.query_row(sql, [], |row| row.get(0)).unwrap();
    let sql = "SELECT count(*) FROM sqlite_schema WHERE sql LIKE 'CREATE TABLE diary (id%'";
    let has_diary = db.query_row(sql, [], |row| row.get(0)).unwrap();
    let offences = Arc::new(Mutex::new(BTreeSet::new()));
    let watched = Arc::clone(&offences);
    let watch = move |context: AuthContext<'_>| {
        watched.lock().unwrap().extend(offence(&context, has_diary));
        Authorization::Allow
    };
    db.authorizer(Some(watch)).unwrap();
    let replica = Replica::on_shared_connection(db, "app.db", &identity).unwrap();
    let now_ms = device.clock_ms + 1;
    let options = SyncContext { create_missing: true, now_ms: &|| now_ms, progress: &mut |_| {} };
    let report = replica.sync(server, options).unwrap();
    let offences = offences.lock().unwrap();
    assert!(offences.is_empty(), "{offences:?}");
    report
}

fn fresh_clone(server: &mut MemoryServer) -> TestDevice {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("clone.db");
    drop(Replica::create(&path).unwrap());
    let device = TestDevice::in_folder(&path, folder);
    device.sign_in(server);
    device
}

/// Runs the edits of one of the two honest devices.
fn edit(device: &mut TestDevice, edits: &[&str], round: usize) {
    device.clock_ms += 10_000;
    for sql in edits {
        device.write(&sql.replace("ROUND", &round.to_string())).unwrap();
    }
}

/// Checks whether the device reports that it does not show all of a table.
fn is_told(device: &TestDevice, table: &str) -> bool {
    let status = device.replica().status().unwrap();
    status.visibility_overrides.iter().any(|row| row.table == table)
        || status.schema_conflicts.iter().any(|conflict| conflict.table == table)
        || status.missing_tables.iter().any(|unknown| unknown.starts_with(&format!("{table}.")))
}

#[test]
fn hostile_messages_run_nothing_and_stop_nothing() {
    for (round, cases) in (1..).zip(hostile::cases().chunks(ROUND_CASES_COUNT)) {
        let mut server = MemoryServer::default();
        let mut ada = TestDevice::tracked(SCHEMA, &mut server);
        let mut ben = TestDevice::tracked(SCHEMA, &mut server);
        ada.app.execute_batch(SECRET).unwrap();
        edit(&mut ada, EDITS[0], 0);
        watched_sync(&ada, &mut server);
        for (place, content) in (0..).zip(cases.concat()) {
            let timestamp = Timestamp::new(ada.clock_ms + 1_000 + place, 0, NodeId(7)).unwrap();
            server.messages.push(Message { timestamp, content });
        }
        watched_sync(&ada, &mut server);
        watched_sync(&ben, &mut server);
        // Honest edits still go both ways, and to a new device.
        edit(&mut ada, EDITS[0], round);
        edit(&mut ben, EDITS[1], round);
        watched_sync(&ada, &mut server);
        assert!(watched_sync(&ben, &mut server).in_sync, "{round}");
        assert!(watched_sync(&ada, &mut server).in_sync, "{round}");
        let clone = fresh_clone(&mut server);
        assert!(watched_sync(&clone, &mut server).in_sync, "{round}");
        let lines = LINES.map(|(_, sql)| ada.texts(sql)).concat();
        assert_eq!(lines, LINES.map(|(_, sql)| ben.texts(sql)).concat(), "{round}");
        for edited in EDITED {
            let edited = edited.replace("ROUND", &round.to_string());
            assert!(lines.contains(&edited), "{round}: {edited} is not in {lines:?}");
        }
        // A new device may have a table as an attacker declared it; then it reports the rows that
        // it does not show.
        for (table, sql) in LINES {
            let is_shown = clone.app.prepare(sql).is_ok() && clone.texts(sql) == ada.texts(sql);
            assert!(is_shown || is_told(&clone, table), "{round}: {table}");
        }
        assert_eq!(ada.texts("SELECT text FROM diary"), ["secret"], "{round}");
        let folder = ada.path.parent().unwrap();
        for entry in std::fs::read_dir(folder).unwrap() {
            let name = entry.unwrap().file_name();
            assert!(name.to_str().unwrap().starts_with("app.db"), "{name:?}");
        }
    }
}

/// `CREATE TABLE` statements, as in the format's first draft, and worse ones are not declarations.
#[test]
fn statements_are_no_declarations() {
    let mut server = MemoryServer::default();
    let ada = TestDevice::tracked(SCHEMA, &mut server);
    let sql = b"CREATE TABLE evil AS SELECT * FROM item";
    let mut content = vec![1, 3, 4];
    content.extend(b"evil");
    content.extend([1, u8::try_from(sql.len()).unwrap()]);
    content.extend(sql);
    let timestamp = Timestamp::new(MORNING_MS + 1_000, 0, NodeId(7)).unwrap();
    server.messages.push(Message { timestamp, content: content.into() });
    let report = watched_sync(&ada, &mut server);
    assert_eq!(report.rejected.by_reason.undecodable, 1);
    assert!(report.created_tables.is_empty());
}

/// Pairs of schemas that programs of both sides really have.
#[test]
fn honest_schemas_of_one_name_share_what_they_have_in_common() {
    let base = "CREATE TABLE item (id INTEGER PRIMARY KEY, note TEXT)";
    for other in [
        "CREATE TABLE item (id INTEGER PRIMARY KEY, note TEXT,
                            made TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP)",
        "CREATE TABLE item (id INTEGER PRIMARY KEY, note TEXT, made REAL NOT NULL DEFAULT (julianday()))",
        "CREATE TABLE item (id INTEGER PRIMARY KEY, note TEXT, n INTEGER NOT NULL DEFAULT 0)",
        "CREATE TABLE item (id INTEGER PRIMARY KEY, note TEXT, n INTEGER NOT NULL DEFAULT (1 + 1))",
        "CREATE TABLE item (id INTEGER PRIMARY KEY, note TEXT, n DEFAULT NULL CHECK (n > 0), m AS (n))",
        "CREATE TABLE item (note VARCHAR(30) COLLATE NOCASE, id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT)",
        "CREATE TABLE item (id BIGINT NOT NULL PRIMARY KEY, note NVARCHAR(9) DEFAULT 'x', [odd name] BLOB) WITHOUT ROWID",
        "CREATE TABLE item (id INTEGER PRIMARY KEY, note ANY, n INT) STRICT",
        "CREATE TABLE up (id INTEGER PRIMARY KEY);
         CREATE TABLE item (id INTEGER PRIMARY KEY, note TEXT, up INTEGER REFERENCES up ON DELETE CASCADE)",
    ] {
        for is_first in [true, false] {
            let mut server = MemoryServer::default();
            let mut ada = TestDevice::tracked(base, &mut server);
            let mut ben = TestDevice::tracked(other, &mut server);
            ada.write("INSERT INTO item (id, note) VALUES (1, 'of ada')").unwrap();
            ben.clock_ms += 10;
            ben.write("INSERT INTO item (id, note) VALUES (2, 'of ben')").unwrap();
            let order = if is_first { [&ada, &ben] } else { [&ben, &ada] };
            for device in [order[0], order[1], order[0]] {
                watched_sync(device, &mut server);
            }
            let clone = fresh_clone(&mut server);
            watched_sync(&clone, &mut server);
            for device in [&ada, &ben, &clone] {
                let notes = device.texts("SELECT note FROM item ORDER BY id");
                assert_eq!(notes, ["of ada", "of ben"], "{other}");
            }
            let columns = |device: &TestDevice| -> BTreeSet<String> {
                let sql = "SELECT lower(name) FROM pragma_table_info('item')";
                device.texts(sql).into_iter().collect()
            };
            // Each device has the columns of the other one.
            assert_eq!(columns(&ada), columns(&ben), "{other}");
            assert_eq!(columns(&ada), columns(&clone), "{other}");
            ada.clock_ms += 20_000;
            ada.write("UPDATE item SET note = 'again' WHERE id = 2").unwrap();
            for device in [&ada, &ben, &clone] {
                assert!(watched_sync(device, &mut server).schema_conflicts.is_empty(), "{other}");
                let note = device.texts("SELECT note FROM item WHERE id = 2");
                assert_eq!(note, ["again"], "{other}");
            }
        }
    }
}

/// A clone declares its table like the original, and its declaration adds nothing.
#[test]
fn a_clone_has_the_same_declaration() {
    let schema = "CREATE TABLE up (id INTEGER PRIMARY KEY, name TEXT UNIQUE);
        CREATE TABLE item (a TEXT NOT NULL COLLATE NOCASE, b REAL, c INTEGER DEFAULT -1 REFERENCES up,
                           d DATETIME DEFAULT CURRENT_TIMESTAMP, PRIMARY KEY (b, a), UNIQUE (c, d)) WITHOUT ROWID;
        CREATE INDEX by_d ON item (d COLLATE RTRIM, a);
        CREATE UNIQUE INDEX by_c ON item (c)";
    let mut server = MemoryServer::default();
    let ada = TestDevice::tracked(schema, &mut server);
    ada.sync(&mut server);
    let clone = fresh_clone(&mut server);
    let report = watched_sync(&clone, &mut server);
    assert_eq!((report.created_tables.len(), report.sent_count), (2, 0), "{report:?}");
    assert_eq!(shape(&ada.app), shape(&clone.app));
}

#[test]
fn a_clone_says_which_views_and_triggers_it_has_not() {
    let mut server = MemoryServer::default();
    let schema = "
        CREATE TABLE note (id INTEGER PRIMARY KEY, text, done);
        CREATE TABLE log (id INTEGER PRIMARY KEY, what);
        CREATE VIEW open AS SELECT * FROM note JOIN log USING (id) WHERE NOT done;
        CREATE TRIGGER note_log AFTER INSERT ON note BEGIN SELECT 1; END;";
    let device = TestDevice::tracked(schema, &mut server);
    device.sync(&mut server);
    let clone = fresh_clone(&mut server);
    let report = clone.sync(&mut server);
    assert_eq!(report.left_out, ["trigger note_log", "view open"], "each once");
    assert_eq!(clone.sync(&mut server).left_out, Vec::<String>::new(), "and once only");
}

#[test]
fn a_clone_names_the_constraints_that_it_lacks() {
    let schema = "
        CREATE TABLE item (
            id TEXT PRIMARY KEY, price INTEGER CHECK (price  >= 0), code TEXT,
            net AS (price * 10 / 12), CHECK (length(code) < 9 /* the scanner's */));
        CREATE UNIQUE INDEX one_code ON item (lower(code)) WHERE code <> '';
        CREATE INDEX by_net ON item (price * 2)";
    let missing = |device: &TestDevice| -> Vec<String> {
        let missing = device.replica().status().unwrap().missing_constraints;
        missing.iter().map(|one| format!("{}: {}", one.table, one.description())).collect()
    };
    let mut server = MemoryServer::default();
    let original = TestDevice::tracked(schema, &mut server);
    original.sync(&mut server);
    let mut clone = fresh_clone(&mut server);
    let names = [
        "CHECK (price >= 0)",
        "CHECK (length(code) < 9)",
        "generated column net",
        "UNIQUE index one_code",
    ];
    let mut created = clone.sync(&mut server).left_out;
    created.sort_unstable();
    let mut expected = names.map(str::to_owned);
    expected.sort_unstable();
    assert_eq!(created, expected);
    assert_eq!(missing(&clone), names.map(|name| format!("item: {name}")));
    assert_eq!(missing(&original), Vec::<String>::new());

    // The visible rows differ, and both devices report it.
    clone.write("INSERT INTO item VALUES ('a', -1, '')").unwrap();
    clone.sync(&mut server);
    let report = original.sync(&mut server);
    assert_eq!((report.in_sync, report.hidden_rows_count), (true, 1));
    assert_ne!(original.dump(), clone.dump());

    // The clone's own program adds one of the constraints.
    clone.app.execute_batch("CREATE UNIQUE INDEX one_code ON item (lower(code))").unwrap();
    assert_eq!(missing(&clone).len(), 3);
    clone.sync(&mut server);
    original.sync(&mut server);
    assert_eq!((missing(&clone).len(), missing(&original).len()), (3, 0));
    // A migration of the original drops the rest.
    original
        .app
        .execute_batch(
            "BEGIN; CREATE TABLE new (id TEXT PRIMARY KEY, price INTEGER, code TEXT);
             INSERT INTO new SELECT id, price, code FROM item; DROP TABLE item;
             ALTER TABLE new RENAME TO item; COMMIT",
        )
        .unwrap();
    original.sync(&mut server);
    clone.sync(&mut server);
    assert_eq!(missing(&clone), Vec::<String>::new());
    assert_eq!(missing(&original), ["item: UNIQUE index one_code"]);
    assert_eq!(original.dump(), clone.dump());
}
