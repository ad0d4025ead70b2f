//! Is what is stored still whole?

use std::time::Duration;

use engine::Untouched;

use crate::figure::{about, count, float};
use crate::finding::{Finding, Mend};
use crate::header::u32_at;
use crate::page::Malformed;
use crate::report::Log;
use crate::schema::{Table, quoted};
use crate::subject::{Subject, Trouble};
use crate::tree::Sample;

/// Faults shown per table.
const FAULTS_MAX: usize = 5;
/// What `quick_check` may be hoped to read; on a slow disk it is a fifth.
const BYTES_PER_SECOND_MAX: f64 = 1e8;

pub(crate) fn check(subject: &Subject, log: &mut Log) {
    if subject.lacks_wal() {
        log.skip("integrity", "the main file alone may be half of each of two states");
        return;
    }
    match check_free_list(subject) {
        Err(trouble) if trouble.is_fault() => fault(&trouble, log),
        Err(trouble) => log.skip("the list of free pages", trouble.to_string()),
        Ok(()) => {}
    }
    let mut tables: Vec<(&Table, f64)> =
        subject.tables.iter().map(|table| (table, pages(subject, table))).collect();
    tables.sort_by(|a, b| a.1.total_cmp(&b.1));
    let (mut unreached, mut checked) = (Vec::new(), 0);
    for (table, pages) in &tables {
        match check_table(subject, table, log) {
            Ok(()) => checked += 1,
            Err(trouble) if trouble.is_time() => unreached.push((*table, *pages)),
            Err(trouble) if trouble.is_fault() => fault(&trouble, log),
            Err(trouble) => log.skip(format!("integrity of {}", table.name), trouble.to_string()),
        }
    }
    log.check(format!("integrity: {checked} of {} tables with their indexes", tables.len()));
    for (index, (table, pages)) in unreached.iter().enumerate() {
        let tables_left = u32::try_from(unreached.len() - index).unwrap_or(u32::MAX);
        let end = subject.budget.elapsed() + subject.budget.left() / tables_left;
        let leaves = sampled_faults(subject, table, *pages, end, log);
        let why = match subject.how {
            Untouched::Immutable => "too large for the time, raise --budget",
            Untouched::Shared => "too large for the time that others may be kept waiting",
        };
        let (leaves, pages) = (count(leaves), about(*pages));
        let seen = format!("{why}; {leaves} random pages of about {pages} were looked at");
        log.skip(format!("integrity of {}", table.name), seen);
    }
}

/// Where SQLite's own check had no time, sampled pages are looked at: those of the samples, and more
/// until this moment of the examination. Returns how many.
fn sampled_faults(
    subject: &Subject,
    table: &Table,
    pages: f64,
    end: Duration,
    log: &mut Log,
) -> u64 {
    let roots: Vec<u32> = table.roots().collect();
    for (_, trouble) in subject.broken.iter().filter(|(root, _)| roots.contains(root)) {
        if trouble.is_fault() {
            fault(trouble, log);
        }
    }
    let seen = roots.iter().filter_map(|root| subject.sample_of(*root));
    let mut leaves = u64::try_from(seen.map(Sample::leaves_seen).sum::<usize>()).unwrap_or(0);
    for root in roots.iter().cycle() {
        if subject.budget.elapsed() >= end || float(leaves) >= pages {
            break;
        }
        match subject.more_leaves(*root, leaves) {
            Ok(more) => leaves += more,
            Err(trouble) if trouble.is_fault() => {
                fault(&trouble, log);
                break;
            }
            Err(_) => break,
        }
    }
    leaves
}

/// Walks the list of free pages, of which `quick_check` of a table knows nothing: each of its trunk
/// pages has the next one's number and its own count of leaves
/// (<https://sqlite.org/fileformat.html#the_freelist>).
fn check_free_list(subject: &Subject) -> Result<(), Trouble> {
    let wrong = |page, what| Err(Malformed { page, what }.into());
    // Others may wait until the snapshot ends.
    let time = subject.allow(Duration::MAX);
    let end = subject.budget.elapsed() + time;
    subject.in_snapshot(|| {
        let first = subject.bytes(1)?;
        let at = |bytes: &[u8], offset| u32_at(bytes, offset).unwrap_or_default();
        let (mut trunk, count) = (at(&first, 32), at(&first, 36));
        let mut seen = 0;
        while trunk != 0 && subject.budget.elapsed() < end {
            let bytes = subject.bytes(trunk)?;
            let leaves = at(&bytes, 4);
            seen += 1 + leaves;
            if leaves > subject.header.page_size / 4 || seen > count {
                return wrong(trunk, "the list of free pages is longer than the header says");
            }
            trunk = at(&bytes, 0);
        }
        if trunk == 0 && seen < count {
            return wrong(1, "the list of free pages is shorter than the header says");
        }
        Ok(())
    })
}

/// Pages of a table and its indexes, as far as known.
fn pages(subject: &Subject, table: &Table) -> f64 {
    table.roots().filter_map(|root| subject.sample_of(root)).map(Sample::pages).sum()
}

fn check_table(subject: &Subject, table: &Table, log: &mut Log) -> Result<(), Trouble> {
    let time = subject.allow(subject.budget.left() / 5 * 4);
    let size = pages(subject, table) * f64::from(subject.header.page_size);
    // One that cannot end is not begun: sampled pages tell more in the same time.
    if time.is_zero() || size > BYTES_PER_SECOND_MAX * time.as_secs_f64() {
        return Err(interrupted().into());
    }
    let sql = format!("PRAGMA quick_check({})", quoted(&table.name));
    let mut statement = subject.db.prepare(&sql)?;
    let mut faults: Vec<String> = Vec::new();
    for line in statement.query_map([], |row| row.get::<_, String>(0))? {
        match line.map_err(Trouble::from) {
            Ok(line) if line == "ok" => {}
            Ok(line) => faults.push(line),
            // On its way it met a page that it could not go on from.
            Err(trouble) if trouble.is_fault() => faults.push(trouble.to_string()),
            Err(trouble) => return Err(trouble),
        }
    }
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
        let finding = Finding::new("page_broken", "a page cannot be read", mend())
            .field("message", text.as_str());
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
