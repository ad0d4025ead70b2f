//! Checks how rows are stored in their pages: large values before small columns, and half-empty
//! pages.

use std::time::Duration;

use engine::clock;
use indicatif::DecimalBytes;
use rusqlite::Connection;
use rusqlite::types::Value;
use sqlite_schema::{ColumnKind, TableSchema};

use crate::catalogue::finding_code::FindingCode;
use crate::file::btree_sample::{SampledRow, TreeSample};
use crate::file::check_error::CheckError;
use crate::file::opened_file::OpenedFile;
use crate::file::record::RecordField;
use crate::file::schema::quote_if_needed;
use crate::format::{counted, format_estimate, format_percent, round_to_u64, to_f64};
use crate::report::CheckResults;
use crate::report::finding::{DoctorFinding, Fix};

/// The maximum mean size of a column that counts as small.
const SMALL_BYTES_MAX: f64 = 64.0;
/// The minimum mean number of overflow pages before a small column that is reported.
const WALKED_PAGES_MIN: f64 = 1.0;
/// The minimum size of a table or an index. Smaller ones are read quickly in any case.
const BYTES_MIN: f64 = 1_000_000.0;
/// The minimum fill of pages. Pages that are filled in random order are about 69 % full; below
/// half, rows were deleted.
const FILL_MIN: f64 = 0.5;
/// The maximum number of bytes that are copied for the measurement.
const MEASURED_BYTES_MAX: u64 = 8_000_000;
const MEASURED_ROWS_MAX: usize = 200;
const MEASURED_ROUNDS: u32 = 9;

/// A column as the rows of a table store it.
struct StoredColumn<'a> {
    name: &'a str,
    mean_bytes: f64,
}

pub(crate) fn check(subject: &OpenedFile, log: &mut CheckResults) -> Result<(), CheckError> {
    let page_bytes = f64::from(subject.header.page_size);
    for table in subject.user_tables() {
        let Some(sample) = subject.sample_of(&table.name) else { continue };
        if sample.pages() * page_bytes >= BYTES_MIN && table.has_rowid {
            check_order(subject, table, sample, log)?;
        }
    }
    check_fill(subject, log);
    log.add_checked("column order and page fill (sampled)");
    Ok(())
}

/// Counts the overflow pages between the start of a row and one of its fields.
fn overflow_pages_before(subject: &OpenedFile, row: &SampledRow, field: &RecordField) -> f64 {
    let each = u64::from(subject.header.page_size - u32::from(subject.header.reserved_size)) - 4;
    match field.start.checked_sub(row.local_size) {
        Some(beyond) if row.payload_size > row.local_size => to_f64(1 + beyond / each),
        _ => 0.0,
    }
}

fn check_order(
    subject: &OpenedFile,
    table: &TableSchema,
    sample: &TreeSample,
    log: &mut CheckResults,
) -> Result<(), CheckError> {
    let stored = stored(table, sample);
    let is_small = |index: usize| stored[index].mean_bytes <= SMALL_BYTES_MAX;
    let Some(last_small) = (0..stored.len()).rev().find(|index| is_small(*index)) else {
        return Ok(());
    };
    let (mut weights, mut pages) = (0.0, 0.0);
    for row in sample.rows() {
        weights += row.weight;
        if let Some(field) = row.fields.get(last_small).filter(|field| field.size > 0) {
            pages += row.weight * overflow_pages_before(subject, row, field);
        }
    }
    let pages = pages / f64::max(weights, 1.0);
    let large = (0..last_small).filter(|index| !is_small(*index));
    let large: Vec<usize> = large.collect();
    if pages < WALKED_PAGES_MIN || large.is_empty() {
        return Ok(());
    }
    let last = stored[last_small].name;
    let before: Vec<&str> = large.iter().map(|index| stored[*index].name).collect();
    let behind = (large[0]..stored.len()).filter(|index| is_small(*index));
    let behind: Vec<&str> = behind.map(|index| stored[index].name).collect();
    let measured = measure(subject, table, sample, last, &behind)?;
    let sizes = large.iter().map(|index| {
        format!("{} {}", stored[*index].name, DecimalBytes(round_to_u64(stored[*index].mean_bytes)))
    });
    let mut finding = DoctorFinding::new(
        FindingCode::BlobBeforeColumns,
        format!("{} stores {} before {}", table.name, before.join(", "), behind.join(", ")),
        Fix::Advice(fix_sql(table, &before)),
    )
    .evidence(format!(
        "overflow pages to read before {last}, on average: {pages:.1} (mean sizes: {}; sampled \
         rows: {})",
        sizes.collect::<Vec<_>>().join(", "),
        sample.rows().count()
    ))
    .detail("table", table.name.as_str())
    .detail("large_columns", before.clone())
    .detail("columns_behind", behind.clone())
    .detail("overflow_pages_count", pages)
    .detail("estimated_rows_count", sample.entries().round());
    if let Some(measured) = &measured {
        finding = finding
            .evidence(format!(
                "measured in memory (rows: {}): max({last}) takes {:.2} µs per row, and {:.2} µs \
                 with the small columns first",
                measured.rows_count, measured.as_is_us, measured.small_first_us
            ))
            .detail("measured_rows_count", measured.rows_count)
            .detail("as_is_us", measured.as_is_us)
            .detail("small_first_us", measured.small_first_us);
    }
    log.add(finding.impact(cost(table, pages, measured.as_ref())));
    Ok(())
}

