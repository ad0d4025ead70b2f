//! Checks whether the stored content is intact.
//!
//! SQLite's own full check runs if it fits into the time limit. Otherwise each table is checked,
//! smallest first: in full, or without its indexes, or a sample of its pages; and then the list of
//! free pages. Everything that was not compared is reported ([`crate::IntegrityStatus`]).

mod faults;
mod free_list;

use std::time::Duration;

use engine::ReadOnlyMode;
use sqlite_schema::{IndexSchema, TableSchema};

use crate::file::btree_sample::TreeSample;
use crate::file::check_error::CheckError;
use crate::file::opened_file::OpenedFile;
use crate::file::schema::{VirtualTable, quote_if_needed};
use crate::file::unreadable::report_fault;
use crate::format::{counted, format_estimate, to_f64};
use crate::report::{CheckResults, IntegrityStatus};

/// The maximum number of lines that SQLite returns for one check.
const LINES_MAX: u32 = 1_000;
/// The bytes that the full check is expected to read per second. It reads each row again for each
/// index.
const FULL_BYTES_PER_SECOND: f64 = 3e7;
/// The bytes that `quick_check` is expected to read per second. A slow disk reaches a fifth of
/// this.
const QUICK_BYTES_PER_SECOND: f64 = 1e8;
/// The number of parts, of the `SHARES` parts of the remaining time, that the check of the whole
/// file may take.
const WHOLE_SHARES: u32 = 3;
const SHARES: u32 = 5;
/// The maximum number of sampled rows that are looked up in each index of a table.
const LOOKED_UP_MAX: usize = 200;

/// The comparisons that are missing if SQLite's check of the whole file has not run.
const BETWEEN_TREES: &str = "whether a page is used twice or not at all";

pub(crate) fn check(subject: &OpenedFile, log: &mut CheckResults) {
    let mut unchecked = unseen(subject);
    match check_whole(subject) {
        Ok(lines) => {
            faults::report_faults(&lines, None, subject, log);
            log.add_checked("integrity: everything that PRAGMA integrity_check checks");
        }
        Err(error) if error.is_busy() => {
            log.add_skipped("integrity", "another process kept the file locked");
            unchecked.push("the file: another process kept it locked".to_owned());
        }
        Err(_) => {
            unchecked.push(BETWEEN_TREES.to_owned());
            check_parts(subject, &mut unchecked, log);
        }
    }
    check_searches(subject, &mut unchecked, log);
    log.integrity = IntegrityStatus { complete: unchecked.is_empty(), unchecked };
}

/// Lists everything that no check on this connection can see.
fn unseen(subject: &OpenedFile) -> Vec<String> {
    let mut unseen = Vec::new();
    if subject.open_mode != ReadOnlyMode::Overlay && subject.schema.has_checks {
        unseen.push("CHECK constraints: SQLite ignores them on a read-only connection".to_owned());
    }
    if subject.schema.unread_count > 0 {
        let count = subject.schema.unread_count.try_into().unwrap_or(u64::MAX);
        unseen.push(format!("{}: no time to read the schema", counted(count, "table", "tables")));
    }
    for VirtualTable { name, module } in &subject.schema.virtual_tables {
        if !subject.modules.contains(module) {
            unseen.push(format!("{name}: this SQLite has no module {module}"));
        }
    }
    for name in &subject.stand_ins {
        unseen.push(format!("the order of collation {name}: this SQLite does not have it"));
    }
    unseen
}

/// Runs the full check of the whole file. An error means that it did not finish.
fn check_whole(subject: &OpenedFile) -> Result<Vec<String>, CheckError> {
    let time = subject.grant_time(subject.time_limit.remaining() / SHARES * WHOLE_SHARES);
    let size = to_f64(subject.pages_bytes());
    // A check that cannot finish is not started; and rows that are ordered by missing collations
    // would look broken.
    if size > FULL_BYTES_PER_SECOND * time.as_secs_f64() || !subject.stand_ins.is_empty() {
        return Err(interrupted().into());
    }
    lines(subject, &format!("PRAGMA integrity_check({LINES_MAX})"))
}

/// Returns the lines that a check reports, or none if it finds no problem.
fn lines(subject: &OpenedFile, sql: &str) -> Result<Vec<String>, CheckError> {
    let mut statement = subject.db.prepare(sql)?;
    let mut lines = Vec::new();
    for line in statement.query_map([], |row| row.get::<_, String>(0))? {
        match line.map_err(CheckError::from) {
            Ok(line) if line == "ok" => {}
            Ok(line) => lines.push(line),
            // The check reached a damaged page and could not continue.
            Err(error) if error.is_fault() => lines.push(error.to_string()),
            Err(error) => return Err(error),
        }
    }
    Ok(lines)
}

