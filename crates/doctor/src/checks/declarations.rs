//! Checks declarations that cannot work: views and triggers on missing tables or columns, and
//! exhausted AUTOINCREMENT keys.

use sqlite_schema::TableSchema;

use crate::catalogue::finding_code::FindingCode;
use crate::file::check_error::CheckError;
use crate::file::opened_file::OpenedFile;
use crate::file::schema::{TriggerInfo, quote_if_needed};
use crate::report::CheckResults;
use crate::report::finding::{DoctorFinding, Fix};

pub(crate) fn check(subject: &OpenedFile, log: &mut CheckResults) -> Result<(), CheckError> {
    for view in &subject.schema.views {
        let sql = format!("SELECT * FROM {} LIMIT 0", quote_if_needed(&view.name));
        if let Some(message) = missing(subject, &sql)? {
            let fix =
                "Drop the view, or re-create it with tables and columns that exist.".to_owned();
            let what = format!("the view {} refers to something that does not exist", view.name);
            let finding = DoctorFinding::new(FindingCode::ViewBroken, what, Fix::Advice(fix))
                .detail("view", view.name.as_str())
                .detail("message", message.as_str())
                .impact(
                    "Each query of the view fails, and so does each rename of a table or a column.",
                );
            log.add(finding.evidence(message));
        }
    }
    for table in &subject.schema.tables {
        let triggers: Vec<&TriggerInfo> =
            subject.schema.triggers.iter().filter(|it| it.table == table.name).collect();
        if !triggers.is_empty() {
            check_triggers(subject, table, &triggers, log)?;
        }
    }
    check_sequences(subject, log)?;
    log.add_checked("views, triggers and AUTOINCREMENT");
    Ok(())
}

/// Returns SQLite's message if the schema lacks something that the statement needs. A thing that
/// only the file's own program provides, such as a function, does not count as missing.
fn missing(subject: &OpenedFile, sql: &str) -> Result<Option<String>, CheckError> {
    const MISSING: &[&str] = &["no such table", "no such column", "no such index", "circularly"];
    match subject.db.prepare(sql) {
        Ok(_) => Ok(None),
        Err(
            rusqlite::Error::SqliteFailure(_, Some(message))
            | rusqlite::Error::SqlInputError { msg: message, .. },
        ) => Ok(MISSING.iter().any(|text| message.contains(text)).then_some(message)),
        Err(error) => Err(error.into()),
    }
}

/// Compiles statements on the table, because SQLite reads a trigger when it compiles a statement on
/// the trigger's table.
fn check_triggers(
    subject: &OpenedFile,
    table: &TableSchema,
    triggers: &[&TriggerInfo],
    log: &mut CheckResults,
) -> Result<(), CheckError> {
    let name = quote_if_needed(&table.name);
    let columns = table.columns.iter().filter(|column| !column.is_generated());
    let same: Vec<String> = columns
        .map(|column| quote_if_needed(&column.name))
        .map(|column| format!("{column} = {column}"))
        .collect();
    let statements = [
        format!("INSERT INTO {name} DEFAULT VALUES"),
        format!("UPDATE {name} SET {}", same.join(", ")),
        format!("DELETE FROM {name}"),
    ];
    let mut told = Vec::new();
    for sql in statements {
        let Some(message) = missing(subject, &sql)? else { continue };
        let verb = sql.split(' ').next().unwrap_or_default();
        let word = message.rsplit([' ', '.', ':']).next().unwrap_or_default();
        let named = triggers.iter().filter(|trigger| trigger.sql.contains(word));
        let names: Vec<&str> = named.map(|trigger| trigger.name.as_str()).collect();
        if told.contains(&names) {
            continue;
        }
        let refer = match names[..] {
            [] => "a trigger refers".to_owned(),
            [name] => format!("{name} refers"),
            _ => format!("{} refer", names.join(", ")),
        };
        let what =
            format!("{verb} on {} fails: {refer} to something that does not exist", table.name);
        let fix =
            "Drop the trigger, or re-create it with tables and columns that exist.".to_owned();
        let finding = DoctorFinding::new(FindingCode::TriggerBroken, what, Fix::Advice(fix))
            .detail("table", table.name.as_str())
            .detail("triggers", names.clone())
            .detail("message", message.as_str())
            .impact(format!("Every {verb} on {} fails.", table.name));
        log.add(finding.evidence(message));
        told.push(names);
    }
    Ok(())
}

/// Reports tables whose AUTOINCREMENT has assigned the last number, and which accept no further
/// row.
fn check_sequences(subject: &OpenedFile, log: &mut CheckResults) -> Result<(), CheckError> {
    if !subject.schema.tables.iter().any(|table| table.name == "sqlite_sequence") {
        return Ok(());
    }
    let sql = "SELECT name FROM sqlite_sequence WHERE seq = 9223372036854775807";
    for table in subject.rows(sql, [], |row| row.get::<_, String>(0))? {
        let name = quote_if_needed(&table);
        let fix = format!(
            "Find the rows with such numbers: SELECT * FROM {name} ORDER BY rowid DESC LIMIT 5. \
             Give them other numbers, then run: UPDATE sqlite_sequence SET seq = (SELECT \
             max(rowid) FROM {name}) WHERE name = '{}'",
            table.replace('\'', "''")
        );
        let what = format!("the AUTOINCREMENT table {table} has used its last number");
        let finding = DoctorFinding::new(FindingCode::SequenceExhausted, what, Fix::Advice(fix))
            .detail("table", table.as_str())
            .evidence("sqlite_sequence contains 9223372036854775807 for this table")
            .impact("Each INSERT without a row id fails with \"database or disk is full\".");
        log.add(finding);
    }
    Ok(())
}
