//! Messages that an attacker with a device's token may send: declarations with rows, changes of any
//! rows, and bytes that are not a change, all generated from a grammar.
//!
//! `vectors/hostile.json` has the same cases for the browser (`web/tests/hostile.test.ts`), with
//! the rows and edits of honest devices. `WARREN_RECORD=1` writes it again.

use std::collections::BTreeSet;
use std::fs;

use bytes::Bytes;
use crdt::{
    CellWrite, Change, Collation, ColumnDeclaration, ColumnDefault, ForeignKeyAction,
    ForeignKeyDeclaration, IndexDeclaration, LargeValue, LeftOut, LeftOutKind, Message, NodeId,
    TableDeclaration, Timestamp, Value,
};
use serde_json::json;

const VECTORS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../vectors/hostile.json");

/// Tables of the honest devices, with every kind of constraint.
pub(crate) const SCHEMA: &str = "\
CREATE TABLE item (id INTEGER PRIMARY KEY, note TEXT);
CREATE TABLE room (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, floor INTEGER DEFAULT 1);
CREATE TABLE booking (
    id TEXT NOT NULL COLLATE NOCASE PRIMARY KEY,
    room INTEGER REFERENCES room ON DELETE CASCADE,
    days INTEGER NOT NULL CHECK (days BETWEEN 1 AND 3),
    who TEXT
) WITHOUT ROWID;
CREATE UNIQUE INDEX one_each ON booking (who, days % 2) WHERE days < 3;";

/// Tables of [`SCHEMA`], each with the query that describes a row in one line.
pub(crate) const LINES: [(&str, &str); 3] = [
    ("item", "SELECT 'item ' || quote(id) || ' ' || quote(note) AS line FROM item ORDER BY line"),
    ("room", "SELECT 'room ' || quote(id) || ' ' || quote(name) AS line FROM room ORDER BY line"),
    (
        "booking",
        "SELECT 'booking ' || quote(id) || ' ' || quote(room) || ' ' || quote(days) || ' '
                || quote(who) AS line FROM booking ORDER BY line",
    ),
];

/// SQL that creates a table that no device shares.
pub(crate) const SECRET: &str = "CREATE TABLE diary (id INTEGER PRIMARY KEY, text TEXT);
INSERT INTO diary VALUES (1, 'secret');";

/// Edits of each of two honest devices after each round, whose number replaces `ROUND`.
pub(crate) const EDITS: [&[&str]; 2] = [
    &[
        "INSERT INTO item (id, note) VALUES (1, 'one ROUND')
         ON CONFLICT (id) DO UPDATE SET note = excluded.note",
        "INSERT INTO room (id, name) VALUES (1, 'hall ROUND')
         ON CONFLICT (id) DO UPDATE SET name = excluded.name",
    ],
    &[
        "INSERT INTO item (id, note) VALUES (2, 'two ROUND')
         ON CONFLICT (id) DO UPDATE SET note = excluded.note",
        "INSERT INTO room (id, name) VALUES (2, 'attic ROUND')
         ON CONFLICT (id) DO UPDATE SET name = excluded.name",
        "INSERT INTO booking (id, room, days, who) VALUES ('b', 2, 2, 'two ROUND')
         ON CONFLICT (id) DO UPDATE SET room = 2, days = 2, who = excluded.who",
    ],
];

/// Lines that [`EDITS`] leave.
pub(crate) const EDITED: &[&str] = &[
    "item 1 'one ROUND'",
    "item 2 'two ROUND'",
    "room 1 'hall ROUND'",
    "room 2 'attic ROUND'",
    "booking 'b' 2 2 'two ROUND'",
];

/// Text that an attacker might use as a name or a type.
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

/// Columns of [`SCHEMA`], and some that no table has.
const COLUMNS: &[&str] = &["id", "note", "name", "floor", "room", "days", "who", "WHO", "none"];

/// Number of cases of each kind: declarations, changes, and corrupted contents.
const CASES_COUNT: [usize; 3] = [240, 120, 120];

