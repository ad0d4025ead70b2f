//! Interprets the lines of `PRAGMA integrity_check`, and creates a finding with a fix for each
//! kind.

use std::collections::BTreeMap;

use sqlite_schema::TableSchema;

use crate::catalogue::finding_code::FindingCode;
use crate::environment::file_environment::FileEnvironment;
use crate::file::opened_file::OpenedFile;
use crate::file::schema::{DatabaseSchema, quote_if_needed};
use crate::file::unreadable::recovery_advice;
use crate::report::CheckResults;
use crate::report::finding::{DoctorFinding, Fix};

/// The maximum number of lines that one finding shows.
const LINES_MAX: usize = 5;

/// The kind of fault that a line reports, with the name of the faulty object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum IntegrityFault {
    /// An index and its table differ. The index can be rebuilt.
    Index(String),
    /// Two rows have the same value in a unique index.
    Duplicate(String),
    /// A row violates CHECK, NOT NULL or the types of a STRICT table.
    Constraint(String),
    /// A virtual table's own check has failed.
    Virtual(String),
    /// Anything else is damaged: pages, trees, the list of free pages.
    Page,
}

impl IntegrityFault {
    /// Parses a line as SQLite 3.54 writes it (`pragma.c`, `btree.c`, `fts5_main.c`, `rtree.c`).
    fn from_line(line: &str) -> Self {
        let behind = |word: &str| line.split_once(word).map(|(_, name)| name.to_owned());
        let names_index = [
            " missing from index ",
            "wrong # of entries in index ",
            " values differ from index ",
            "-of-record for row ",
        ];
        if let Some(index) = behind("non-unique entry in index ") {
            return Self::Duplicate(index);
        }
        if let Some(text) = names_index.iter().find_map(|text| behind(text)) {
            let index = text.split_once(" of index ").map(|(_, index)| index.to_owned());
            return Self::Index(index.unwrap_or(text));
        }
        if let Some(table) = behind("CHECK constraint failed in ") {
            return Self::Constraint(table);
        }
        if let Some(column) = behind(" value in ").filter(|_| !line.contains(':')) {
            return Self::Constraint(column);
        }
        for text in [
            "inverted index for FTS5 table ",
            "inverted index for FTS4 table ",
            "inverted index for FTS3 table ",
            "In RTree ",
        ] {
            if let Some(name) = behind(text) {
                let name = name.split(':').next().unwrap_or_default();
                return Self::Virtual(name.trim_start_matches("main.").to_owned());
            }
        }
        Self::Page
    }
}

/// Reports these lines, which SQLite returned for a table or, without one, for the whole file.
pub(super) fn report_faults(
    lines: &[String],
    table: Option<&TableSchema>,
    subject: &OpenedFile,
    log: &mut CheckResults,
) {
    let schema = &subject.schema;
    let mut by_fault = BTreeMap::<IntegrityFault, Vec<&str>>::new();
    for line in lines {
        by_fault.entry(IntegrityFault::from_line(line)).or_default().push(line);
    }
    for (fault, lines) in by_fault {
        let finding = match &fault {
            IntegrityFault::Index(index) => index_broken(index, schema),
            IntegrityFault::Duplicate(index) => duplicate(index, schema),
            IntegrityFault::Constraint(name) => constraint(name),
            IntegrityFault::Virtual(name) => virtual_table(name, schema),
            IntegrityFault::Page => page(table, &subject.environment),
        };
        let mut finding = finding.detail("faults_count", lines.len());
        for line in lines.iter().take(LINES_MAX) {
            finding = finding.evidence(*line);
        }
        let left = lines.len().saturating_sub(LINES_MAX);
        if left > 0 {
            finding = finding.evidence(format!("and {left} more"));
        }
        log.add(finding);
    }
}

fn index_broken(index: &str, schema: &DatabaseSchema) -> DoctorFinding {
    let table = table_of(index, schema).map_or("", |table| table.name.as_str());
    let what = format!("the index {index} and its table {table} differ");
    DoctorFinding::new(
        FindingCode::IndexBroken,
        what,
        Fix::Sql(format!("REINDEX {};", quote_if_needed(index))),
    )
    .detail("index", index)
    .detail("table", table)
    .impact("Queries that use the index miss rows, or find rows that no longer exist.")
}

