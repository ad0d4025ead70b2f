//! Checks for indexes that only cost: another index, or the table itself, makes them redundant.

use std::cmp::Ordering;

use indicatif::DecimalBytes;
use sqlite_schema::{IndexKeyColumn, IndexOrigin, IndexSchema, TableSchema};

use crate::catalogue::finding_code::FindingCode;
use crate::file::btree_sample::TreeSample;
use crate::file::check_error::CheckError;
use crate::file::opened_file::OpenedFile;
use crate::file::schema::quote_if_needed;
use crate::format::{format_estimate, round_to_u64};
use crate::report::CheckResults;
use crate::report::finding::{DoctorFinding, Fix};

/// The minimum size at which an index that is the start of another is reported: a short index is
/// faster to read than a long one.
const PREFIX_BYTES_MIN: f64 = 100_000.0;

/// The reason why an index is redundant.
enum RedundancyCause<'a> {
    Index(&'a IndexSchema),
    /// The row id itself, by which a table is sorted.
    RowId,
}

pub(crate) fn check(subject: &OpenedFile, log: &mut CheckResults) -> Result<(), CheckError> {
    for table in subject.user_tables() {
        for index in table.indexes.iter().filter(|index| index.origin == IndexOrigin::Created) {
            if let Some((code, instead)) = redundancy_of(table, index)
                && (code == FindingCode::IndexDuplicate || size(subject, index) >= PREFIX_BYTES_MIN)
            {
                log.add(redundant_index(subject, table, index, code, &instead));
            }
            check_collation(subject, table, index, log)?;
        }
    }
    log.add_checked("redundant indexes and index collations");
    Ok(())
}

/// Returns the fix that drops the index, or advice if a view or a trigger names it (`INDEXED BY`)
/// and would fail without it.
pub(crate) fn drop_index(subject: &OpenedFile, name: &str) -> Fix {
    let users = subject.schema.users_of_index(name);
    if users.is_empty() {
        return Fix::Sql(format!("DROP INDEX {};", quote_if_needed(name)));
    }
    let users = users.join(", ");
    Fix::Advice(format!(
        "First re-create {users} without INDEXED BY {0}, then run: DROP INDEX {0}.",
        quote_if_needed(name)
    ))
}

fn size(subject: &OpenedFile, index: &IndexSchema) -> f64 {
    let pages = subject.sample_of(&index.name).map_or(0.0, TreeSample::pages);
    pages * f64::from(subject.header.page_size)
}

fn redundancy_of<'a>(
    table: &'a TableSchema,
    index: &IndexSchema,
) -> Option<(FindingCode, RedundancyCause<'a>)> {
    if index.is_partial || index.columns.iter().any(|key| key.column.is_none()) {
        return None;
    }
    let rowid = table.rowid_alias().map(|column| column.name.as_str());
    if let [IndexKeyColumn { column: Some(name), .. }] = &index.columns[..]
        && rowid.is_some_and(|rowid| rowid.eq_ignore_ascii_case(name))
    {
        return Some((FindingCode::IndexDuplicate, RedundancyCause::RowId));
    }
    table.indexes.iter().find_map(|other| {
        let is_same = other.name == index.name || other.is_partial;
        if is_same || !other.columns.starts_with(&index.columns) {
            return None;
        }
        let is_whole = other.columns.len() == index.columns.len();
        let keeps_unique = !index.is_unique || (is_whole && other.is_unique);
        if !keeps_unique {
            return None;
        }
        // Of two equal indexes, the later one in the alphabet is redundant.
        let is_twin = is_whole
            && other.origin == IndexOrigin::Created
            && other.is_unique == index.is_unique
            && other.name.cmp(&index.name) == Ordering::Greater;
        let code = if is_whole { FindingCode::IndexDuplicate } else { FindingCode::IndexPrefix };
        (!is_twin).then_some((code, RedundancyCause::Index(other)))
    })
}

fn redundant_index(
    subject: &OpenedFile,
    table: &TableSchema,
    index: &IndexSchema,
    code: FindingCode,
    instead: &RedundancyCause<'_>,
) -> DoctorFinding {
    let name = &index.name;
    let (other, columns, reason) = match instead {
        RedundancyCause::RowId => {
            ("the primary key".to_owned(), "the row id".to_owned(), "the order of the table itself")
        }
        RedundancyCause::Index(other) => {
            let reason = match other.origin {
                IndexOrigin::Created => "also created with CREATE INDEX",
                IndexOrigin::UniqueConstraint => "created by the UNIQUE constraint",
                IndexOrigin::PrimaryKey => "created by the PRIMARY KEY",
            };
            (other.name.clone(), other.columns_text(), reason)
        }
    };
    let what = match code {
        FindingCode::IndexDuplicate => format!("{name} on {} is a copy of {other}", table.name),
        _ => format!("{name} on {} is the start of {other}", table.name),
    };
    let size = size(subject, index);
    let rows = format_estimate(subject.sample_of(&index.name).map_or(0.0, TreeSample::entries));
    DoctorFinding::new(code, what, drop_index(subject, name))
        .evidence(format!("{name} ({})", index.columns_text()))
        .evidence(format!("{other} ({columns}), {reason}"))
        .detail("table", table.name.as_str())
        .detail("index", name.as_str())
        .detail("instead", other)
        .detail("index_bytes", round_to_u64(size))
        .impact(format!(
            "About {} for {rows} {}; each insert and delete also writes to it.",
            DecimalBytes(round_to_u64(size)),
            if rows == "1" { "entry" } else { "entries" }
        ))
}

/// Reports an index whose collation differs from that of its column. Comparisons of the column do
/// not use such an index, unless the query has a COLLATE clause.
fn check_collation(
    subject: &OpenedFile,
    table: &TableSchema,
    index: &IndexSchema,
    log: &mut CheckResults,
) -> Result<(), CheckError> {
    let Some(IndexKeyColumn { column: Some(column), collation, .. }) = index.columns.first() else {
        return Ok(());
    };
    let metadata =
        subject.db.column_metadata(Some("main"), table.name.as_str(), column.as_str())?;
    let of_column = metadata.1.map_or("BINARY".into(), |name| name.to_string_lossy());
    if collation.eq_ignore_ascii_case(&of_column) {
        return Ok(());
    }
    let what = format!(
        "{} sorts {column} with collation {collation}, but the column has collation {of_column}",
        index.name
    );
    let fix = format!(
        "If queries should compare with {collation}, add it to them: WHERE {column} = ?1 COLLATE \
         {collation}. If not, drop the index: DROP INDEX {}.",
        quote_if_needed(&index.name)
    );
    let finding = DoctorFinding::new(FindingCode::IndexCollation, what, Fix::Advice(fix))
        .evidence(format!("{} ({})", index.name, index.columns_text()))
        .detail("table", table.name.as_str())
        .detail("index", index.name.as_str())
        .detail("column", column.as_str())
        .detail("index_collation", collation.as_str())
        .detail("column_collation", of_column.as_ref())
        .impact(format!(
            "`{column} = ?` and `ORDER BY {column}` do not use the index, and scan the table."
        ));
    log.add(finding);
    Ok(())
}