fn cost(table: &TableSchema, pages: f64, measured: Option<&ReadCost>) -> String {
    let reads = format!(
        "If {} is not in memory, reading a column behind a large value takes {} more.",
        table.name,
        counted(round_to_u64(pages), "page read", "page reads")
    );
    match measured {
        Some(it) if it.small_first_us > 0.0 => format!(
            "{reads} In memory, such a read takes {:.1} times as long.",
            it.as_is_us / it.small_first_us
        ),
        _ => reads,
    }
}

/// Returns the columns in their stored order, with their mean sizes in the sample.
fn stored<'a>(table: &'a TableSchema, sample: &TreeSample) -> Vec<StoredColumn<'a>> {
    let columns = table.columns.iter().filter(|column| column.kind != ColumnKind::GeneratedVirtual);
    let mut stored: Vec<StoredColumn<'_>> =
        columns.map(|column| StoredColumn { name: &column.name, mean_bytes: 0.0 }).collect();
    let weights: f64 = sample.rows().map(|row| row.weight).sum();
    for row in sample.rows() {
        for (column, field) in stored.iter_mut().zip(&row.fields) {
            column.mean_bytes += row.weight / weights.max(1.0) * to_f64(field.size);
        }
    }
    stored
}

fn fix_sql(table: &TableSchema, large: &[&str]) -> String {
    let (name, key) = (&table.name, table.rowid_alias().map_or("rowid", |column| &column.name));
    let columns: Vec<String> = large.iter().map(|column| quote_if_needed(column)).collect();
    format!(
        "Re-create {name} with {0} after all other columns \
         (https://sqlite.org/lang_altertable.html#otheralter), or move {0} to a separate table: \
         CREATE TABLE {1} ({2} INTEGER PRIMARY KEY REFERENCES {3}, {0}), INSERT INTO {1} SELECT \
         {2}, {0} FROM {3}; then drop {0} from {3} when the program no longer reads it there.",
        columns.join(", "),
        quote_if_needed(&format!("{name}_content")),
        quote_if_needed(key),
        quote_if_needed(name)
    )
}

/// The cost of reading a column that is stored after the large ones.
struct ReadCost {
    rows_count: usize,
    as_is_us: f64,
    small_first_us: f64,
}

