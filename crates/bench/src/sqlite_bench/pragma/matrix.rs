//! Selects the figures of one size for its matrix: the published operations; the published
//! configurations in the published order, then the baseline's repetition, then the others.

use engine::Profile;

use super::PragmaConfiguration;
use crate::format::{counted, whole};
use crate::matrix::{MatrixColumn, MatrixRow, ReportMatrix};
use crate::sqlite_bench::message::MailboxTable;
use crate::sqlite_bench::message_fixture::SETUP;
use crate::suite::ResultTable;

/// The headings of the columns, with the operations that they show.
const COLUMNS: [(&str, &str); 4] =
    [("insert", "insert"), ("select", "list"), ("update", "update"), ("set-up", SETUP)];

/// Returns the names in the order of a matrix.
pub(super) fn order(all: &[PragmaConfiguration]) -> Vec<String> {
    let is_published = |one: &&PragmaConfiguration| {
        Profile::PUBLISHED.iter().any(|profile| profile.name == one.name)
    };
    let (published, others): (Vec<_>, Vec<_>) = all.iter().partition(is_published);
    published.into_iter().chain(others).map(|one| one.name.clone()).collect()
}

/// Returns the matrix, or `None` if none of its operations was measured. A name without a file was
/// not measured.
pub(super) fn for_configurations(
    mailbox: &MailboxTable,
    order: &[String],
    files: &[(String, u64)],
    tables: &[ResultTable],
) -> Option<ReportMatrix> {
    let name = mailbox.rows.to_string();
    let columns = COLUMNS.map(|(heading, operation)| MatrixColumn {
        name: heading.into(),
        table: format!("{name}-{operation}"),
    });
    let is_there = |column: &MatrixColumn| tables.iter().any(|table| table.name == column.table);
    let columns: Vec<MatrixColumn> = columns.into_iter().filter(is_there).collect();
    let rows = order.iter().map(|name| {
        let file = files.iter().find(|(of, _)| of == name);
        MatrixRow { name: name.clone(), file_bytes: file.map(|(_, bytes)| *bytes) }
    });
    (!columns.is_empty()).then(|| ReportMatrix {
        title: format!(
            "{} messages of {}",
            whole(mailbox.rows),
            counted(mailbox.body_bytes, "byte", "bytes")
        ),
        name,
        columns,
        rows: rows.collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sqlite_bench::pragma::catalogue::configurations;

    #[test]
    fn the_published_stand_first_then_the_baseline_again() {
        let order = order(&configurations());
        assert_eq!(order[0], "production");
        let expected = ["all", "baseline", "production again", "synchronous-full"];
        assert_eq!(order[10..14], expected);
        assert_eq!(order.len(), configurations().len());
    }
}