/// Returns the contents of each case, in the order in which they are sent.
pub(crate) fn cases() -> Vec<Vec<Bytes>> {
    let mut dice = SeededRng(18);
    let [declared, changed, spoilt] = CASES_COUNT;
    let mut cases: Vec<_> = (0..declared).map(|_| declared_table(&mut dice)).collect();
    cases.extend((0..changed).map(|_| {
        let count = 1 + dice.roll(3);
        (0..count).map(|_| dice.change().encode()).collect()
    }));
    cases.extend((0..spoilt).map(|_| vec![dice.spoilt()]));
    // Each round gets some cases of each kind.
    let mut order: Vec<_> = (0..cases.len()).collect();
    order.sort_by_key(|place| place * 7 % cases.len());
    order.into_iter().map(|place| std::mem::take(&mut cases[place])).collect()
}

/// Small random number generator of our own: the corpus is the same everywhere.
struct SeededRng(u64);

/// Generates a declaration, and a row for it.
fn declared_table(dice: &mut SeededRng) -> Vec<Bytes> {
    let mut table = dice.piece();
    if dice.roll(3) == 0 {
        table = dice.table();
    }
    let declaration = dice.declaration();
    let key = vec![Value::Text(dice.piece())];
    let cells = vec![CellWrite::new(&dice.piece(), Value::Text(dice.piece()))];
    let row = Change::Write { table: table.clone(), key, cells, replaced_tombstone: None };
    vec![Change::TableDeclaration { table, declaration }.encode(), row.encode()]
}