/// Measures reads of the column in copies of the sampled rows, in the current order of columns and
/// with the small columns first.
fn measure(
    subject: &OpenedFile,
    table: &TableSchema,
    sample: &TreeSample,
    column: &str,
    small: &[&str],
) -> Result<Option<ReadCost>, CheckError> {
    let stored = table.columns.iter().filter(|column| column.kind != ColumnKind::GeneratedVirtual);
    let names: Vec<&str> = stored.map(|column| column.name.as_str()).collect();
    let is_small = |name: &&&str| small.contains(*name);
    let mut first: Vec<&str> = names.iter().filter(is_small).copied().collect();
    first.extend(names.iter().filter(|name| !small.contains(name)));
    let copy = Connection::open_in_memory()?;
    copy.execute_batch(&format!("PRAGMA page_size = {}", subject.header.page_size))?;
    let rows_count = copy_rows(subject, table, sample, &copy, &names)?;
    if rows_count == 0 {
        return Ok(None);
    }
    let list = |names: &[&str]| {
        names.iter().map(|name| quote_if_needed(name)).collect::<Vec<_>>().join(", ")
    };
    copy.execute_batch(&format!(
        "CREATE TABLE small_first ({0}); INSERT INTO small_first SELECT {0} FROM as_is",
        list(&first)
    ))?;
    let mut times = [Vec::new(), Vec::new()];
    for _ in 0..MEASURED_ROUNDS {
        for (name, times) in ["as_is", "small_first"].iter().zip(&mut times) {
            let mut scan = copy
                .prepare_cached(&format!("SELECT max({}) FROM {name}", quote_if_needed(column)))?;
            let started = clock::now();
            scan.query_row([], |_| Ok(()))?;
            times.push((clock::now() - started).as_secs_f64());
        }
    }
    let [as_is_us, small_first_us] = times.map(|mut times| {
        times.sort_by(f64::total_cmp);
        times[times.len() / 2] * 1e6 / to_f64(rows_count.try_into().unwrap_or(1))
    });
    Ok(Some(ReadCost { rows_count, as_is_us, small_first_us }))
}

/// Copies sampled rows into a table `as_is` of another database. Returns the number of copied rows.
fn copy_rows(
    subject: &OpenedFile,
    table: &TableSchema,
    sample: &TreeSample,
    copy: &Connection,
    names: &[&str],
) -> Result<usize, CheckError> {
    let columns: Vec<String> = names.iter().map(|name| quote_if_needed(name)).collect();
    let columns = columns.join(", ");
    copy.execute_batch(&format!("CREATE TABLE as_is ({columns})"))?;
    let marks = vec!["?"; names.len()].join(", ");
    let mut insert = copy.prepare(&format!("INSERT INTO as_is VALUES ({marks})"))?;
    let select = format!("SELECT {columns} FROM {} WHERE rowid = ?1", quote_if_needed(&table.name));
    let mut select = subject.db.prepare(&select)?;
    let (mut copied, mut size) = (0, 0);
    let stride = (sample.rows().count() / MEASURED_ROWS_MAX).max(1);
    for row in sample.rows().step_by(stride) {
        if copied >= MEASURED_ROWS_MAX || size + row.payload_size > MEASURED_BYTES_MAX {
            break;
        }
        subject.grant_time(Duration::MAX);
        let values = select.query_row([row.rowid], |row| {
            (0..names.len()).map(|index| row.get(index)).collect::<Result<Vec<Value>, _>>()
        });
        match values {
            Ok(values) => {
                insert.execute(rusqlite::params_from_iter(values))?;
                copied += 1;
                size += row.payload_size;
            }
            // The row was deleted after it was sampled.
            Err(rusqlite::Error::QueryReturnedNoRows) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(copied)
}

fn check_fill(subject: &OpenedFile, log: &mut CheckResults) {
    let page_bytes = f64::from(subject.header.page_size);
    for table in subject.user_tables() {
        let indexes = table.indexes.iter().map(|index| &index.name);
        for name in indexes.chain([&table.name]) {
            let Some(sample) = subject.sample_of(name) else { continue };
            let size = sample.leaves() * page_bytes;
            if size >= BYTES_MIN && sample.fill() < FILL_MIN {
                log.add(pages_half_empty(name, sample, size));
            }
        }
    }
}

fn pages_half_empty(name: &str, sample: &TreeSample, size: f64) -> DoctorFinding {
    let what = format!("the pages of {name} are {} full", format_percent(sample.fill()));
    DoctorFinding::new(FindingCode::PagesHalfEmpty, what, Fix::Sql("VACUUM;".to_owned()))
        .evidence(format!(
            "about {} leaf pages, {} of them sampled",
            format_estimate(sample.leaves()),
            sample.leaves_seen()
        ))
        .detail("name", name)
        .detail("fill_ratio", sample.fill())
        .detail("estimated_leaves_count", sample.leaves().round())
        .impact(format!(
            "About {} of {} is empty space, which is read and cached, too.",
            DecimalBytes(round_to_u64(size * (1.0 - sample.fill()))),
            DecimalBytes(round_to_u64(size))
        ))
}