fn check_parts(subject: &OpenedFile, unchecked: &mut Vec<String>, log: &mut CheckResults) {
    let mut tables: Vec<(&TableSchema, f64)> =
        subject.schema.tables.iter().map(|table| (table, pages(subject, table))).collect();
    tables.sort_by(|a, b| a.1.total_cmp(&b.1));
    let (mut unreached, mut checked) = (Vec::new(), 0);
    for (table, pages) in &tables {
        match check_table(subject, table, unchecked) {
            Ok(lines) => {
                faults::report_faults(&lines, Some(table), subject, log);
                checked += 1;
            }
            Err(error) if error.is_time() => unreached.push((*table, *pages)),
            Err(error) if error.is_fault() => report_fault(&error, &subject.environment, log),
            Err(error) => {
                unchecked.push(format!("{}: {error}", table.name));
                log.add_skipped(format!("integrity of {}", table.name), error.to_string());
            }
        }
    }
    log.add_checked(format!("integrity, table by table ({checked} of {})", tables.len()));
    for (index, (table, pages)) in unreached.iter().enumerate() {
        let tables_left = u32::try_from(unreached.len() - index).unwrap_or(u32::MAX);
        let end = subject.time_limit.elapsed() + subject.time_limit.remaining() / tables_left;
        check_sample(subject, table, *pages, end, log);
        unchecked.push(format!("{}: only a sample was checked", table.name));
    }
    match free_list::check(subject) {
        Err(error) if error.is_fault() => report_fault(&error, &subject.environment, log),
        Err(error) => log.add_skipped("list of free pages", error.to_string()),
        Ok(()) => {}
    }
}

/// Checks one table with its indexes, or without them if only that is quick enough.
fn check_table(
    subject: &OpenedFile,
    table: &TableSchema,
    unchecked: &mut Vec<String>,
) -> Result<Vec<String>, CheckError> {
    let name = quote_if_needed(&table.name);
    let size = pages(subject, table) * f64::from(subject.header.page_size);
    let is_ordered = subject.stand_ins.is_empty();
    let time = subject.grant_time(subject.time_limit.remaining() / SHARES * WHOLE_SHARES);
    if is_ordered && !time.is_zero() && size <= FULL_BYTES_PER_SECOND * time.as_secs_f64() {
        match lines(subject, &format!("PRAGMA integrity_check({name})")) {
            Err(error) if error.is_time() => {}
            ended => return ended,
        }
    }
    let time = subject.grant_time(subject.time_limit.remaining() / SHARES * WHOLE_SHARES);
    // In the same time, sampled pages reveal more than a check that cannot finish.
    if time.is_zero() || size > QUICK_BYTES_PER_SECOND * time.as_secs_f64() {
        return Err(interrupted().into());
    }
    let mut found = lines(subject, &format!("PRAGMA quick_check({name})"))?;
    if !table.indexes.is_empty() {
        found.extend(look_up(subject, table));
        unchecked.push(format!("{}: only sampled rows were looked up in its indexes", table.name));
    }
    Ok(found)
}

/// Checks sampled pages, and looks sampled rows up in each index, where SQLite's own check had no
/// time.
fn check_sample(
    subject: &OpenedFile,
    table: &TableSchema,
    pages: f64,
    end: Duration,
    log: &mut CheckResults,
) {
    let leaves = sampled_faults(subject, table, pages, end, log);
    faults::report_faults(&look_up(subject, table), Some(table), subject, log);
    let why = match subject.open_mode {
        ReadOnlyMode::Shared => "too large to check without blocking other programs for long",
        _ => "too large for the time limit",
    };
    let leaves = counted(leaves, "random page", "random pages");
    let seen = format!("{why}; checked {leaves} of about {}", format_estimate(pages));
    log.add_skipped(format!("integrity of {}", table.name), seen);
}

