//! Checks foreign keys: rows that refer to missing rows, and foreign keys without an index.

use std::time::Duration;

use sqlite_schema::{ForeignKeySchema, IndexSchema, TableSchema};

use crate::catalogue::finding_code::FindingCode;
use crate::file::btree_sample::TreeSample;
use crate::file::check_error::CheckError;
use crate::file::opened_file::OpenedFile;
use crate::file::schema::quote_if_needed;
use crate::format::format_estimate;
use crate::report::CheckResults;
use crate::report::finding::{DoctorFinding, Fix};

/// The minimum number of rows. A scan for the child rows is quick in a smaller table.
const ROWS_MIN: f64 = 10_000.0;
/// The maximum number of violations that are counted in one table.
const VIOLATIONS_MAX: u32 = 1_000;
/// The maximum number of violations that a finding shows.
const ROWS_SHOWN_MAX: usize = 5;
/// The divisor for the share of the remaining time that the check of all foreign keys may take.
const SHARE: u32 = 2;

pub(crate) fn check(subject: &OpenedFile, log: &mut CheckResults) -> Result<(), CheckError> {
    let mut children = Vec::new();
    for table in subject.user_tables() {
        let references = subject.foreign_keys(table)?;
        for reference in &references {
            check_index(subject, table, reference, log);
        }
        if !references.is_empty() {
            let sample = subject.sample_of(&table.name);
            children.push((table, references, sample.map_or(f64::MAX, TreeSample::pages)));
        }
    }
    children.sort_by(|a, b| a.2.total_cmp(&b.2));
    let end = subject.time_limit.elapsed() + subject.time_limit.remaining() / SHARE;
    let (mut unreached, mut checked) = (Vec::new(), 0);
    for (table, references, _) in &children {
        let left = end.saturating_sub(subject.time_limit.elapsed());
        if report_missing_parent(subject, table, references, log) {
            checked += 1;
            continue;
        }
        match check_rows(subject, table, references, left, log) {
            Ok(()) => checked += 1,
            Err(error) if error.is_time() => unreached.push(table.name.as_str()),
            Err(error) => return Err(error),
        }
    }
    log.add_checked(format!("foreign keys (tables checked: {checked} of {})", children.len()));
    if !unreached.is_empty() {
        let what = format!("foreign keys of {}", unreached.join(", "));
        log.add_skipped(what, "too many rows for the time limit");
    }
    Ok(())
}

fn check_index(
    subject: &OpenedFile,
    table: &TableSchema,
    reference: &ForeignKeySchema,
    log: &mut CheckResults,
) {
    let entries = subject.sample_of(&table.name).map_or(0.0, TreeSample::entries);
    let is_served =
        has_index(table, &reference.columns) || log.has_advised(&table.name, &reference.columns);
    if entries < ROWS_MIN || is_served {
        return;
    }
    let (child, parent) = (&table.name, &reference.parent);
    let columns: Vec<String> = reference.columns.iter().map(|name| quote_if_needed(name)).collect();
    let list = columns.join(", ");
    let name = quote_if_needed(&format!("{child}_{}", reference.columns.join("_")));
    let fix = format!("CREATE INDEX {name} ON {} ({list});", quote_if_needed(child));
    let what = format!("{child} ({list}) refers to {parent}, and has no index");
    let finding = DoctorFinding::new(FindingCode::ForeignKeyUnindexed, what, Fix::Sql(fix))
        .evidence(format!("{child} has about {} rows", format_estimate(entries)))
        .detail("table", child.as_str())
        .detail("parent", parent.as_str())
        .detail("columns", reference.columns.clone())
        .detail("estimated_rows_count", entries.round())
        .impact(format!("Each DELETE from {parent}, and each change of its key, scans {child}."));
    log.add(finding);
}

/// Checks whether a foreign key of the table is looked up by this index, and by no other.
pub(crate) fn uses(
    subject: &OpenedFile,
    table: &TableSchema,
    index: &IndexSchema,
) -> Result<bool, CheckError> {
    let mut without = table.clone();
    without.indexes.retain(|other| other.name != index.name);
    let needs = |reference: &ForeignKeySchema| {
        has_index(table, &reference.columns) && !has_index(&without, &reference.columns)
    };
    Ok(subject.foreign_keys(table)?.iter().any(needs))
}

/// Checks whether an index starts with these columns, in any order, or whether they are the row id.
fn has_index(table: &TableSchema, columns: &[String]) -> bool {
    let is_among = |name: &str| columns.iter().any(|column| column.eq_ignore_ascii_case(name));
    let covers = |names: &mut dyn Iterator<Item = &str>| {
        names.take(columns.len()).filter(|name| is_among(name)).count() == columns.len()
    };
    let by_index = table.indexes.iter().filter(|index| !index.is_partial).any(|index| {
        covers(&mut index.columns.iter().map(|key| key.column.as_deref().unwrap_or_default()))
    });
    let by_key =
        !table.has_rowid && covers(&mut table.key_columns().into_iter().map(|it| it.name.as_str()));
    by_index || by_key || table.rowid_alias().is_some_and(|rowid| columns == [rowid.name.clone()])
}

