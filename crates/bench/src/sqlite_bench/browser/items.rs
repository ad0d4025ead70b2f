//! Defines items like those of the Plan app, and the operations of a page on them.

use std::path::Path;

use anyhow::Context;
use replica::Replica;
use rusqlite::Connection;

use crate::format::counted;
use crate::sqlite_bench::execute_plan::PortableRng;
use crate::sqlite_bench::plan::{LabPlan, LabStatement, LabStep, SampleValue};
use crate::suite::TableHeading;

pub(crate) const PAGE_BYTES: &str = "8192";

const LISTS_COUNT: usize = 20;
const TITLES_COUNT: usize = 500;
const TITLE_WORDS_COUNT: usize = 4;
const NOTE_WORDS_COUNT: usize = 12;
/// The creation time of the first item, in November 2026.
const CREATED_MS: i64 = 1_795_000_000_000;
/// The words of titles and notes; about one title in eight contains a given word.
const WORDS: [&str; 32] = [
    "ask", "book", "bread", "buy", "call", "check", "clean", "draw", "fix", "garden", "house",
    "letter", "meet", "milk", "order", "pack", "paint", "pay", "plan", "print", "read", "repair",
    "return", "school", "send", "shelf", "sort", "tax", "ticket", "visit", "water", "write",
];
const SCHEMA: &str = "
    CREATE TABLE item (id TEXT NOT NULL PRIMARY KEY, list_id TEXT, title TEXT, note TEXT, due TEXT,
        done_ms INTEGER, position TEXT, created_ms INTEGER);
    CREATE INDEX item_by_list ON item (list_id, position);";
const INSERT: &str = "INSERT INTO item VALUES (?, ?, ?, ?, ?, ?, ?, ?)";
const COLUMNS: [&str; 8] = ["new", "list", "title", "note", "due", "done", "new", "created"];
/// The rows of the import that one transaction makes.
const LOAD_ROWS: usize = 10_000;

/// The place to which the rows of a query go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RowsDestination {
    /// The place where SQLite runs.
    Here,
    /// A tab, which calls a worker.
    InTab,
}

/// A table of items.
#[derive(Clone, Copy, Debug)]
pub(super) struct ItemsTable {
    pub(super) rows: i64,
}

/// Starts to track the items, including the existing rows.
pub(super) fn track(path: &Path) -> anyhow::Result<()> {
    let replica = Replica::prepare(path)?;
    replica.track(&["item".to_owned()])?;
    remove_wal(replica.connection())
}

/// Leaves one file, which needs no recovery.
fn remove_wal(db: &Connection) -> anyhow::Result<()> {
    db.query_row("PRAGMA journal_mode = DELETE", [], |_| Ok(())).context("journal_mode")
}

impl ItemsTable {
    /// Creates a file with the items.
    pub(super) fn make(self, path: &Path) -> anyhow::Result<()> {
        let db = Connection::open(path)?;
        db.execute_batch(&format!("PRAGMA page_size = {PAGE_BYTES};{SCHEMA}"))?;
        let (samples, mut random) = (samples(), PortableRng::new(3));
        let transaction = db.unchecked_transaction()?;
        let mut insert = transaction.prepare(INSERT)?;
        for id in 1..=self.rows {
            for (index, name) in COLUMNS.iter().enumerate() {
                match samples.iter().find(|(of, _)| of == name) {
                    None => insert.raw_bind_parameter(index + 1, id)?,
                    Some((_, values)) => {
                        let value = &values[random.next() as usize % values.len()];
                        insert.raw_bind_parameter(index + 1, value)?;
                    }
                }
            }
            insert.raw_execute()?;
        }
        drop(insert);
        transaction.commit()?;
        remove_wal(&db)
    }

    pub(super) fn plan(
        self,
        database: &Path,
        settings: &[(String, String)],
        steps: Vec<LabStep>,
    ) -> LabPlan {
        let statement = |sql: &str, bind: &[&str]| {
            let bind = bind.iter().map(|name| (*name).to_owned()).collect();
            vec![LabStatement { sql: sql.to_owned(), bind }]
        };
        let page = "SELECT * FROM item WHERE list_id = ? ORDER BY position LIMIT 50";
        let search = "SELECT * FROM item WHERE title LIKE ? ORDER BY position LIMIT 50";
        let update = "UPDATE item SET title = ?, done_ms = ? WHERE id = ?";
        let operations = [
            ("page", statement(page, &["list"])),
            ("search", statement(search, &["pattern"])),
            ("count", statement("SELECT count(*) FROM item", &[])),
            ("update", statement(update, &["title", "done", "row"])),
            ("insert", statement(INSERT, &COLUMNS)),
        ];
        let samples = samples().into_iter().map(|(name, values)| (name.to_owned(), values));
        LabPlan {
            database: database.to_owned(),
            cipher: None,
            key: None,
            settings: settings.to_vec(),
            rows: self.rows,
            body_bytes: 0,
            seed: 7,
            samples: samples.collect(),
            operations: operations.map(|(name, of)| (name.to_owned(), of)).into(),
            steps,
            clean: Vec::new(),
        }
    }

