//! Checks the settings that were chosen, or kept as defaults, when the file was created.

use engine::Cipher;
use indicatif::{DecimalBytes, HumanCount};

use crate::catalogue::finding_code::FindingCode;
use crate::file::check_error::CheckError;
use crate::file::opened_file::OpenedFile;
use crate::report::CheckResults;
use crate::report::finding::{DoctorFinding, Fix};

/// SQLite's own default since 3.12.0.
const PAGE_SIZE: u32 = 4_096;
/// The minimum file size. In smaller files, the page size has no noticeable effect.
const PAGE_SIZE_FILE_BYTES_MIN: u64 = 10_000_000;
/// The first schema format with descending indexes
/// (<https://sqlite.org/fileformat.html#schema_format_number>).
const FORMAT_WITH_DESCENDING: u32 = 4;

pub(crate) fn check(subject: &OpenedFile, log: &mut CheckResults) -> Result<(), CheckError> {
    check_identity(subject, log);
    check_page_size(subject, log);
    check_format(subject, log)?;
    if subject.cipher == Some(Cipher::Aes256Cbc) {
        let fix = "Create a new file with chacha20 or aegis, and copy the rows: VACUUM INTO with \
                    the new key.";
        let what = "the cipher does not authenticate its pages";
        let finding = DoctorFinding::new(
            FindingCode::CipherUnauthenticated,
            what,
            Fix::Advice(fix.to_owned()),
        )
        .evidence("the file opens as aes256cbc")
        .detail("cipher", Cipher::Aes256Cbc.name())
        .impact("Anyone who can write to the file can change its content unnoticed.");
        log.add(finding);
    }
    Ok(())
}

/// The tables in which migration tools record their migrations.
const MIGRATION_TABLES: &[&str] = &[
    "__EFMigrationsHistory",
    "__diesel_schema_migrations",
    "__drizzle_migrations",
    "_prisma_migrations",
    "_sqlx_migrations",
    "alembic_version",
    "django_migrations",
    "flyway_schema_history",
    "goose_db_version",
    "knex_migrations",
    "refinery_schema_history",
    "schema_migrations",
    "typeorm_migrations",
];

/// Reports unset ids only in files with a migration table: the version of others does not matter.
fn check_identity(subject: &OpenedFile, log: &mut CheckResults) {
    let header = &subject.header;
    let ids = [("application_id", header.application_id), ("user_version", header.user_version)];
    let unset: Vec<&str> = ids.iter().filter(|(_, id)| *id == 0).map(|(name, _)| *name).collect();
    let mut tables = subject.user_tables().map(|table| table.name.as_str());
    let Some(tool) = tables.find(|name| MIGRATION_TABLES.contains(name)) else { return };
    if unset.is_empty() {
        return;
    }
    let fix = unset.iter().map(|name| format!("PRAGMA {name} = N"));
    let fix = fix.collect::<Vec<_>>().join(" and ");
    let fix = format!("Run {fix} once, with numbers that you choose.");
    let verb = if unset.len() == 1 { "is" } else { "are" };
    let what = format!("{} {verb} not set", unset.join(" and "));
    let finding = DoctorFinding::new(FindingCode::IdentityUnset, what, Fix::Advice(fix))
        .evidence(format!("0 in the header; the table {tool} contains the version of the schema"))
        .detail("unset", unset)
        .detail("migration_table", tool)
        .impact("A program that does not use this migration tool cannot find out the version.");
    log.add(finding);
}

fn check_page_size(subject: &OpenedFile, log: &mut CheckResults) {
    let size = subject.header.page_size;
    if size >= PAGE_SIZE || subject.pages_bytes() < PAGE_SIZE_FILE_BYTES_MIN {
        return;
    }
    let mut fix = format!("PRAGMA page_size = {PAGE_SIZE};\nVACUUM;");
    if subject.header.is_wal {
        fix = format!("PRAGMA journal_mode = DELETE;\n{fix}\nPRAGMA journal_mode = WAL;");
    }
    let pages = HumanCount(subject.pages_count());
    let finding = DoctorFinding::new(
        FindingCode::PageSizeSmall,
        format!("the pages have only {size} bytes"),
        Fix::Sql(fix),
    )
    .evidence(format!(
        "{pages} pages of {size} bytes, {} in total",
        DecimalBytes(subject.pages_bytes())
    ))
    .detail("page_bytes", size)
    .impact("The same rows need deeper trees and more I/O calls.");
    log.add(finding);
}

fn check_format(subject: &OpenedFile, log: &mut CheckResults) -> Result<(), CheckError> {
    if subject.header.schema_format >= FORMAT_WITH_DESCENDING {
        return Ok(());
    }
    // For such a file, SQLite reports each index as ascending: only the SQL text shows DESC.
    let sql = "SELECT name, sql FROM sqlite_schema WHERE type = 'index' AND sql IS NOT NULL";
    let indexes: Vec<(String, String)> =
        subject.rows(sql, [], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let is_desc = |word: &str| word.eq_ignore_ascii_case("desc");
    let says_desc = |sql: &str| sql.split(|c: char| !c.is_alphanumeric()).any(is_desc);
    let descending = indexes.into_iter().filter(|(_, sql)| says_desc(sql));
    let names: Vec<String> = descending.map(|(name, _)| name).collect();
    if names.is_empty() {
        return Ok(());
    }
    let what = format!("DESC is ignored in {}", names.join(", "));
    let fix = "PRAGMA legacy_file_format = OFF;\nVACUUM;".to_owned();
    let format = subject.header.schema_format;
    let finding = DoctorFinding::new(FindingCode::DescendingIgnored, what, Fix::Sql(fix))
        .evidence(format!("the schema has format {format}, which has only ascending indexes"))
        .detail("indexes", names)
        .detail("schema_format", format)
        .impact("A query with ORDER BY a ASC, b DESC still sorts its rows.");
    log.add(finding);
    Ok(())
}
