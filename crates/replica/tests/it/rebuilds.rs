//! Tests of tables that are rebuilt, as migrations do, at any moment: no write is lost or undone,
//! although no trigger records it for a while.

use std::collections::BTreeSet;

use proptest::prelude::*;

use crate::support::{MORNING_MS, MemoryServer, TestDevice};

const SCHEMA: &str = "CREATE TABLE t (id TEXT PRIMARY KEY, v TEXT, w TEXT DEFAULT 'w')";
const DEVICES_COUNT: usize = 3;

#[derive(Clone, Copy, Debug)]
enum RowWrite {
    Insert,
    Set(&'static str),
    Delete,
}

#[derive(Clone, Debug)]
enum RebuildStep {
    /// Writes to a row that only this device writes to, or else to one that all devices write to.
    Write {
        own: bool,
        row: usize,
        write: RowWrite,
        value: u8,
    },
    /// Rebuilds the table, which gets column `x` if it lacks it.
    Rebuild {
        is_renamed_first: bool,
    },
    AddColumn,
    /// Adds column `y`, which has no default, with one value in every row.
    Migrate,
    TrackAgain,
    Sync {
        lose: bool,
    },
}

fn any_step() -> impl Strategy<Value = RebuildStep> {
    let write = prop::sample::select(vec![
        RowWrite::Insert,
        RowWrite::Set("v"),
        RowWrite::Set("w"),
        RowWrite::Set("x"),
        RowWrite::Set("y"),
        RowWrite::Delete,
    ]);
    prop_oneof![
        8 => (any::<bool>(), 0..2_usize, write, any::<u8>())
            .prop_map(|(own, row, write, value)| RebuildStep::Write { own, row, write, value }),
        3 => any::<bool>().prop_map(|is_renamed_first| RebuildStep::Rebuild { is_renamed_first }),
        1 => Just(RebuildStep::AddColumn),
        1 => Just(RebuildStep::Migrate),
        1 => Just(RebuildStep::TrackAgain),
        3 => prop::bool::weighted(0.3).prop_map(|lose| RebuildStep::Sync { lose }),
    ]
}

/// Device, and the columns that its table has.
struct RebuildDevice {
    name: usize,
    device: TestDevice,
    has_x: bool,
    has_y: bool,
    /// Whether the device has tried to sync since the migration. Before that, a write to `y` cannot
    /// be told from the migration's value where most rows have it.
    is_y_captured: bool,
    /// Rows that the device has deleted since its last sync. If one is inserted again, nothing
    /// shows that its `y` is not the migration's.
    deleted: BTreeSet<String>,
}

impl RebuildDevice {
    fn perform(&mut self, step: &RebuildStep, server: &mut MemoryServer) {
        match step {
            RebuildStep::Write { own, row, write, value } => {
                let row = if *own { format!("{}-{row}", self.name) } else { format!("all-{row}") };
                let sql = match write {
                    RowWrite::Insert
                        if self.has_y && !self.is_y_captured && self.deleted.contains(&row) =>
                    {
                        return;
                    }
                    RowWrite::Insert if self.has_y => {
                        format!("INSERT INTO t (id, v, y) VALUES ('{row}', '{value}', 'new')")
                    }
                    RowWrite::Insert => {
                        format!("INSERT INTO t (id, v) VALUES ('{row}', '{value}')")
                    }
                    RowWrite::Set("y") if !self.is_y_captured => return,
                    RowWrite::Set(column) => {
                        format!("UPDATE t SET {column} = '{value}' WHERE id = '{row}'")
                    }
                    RowWrite::Delete => format!("DELETE FROM t WHERE id = '{row}'"),
                };
                if matches!(write, RowWrite::Delete) {
                    self.deleted.insert(row);
                }
                // Programs also write to a row that already exists, or to a column that is missing.
                drop(self.device.write(&sql));
            }
            RebuildStep::Rebuild { is_renamed_first } => self.rebuild(*is_renamed_first),
            RebuildStep::AddColumn => self.add_column(),
            RebuildStep::Migrate => self.migrate(),
            RebuildStep::TrackAgain => {
                let replica = self.device.replica();
                replica.untrack(&["t".to_owned()], self.device.clock_ms).unwrap();
                replica.track(&["t".to_owned()]).unwrap();
            }
            RebuildStep::Sync { lose } => {
                let before = self.own_rows(self.name);
                server.lose_answer = lose.then_some(server.requests + 1);
                drop(self.device.try_sync(server, false));
                server.lose_answer = None;
                self.is_y_captured = self.has_y;
                self.deleted.clear();
                assert_eq!(
                    self.own_rows(self.name),
                    before,
                    "a sync changed rows of device {}",
                    self.name
                );
            }
        }
    }

