//! Compares the statistics that the query planner uses (`sqlite_stat1`) with the actual tables.

use std::collections::BTreeMap;

use sqlite_schema::{IndexOrigin, IndexSchema, TableSchema};

use super::{foreign_keys, indexes};
use crate::catalogue::finding_code::FindingCode;
use crate::file::check_error::CheckError;
use crate::file::opened_file::OpenedFile;
use crate::file::schema::quote_if_needed;
use crate::format::format_estimate;
use crate::report::CheckResults;
use crate::report::finding::{DoctorFinding, Fix};

/// The minimum number of rows. With fewer rows, any plan is fast.
const ROWS_MIN: f64 = 10_000.0;
/// The minimum number of rows for single-value indexes. With fewer rows, an index costs almost
/// nothing.
const SINGLE_ROWS_MIN: f64 = 1_000.0;
/// The factor by which the row count must change before `PRAGMA optimize` analyzes a table again.
const FACTOR_STALE: f64 = 10.0;

/// The number of rows, and of rows per distinct value of the first column, by index.
type IndexStatistics = BTreeMap<String, (f64, Option<f64>)>;

pub(crate) fn check(subject: &OpenedFile, log: &mut CheckResults) -> Result<(), CheckError> {
    let known = read_statistics(subject)?;
    let mut without = Vec::new();
    for table in subject.user_tables() {
        let Some(sample) = subject.sample_of(&table.name) else { continue };
        let entries = sample.entries();
        let is_large = entries >= ROWS_MIN;
        let of_table = table.indexes.iter().find_map(|index| known.get(&index.name));
        match of_table {
            None if is_large
                && table.indexes.iter().filter(|index| needs_statistics(index)).count() > 1 =>
            {
                without.push((table, entries));
            }
            Some((rows, _)) if is_large || *rows >= ROWS_MIN => {
                let factor =
                    (entries.max(1.0) / rows.max(1.0)).max(rows.max(1.0) / entries.max(1.0));
                if factor >= FACTOR_STALE {
                    log.add(statistics_stale(table, entries, sample.error(), *rows));
                }
            }
            _ => {}
        }
        for index in &table.indexes {
            check_single(subject, table, index, &known, log)?;
        }
    }
    if !without.is_empty() {
        log.add(statistics_absent(&without));
    }
    log.add_checked(format!("statistics (indexes: {})", known.len()));
    Ok(())
}

/// Checks whether a choice of this index needs statistics. A unique index needs none, because it
/// finds one row.
fn needs_statistics(index: &IndexSchema) -> bool {
    index.origin == IndexOrigin::Created && !index.is_unique
}

fn read_statistics(subject: &OpenedFile) -> Result<IndexStatistics, CheckError> {
    if !subject.schema.tables.iter().any(|table| table.name == "sqlite_stat1") {
        return Ok(IndexStatistics::new());
    }
    let sql = "SELECT idx, stat FROM sqlite_stat1 WHERE idx IS NOT NULL";
    let stats: Vec<(String, Option<String>)> =
        subject.rows(sql, [], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let parse = |(index, stat): (String, Option<String>)| {
        let stat = stat?;
        let mut numbers = stat.split(' ').map_while(|number| number.parse::<f64>().ok());
        Some((index, (numbers.next()?, numbers.next())))
    };
    Ok(stats.into_iter().filter_map(parse).collect())
}

fn statistics_absent(tables: &[(&TableSchema, f64)]) -> DoctorFinding {
    let names: Vec<&str> = tables.iter().map(|(table, _)| table.name.as_str()).collect();
    let what = format!("the indexes of {} have no statistics", names.join(", "));
    let mut finding = DoctorFinding::new(
        FindingCode::StatisticsAbsent,
        what,
        Fix::Sql("PRAGMA optimize = 0x10002;".to_owned()),
    )
    .detail("tables", names)
    .impact(
        "Where two indexes can serve a query, the planner guesses; a wrong guess can cost a scan.",
    );
    for (table, entries) in tables {
        let count = table.indexes.len();
        let rows = format_estimate(*entries);
        finding = finding.evidence(format!("{}: about {rows} rows, {count} indexes", table.name));
    }
    finding
}

fn statistics_stale(table: &TableSchema, entries: f64, error: f64, rows: f64) -> DoctorFinding {
    let fix = Fix::Sql(format!("ANALYZE {};", quote_if_needed(&table.name)));
    let what = format!("the statistics of {} are out of date", table.name);
    let margin = if error > 0.0 { format!(", ± {:.0} %", 200.0 * error) } else { String::new() };
    DoctorFinding::new(FindingCode::StatisticsStale, what, fix)
        .evidence(format!(
            "row count in sqlite_stat1: {}; in the table: about {}{margin}",
            format_estimate(rows),
            format_estimate(entries)
        ))
        .detail("table", table.name.as_str())
        .detail("statistics_rows_count", rows)
        .detail("estimated_rows_count", entries.round())
        .impact("The planner chooses plans for a table of another size.")
}

/// Reports an index for which the statistics show the same value in every row.
fn check_single(
    subject: &OpenedFile,
    table: &TableSchema,
    index: &IndexSchema,
    known: &IndexStatistics,
    log: &mut CheckResults,
) -> Result<(), CheckError> {
    let Some((rows, Some(per_value))) = known.get(&index.name) else { return Ok(()) };
    let is_single = *rows >= SINGLE_ROWS_MIN && per_value >= rows;
    if !is_single || index.columns.len() != 1 || index.is_partial || !needs_statistics(index) {
        return Ok(());
    }
    // A delete of the parent row uses this index to find child rows.
    if foreign_keys::uses(subject, table, index)? {
        return Ok(());
    }
    let column = index.columns_text();
    let what = format!("all rows of {} have the same {column}", table.name);
    let fix = indexes::drop_index(subject, &index.name);
    let finding = DoctorFinding::new(FindingCode::IndexSingleValue, what, fix)
        .evidence(format!(
            "sqlite_stat1 of {}: {} rows, {} per value",
            index.name,
            format_estimate(*rows),
            format_estimate(*per_value)
        ))
        .detail("table", table.name.as_str())
        .detail("index", index.name.as_str())
        .detail("statistics_rows_count", *rows)
        .impact("A search by the index finds all rows or none, and each write must update it.");
    log.add(finding);
    Ok(())
}