fn duplicate(index: &str, schema: &DatabaseSchema) -> DoctorFinding {
    let table = table_of(index, schema);
    let columns = table.and_then(|table| {
        let index = table.indexes.iter().find(|it| it.name == index)?;
        let columns = index.column_names()?.into_iter().map(quote_if_needed);
        Some((table, columns.collect::<Vec<_>>().join(", ")))
    });
    let name = quote_if_needed(index);
    let advice = columns.map_or_else(
        || {
            format!(
                "Find the rows that have the same value in {index}, and delete or change all but \
                 one of each value."
            )
        },
        |(table, columns)| {
            format!(
                "Find the values: SELECT {columns}, count(*) FROM {} NOT INDEXED GROUP BY \
                 {columns} HAVING count(*) > 1. Delete or change all rows but one of each value; \
                 then REINDEX {name}.",
                quote_if_needed(&table.name)
            )
        },
    );
    let what = format!("the unique index {index} has the same value more than once");
    DoctorFinding::new(FindingCode::UniqueViolated, what, Fix::Advice(advice))
        .detail("index", index)
        .detail("table", table.map_or("", |table| table.name.as_str()))
        .impact("Which of the rows a query finds depends on its plan; VACUUM and REINDEX fail.")
}

/// Creates the finding for `name`, which is a table or one of its columns.
fn constraint(name: &str) -> DoctorFinding {
    let advice = format!(
        "Read the constraints in the declaration of {name}, find the rows that violate them, and \
         correct or delete these rows."
    );
    DoctorFinding::new(
        FindingCode::ConstraintViolated,
        format!("rows violate a constraint of {name}"),
        Fix::Advice(advice),
    )
    .detail("name", name)
    .impact(
        "Each later change of such a row fails, and programs that rely on the constraint can fail.",
    )
}

pub(super) fn virtual_table(name: &str, schema: &DatabaseSchema) -> DoctorFinding {
    let table = schema.virtual_tables.iter().find(|table| table.name == name);
    let module = table.map_or("", |table| table.module.as_str());
    let fix = if module.starts_with("fts") {
        let name = quote_if_needed(name);
        Fix::Sql(format!("INSERT INTO {name} ({name}) VALUES ('rebuild');"))
    } else {
        let advice = "Re-create it: drop it, create it with the same declaration, and fill it from \
                      the table that it indexes.";
        Fix::Advice(advice.to_owned())
    };
    DoctorFinding::new(
        FindingCode::VirtualTableBroken,
        format!("{name} is inconsistent with the content that it indexes"),
        fix,
    )
    .detail("table", name)
    .detail("module", module)
    .impact("Searches miss rows, or find rows that no longer exist.")
}

fn page(table: Option<&TableSchema>, environment: &FileEnvironment) -> DoctorFinding {
    let what = match table {
        Some(table) => format!("table {} fails the integrity check", table.name),
        None => "the file fails the integrity check".to_owned(),
    };
    let finding = DoctorFinding::new(FindingCode::PageBroken, what, recovery_advice(environment));
    let finding = match table {
        Some(table) => finding.detail("table", table.name.as_str()),
        None => finding,
    };
    finding.impact("Rows are wrong or cannot be read, and each write may spread the damage.")
}

fn table_of<'a>(index: &str, schema: &'a DatabaseSchema) -> Option<&'a TableSchema> {
    schema.tables.iter().find(|table| table.indexes.iter().any(|it| it.name == index))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_is_understood() {
        let index = |name: &str| IntegrityFault::Index(name.to_owned());
        for (line, fault) in [
            ("row 7 missing from index t_x", index("t_x")),
            ("wrong # of entries in index t_x", index("t_x")),
            ("row 7 values differ from index t_x", index("t_x")),
            ("rowid not at end-of-record for row 7 of index t_x", index("t_x")),
            ("non-unique entry in index t_x", IntegrityFault::Duplicate("t_x".to_owned())),
            ("CHECK constraint failed in t", IntegrityFault::Constraint("t".to_owned())),
            ("NULL value in t.x", IntegrityFault::Constraint("t.x".to_owned())),
            ("non-INTEGER value in t.x", IntegrityFault::Constraint("t.x".to_owned())),
            (
                "malformed inverted index for FTS5 table main.f",
                IntegrityFault::Virtual("f".to_owned()),
            ),
            ("In RTree main.r:\nWrong number of entries", IntegrityFault::Virtual("r".to_owned())),
            ("Tree 3 page 5: btreeInitPage() returns error code 11", IntegrityFault::Page),
            ("Page 7: never used", IntegrityFault::Page),
            ("Freelist: size is 3 but should be 4", IntegrityFault::Page),
        ] {
            assert_eq!(IntegrityFault::from_line(line), fault, "{line}");
        }
    }
}