/// Reports parent tables that are not in this file: the program may attach another file that has
/// them, or the foreign key is only documentation. In this case rows are not counted, because all
/// of them would be violations.
fn report_missing_parent(
    subject: &OpenedFile,
    table: &TableSchema,
    references: &[ForeignKeySchema],
    log: &mut CheckResults,
) -> bool {
    let is_there = |name: &str| {
        let mut names = subject.schema.tables.iter().map(|table| &table.name);
        names.any(|it| it.eq_ignore_ascii_case(name)) || subject.schema.unread_count > 0
    };
    let absent = references.iter().filter(|reference| !is_there(&reference.parent));
    let absent: Vec<&str> = absent.map(|reference| reference.parent.as_str()).collect();
    if absent.is_empty() {
        return false;
    }
    let what = format!("{} refers to {} (not in this file)", table.name, absent.join(", "));
    let fix = "Do nothing if the program attaches the file that contains the parent table, or \
                uses the foreign key only as documentation. If the parent table was dropped by \
                mistake, restore it."
        .to_owned();
    let finding = DoctorFinding::new(FindingCode::ForeignKeyParentAbsent, what, Fix::Advice(fix))
        .evidence(format!("no such table: {}", absent.join(", ")))
        .detail("table", table.name.as_str())
        .detail("parents", absent)
        .impact(format!("With foreign_keys = ON, inserts into {} fail.", table.name));
    log.add(finding);
    true
}

fn check_rows(
    subject: &OpenedFile,
    table: &TableSchema,
    references: &[ForeignKeySchema],
    time: Duration,
    log: &mut CheckResults,
) -> Result<(), CheckError> {
    subject.grant_time(time);
    let sql = format!("PRAGMA foreign_key_check({})", quote_if_needed(&table.name));
    let mut statement = match subject.db.prepare(&sql) {
        Ok(statement) => statement,
        Err(error) => return mismatch(table, error, log),
    };
    let mut found = statement.query([])?;
    let (mut count, mut shown, mut broken) = (0, Vec::new(), Vec::new());
    loop {
        let row = match found.next() {
            Ok(row) => row,
            Err(error) => return mismatch(table, error, log),
        };
        let Some(row) = row.filter(|_| count < VIOLATIONS_MAX) else { break };
        let (rowid, parent, id): (Option<i64>, String, i64) =
            (row.get(1)?, row.get(2)?, row.get(3)?);
        count += 1;
        if shown.len() < ROWS_SHOWN_MAX {
            let row = rowid.map_or("a row".to_owned(), |rowid| format!("row {rowid}"));
            shown.push(format!("{row} refers to a row of {parent} that does not exist"));
        }
        if !broken.contains(&id) {
            broken.push(id);
        }
    }
    if count > 0 {
        let broken: Vec<&ForeignKeySchema> =
            references.iter().filter(|reference| broken.contains(&reference.id)).collect();
        log.add(violated(table, count, &shown, &broken));
    }
    Ok(())
}

fn violated(
    table: &TableSchema,
    count: u32,
    shown: &[String],
    broken: &[&ForeignKeySchema],
) -> DoctorFinding {
    let rows = match count {
        VIOLATIONS_MAX => format!("{VIOLATIONS_MAX} rows or more"),
        1 => "1 row".to_owned(),
        count => format!("{count} rows"),
    };
    let to: Vec<String> =
        broken.iter().map(|it| format!("{} (by {})", it.parent, it.columns.join(", "))).collect();
    let fix = format!(
        "PRAGMA foreign_key_check({}) lists the rows. SQLite enforces foreign keys only on \
         connections that set PRAGMA foreign_keys = ON. If the program relies on them, correct or \
         delete these rows, and set this PRAGMA on every connection. If 0 or another value means \
         \"no parent\" in the program, nothing is wrong.",
        quote_if_needed(&table.name)
    );
    let what = format!("{} has {rows} without a parent row in {}", table.name, to.join(", "));
    let mut finding = DoctorFinding::new(FindingCode::ForeignKeyViolated, what, Fix::Advice(fix))
        .detail("table", table.name.as_str())
        .detail("rows_count", count)
        .detail("complete", count < VIOLATIONS_MAX)
        .impact(
            "Joins leave these rows out, and programs that rely on the reference fail on them.",
        );
    for line in shown {
        finding = finding.evidence(line);
    }
    finding
}

/// Reports that the parent has no unique key for the foreign key. This is a fault of the schema,
/// for which SQLite has its own message.
fn mismatch(
    table: &TableSchema,
    error: rusqlite::Error,
    log: &mut CheckResults,
) -> Result<(), CheckError> {
    let text = error.to_string();
    if !text.contains("foreign key mismatch") {
        return Err(error.into());
    }
    let fix = "Create a UNIQUE index on exactly the referenced columns of the parent table, with \
                the collations of these columns.";
    let what =
        format!("a foreign key of {} refers to columns that are not a unique key", table.name);
    let finding =
        DoctorFinding::new(FindingCode::ForeignKeyMismatch, what, Fix::Advice(fix.to_owned()))
            .evidence(text)
            .detail("table", table.name.as_str())
            .impact("With foreign_keys = ON, writes to these tables fail.");
    log.add(finding);
    Ok(())
}
