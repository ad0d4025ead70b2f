//! Judges the settings that a program uses on its connections, together with the file.
//!
//! # Not here
//! - How the settings are read → `settings.rs`. Settings that the file stores →
//!   `checks/settings.rs`.

mod facts;
mod library;
mod locks;
mod memory;
#[cfg(test)]
mod tests;
mod wanted;

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use serde_json::Value;

use self::facts::ConnectionFacts;
use crate::catalogue::finding_code::FindingCode;
use crate::environment::memory::{available_bytes, holds};
use crate::file::check_error::CheckError;
use crate::file::opened_file::OpenedFile;
use crate::program::settings::ConnectionSettings;
use crate::report::CheckResults;
use crate::report::finding::{DoctorFinding, Fix};

type ConnectionCheck = fn(&ConnectionFacts<'_>) -> Option<DoctorFinding>;

const JUDGEMENTS: &[ConnectionCheck] = &[
    wanted::mismatch,
    wanted::encryption,
    locks::busy_timeout,
    locks::journal_mode,
    locks::synchronous_off,
    locks::synchronous_low,
    locks::checkpoints,
    locks::foreign_keys,
    library::version,
    library::threads,
    library::double_quotes,
    library::encoding,
    library::secure_delete,
    memory::cache_large,
    memory::cache_small,
    memory::temp_in_memory,
    memory::temp_unencrypted,
];

pub(crate) fn check(subject: &OpenedFile, log: &mut CheckResults) -> Result<(), CheckError> {
    let Some(settings) = &subject.settings else { return Ok(()) };
    let (other_file, is_unknown) = other_file(settings, &subject.environment.path);
    let page_bytes = u64::from(subject.header.page_size);
    let free_pages = u64::from(subject.header.free_pages_count);
    let header = &subject.header;
    let facts = ConnectionFacts {
        settings,
        is_wal: header.is_wal,
        page_bytes,
        content_bytes: subject.pages_count().saturating_sub(free_pages) * page_bytes,
        free_bytes: free_pages * page_bytes,
        auto_vacuum: match (header.has_auto_vacuum, header.is_incremental) {
            (false, _) => 0,
            (true, false) => 1,
            (true, true) => 2,
        },
        encoding: subject.db.query_row("PRAGMA encoding", [], |row| row.get(0))?,
        referring: referring(subject)?,
        is_encrypted: subject.cipher.is_some(),
        memory_bytes: available_bytes(),
        users_count: subject.environment.users.processes.len(),
        temp: subject.environment.temp.as_ref().map(|temp| (temp.path.clone(), holds(&temp.path))),
        other_file,
    };
    judge(&facts, log);
    if is_unknown {
        let file = settings.file().unwrap_or_default();
        log.add_skipped(
            "whether the settings belong to this file",
            format!("this machine has no file {file}"),
        );
    }
    Ok(())
}

fn judge(facts: &ConnectionFacts<'_>, log: &mut CheckResults) {
    for finding in JUDGEMENTS.iter().filter_map(|judgement| judgement(facts)) {
        log.add(finding);
    }
    for finding in wanted::ineffective(facts) {
        log.add(finding);
    }
    let settings = facts.settings;
    let version = settings.text("sqlite_version").unwrap_or("?");
    let cipher = settings.text("cipher").or_else(|| settings.text("cipher_version"));
    let cipher = cipher.map_or_else(|| "no cipher".to_owned(), |cipher| format!("cipher {cipher}"));
    log.add_checked(format!("program settings (SQLite {version}, {cipher})"));
    let unknown = settings.unknown();
    if !unknown.is_empty() {
        log.add_skipped(format!("the settings {}", unknown.join(", ")), "not recognized");
    }
    let untold = settings.untold();
    if !untold.is_empty() {
        log.add_skipped(format!("the program's {}", untold.join(", ")), "not in the settings");
    }
}

/// Returns the connection's file if it is not this one, and whether that is unknown, because the
/// file is not on this machine or not under this name.
fn other_file(settings: &ConnectionSettings, path: &Path) -> (Option<String>, bool) {
    let Some(file) = settings.file() else { return (None, false) };
    if file.is_empty() {
        return (Some("none (a database in memory, or a temporary one)".to_owned()), false);
    }
    let inode = |path: &Path| fs::metadata(path).ok().map(|it| (it.dev(), it.ino()));
    match inode(Path::new(file)) {
        None => (None, true),
        found => ((found != inode(path)).then(|| file.to_owned()), false),
    }
}

fn referring(subject: &OpenedFile) -> rusqlite::Result<Vec<String>> {
    let mut names = Vec::new();
    for table in subject.user_tables() {
        if !subject.foreign_keys(table)?.is_empty() {
            names.push(table.name.clone());
        }
    }
    Ok(names)
}

impl ConnectionFacts<'_> {
    /// Creates a finding about one setting, with the setting's value as evidence.
    fn finding(
        &self,
        code: FindingCode,
        setting: &'static str,
        what: impl Into<String>,
    ) -> DoctorFinding {
        let value = self.settings.value(setting).unwrap_or_default();
        let fact = self.settings.number(setting).map_or_else(|| value.clone().into(), Value::from);
        DoctorFinding::new(code, what, Fix::Advice(String::new()))
            .evidence(format!("the connection reports {setting} = {value}"))
            .detail("setting", setting)
            .detail("value", fact)
    }

    /// Returns the advice to set this in the program, in the framework's syntax if that is known.
    fn set(&self, setting: &str, value: &str) -> Fix {
        let known = self.settings.line.zip(self.settings.framework());
        Fix::Advice(match known {
            Some((line, framework)) => {
                format!(
                    "In the program, on each connection ({framework}): {}",
                    line(setting, value)
                )
            }
            None => format!("In the program, on each connection: PRAGMA {setting} = {value}"),
        })
    }
}
