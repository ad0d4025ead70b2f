//! Tests with rows whose every value names its row, through everything that may give a key to two
//! rows: reused keys, hidden rows, columns that one device has, tables that are tracked later, lost
//! answers. No value ever appears in another row, and no child gets another parent.

use std::collections::BTreeSet;

use proptest::prelude::*;

use crate::support::{MemoryServer, TestDevice};

const SCHEMA: &str = "
    CREATE TABLE t (id INTEGER PRIMARY KEY KIND, label TEXT, v TEXT, name TEXT UNIQUE);
    CREATE TABLE own (t_id INTEGER PRIMARY KEY REFERENCES t, label TEXT);
    CREATE TABLE child (id TEXT PRIMARY KEY, of INTEGER REFERENCES t, label TEXT);";

const LATE: &str =
    "CREATE TABLE IF NOT EXISTS late (id TEXT PRIMARY KEY, of INTEGER REFERENCES t, label TEXT);";

/// Index of a row among those that a device shows.
type RowIndex = usize;

#[derive(Clone, Debug)]
enum LabelStep {
    Insert {
        name: u8,
    },
    Edit(RowIndex),
    /// Saves the whole row.
    Replace(RowIndex),
    Delete(RowIndex),
    AddChild(RowIndex),
    /// Adds a row that shares the row's key.
    AddOwn(RowIndex),
    /// Adds a child in a table that was not tracked before.
    AddLate(RowIndex),
    AddColumn,
    Sync {
        lost: Option<u64>,
    },
}

fn any_step() -> impl Strategy<Value = (usize, LabelStep)> {
    let which = any::<RowIndex>;
    let step = prop_oneof![
        6 => (0..6_u8).prop_map(|name| LabelStep::Insert { name }),
        2 => which().prop_map(LabelStep::Edit),
        2 => which().prop_map(LabelStep::Replace),
        3 => which().prop_map(LabelStep::Delete),
        3 => which().prop_map(LabelStep::AddChild),
        2 => which().prop_map(LabelStep::AddOwn),
        1 => which().prop_map(LabelStep::AddLate),
        1 => Just(LabelStep::AddColumn),
        6 => prop::option::weighted(0.2, 1..4_u64).prop_map(|lost| LabelStep::Sync { lost }),
    ];
    (0_usize..3, step)
}

/// Rows that must exist at the end.
#[derive(Default)]
struct ExpectedRows {
    rows: BTreeSet<String>,
    children: BTreeSet<String>,
}

struct LabelDevice {
    device: TestDevice,
    has_extra: bool,
}

impl LabelDevice {
    /// Returns the tables that refer to `t`, with the columns that do.
    fn references(&self) -> Vec<(String, &'static str)> {
        let sql = "SELECT name FROM sqlite_schema WHERE name IN ('own', 'child', 'late')";
        let of = |table: String| if table == "own" { (table, "t_id") } else { (table, "of") };
        self.device.texts(sql).into_iter().map(of).collect()
    }

    /// Returns the label of one of the visible rows.
    fn pick(&self, which: RowIndex) -> Option<String> {
        let labels = self.device.texts("SELECT label FROM t ORDER BY label");
        labels.get(which.checked_rem(labels.len())?).cloned()
    }

    fn write(&mut self, sql: &str) {
        self.device.write(sql).unwrap();
    }

    fn insert(&mut self, label: &str, name: u8, expected: &mut ExpectedRows) {
        let (column, value) = if self.has_extra {
            (", extra", format!(", '{label} x'"))
        } else {
            ("", String::new())
        };
        self.write(&format!(
            "INSERT OR IGNORE INTO t (label, v, name{column})
             VALUES ('{label}', '{label} v', 'name {name}'{value})"
        ));
        let sql = format!("SELECT label FROM t WHERE label = '{label}'");
        expected.rows.extend(self.device.texts(&sql));
    }

    fn delete(&mut self, label: &str, expected: &mut ExpectedRows) {
        expected.rows.remove(label);
        // A reference to a row that was inserted and deleted between two syncs means any row that
        // gets its key.
        let sql = format!(
            "SELECT 'it' FROM warren_outbox JOIN warren_table w ON w.id = table_id
             WHERE w.name = 't' AND changed_columns = '*'
             AND key1 = (SELECT id FROM t WHERE label = '{label}')"
        );
        if !self.device.texts(&sql).is_empty() {
            for (table, of) in self.references() {
                let of = format!("{of} = (SELECT id FROM t WHERE label = '{label}')");
                if table == "child" {
                    for child in self.device.texts(&format!("SELECT id FROM child WHERE {of}")) {
                        expected.children.remove(&child);
                    }
                }
                self.device.write(&format!("DELETE FROM {table} WHERE {of}")).unwrap();
            }
        }
        self.write(&format!("DELETE FROM t WHERE label = '{label}'"));
    }

