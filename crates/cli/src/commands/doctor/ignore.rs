//! Reads the rules of `--ignore FILE` for findings to ignore: one per line, with a reason.
//!
//! ```text
//! # code           file             of what      reason
//! index_duplicate  app.db           item_owner   # the ORM creates it again at each migration
//! not_wal          archive/*.db                  # read only, on a network disk
//! ```
//!
//! # Invariants
//! - Each line has a reason, and a code that exists: a misspelled one would hide nothing.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use doctor::{DoctorReport, IgnoreRule};
use protocol::ErrorCode;

use super::finding_code::finding_code;
use crate::output::CommandError;

/// The lines of one file.
#[derive(Default)]
pub(super) struct IgnoreFile {
    file: PathBuf,
    rules: Vec<IgnoreLine>,
    /// The numbers of the lines that matched a finding.
    used: BTreeSet<usize>,
}

struct IgnoreLine {
    line: usize,
    path: glob::Pattern,
    ignore: IgnoreRule,
}

impl IgnoreFile {
    pub(super) fn read(file: Option<&Path>) -> anyhow::Result<Self> {
        let Some(file) = file else { return Ok(Self::default()) };
        let name = || file.display().to_string();
        let text = std::fs::read_to_string(file).with_context(name)?;
        let mut rules = Vec::new();
        for (index, line) in text.lines().enumerate() {
            let of_line = || format!("{}, line {}", file.display(), index + 1);
            rules.extend(rule(index + 1, line).with_context(of_line)?);
        }
        Ok(Self { file: file.to_owned(), rules, used: BTreeSet::new() })
    }

    /// Returns the rules for a file. A pattern with a slash matches the whole path as it was given;
    /// one without a slash matches the name.
    pub(super) fn rules_for(&self, path: &Path) -> Vec<IgnoreRule> {
        let rules = self.rules.iter().filter(|rule| rule.is_for(path));
        rules.map(|rule| rule.ignore.clone()).collect()
    }

    /// Records which rules matched a finding.
    pub(super) fn mark_used(&mut self, path: &Path, report: &DoctorReport) {
        for ignored in &report.ignored {
            let is_it = |rule: &&IgnoreLine| {
                rule.is_for(path)
                    && rule.ignore.code == ignored.finding.code
                    && rule.ignore.reason == ignored.reason
            };
            self.used.extend(self.rules.iter().find(is_it).map(|rule| rule.line));
        }
    }

    /// Returns the rules that matched no finding: the problem is fixed, or never existed.
    pub(super) fn needless(&self) -> Vec<String> {
        let needless = self.rules.iter().filter(|rule| !self.used.contains(&rule.line));
        let line = |rule: &IgnoreLine| {
            format!("{}, line {}: {}", self.file.display(), rule.line, rule.ignore.code)
        };
        needless.map(line).collect()
    }
}

impl IgnoreLine {
    fn is_for(&self, path: &Path) -> bool {
        if self.path.as_str().contains('/') {
            return self.path.matches_path(path);
        }
        path.file_name().is_some_and(|name| self.path.matches(&name.to_string_lossy()))
    }
}

/// Parses a line; `None` if it is empty or a comment.
fn rule(line: usize, text: &str) -> anyhow::Result<Option<IgnoreLine>> {
    let (rule, reason) = text.split_once('#').unwrap_or((text, ""));
    let (words, reason) = (rule.split_whitespace().collect::<Vec<_>>(), reason.trim().to_owned());
    let (code, path, name) = match words[..] {
        [] => return Ok(None),
        [code] => (code, "*", None),
        [code, path] => (code, path, None),
        [code, path, name] => (code, path, Some(name.to_owned())),
        _ => bail!(invalid("expected CODE [FILE [NAME]] # reason")),
    };
    let code = finding_code(code)?;
    ensure!(!reason.is_empty(), invalid(format!("{code} has no reason; add one after a #")));
    let path = glob::Pattern::new(path).map_err(|error| invalid(format!("{path}: {error}")))?;
    Ok(Some(IgnoreLine { line, path, ignore: IgnoreRule { code, name, reason } }))
}

fn invalid(message: impl Into<String>) -> CommandError {
    CommandError::new(ErrorCode::InvalidFile, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_a_code_and_a_reason() {
        let rule = |text| rule(1, text);
        assert!(rule("  # only a word").unwrap().is_none());
        let whole = rule("not_wal a/*.db t # why # not").unwrap().unwrap();
        assert_eq!(
            (whole.ignore.name.as_deref(), whole.ignore.reason.as_str()),
            (Some("t"), "why # not")
        );
        assert!(whole.is_for(Path::new("a/x.db")) && !whole.is_for(Path::new("b/x.db")));
        assert!(rule("not_wal # all").unwrap().unwrap().is_for(Path::new("b/x.db")));
        for wrong in
            ["not_wal", "not_wal #", "no_such # why", "not_wal a b c # why", "not_wal [ # x"]
        {
            assert!(rule(wrong).is_err(), "{wrong}");
        }
    }
}
