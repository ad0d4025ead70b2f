//! Declarations come from strangers: whatever they say, nothing runs but what makes the tables that
//! they name, and the sync goes on.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use crdt::{
    Action, Cell, Change, Collation, ColumnDeclaration, Declaration, DefaultValue,
    IndexDeclaration, Message, Node, Reference, Timestamp, Value,
};
use replica::{Replica, Report, SyncOptions};
use rusqlite::Connection;
use rusqlite::hooks::{AuthAction, AuthContext, Authorization};

use crate::support::{Device, MORNING_MS, MemoryServer, shape};

const SCHEMA: &str = "CREATE TABLE item (id INTEGER PRIMARY KEY, note TEXT)";
const SECRET: &str = "CREATE TABLE diary (id INTEGER PRIMARY KEY, text TEXT);
                      INSERT INTO diary VALUES (1, 'secret')";

/// What somebody hostile would put where a name or a type belongs.
const PIECES: &[&str] = &[
    "a",
    "TEXT",
    "INTEGER",
    "",
    "\"",
    "a\"b",
    "a\0b",
    "x); DROP TABLE diary; --",
    "\"); DROP TABLE diary; --",
    "evil \"TEXT; DROP TABLE diary; --\"",
    "TEXT DEFAULT (SELECT text FROM diary)",
    "INT CHECK ((DELETE FROM diary))",
    "TEXT AS (SELECT 1)",
    "TEXT /* */ --",
    "' || (SELECT text FROM diary) || '",
    "diary",
    "DIARY",
    "item",
    "warren_meta",
    "WARREN_x",
    "sqlite_schema",
    "sqlite_x",
    "main.diary",
    "ATTACH 'x.db' AS y",
    "VACUUM INTO 'x.db'",
    "PRAGMA writable_schema = 1",
    "REAL(1, 2, 3)",
    "VARCHAR(99999999999999999999)",
    "\u{202e}\u{1b}[31m",
    "rowid",
    "SELECT",
    "AS SELECT * FROM diary",
];

/// A small generator of its own: the corpus is the same everywhere.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % sides
    }

    fn piece(&mut self) -> String {
        PIECES[self.roll(PIECES.len())].to_owned()
    }

    fn collation(&mut self) -> Collation {
        [Collation::Binary, Collation::NoCase, Collation::Rtrim][self.roll(3)]
    }

    fn column(&mut self) -> ColumnDeclaration {
        let text = self.piece();
        let default = match self.roll(8) {
            0 => Some(DefaultValue::Literal(Value::Text(text))),
            1 => Some(DefaultValue::Literal(Value::Real(f64::INFINITY))),
            2 => Some(DefaultValue::Literal(Value::Real(f64::NAN))),
            3 => Some(DefaultValue::Literal(Value::Blob(vec![0, 255]))),
            4 => Some(DefaultValue::Timestamp),
            5 => Some(DefaultValue::Literal(Value::Integer(i64::MIN))),
            _ => None,
        };
        ColumnDeclaration {
            name: self.piece(),
            declared_type: self.piece(),
            is_not_null: self.roll(2) == 0,
            collation: self.collation(),
            default,
        }
    }

    fn declaration(&mut self) -> Declaration {
        let columns: Vec<_> = (0..=self.roll(4)).map(|_| self.column()).collect();
        let count = columns.len();
        let places = |dice: &mut Self| -> Vec<usize> {
            (0..dice.roll(3)).map(|_| dice.roll(count)).collect()
        };
        let key = places(self);
        let indexes = (0..self.roll(3)).map(|_| IndexDeclaration {
            name: self.piece(),
            is_unique: self.roll(2) == 0,
            columns: vec![(self.roll(count), self.collation())],
        });
        let indexes = indexes.collect();
        let references = (0..self.roll(2)).map(|_| Reference {
            columns: places(self),
            parent: self.piece(),
            parent_columns: vec![self.piece()],
            on_delete: Action::Cascade,
            on_update: Action::SetNull,
        });
        let references = references.collect();
        Declaration {
            columns,
            key,
            is_autoincrement: self.roll(4) == 0,
            is_strict: self.roll(4) == 0,
            is_without_rowid: self.roll(4) == 0,
            is_partial: false,
            indexes,
            references,
        }
    }
}

fn message(place: u64, change: &Change) -> Message {
    let timestamp = Timestamp::new(MORNING_MS + 1_000 + place, 0, Node(7)).unwrap();
    Message { timestamp, content: change.encode() }
}

/// A declaration, and rows for it.
fn hostile(dice: &mut Dice, place: u64) -> Vec<Message> {
    let mut table = dice.piece();
    let is_columns_of_item = dice.roll(3) == 0;
    if is_columns_of_item {
        table = "item".into();
    }
    let declaration = dice.declaration();
    let key = vec![Value::Text(dice.piece())];
    let cells = vec![Cell::new(&dice.piece(), Value::Text(dice.piece()))];
    let rows = Change::Write { table: table.clone(), key, cells, deleted: None };
    let schema = Change::Schema { table, declaration };
    vec![message(place, &schema), message(place + 1, &rows)]
}

/// What a sync did on the victim's connection that none should.
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

/// A sync that adopts, with somebody who looks at every statement.
fn watched_sync(device: &Device, server: &mut MemoryServer) -> Report {
    server.now_ms.set(MORNING_MS + 10_000);
    // On a connection that can be looked at.
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
    let replica = Replica::shared(db, "app.db", &identity).unwrap();
    let now_ms = device.clock_ms + 1;
    let options = SyncOptions { adopt: true, now_ms: &|| now_ms, progress: &mut |_| {} };
    let report = replica.sync(server, options).unwrap();
    let offences = offences.lock().unwrap();
    assert!(offences.is_empty(), "{offences:?}");
    report
}