    fn rebuild(&mut self, is_renamed_first: bool) {
        let x = if self.has_x { ", x" } else { "" };
        let (y, declared_y) = if self.has_y { (", y", ", y TEXT NOT NULL") } else { ("", "") };
        let columns = format!("id, v, w{x}{y}");
        let shape =
            format!("(id TEXT PRIMARY KEY, v TEXT, w TEXT DEFAULT 'w', x TEXT{declared_y})");
        let sql = if is_renamed_first {
            format!(
                "PRAGMA legacy_alter_table = ON; ALTER TABLE t RENAME TO o; CREATE TABLE t {shape};
                 INSERT INTO t ({columns}) SELECT {columns} FROM o; DROP TABLE o;
                 PRAGMA legacy_alter_table = OFF"
            )
        } else {
            format!(
                "CREATE TABLE n {shape}; INSERT INTO n ({columns}) SELECT {columns} FROM t;
                 DROP TABLE t; ALTER TABLE n RENAME TO t"
            )
        };
        self.device.write(&sql).unwrap();
        self.has_x = true;
    }

    fn migrate(&mut self) {
        if self.has_y {
            return;
        }
        self.add_column();
        self.device
            .write(
                "CREATE TABLE n (id TEXT PRIMARY KEY, v TEXT, w TEXT DEFAULT 'w', x TEXT,
                     y TEXT NOT NULL);
                 INSERT INTO n SELECT id, v, w, x, 'of the migration' FROM t;
                 DROP TABLE t; ALTER TABLE n RENAME TO t",
            )
            .unwrap();
        self.has_y = true;
    }

    fn add_column(&mut self) {
        if !self.has_x {
            self.device.write("ALTER TABLE t ADD COLUMN x TEXT").unwrap();
            self.has_x = true;
        }
    }

    /// Returns the rows that only device `of` writes to, as this device has them.
    fn own_rows(&self, of: usize) -> Vec<String> {
        let x = if self.has_x { "x" } else { "NULL" };
        let y = if self.has_y { "y" } else { "'of the migration'" };
        let rows =
            format!("json_array(id, v, w, {x}, {y}) FROM t WHERE id LIKE '{of}-%' ORDER BY id");
        self.device.texts(&format!("SELECT {rows}"))
    }
}

fn check(steps: &[(usize, RebuildStep)]) {
    let mut server = MemoryServer::default();
    let mut programs: Vec<_> = (0..DEVICES_COUNT)
        .map(|name| RebuildDevice {
            name,
            device: TestDevice::tracked(SCHEMA, &mut server),
            has_x: false,
            has_y: false,
            is_y_captured: false,
            deleted: BTreeSet::new(),
        })
        .collect();
    for (device, step) in steps {
        programs[*device].perform(step, &mut server);
    }
    let written: Vec<_> = programs.iter().map(|program| program.own_rows(program.name)).collect();
    server.now_ms.set(MORNING_MS + 20_000);
    for program in &mut programs {
        program.migrate();
        program.add_column();
    }
    for device in [0, 1, 2, 0, 1, 2] {
        programs[device].device.sync(&mut server);
    }
    for program in &programs {
        let seen: Vec<_> = (0..DEVICES_COUNT).map(|of| program.own_rows(of)).collect();
        assert_eq!(
            seen, written,
            "device {} has something else than what was written",
            program.name
        );
    }
    let all: BTreeSet<_> = programs.iter().map(|program| program.device.dump()).collect();
    assert_eq!(all.len(), 1, "the devices differ: {all:#?}");
}

proptest! {
    // A quarter of the usual number of histories, which PROPTEST_CASES sets.
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases / 4, ..ProptestConfig::default() })]
    #[test]
    fn rows_that_one_device_writes_are_everywhere_as_it_left_them(
        steps in prop::collection::vec((0..DEVICES_COUNT, any_step()), 1..40),
    ) {
        check(&steps);
    }
}