    /// Returns one heading for each step.
    pub(super) fn headings(self, name: &str, heard: RowsDestination) -> Vec<TableHeading> {
        let rows = counted(self.rows, "item", "items");
        let heading = |step: LabStep| {
            let what = match step.name.as_str() {
                "page" => "reads of the first 50 items of a list in order, all columns",
                "search" => "searches for the first 50 items whose title contains a word",
                "count" => "counts of all items",
                "update" => "updates of title and state of a random item, one transaction each",
                "insert" => "inserts of one item, one transaction each",
                _ => "inserts of one item, 10,000 per transaction",
            };
            let name = format!("{name}-{}", step.name);
            TableHeading { name, unit: "operations", title: format!("{what}; {rows} initially") }
        };
        steps(heard, 0.0).into_iter().map(heading).collect()
    }
}

/// Returns the steps. Those that add items come last, so that the other steps find the same number
/// of items in every row.
pub(super) fn steps(heard: RowsDestination, seconds: f64) -> Vec<LabStep> {
    let step = |name: &str, operation: &str, transaction| LabStep {
        name: name.to_owned(),
        cycle: vec![operation.to_owned()],
        transaction,
        // A browser optimizes code that has run for a while.
        warmup_seconds: seconds,
        seconds,
    };
    let mut steps: Vec<LabStep> = ["page", "search", "count", "update", "insert"]
        .map(|operation| step(operation, operation, 1))
        .into();
    if heard == RowsDestination::Here {
        steps.push(step("load", "insert", LOAD_ROWS));
    }
    steps
}

/// Returns the values for each column of an item, and the search patterns.
fn samples() -> Vec<(&'static str, Vec<SampleValue>)> {
    let mut random = PortableRng::new(11);
    let mut words = |count: usize| {
        let words = (0..count).map(|_| WORDS[random.next() as usize % WORDS.len()]);
        SampleValue::Text(words.collect::<Vec<_>>().join(" "))
    };
    let titles = (0..TITLES_COUNT).map(|_| words(TITLE_WORDS_COUNT)).collect();
    let notes = (0..TITLES_COUNT).map(|number| match number % 4 {
        0 => words(NOTE_WORDS_COUNT),
        _ => SampleValue::Null,
    });
    let notes = notes.collect();
    let lists =
        (0..LISTS_COUNT).map(|number| SampleValue::Text(format!("list-{number:02}-8f14e45f")));
    let days = (1..=28).map(|day| SampleValue::Text(format!("2026-12-{day:02}")));
    let created = (0..1_000).map(|second| SampleValue::Integer(CREATED_MS + 1_000 * second));
    let patterns = WORDS.iter().map(|word| SampleValue::Text(format!("%{word}%")));
    vec![
        ("created", created.collect()),
        ("done", vec![SampleValue::Null, SampleValue::Null, SampleValue::Integer(CREATED_MS)]),
        ("due", days.chain([const { SampleValue::Null }; 28]).collect()),
        ("list", lists.collect()),
        ("note", notes),
        ("pattern", patterns.collect()),
        ("title", titles),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sqlite_bench::execute_plan::execute_plan;

    #[test]
    fn every_step_works_on_both_files_and_changes_are_noted_in_the_tracked_one() {
        let folder = tempfile::tempdir().unwrap();
        let items = ItemsTable { rows: 300 };
        let path = folder.path().join("tracked.db");
        for is_tracked in [false, true] {
            let path = if is_tracked { path.clone() } else { folder.path().join("items.db") };
            items.make(&path).unwrap();
            if is_tracked {
                track(&path).unwrap();
            }
            let mut steps = steps(RowsDestination::Here, 0.005);
            steps.retain(|step| step.name != "load");
            let answer = execute_plan(&items.plan(&path, &[], steps)).unwrap();
            assert!(answer.steps.iter().all(|step| step.operations > 0), "{:?}", answer.steps);
        }
        let replica = Replica::open(&path).unwrap();
        assert!(replica.status().unwrap().pending_count > 0);
        let count = |sql: &str| -> i64 {
            replica.connection().query_row(sql, [], |row| row.get(0)).unwrap()
        };
        let page = "SELECT count(*) FROM item WHERE id <= 300 GROUP BY list_id ORDER BY 1 LIMIT 1";
        assert!(count(page) > 5, "lists are alike");
        let found = count("SELECT count(*) FROM item WHERE id <= 300 AND title LIKE '%milk%'");
        assert!((10..100).contains(&found), "{found}");
        let headings = items.headings("wal", RowsDestination::Here);
        assert_eq!(headings.len(), steps(RowsDestination::Here, 1.0).len());
        assert_eq!(steps(RowsDestination::InTab, 1.0).len() + 1, headings.len());
    }
}
