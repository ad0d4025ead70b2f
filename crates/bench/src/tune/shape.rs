//! Derives a load from a file: its schema and its content determine the operations.
//!
//! The largest tables get point reads by key, lookups through each index, short scans in the order
//! of the key, updates of a column to values that it has in other rows, and copies of rows under
//! new keys that are deleted again. Each operation is tried before it is used: operations that the
//! schema rejects are left out, with a note.
//!
//! # Invariants
//! - A table keeps its rows: inserted rows are deleted, by the load or when it is cleaned up.
//! - In a cycle, each insert is followed by the delete of the same table's row, so that the row
//!   that was inserted last is always the one to delete.

mod cycle;
mod operations;
mod schema;
#[cfg(test)]
mod tests;
mod values;

use std::io;
use std::path::Path;

use anyhow::ensure;
use rusqlite::Connection;

use self::cycle::{WeightedOperations, mix};
use self::operations::{OperationKind, TableOperation};
use self::schema::LoadTable;
use super::settings::PragmaSettings;
use super::tune_load::{TuneLoad, TunePhase, TuneWorkload};
use crate::format::whole;
use crate::sqlite_bench::{CipherAndKey, execute_plan, unlock};

/// The most tables of a load. More would not change the result, and each operation needs a trial.
const TABLES_MAX: usize = 8;
/// How long each operation is tried.
const TRIAL_SECONDS: f64 = 0.01;

/// Returns the load of the copy at `path`, which must contain rows.
pub(crate) fn shape(
    path: &Path,
    encryption: &CipherAndKey,
    workload: TuneWorkload,
) -> anyhow::Result<TuneLoad> {
    let db = open(path, encryption)?;
    let (mut tables, mut notes) = schema::read(&db)?;
    ensure!(!tables.is_empty(), invalid("no table has rows, so there is nothing to measure"));
    tables.sort_by_key(|table| std::cmp::Reverse(table.rows));
    let left_out = tables.split_off(tables.len().min(TABLES_MAX));
    if !left_out.is_empty() {
        let (count, tables) =
            (left_out.len(), if left_out.len() == 1 { "table" } else { "tables" });
        notes.push(format!("{count} smaller {tables} left out"));
    }
    let mut load = TuneLoad { rows: schema::largest_rowid(&db, &tables)?, ..TuneLoad::default() };
    let mut kept = Vec::new();
    for table in &tables {
        for operation in
            operations::candidate_operations(&db, table, &mut load.samples, &mut notes)?
        {
            match attempt(path, encryption, &load, &operation, &db) {
                Ok(()) => kept.push((table, operation)),
                Err(error) => notes.push(format!("{}: {}", operation.about, cause(&error))),
            }
        }
    }
    load.workload_tables = tables.iter().map(|table| about(table, &kept)).collect();
    for (_, operation) in &kept {
        load.operations.extend(operation.statements.clone());
        load.clean.extend(operation.clean.clone());
    }
    load.notes = notes;
    load.phases = phases(&kept, workload, &mut load.notes)?;
    Ok(load)
}

/// Returns the error for a file with nothing to measure.
fn invalid(message: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, message)
}

fn open(path: &Path, encryption: &CipherAndKey) -> anyhow::Result<Connection> {
    let db = Connection::open(path)?;
    if let Some((cipher, key)) = encryption {
        unlock(&db, cipher, key)?;
    }
    Ok(db)
}

/// Returns SQLite's message, without the context of the step.
fn cause(error: &anyhow::Error) -> String {
    let sqlite = error.downcast_ref::<rusqlite::Error>();
    sqlite.map_or_else(|| error.to_string(), ToString::to_string)
}

