//! Is what is stored still whole?

use crate::figure::{about, count};
use crate::finding::{Finding, Mend};
use crate::report::Log;
use crate::schema::{Table, quoted};
use crate::subject::{Subject, Trouble};
use crate::tree::Sample;

/// Faults shown per table.
const FAULTS_MAX: usize = 5;
/// What `quick_check` may be hoped to read; on a slow disk it is a fifth.
const BYTES_PER_SECOND_MAX: f64 = 1e8;
/// Sampled leaves of one table.
const LEAVES_MAX: usize = 10_000;

pub(crate) fn check(subject: &Subject, log: &mut Log) {
    if subject.lacks_wal() {
        log.skip("integrity", "the main file alone may be half of each of two states");
        return;
    }
    let mut tables: Vec<(&Table, f64)> =
        subject.tables.iter().map(|table| (table, pages(subject, table))).collect();
    tables.sort_by(|a, b| a.1.total_cmp(&b.1));
    let (mut unreached, mut checked) = (Vec::new(), 0);
    for (table, pages) in &tables {
        match check_table(subject, table, log) {
            Ok(()) => checked += 1,
            Err(trouble) if trouble.is_time() => {
                let leaves = sampled_faults(subject, table, log);
                let (name, pages) = (&table.name, about(*pages));
                unreached.push(format!("{name} ({} of about {pages} pages seen)", count(leaves)));
            }
            Err(trouble) if trouble.is_fault() => fault(&trouble, log),
            Err(trouble) => log.skip(format!("integrity of {}", table.name), trouble.to_string()),
        }
    }
    log.check(format!("integrity: {checked} of {} tables with their indexes", tables.len()));
    if !unreached.is_empty() {
        let why = "too large for the time: raise --budget";
        log.skip(format!("integrity of {}", unreached.join(", ")), why);
    }
}

/// Where SQLite's own check had no time, sampled pages are looked at: those of the samples, and more
/// while there is time. Returns how many.
fn sampled_faults(subject: &Subject, table: &Table, log: &mut Log) -> u64 {
    let roots: Vec<u32> = table.roots().collect();
    for (_, trouble) in subject.broken.iter().filter(|(root, _)| roots.contains(root)) {
        if trouble.is_fault() {
            fault(trouble, log);
        }
    }
    let seen = roots.iter().filter_map(|root| subject.sample_of(*root));
    let mut leaves: usize = seen.map(Sample::leaves_seen).sum();
    for root in roots.iter().cycle() {
        if subject.budget.is_spent() || leaves >= LEAVES_MAX {
            break;
        }
        match subject.more_leaves(*root, u64::try_from(leaves).unwrap_or_default()) {
            Ok(more) => leaves += more,
            Err(trouble) if trouble.is_fault() => {
                fault(&trouble, log);
                break;
            }
            Err(_) => break,
        }
    }
    leaves.try_into().unwrap_or(u64::MAX)
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
