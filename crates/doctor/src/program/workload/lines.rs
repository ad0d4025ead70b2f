//! Parses one line of a log: which log format it has, and its content.
//!
//! A format is recognized by the text around the statement, anywhere in the line: loggers put
//! times, levels and tags before it.

use std::borrow::Cow;

/// The content of a log line.
#[derive(Debug, PartialEq)]
pub(super) enum LogLine<'a> {
    /// The start of a statement, in a log format that marks it.
    Statement {
        sql: &'a str,
        us: Option<f64>,
        /// The text of a list of values, as Ruby or Python prints it.
        values: Option<&'a str>,
        /// Whether no other line belongs to the statement.
        is_whole: bool,
        /// Whether the text is the program's own, without inserted values.
        is_verbatim: bool,
    },
    /// The values of the previous statement.
    Values(&'a str),
    /// A statement that does not read or write rows, or that was not run.
    Other,
    /// A part of a plain statement, or unrelated text.
    Text(&'a str),
}

/// The keywords that begin a statement that reads or writes rows.
const VERBS: [&str; 7] = ["SELECT", "INSERT", "UPDATE", "DELETE", "REPLACE", "WITH", "VALUES"];
/// The keywords that begin other statements.
const OTHERS: [&str; 15] = [
    "BEGIN",
    "COMMIT",
    "ROLLBACK",
    "SAVEPOINT",
    "RELEASE",
    "PRAGMA",
    "CREATE",
    "DROP",
    "ALTER",
    "ANALYZE",
    "REINDEX",
    "VACUUM",
    "ATTACH",
    "DETACH",
    "EXPLAIN",
];
/// The maximum number of calls that is accepted for one statement.
const LISTS_MAX: u64 = 1_000_000_000;
/// The name of SQLAlchemy's logger.
const SQLALCHEMY: &str = "sqlalchemy.engine";

pub(super) fn read(line: &str) -> LogLine<'_> {
    sqlalchemy(line).or_else(|| rails(line)).or_else(|| django(line)).unwrap_or(LogLine::Text(line))
}

/// Removes the escape sequences that color a terminal.
pub(super) fn without_colours(line: &str) -> Cow<'_, str> {
    if !line.contains("\x1b[") {
        return Cow::Borrowed(line);
    }
    let mut parts = line.split("\x1b[");
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let end = part.find(|c: char| c.is_ascii_alphabetic()).map_or(part.len(), |at| at + 1);
        plain.push_str(&part[end..]);
    }
    Cow::Owned(plain)
}

/// Checks whether the text begins a statement that reads or writes rows.
pub(super) fn begins(text: &str) -> bool {
    first_is(text, &VERBS)
}

pub(super) fn is_other(text: &str) -> bool {
    first_is(text, &OTHERS) || text.starts_with("--")
}

fn first_is(text: &str, words: &[&str]) -> bool {
    let size = text.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(text.len());
    words.iter().any(|word| word.eq_ignore_ascii_case(&text[..size]))
}

/// Splits off the nanoseconds that SQLite's shell appends to a statement with `.trace --profile`.
/// Returns the statement and microseconds.
pub(super) fn without_profile(line: &str) -> (&str, Option<f64>) {
    let parts = line.trim_end().strip_suffix(" ns").and_then(|line| line.rsplit_once("; -- "));
    let taken = parts.and_then(|(sql, ns)| Some((sql, time(ns)? / 1_000.0)));
    taken.map_or((line, None), |(sql, us)| (sql, Some(us)))
}

/// Parses a line of SQLAlchemy: `… INFO sqlalchemy.engine.Engine SELECT a`, with the rest of the
/// statement in the lines below, and then
/// `… INFO sqlalchemy.engine.Engine [generated in 0.00010s] ('x', 1)`, which is not the run time.
fn sqlalchemy(line: &str) -> Option<LogLine<'_>> {
    let behind = &line[line.find(SQLALCHEMY)? + SQLALCHEMY.len()..];
    let is_name = |c: char| c.is_alphanumeric() || c == '.' || c == '_';
    let message = behind.trim_start_matches(is_name).trim_start_matches([':', ']', ' ', '-', '|']);
    let values = match message.strip_prefix('[') {
        Some(about) => about.split_once("] ").map(|(_, values)| values),
        None => message.starts_with(['(', '{']).then_some(message),
    };
    Some(match values {
        Some(values) => LogLine::Values(values),
        None if begins(message) => {
            let (us, values, is_whole) = (None, None, false);
            LogLine::Statement { sql: message, us, values, is_whole, is_verbatim: true }
        }
        None => LogLine::Other,
    })
}

/// Parses a line of Rails: `  User Load (0.2ms)  SELECT … WHERE "id" = ?  [["id", 1]]`. A statement
/// that Rails' own cache answered did not reach the database.
fn rails(line: &str) -> Option<LogLine<'_>> {
    let end = line.find("ms)")?;
    let start = line[..end].rfind('(')?;
    let ms = time(&line[start + 1..end])?;
    let sql = line[end + 3..].trim_start();
    if !begins(sql) || line[..start].contains("CACHE ") {
        return Some(LogLine::Other);
    }
    let (sql, values) = match sql.rfind("  [[") {
        Some(at) => (&sql[..at], Some(sql[at..].trim())),
        None => (sql, None),
    };
    let us = Some(ms * 1_000.0);
    Some(LogLine::Statement { sql, us, values, is_whole: true, is_verbatim: true })
}

/// Parses a line of Django: `(0.001) SELECT …; args=(1,); alias=default`, whose statement contains
/// the values.
fn django(line: &str) -> Option<LogLine<'_>> {
    let (start, end, seconds) = line.match_indices('(').find_map(|(start, _)| {
        let size = line[start..].find(") ")?;
        let number = &line[start + 1..start + size];
        let is_time = number.split_once('.').is_some_and(|(_, places)| places.len() == 3);
        Some((start, start + size + 2, time(number).filter(|_| is_time)?))
    })?;
    // A number in the middle of a statement is not Django's time.
    if line[..start].ends_with(|c: char| !c.is_whitespace()) {
        return None;
    }
    let sql = line[end..].trim_start();
    if !begins(sql) {
        return Some(LogLine::Other);
    }
    let whole = sql.rfind("; args=");
    let sql = &sql[..whole.unwrap_or(sql.len())];
    let us = Some(seconds * 1_000_000.0);
    let is_whole = whole.is_some();
    Some(LogLine::Statement { sql, us, values: None, is_whole, is_verbatim: false })
}

/// Parses a time in digits, without `inf`, which is also a valid `f64`.
fn time(text: &str) -> Option<f64> {
    let is_number = text.starts_with(|c: char| c.is_ascii_digit());
    text.parse().ok().filter(|time: &f64| is_number && time.is_finite())
}

/// Returns how often a statement ran, where SQLAlchemy does not show all lists of values:
/// `… displaying 10 of 1000 total bound parameter sets …`.
pub(super) fn lists_count(values: &str) -> Option<u64> {
    let (before, _) = values.split_once(" total bound parameter sets")?;
    before.rsplit(' ').next()?.parse().ok().filter(|count| *count <= LISTS_MAX)
}