/// Checks the sampled pages, and further ones until `end`, a time of the examination. Returns the
/// number of checked pages.
fn sampled_faults(
    subject: &OpenedFile,
    table: &TableSchema,
    pages: f64,
    end: Duration,
    log: &mut CheckResults,
) -> u64 {
    let roots: Vec<u32> = subject.schema.roots_of(table).collect();
    for (_, error) in subject.broken.iter().filter(|(root, _)| roots.contains(root)) {
        if error.is_fault() {
            report_fault(error, &subject.environment, log);
        }
    }
    let seen = roots.iter().filter_map(|root| subject.sample_at(*root));
    let mut leaves = u64::try_from(seen.map(TreeSample::leaves_seen).sum::<usize>()).unwrap_or(0);
    for root in roots.iter().cycle() {
        if subject.time_limit.elapsed() >= end || to_f64(leaves) >= pages {
            break;
        }
        match subject.sample_more_leaves(*root, leaves) {
            Ok(more) => leaves += more,
            Err(error) if error.is_fault() => {
                report_fault(&error, &subject.environment, log);
                break;
            }
            Err(_) => break,
        }
    }
    leaves
}

/// Looks sampled rows up in each index of their table. Returns lines in the format of SQLite's
/// check. Indexes that cannot be looked up (on an expression, or with a missing collation) are left
/// out.
fn look_up(subject: &OpenedFile, table: &TableSchema) -> Vec<String> {
    let Some(sample) = subject.sample_of(&table.name).filter(|_| table.has_rowid) else {
        return Vec::new();
    };
    let mut missing = Vec::new();
    let is_ordered = |index: &IndexSchema| {
        index.columns.iter().all(|key| !subject.stand_ins.contains(&key.collation))
    };
    for index in table.indexes.iter().filter(|index| !index.is_partial && is_ordered(index)) {
        let Some(sql) = look_up_sql(table, index) else { continue };
        subject.grant_time(Duration::MAX);
        let Ok(mut statement) = subject.db.prepare(&sql) else { continue };
        let rows = sample.rows().take(LOOKED_UP_MAX);
        missing.extend(rows.filter_map(|row| {
            let is_missing: bool = statement.query_row([row.rowid], |row| row.get(0)).ok()?;
            is_missing.then(|| format!("row {} missing from index {}", row.rowid, index.name))
        }));
    }
    missing
}

/// Returns the query whether a row with this row id exists that is missing in the index.
fn look_up_sql(table: &TableSchema, index: &IndexSchema) -> Option<String> {
    let same = index.column_names()?.into_iter().map(|column| {
        let column = quote_if_needed(column);
        format!("b.{column} IS a.{column} AND ")
    });
    let (name, same) = (quote_if_needed(&table.name), same.collect::<String>());
    Some(format!(
        "SELECT count(*) FROM {name} a NOT INDEXED WHERE a.rowid = ?1 AND NOT EXISTS
         (SELECT 1 FROM {name} b INDEXED BY {} WHERE {same} b.rowid = a.rowid)",
        quote_if_needed(&index.name)
    ))
}

/// Checks whether each full-text index matches its table. SQLite's own check compares only indexes
/// that store their own content.
fn check_searches(subject: &OpenedFile, unchecked: &mut Vec<String>, log: &mut CheckResults) {
    for table in subject.schema.virtual_tables.iter().filter(|it| it.module == "fts5") {
        if subject.open_mode != ReadOnlyMode::Overlay {
            let name = &table.name;
            let why = "not compared with its content while the file is in use";
            unchecked.push(format!("full-text index {name}: {why}"));
            continue;
        }
        subject.grant_time(subject.time_limit.remaining() / SHARES * WHOLE_SHARES);
        let name = quote_if_needed(&table.name);
        let sql = format!("INSERT INTO {name} ({name}, rank) VALUES ('integrity-check', 1)");
        match subject.write(&sql) {
            Ok(()) => {}
            Err(error) if error.is_fault() => {
                let is_told = log.findings.iter().any(|finding| {
                    finding.details.get("table").is_some_and(|it| *it == table.name.as_str())
                });
                if !is_told {
                    let finding = faults::virtual_table(&table.name, &subject.schema);
                    log.add(finding.evidence(format!("{sql}: {error}")));
                }
            }
            Err(error) => unchecked.push(format!("{}: {error}", table.name)),
        }
    }
}

/// Returns the number of pages of a table and its indexes, as far as it is known.
fn pages(subject: &OpenedFile, table: &TableSchema) -> f64 {
    let roots = subject.schema.roots_of(table);
    roots.filter_map(|root| subject.sample_at(root)).map(TreeSample::pages).sum()
}

fn interrupted() -> rusqlite::Error {
    let code = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_INTERRUPT);
    rusqlite::Error::SqliteFailure(code, None)
}