impl SeededRng {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % sides
    }

    fn one_of<'a>(&mut self, list: &[&'a str]) -> &'a str {
        list[self.roll(list.len())]
    }

    fn piece(&mut self) -> String {
        self.one_of(PIECES).to_owned()
    }

    /// Chooses a table of the honest devices.
    fn table(&mut self) -> String {
        LINES[self.roll(LINES.len())].0.to_owned()
    }

    fn collation(&mut self) -> Collation {
        [Collation::Binary, Collation::NoCase, Collation::Rtrim][self.roll(3)]
    }

    fn column(&mut self) -> ColumnDeclaration {
        let text = self.piece();
        let default = match self.roll(8) {
            0 => Some(ColumnDefault::Literal(Value::Text(text))),
            1 => Some(ColumnDefault::Literal(Value::Real(f64::INFINITY))),
            2 => Some(ColumnDefault::Literal(Value::Real(f64::NAN))),
            3 => Some(ColumnDefault::Literal(Value::Blob(vec![0, 255]))),
            4 => Some(ColumnDefault::Timestamp),
            5 => Some(ColumnDefault::Literal(Value::Integer(i64::MIN))),
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

    fn declaration(&mut self) -> TableDeclaration {
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
        let foreign_keys = (0..self.roll(2)).map(|_| ForeignKeyDeclaration {
            columns: places(self),
            parent: self.piece(),
            parent_columns: vec![self.piece()],
            on_delete: ForeignKeyAction::Cascade,
            on_update: ForeignKeyAction::SetNull,
        });
        let foreign_keys = foreign_keys.collect();
        let left_out = (0..self.roll(3))
            .map(|_| LeftOut { kind: self.left_out_kind(), name: self.piece() })
            .collect();
        TableDeclaration {
            columns,
            key,
            is_autoincrement: self.roll(4) == 0,
            is_strict: self.roll(4) == 0,
            is_without_rowid: self.roll(4) == 0,
            left_out,
            indexes,
            foreign_keys,
        }
    }

    fn left_out_kind(&mut self) -> LeftOutKind {
        let kinds = [LeftOutKind::Trigger, LeftOutKind::View, LeftOutKind::Check];
        kinds[self.roll(kinds.len())]
    }

    fn value(&mut self) -> Value {
        match self.roll(15) {
            14 => Value::Erased,
            12 => Value::from_text_bytes(&[0xff, b'a'][..self.roll(3)]),
            // The chunk may exist, or never arrive.
            13 => {
                let part = Value::Blob(vec![u8::try_from(self.roll(3)).unwrap(); 9]);
                let length = [9, 10, 262_144][self.roll(3)];
                let is_text = self.roll(2) == 0;
                Value::Large(LargeValue {
                    is_text,
                    length,
                    ..LargeValue::from_value(&part).unwrap()
                })
            }
            0 => Value::Null,
            1 => Value::Integer([i64::MIN, i64::MAX, -1][self.roll(3)]),
            2 => Value::Real([f64::NAN, f64::NEG_INFINITY, -0.0, 2.5][self.roll(4)]),
            3 => Value::Blob(vec![0xff; self.roll(3)]),
            4..=6 => Value::Text(self.piece()),
            7 => Value::Text(self.one_of(&["a", "A", "b", "B "]).to_owned()),
            _ => Value::Integer(i64::try_from(self.roll(5)).unwrap()),
        }
    }

    fn key(&mut self) -> Vec<Value> {
        match self.roll(8) {
            0..=2 => vec![Value::Integer(i64::try_from(self.roll(4)).unwrap())],
            3..=5 => vec![Value::Text(self.one_of(&["a", "b", "B", "c"]).to_owned())],
            _ => (0..self.roll(4)).map(|_| self.value()).collect(),
        }
    }

    /// Generates the timestamp of a message that the sender claims to have seen.
    fn seen(&mut self) -> Timestamp {
        let millis = [0, 1, 1_795_248_000_000, 253_402_300_799_999][self.roll(4)];
        let counter = [0, u16::MAX][self.roll(2)];
        Timestamp::new(millis, counter, NodeId([0, 7, u64::MAX][self.roll(3)])).unwrap()
    }

    fn change(&mut self) -> Change {
        if self.roll(24) == 0 {
            return Change::Erased;
        }
        if self.roll(12) == 0 {
            return Change::Chunk { bytes: vec![u8::try_from(self.roll(3)).unwrap(); 9] };
        }
        let table = if self.roll(5) == 0 { self.piece() } else { self.table() };
        let key = self.key();
        if self.roll(4) == 0 {
            let seen: BTreeSet<_> = (0..self.roll(4)).map(|_| self.seen()).collect();
            return Change::Delete { table, key, replaced: seen };
        }
        let cells = (0..self.roll(7)).map(|_| {
            let column =
                if self.roll(9) == 0 { self.piece() } else { self.one_of(COLUMNS).to_owned() };
            let replaced = (self.roll(4) == 0).then(|| self.seen());
            CellWrite { column, value: self.value(), replaced }
        });
        let cells = cells.collect();
        let deleted = (self.roll(6) == 0).then(|| self.seen());
        Change::Write { table, key, cells, replaced_tombstone: deleted }
    }

    /// Generates the content of a change or a declaration, and corrupts it.
    fn spoilt(&mut self) -> Bytes {
        let content = if self.roll(2) == 0 {
            self.change().encode()
        } else {
            let table = self.piece();
            Change::TableDeclaration { table, declaration: self.declaration() }.encode()
        };
        let mut bytes = content.to_vec();
        let place = self.roll(bytes.len());
        match self.roll(6) {
            0 => bytes.truncate(place),
            1 => bytes[place] ^= 1 << self.roll(8),
            2 => bytes.push(u8::try_from(self.roll(256)).unwrap()),
            // A length or a count that exceeds any memory.
            3 => drop(bytes.splice(place..=place, [0xff, 0xff, 0xff, 0xff, 0x0f])),
            4 => drop(bytes.splice(place..=place, [[0xff; 9].as_slice(), &[1]].concat())),
            _ => {
                for byte in bytes.iter_mut().skip(2) {
                    *byte = u8::try_from(self.roll(256)).unwrap();
                }
            }
        }
        bytes.into()
    }
}

#[test]
fn the_browsers_cases_are_the_same() {
    let cases = cases();
    assert!(cases.len() >= 200);
    let written = json!({
        "schema": SCHEMA, "secret": SECRET, "lines": LINES, "edits": EDITS, "edited": EDITED,
        "cases": cases.iter().map(|case| case.iter().map(base64).collect()).collect::<Vec<Vec<_>>>(),
    });
    // Each case is on a line of its own.
    let written = format!("{written}\n").replace("],[\"", "],\n[\"");
    if std::env::var_os("WARREN_RECORD").is_some() {
        fs::write(VECTORS, &written).unwrap();
    }
    let recorded = fs::read_to_string(VECTORS).unwrap();
    assert!(recorded == written, "WARREN_RECORD=1 writes {VECTORS} anew");
}

/// Encodes `content` as the protocol's JSON does.
fn base64(content: &Bytes) -> String {
    let message = Message { timestamp: Timestamp::ZERO, content: content.clone() };
    let message = serde_json::to_value(protocol::WireMessage::from(message)).unwrap();
    message["content"].as_str().unwrap().to_owned()
}
