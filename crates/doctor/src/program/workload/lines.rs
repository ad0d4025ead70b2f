//! One line of a log: whose it is, and what it says.
//!
//! Recognised by what stands around the statement, wherever in the line that is: loggers put times,
//! levels and tags before it.

use std::borrow::Cow;

/// What a line is.
#[derive(Debug, PartialEq)]
pub(super) enum LogLine<'a> {
    /// A statement begins, in a log that says so.
    Statement {
        sql: &'a str,
        us: Option<f64>,
        /// As text: of a list, in Ruby's or Python's words.
        values: Option<&'a str>,
        /// No other line belongs to it.
        is_whole: bool,
        /// The text is the program's: no value was put into it.
        is_verbatim: bool,
    },
    /// The values of the statement before it.
    Values(&'a str),
    /// A statement that reads and writes no rows, or one that was not run.
    Other,
    /// Of a statement as such, or of nothing.
    Text(&'a str),
}

/// What reads or writes rows.
const VERBS: [&str; 7] = ["SELECT", "INSERT", "UPDATE", "DELETE", "REPLACE", "WITH", "VALUES"];
/// What else may begin a line as a statement.
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
/// What one statement is believed to have been called with.
const LISTS_MAX: u64 = 1_000_000_000;
/// How SQLAlchemy names its logger.
const SQLALCHEMY: &str = "sqlalchemy.engine";

pub(super) fn read(line: &str) -> LogLine<'_> {
    sqlalchemy(line).or_else(|| rails(line)).or_else(|| django(line)).unwrap_or(LogLine::Text(line))
}

/// Without what colours a terminal.
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

/// Does a statement begin with this?
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

/// A statement with the nanoseconds that SQLite's shell writes behind it with `.trace --profile`.
pub(super) fn without_profile(line: &str) -> (&str, Option<f64>) {
    let parts = line.trim_end().strip_suffix(" ns").and_then(|line| line.rsplit_once("; -- "));
    let taken = parts.and_then(|(sql, ns)| Some((sql, time(ns)? / 1_000.0)));
    taken.map_or((line, None), |(sql, us)| (sql, Some(us)))
}

/// `… INFO sqlalchemy.engine.Engine SELECT a`, the rest of it in the lines below, and then
/// `… INFO sqlalchemy.engine.Engine [generated in 0.00010s] ('x', 1)`, which is not the time that it
/// ran.
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

/// `  User Load (0.2ms)  SELECT … WHERE "id" = ?  [["id", 1]]`; what came from Rails' own cache was
/// not asked for.
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

/// `(0.001) SELECT …; args=(1,); alias=default`, with the values in the statement.
fn django(line: &str) -> Option<LogLine<'_>> {
    let (start, end, seconds) = line.match_indices('(').find_map(|(start, _)| {
        let size = line[start..].find(") ")?;
        let number = &line[start + 1..start + size];
        let is_time = number.split_once('.').is_some_and(|(_, places)| places.len() == 3);
        Some((start, start + size + 2, time(number).filter(|_| is_time)?))
    })?;
    // A number in the middle of a statement is none of Django's.
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

/// In digits; not `inf`, which a number may be, too.
fn time(text: &str) -> Option<f64> {
    let is_number = text.starts_with(|c: char| c.is_ascii_digit());
    text.parse().ok().filter(|time: &f64| is_number && time.is_finite())
}

/// How often a statement ran, where SQLAlchemy does not show all lists of values: `… displaying
/// 10 of 1000 total bound parameter sets …`
pub(super) fn lists_count(values: &str) -> Option<u64> {
    let (before, _) = values.split_once(" total bound parameter sets")?;
    before.rsplit(' ').next()?.parse().ok().filter(|count| *count <= LISTS_MAX)
}
