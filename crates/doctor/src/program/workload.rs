//! Reads the statements that a program ran from its log, grouped by shape.
//!
//! One file may mix the formats that are understood (`workload/lines.rs`): plain statements, one
//! per line or ended by `;`, the output of SQLite's trace, and the logs of Django, SQLAlchemy and
//! Rails. A log is untrusted data: only statements that SQLite classifies as read-only are run, on
//! an overlay.
//!
//! # Invariants
//! - Each line is counted: it belongs to a statement, or to `unread_lines_count`.
//!
//! # Not here
//! - Examining a statement on a file → `checks/queries.rs`.

mod lines;
mod literals;

use std::collections::HashMap;
use std::io::{self, BufRead, Read};

use rusqlite::types::Value;

use self::lines::{LogLine, begins};
use super::sql;

/// The maximum size of one statement; a longer one is not read.
const STATEMENT_BYTES_MAX: usize = 256 << 10;
/// The maximum number of shapes. A log with more is not the workload of a program.
const SHAPES_MAX: usize = 10_000;
/// The maximum size of the statements of all shapes.
const BYTES_MAX: usize = 64 << 20;
/// The maximum number of checks whether a statement has ended.
const LOOKS_MAX: usize = 200;

/// The statements that a program ran, by shape.
#[derive(Clone, Debug, Default)]
pub struct QueryLog {
    by_shape: HashMap<String, LoggedShape>,
    /// The number of statements that read or write rows.
    pub(crate) statements_count: u64,
    /// The number of other statements: BEGIN, PRAGMA, CREATE.
    pub(crate) others_count: u64,
    /// The number of lines that belong to no statement.
    pub(crate) unread_lines_count: u64,
    pending: Option<UnfinishedStatement>,
    /// The size of the statements that are kept.
    bytes: usize,
}

/// The statements of one shape.
#[derive(Clone, Debug)]
pub(crate) struct LoggedShape {
    /// The statement with `?` for each value.
    pub(crate) shape: String,
    /// An example: the slowest statement, or the first whose values are known.
    pub(crate) sql: String,
    /// The parameter values of the example; `None` if the log lacks some of them.
    pub(crate) values: Option<Vec<Value>>,
    pub(crate) calls: u64,
    /// Whether the values are part of the program's own text: all statements are then the same.
    pub(crate) is_verbatim: bool,
    /// The time of all statements in microseconds; `None` if the log has no times.
    pub(crate) us: Option<f64>,
    /// The time of the slowest statement.
    longest_us: f64,
}

/// A statement of which more lines may follow.
#[derive(Clone, Debug)]
struct UnfinishedStatement {
    sql: String,
    us: Option<f64>,
    /// Whether the log format marks where the statement begins.
    is_logged: bool,
    /// Whether the text is the program's own.
    is_verbatim: bool,
    /// The number of checks whether the statement has ended.
    looks: usize,
}

impl QueryLog {
    /// Reads a log to its end.
    pub fn read(&mut self, mut log: impl BufRead) -> io::Result<()> {
        let mut line = Vec::new();
        loop {
            line.clear();
            let limit = STATEMENT_BYTES_MAX as u64 + 1;
            if log.by_ref().take(limit).read_until(b'\n', &mut line)? == 0 {
                break;
            }
            self.add(&String::from_utf8_lossy(&line));
        }
        self.finish(None);
        Ok(())
    }

    /// Checks whether the log contains no statement that reads or writes rows.
    pub fn is_empty(&self) -> bool {
        self.by_shape.is_empty()
    }

    /// Returns the shapes by their time, the longest first, or by calls if the log has no times.
    pub(crate) fn heaviest_first(&self) -> Vec<&LoggedShape> {
        let mut all: Vec<&LoggedShape> = self.by_shape.values().collect();
        let key = |it: &LoggedShape| it.us.unwrap_or_default();
        all.sort_by(|a, b| {
            let by_time = key(b).total_cmp(&key(a));
            by_time.then(b.calls.cmp(&a.calls)).then_with(|| a.shape.cmp(&b.shape))
        });
        all
    }

    fn add(&mut self, line: &str) {
        let line = lines::without_colours(line.trim_end());
        match lines::read(&line) {
            LogLine::Statement { sql, us, values, is_whole, is_verbatim } => {
                self.finish(None);
                let sql = sql.to_owned();
                self.pending =
                    Some(UnfinishedStatement { sql, us, is_logged: true, is_verbatim, looks: 0 });
                if is_whole {
                    self.finish(values.and_then(literals::read));
                }
            }
            LogLine::Values(text) if self.pending.is_some() => {
                let shown = lines::lists_count(text).map(|calls| (Vec::new(), calls));
                self.finish(shown.or_else(|| literals::read(text)));
            }
            LogLine::Values(_) => self.unread_lines_count += 1,
            LogLine::Other => {
                self.finish(None);
                self.others_count += 1;
            }
            LogLine::Text(text) => self.add_text(text),
        }
    }

