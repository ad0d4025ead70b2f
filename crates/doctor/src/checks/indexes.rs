//! Indexes that only cost: those that another one, or the table itself, makes needless.

use std::cmp::Ordering;

use crate::figure::{about, bytes, whole};
use crate::finding::{Finding, Mend};
use crate::report::Log;
use crate::schema::{Index, Key, Origin, Table, quoted};
use crate::subject::Subject;
use crate::tree::Sample;
use crate::trouble::Trouble;

/// The start of another index is worth a word from so many bytes on: a short index is quicker to
/// read than a long one.
const PREFIX_BYTES_MIN: f64 = 100_000.0;

/// What makes an index needless.
enum Instead<'a> {
    Index(&'a Index),
    /// The row id itself, which a table is sorted by.
    RowId,
}

pub(crate) fn check(subject: &Subject, log: &mut Log) -> Result<(), Trouble> {
    for table in subject.user_tables() {
        for index in table.indexes.iter().filter(|index| index.origin == Origin::Created) {
            if let Some((code, instead)) = instead_of(table, index)
                && (code == "index_duplicate" || size(subject, index) >= PREFIX_BYTES_MIN)
            {
                log.find(needless(subject, table, index, code, &instead));
            }
            check_collation(subject, table, index, log)?;
        }
    }
    log.check("indexes that others make needless");
    Ok(())
}

/// Drops the index, unless a view or a trigger names it (`INDEXED BY`): that would not work any more.
pub(crate) fn drop_index(subject: &Subject, name: &str) -> Mend {
    let users = subject.schema.users_of_index(name);
    if users.is_empty() {
        return Mend::Sql(format!("DROP INDEX {};", quoted(name)));
    }
    let users = users.join(", ");
    Mend::Advice(format!(
        "{users} names the index (INDEXED BY): make that anew without it first, and then: DROP \
         INDEX {}.",
        quoted(name)
    ))
}

fn size(subject: &Subject, index: &Index) -> f64 {
    let pages = subject.sample_of(index.root).map_or(0.0, Sample::pages);
    pages * f64::from(subject.header.page_size)
}

fn instead_of<'a>(table: &'a Table, index: &Index) -> Option<(&'static str, Instead<'a>)> {
    if index.is_partial || index.columns.iter().any(|key| key.column.is_none()) {
        return None;
    }
    let rowid = table.rowid_column().map(|column| column.name.as_str());
    if let [Key { column: Some(name), .. }] = &index.columns[..]
        && rowid.is_some_and(|rowid| rowid.eq_ignore_ascii_case(name))
    {
        return Some(("index_duplicate", Instead::RowId));
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
        // Of two that are the same, the later in the alphabet goes.
        let is_twin = is_whole
            && other.origin == Origin::Created
            && other.is_unique == index.is_unique
            && other.name.cmp(&index.name) == Ordering::Greater;
        let code = if is_whole { "index_duplicate" } else { "index_prefix" };
        (!is_twin).then_some((code, Instead::Index(other)))
    })
}

fn needless(
    subject: &Subject,
    table: &Table,
    index: &Index,
    code: &'static str,
    instead: &Instead<'_>,
) -> Finding {
    let name = &index.name;
    let (other, columns, reason) = match instead {
        Instead::RowId => {
            ("the primary key".to_owned(), "the row id".to_owned(), "which sorts the table itself")
        }
        Instead::Index(other) => {
            let reason = match other.origin {
                Origin::Created => "which was also created",
                Origin::UniqueConstraint => "which the UNIQUE constraint keeps",
                Origin::PrimaryKey => "which the primary key keeps",
            };
            (other.name.clone(), other.columns_text(), reason)
        }
    };
    let what = match code {
        "index_duplicate" => format!("{name} on {} is a copy of {other}", table.name),
        _ => format!("{name} on {} is the start of {other}", table.name),
    };
    let size = size(subject, index);
    let rows = subject.sample_of(index.root).map_or(0.0, Sample::entries);
    Finding::new(code, what, drop_index(subject, name))
        .evidence(format!("{name} ({})", index.columns_text()))
        .evidence(format!("{other} ({columns}), {reason}"))
        .field("table", table.name.as_str())
        .field("index", name.as_str())
        .field("instead", other)
        .field("index_bytes", whole(size))
        .cost(format!(
            "About {} for {} entries; each insert and delete writes to it, too.",
            bytes(whole(size)),
            about(rows)
        ))
}

/// A column that compares by other rules than its index gets nothing from that index, unless the
/// query says COLLATE.
fn check_collation(
    subject: &Subject,
    table: &Table,
    index: &Index,
    log: &mut Log,
) -> Result<(), Trouble> {
    let Some(Key { column: Some(column), collation, .. }) = index.columns.first() else {
        return Ok(());
    };
    let metadata =
        subject.db.column_metadata(Some("main"), table.name.as_str(), column.as_str())?;
    let of_column = metadata.1.map_or("BINARY".into(), |name| name.to_string_lossy());
    if collation.eq_ignore_ascii_case(&of_column) {
        return Ok(());
    }
    let what = format!("{} sorts {column} by {collation}, its column by {of_column}", index.name);
    let mend = format!(
        "If queries are to compare by {collation}, they must say so: WHERE {column} = ?1 COLLATE \
         {collation}. If not, drop the index: DROP INDEX {}.",
        quoted(&index.name)
    );
    let finding = Finding::new("index_collation", what, Mend::Advice(mend))
        .evidence(format!("{} ({})", index.name, index.columns_text()))
        .field("table", table.name.as_str())
        .field("index", index.name.as_str())
        .field("column", column.as_str())
        .field("index_collation", collation.as_str())
        .field("column_collation", of_column.as_ref())
        .cost(format!("`{column} = ?` and `ORDER BY {column}` scan the table."));
    log.find(finding);
    Ok(())
}