    fn step(&mut self, number: usize, step: &LabelStep, expected: &mut ExpectedRows) {
        let label = match step {
            LabelStep::Insert { name } => {
                return self.insert(&format!("L{number}"), *name, expected);
            }
            LabelStep::AddColumn if !self.has_extra => {
                self.has_extra = true;
                return self.write("ALTER TABLE t ADD COLUMN extra TEXT");
            }
            LabelStep::AddColumn | LabelStep::Sync { .. } => return,
            LabelStep::Edit(which)
            | LabelStep::Replace(which)
            | LabelStep::Delete(which)
            | LabelStep::AddChild(which)
            | LabelStep::AddOwn(which)
            | LabelStep::AddLate(which) => self.pick(*which),
        };
        let Some(label) = label else { return };
        let from = format!("FROM t WHERE label = '{label}'");
        match step {
            LabelStep::Delete(_) => self.delete(&label, expected),
            LabelStep::Edit(_) => {
                self.write(&format!("UPDATE t SET v = '{label} {number}' WHERE label = '{label}'"));
            }
            LabelStep::Replace(_) => self.write(&format!(
                "INSERT OR REPLACE INTO t (id, label, v, name)
                 SELECT id, label, '{label} {number}', name {from}"
            )),
            LabelStep::AddChild(_) => {
                expected.children.insert(format!("C{number}"));
                self.write(&format!("INSERT INTO child SELECT 'C{number}', id, label {from}"));
            }
            LabelStep::AddOwn(_) => {
                self.write(&format!("INSERT OR REPLACE INTO own SELECT id, label {from}"));
            }
            LabelStep::AddLate(_) => {
                self.device.app.execute_batch(LATE).unwrap();
                self.write(&format!("INSERT INTO late SELECT 'late {number}', id, label {from}"));
                self.device.replica().track(&["late".to_owned()]).unwrap();
            }
            LabelStep::Insert { .. } | LabelStep::AddColumn | LabelStep::Sync { .. } => {
                unreachable!("done above")
            }
        }
    }

    /// Lists the errors in the tables.
    fn faults(&self) -> Vec<String> {
        let foreign = |column: &str| {
            format!(
                "SELECT 'value of another row: ' || label || ': ' || {column} FROM t
                 WHERE {column} NOT LIKE label || ' %'"
            )
        };
        let columns = if self.has_extra { &["v", "extra"][..] } else { &["v"] };
        let parents = self.references().into_iter().map(|(table, of)| {
            format!(
                "SELECT 'another parent: {table} of ' || c.label || ': ' || t.label
                 FROM {table} c JOIN t ON t.id = c.{of} WHERE c.label <> t.label"
            )
        });
        let all: Vec<_> = columns.iter().copied().map(foreign).chain(parents).collect();
        self.device.texts(&all.join(" UNION ALL "))
    }

    /// Returns the labels of all rows, hidden ones included.
    fn labels(&self) -> BTreeSet<String> {
        let held = self.device.replica().hidden_rows().unwrap();
        let cells = held.into_iter().flat_map(|row| row.cells);
        let labels = cells.filter(|(column, _)| column == "label");
        let labels = labels.map(|(_, value)| value.trim_matches('\'').to_owned());
        labels.chain(self.device.texts("SELECT label FROM t")).collect()
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: ProptestConfig::default().cases / 8,
        ..ProptestConfig::default()
    })]

    #[test]
    fn no_value_is_ever_found_in_another_row(
        kind in prop::sample::select(vec!["", "AUTOINCREMENT"]),
        steps in prop::collection::vec(any_step(), 1..60),
    ) {
        let mut server = MemoryServer::default();
        let mut programs = [0, 1, 2].map(|_| {
            let device = TestDevice::tracked(&SCHEMA.replace("KIND", kind), &mut server);
            device.app.pragma_update(None, "foreign_keys", false).unwrap();
            LabelDevice { device, has_extra: false }
        });
        let mut expected = ExpectedRows::default();
        for (number, (place, step)) in steps.iter().enumerate() {
            let program = &mut programs[*place];
            program.step(number, step, &mut expected);
            if let LabelStep::Sync { lost } = step {
                server.lose_answer = lost.map(|lost| server.requests + lost);
                let report = program.device.try_sync(&mut server, false);
                server.lose_answer = None;
                // Until the sync, SQLite may have given the key of a deleted row to another one.
                let faults = program.faults();
                prop_assert!(report.is_err() || faults.is_empty(), "step {}: {:?}", number, faults);
            }
        }
        let has_extra = programs.iter().any(|program| program.has_extra);
        for adopt in [false, false, false, true, true, true] {
            for program in &mut programs {
                prop_assert!(program.device.try_sync(&mut server, adopt).unwrap().in_sync);
                prop_assert_eq!(program.faults(), Vec::<String>::new());
                program.has_extra |= adopt && has_extra;
            }
        }
        for program in &programs {
            prop_assert_eq!(program.device.dump(), programs[0].device.dump());
            let labels = program.labels();
            prop_assert!(labels.is_superset(&expected.rows), "{:?} {:?}", labels, expected.rows);
            let children = program.device.texts("SELECT id FROM child");
            prop_assert_eq!(&children.into_iter().collect::<BTreeSet<_>>(), &expected.children);
        }
    }
}