/// Tries an operation; for inserts, also checks that they insert rows.
fn attempt(
    path: &Path,
    encryption: &CipherAndKey,
    load: &TuneLoad,
    operation: &TableOperation,
    db: &Connection,
) -> anyhow::Result<()> {
    let mut load = load.clone();
    load.operations.extend(operation.statements.clone());
    let mut run = |cycle: &[String]| {
        load.phases = vec![TunePhase::new("trial", cycle.to_vec(), 20)];
        execute_plan(&load.plan(path, &PragmaSettings::default(), encryption, TRIAL_SECONDS))
    };
    let names = operation.names();
    let Some(count) = &operation.count else { return run(&names).map(drop) };
    run(&names[..1])?;
    let inserted: i64 = db.query_row(count, [], |row| row.get(0))?;
    let cleaned = operation.clean.iter().try_for_each(|sql| db.execute_batch(sql));
    ensure!(inserted > 0, "a constraint rejects every row");
    cleaned?;
    run(&names).map(drop)?;
    let left: i64 = db.query_row(count, [], |row| row.get(0))?;
    operation.clean.iter().try_for_each(|sql| db.execute_batch(sql))?;
    ensure!(left <= 1, "inserted rows cannot be found again to delete them");
    Ok(())
}

/// Describes a table's operations: `Track, 3,503 rows: reads by key, 3 indexes, scans, updates,
/// inserts and deletes`.
fn about(table: &LoadTable, kept: &[(&LoadTable, TableOperation)]) -> String {
    let of: Vec<&TableOperation> =
        kept.iter().filter(|(other, _)| other.name == table.name).map(|(_, of)| of).collect();
    let has = |kind| of.iter().any(|operation| operation.kind == kind);
    let lookups = of.iter().filter(|operation| operation.kind == OperationKind::Lookup).count();
    let mut parts = Vec::new();
    let names = [
        (OperationKind::Point, "reads by key"),
        (OperationKind::Scan, "scans"),
        (OperationKind::Update, "updates"),
        (OperationKind::Insert, "inserts and deletes"),
    ];
    parts.extend(names.iter().filter(|(kind, _)| has(*kind)).map(|(_, text)| (*text).to_owned()));
    if lookups > 0 {
        let indexes = if lookups == 1 { "index" } else { "indexes" };
        parts.insert(parts.len().min(1), format!("lookups in {lookups} {indexes}"));
    }
    if parts.is_empty() {
        parts.push("nothing".to_owned());
    }
    let rows = if table.rows == 1 { "row" } else { "rows" };
    format!("{}, {} {rows}: {}", table.name, whole(table.rows), parts.join(", "))
}

fn phases(
    kept: &[(&LoadTable, TableOperation)],
    workload: TuneWorkload,
    notes: &mut Vec<String>,
) -> anyhow::Result<Vec<TunePhase>> {
    let names = |kinds: &[OperationKind]| {
        let all = kept.iter().filter(|(_, operation)| kinds.contains(&operation.kind));
        // Large tables are read and written more often, but not exclusively: the weight is the
        // square root of the rows.
        let weighted = all.map(|(table, operation)| {
            #[expect(clippy::cast_precision_loss, reason = "a weight")]
            let weight = (table.rows as f64).sqrt() * operation.share;
            (operation.names(), weight)
        });
        WeightedOperations::new(weighted.collect())
    };
    let mut reads = names(&[OperationKind::Point, OperationKind::Lookup, OperationKind::Scan]);
    let (mut updates, mut pairs) =
        (names(&[OperationKind::Update]), names(&[OperationKind::Insert]));
    let whole = mix(workload, &mut reads, &mut updates, &mut pairs);
    ensure!(!whole.is_empty(), invalid("no table of this file can be read or written"));
    let mut phases = vec![TunePhase::new("mix", whole, 1)];
    if reads.is_empty() || (updates.is_empty() && pairs.is_empty()) {
        let only = if reads.is_empty() { "writes" } else { "reads" };
        notes.push(format!("the workload contains only {only}"));
        phases[0].name = only;
        return Ok(phases);
    }
    phases.push(TunePhase::new("reads", cycle::reads(&mut reads), 1));
    phases.push(TunePhase::new("writes", cycle::writes(&mut updates, &mut pairs), 1));
    Ok(phases)
}
