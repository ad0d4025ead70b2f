//! Is what is stored still whole?

use std::time::Duration;

use crate::figure::about;
use crate::finding::{Finding, Mend};
use crate::report::Log;
use crate::schema::{Table, quoted, rows};
use crate::subject::{Subject, Trouble};

/// Faults shown per table.
const FAULTS_MAX: usize = 5;

pub(crate) fn check(subject: &Subject, log: &mut Log) -> Result<(), Trouble> {
    let mut tables: Vec<(&Table, f64)> =
        subject.tables.iter().map(|table| (table, pages(subject, table))).collect();
    tables.sort_by(|a, b| a.1.total_cmp(&b.1));
    let (mut unreached, mut checked) = (Vec::new(), 0);
    for (table, pages) in &tables {
        match check_table(subject, table, log) {
            Ok(()) => checked += 1,
            Err(trouble) if trouble.is_time() => {
                unreached.push(format!("{} ({} pages)", table.name, about(*pages)));
                // SQLite's own word is better than that of a sample, where there is one.
                sampled_faults(subject, table, log);
            }
            Err(trouble) if trouble.is_fault() => fault(&trouble, log),
            Err(trouble) => log.skip(format!("integrity of {}", table.name), trouble.to_string()),
        }
    }
    log.check(format!("integrity: {checked} of {} tables with their indexes", tables.len()));
    if !unreached.is_empty() {
        let sampled = "too large for the time; of these, only sampled pages were looked at";
        log.skip(format!("integrity of {}", unreached.join(", ")), sampled);
    }
    Ok(())
}

fn sampled_faults(subject: &Subject, table: &Table, log: &mut Log) {
    let roots: Vec<u32> = table.roots().collect();
    for (_, trouble) in subject.broken.iter().filter(|(root, _)| roots.contains(root)) {
        if trouble.is_fault() {
            fault(trouble, log);
        }
    }
}

/// Pages of a table and its indexes, as far as known.
fn pages(subject: &Subject, table: &Table) -> f64 {
    table.roots().filter_map(|root| subject.sample_of(root)).map(|sample| sample.pages()).sum()
}

fn check_table(subject: &Subject, table: &Table, log: &mut Log) -> Result<(), Trouble> {
    if subject.allow(Duration::MAX).is_zero() {
        return Err(interrupted().into());
    }
    let sql = format!("PRAGMA quick_check({})", quoted(&table.name));
    let found: Vec<String> = rows(&subject.db, &sql, [], |row| row.get(0))?;
    let faults: Vec<&String> = found.iter().filter(|line| *line != "ok").collect();
    if faults.is_empty() {
        return Ok(());
    }
    let what = format!("table {} fails quick_check: {} faults", table.name, faults.len());
    let mut finding = Finding::new("page_broken", what, mend())
        .field("table", table.name.as_str())
        .field("faults_count", faults.len())
        .cost("Rows of it are wrong or out of reach.");
    for line in faults.iter().take(FAULTS_MAX) {
        finding = finding.evidence(line.as_str());
    }
    log.find(finding);
    Ok(())
}

/// A page that could not be read, or holds what cannot be.
pub(crate) fn fault(trouble: &Trouble, log: &mut Log) {
    let text = trouble.to_string();
    let is_known = log.findings.iter().any(|finding| finding.evidence.contains(&text));
    if !is_known {
        let finding = Finding::new("page_broken", "a page cannot be read", mend());
        log.find(finding.evidence(text).cost("What is on it is out of reach."));
    }
}

fn mend() -> Mend {
    Mend::Advice(
        "Copy the file with its -wal and -journal first; then restore a backup, or save what can \
         be read: sqlite3 FILE .recover | sqlite3 NEW"
            .to_owned(),
    )
}

fn interrupted() -> rusqlite::Error {
    let code = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_INTERRUPT);
    rusqlite::Error::SqliteFailure(code, None)
}