fn fresh_clone(server: &mut MemoryServer) -> Device {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("clone.db");
    drop(Replica::create(&path).unwrap());
    let device = Device::in_folder(&path, folder);
    device.sign_in(server);
    device
}

#[test]
fn hostile_declarations_run_nothing_and_stop_nothing() {
    let mut dice = Dice(18);
    for round in 0..40u64 {
        let mut server = MemoryServer::default();
        let mut ada = Device::tracked(SCHEMA, &mut server);
        let ben = Device::tracked(SCHEMA, &mut server);
        ada.app.execute_batch(SECRET).unwrap();
        ada.write("INSERT INTO item (id, note) VALUES (1, 'honest')").unwrap();
        watched_sync(&ada, &mut server);
        for place in 0..6 {
            server.messages.extend(hostile(&mut dice, round * 100 + place * 2));
        }
        watched_sync(&ada, &mut server);
        watched_sync(&ben, &mut server);
        // Honest edits still go both ways, and to a new device.
        ada.write("UPDATE item SET note = 'edited' WHERE id = 1").unwrap();
        ada.clock_ms += 10_000;
        assert!(watched_sync(&ada, &mut server).equal);
        assert!(watched_sync(&ben, &mut server).equal);
        let clone = fresh_clone(&mut server);
        watched_sync(&clone, &mut server);
        for device in [&ada, &ben] {
            assert_eq!(device.texts("SELECT note FROM item WHERE id = 1"), ["edited"], "{round}");
        }
        // A new device may have the table as somebody hostile declared it; then it says what it
        // does not show.
        let shown = clone.app.query_row("SELECT note FROM item WHERE id = 1", [], |r| r.get(0));
        let status = clone.replica().status().unwrap();
        let is_told = status.exceptions.iter().any(|exception| exception.table == "item")
            || status.obstacles.iter().any(|obstacle| obstacle.table == "item")
            || status.unknown.iter().any(|unknown| unknown.starts_with("item."));
        assert!(shown == Ok("edited".to_owned()) || is_told, "{round}: {shown:?}");
        assert_eq!(ada.texts("SELECT text FROM diary"), ["secret"], "{round}");
        let folder = ada.path.parent().unwrap();
        for entry in std::fs::read_dir(folder).unwrap() {
            let name = entry.unwrap().file_name();
            assert!(name.to_str().unwrap().starts_with("app.db"), "{name:?}");
        }
    }
}

/// `CREATE TABLE` statements of the format's first draft, and worse, are no declarations.
#[test]
fn statements_are_no_declarations() {
    let mut server = MemoryServer::default();
    let ada = Device::tracked(SCHEMA, &mut server);
    let sql = b"CREATE TABLE evil AS SELECT * FROM item";
    let mut content = vec![1, 3, 4];
    content.extend(b"evil");
    content.extend([1, u8::try_from(sql.len()).unwrap()]);
    content.extend(sql);
    let timestamp = Timestamp::new(MORNING_MS + 1_000, 0, Node(7)).unwrap();
    server.messages.push(Message { timestamp, content: content.into() });
    let report = watched_sync(&ada, &mut server);
    assert_eq!(report.refused.unreadable, 1);
    assert!(report.adopted.is_empty());
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
            let mut ada = Device::tracked(base, &mut server);
            let mut ben = Device::tracked(other, &mut server);
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
            let columns = |device: &Device| -> BTreeSet<String> {
                let sql = "SELECT lower(name) FROM pragma_table_info('item')";
                device.texts(sql).into_iter().collect()
            };
            // Both have what the other one had.
            assert_eq!(columns(&ada), columns(&ben), "{other}");
            assert_eq!(columns(&ada), columns(&clone), "{other}");
            ada.clock_ms += 20_000;
            ada.write("UPDATE item SET note = 'again' WHERE id = 2").unwrap();
            for device in [&ada, &ben, &clone] {
                assert!(watched_sync(device, &mut server).obstacles.is_empty(), "{other}");
                let note = device.texts("SELECT note FROM item WHERE id = 2");
                assert_eq!(note, ["again"], "{other}");
            }
        }
    }
}

/// A clone's table is declared like the original's, and says nothing new.
#[test]
fn a_clone_has_the_same_declaration() {
    let schema = "CREATE TABLE up (id INTEGER PRIMARY KEY, name TEXT UNIQUE);
        CREATE TABLE item (a TEXT NOT NULL COLLATE NOCASE, b REAL, c INTEGER DEFAULT -1 REFERENCES up,
                           d DATETIME DEFAULT CURRENT_TIMESTAMP, PRIMARY KEY (b, a), UNIQUE (c, d)) WITHOUT ROWID;
        CREATE INDEX by_d ON item (d COLLATE RTRIM, a);
        CREATE UNIQUE INDEX by_c ON item (c)";
    let mut server = MemoryServer::default();
    let ada = Device::tracked(schema, &mut server);
    ada.sync(&mut server);
    let clone = fresh_clone(&mut server);
    let report = watched_sync(&clone, &mut server);
    assert_eq!((report.adopted.len(), report.sent), (2, 0), "{report:?}");
    assert_eq!(shape(&ada.app), shape(&clone.app));
}