    /// Adds a line that may belong to a statement.
    fn add_text(&mut self, text: &str) {
        let (sql, us) = lines::without_profile(text);
        let trimmed = sql.trim();
        if trimmed.is_empty() {
            return;
        }
        if begins(trimmed) || lines::is_other(trimmed) {
            self.finish_if(is_over);
        }
        match &mut self.pending {
            Some(pending) if pending.sql.len() + sql.len() <= STATEMENT_BYTES_MAX => {
                pending.sql.push('\n');
                pending.sql.push_str(sql);
                pending.us = us.or(pending.us);
            }
            Some(_) => {
                self.pending = None;
                self.unread_lines_count += 1;
            }
            None if begins(trimmed) => self.start(trimmed, us),
            None if lines::is_other(trimmed) => self.others_count += 1,
            None => self.unread_lines_count += 1,
        }
        if trimmed.ends_with(';') || us.is_some() {
            self.finish_if(is_closed);
        }
    }

    /// Counts the pending statement if the condition holds and no log format marks its end.
    fn finish_if(&mut self, is_so: fn(&str) -> bool) {
        let Some(pending) = self.pending.as_mut().filter(|it| !it.is_logged) else { return };
        pending.looks += 1;
        if pending.looks > LOOKS_MAX {
            self.pending = None;
            self.unread_lines_count += 1;
        } else if is_so(&pending.sql) {
            self.finish(None);
        }
    }

    fn start(&mut self, sql: &str, us: Option<f64>) {
        let sql = sql.to_owned();
        self.pending =
            Some(UnfinishedStatement { sql, us, is_logged: false, is_verbatim: true, looks: 0 });
    }

    /// Counts the pending statement, with its values and the number of its calls.
    fn finish(&mut self, called: Option<(Vec<Value>, u64)>) {
        let Some(UnfinishedStatement { sql, us, is_verbatim, .. }) = self.pending.take() else {
            return;
        };
        let calls = called.as_ref().map_or(1, |it| it.1);
        let shape = sql::shape(&sql);
        let is_known = self.by_shape.contains_key(&shape);
        if !is_known && (self.by_shape.len() >= SHAPES_MAX || self.bytes >= BYTES_MAX) {
            self.unread_lines_count += 1;
            return;
        }
        self.statements_count += calls;
        let tokens = sql::tokens(&sql);
        let parameters = tokens.iter().filter(|it| it.kind == sql::SqlTokenKind::Parameter).count();
        let values = called.map(|it| it.0).unwrap_or_default();
        let values = (values.len() == parameters).then_some(values);
        let longest_us = us.unwrap_or_default();
        let one =
            LoggedShape { shape: shape.clone(), sql, values, calls, is_verbatim, us, longest_us };
        if let Some(known) = self.by_shape.get_mut(&shape) {
            known.merge(one);
        } else {
            self.bytes += 2 * one.sql.len();
            self.by_shape.insert(shape, one);
        }
    }
}

impl LoggedShape {
    fn merge(&mut self, one: Self) {
        self.calls += one.calls;
        self.is_verbatim &= one.is_verbatim && self.sql == one.sql;
        let us = one.us.unwrap_or_default();
        self.us = self.us.map_or(one.us, |known| Some(known + us));
        let is_better = match (&self.values, &one.values) {
            (None, Some(_)) => true,
            (Some(_), Some(_)) | (None, None) => us > self.longest_us,
            (Some(_), None) => false,
        };
        self.longest_us = self.longest_us.max(us);
        if is_better {
            (self.sql, self.values) = (one.sql, one.values);
        }
    }
}

/// Checks that no text or parenthesis is open.
fn is_closed(sql: &str) -> bool {
    let tokens = sql::tokens(sql);
    let count = |text| tokens.iter().filter(|token| token.text == text).count();
    let is_cut = tokens.last().is_some_and(|it| it.text.starts_with('\'') && !ends_text(it.text));
    count("(") <= count(")") && !is_cut
}

fn ends_text(text: &str) -> bool {
    text.len() > 1 && text.ends_with('\'')
}

/// Checks whether another statement may begin after this one without a `;`.
fn is_over(sql: &str) -> bool {
    const GO_ON: [&str; 6] = ["UNION", "ALL", "EXCEPT", "INTERSECT", "AS", "EXISTS"];
    let tokens = sql::tokens(sql);
    let goes_on = tokens.last().is_some_and(|last| GO_ON.iter().any(|word| last.is(word)));
    let first = tokens.first();
    // The main part of such a statement still follows.
    let is_begun = |words: &[&str], mains: &[&str]| {
        first.is_some_and(|first| words.iter().any(|word| first.is(word)))
            && !outer(&tokens).any(|it| mains.iter().any(|word| it.is(word)))
    };
    let is_with = is_begun(&["WITH"], &["SELECT", "INSERT", "UPDATE", "DELETE", "REPLACE"]);
    let is_insert = is_begun(&["INSERT", "REPLACE"], &["SELECT", "VALUES", "DEFAULT"]);
    is_closed(sql) && !goes_on && !is_with && !is_insert
}

/// Returns the tokens outside of parentheses.
fn outer<'a, 'b>(tokens: &'b [sql::SqlToken<'a>]) -> impl Iterator<Item = &'b sql::SqlToken<'a>> {
    let mut depth = 0_usize;
    tokens.iter().filter(move |token| {
        match token.text {
            "(" => depth += 1,
            ")" => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth == 0
    })
}

#[cfg(test)]
mod tests;
