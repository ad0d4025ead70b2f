//! The checks, in the order in which they run: cheap ones first, then those that take what time is
//! left.
//!
//! To add one: a code in the catalogue, a row here, a function in the group's module.

mod cardinality;
mod file;
mod foreign_keys;
mod fragmentation;
mod indexes;
mod integrity;
mod journal;
mod layout;
mod locks;
mod place;
mod queries;
mod settings;
mod statistics;

use rusqlite::ErrorCode;

use crate::error::Result;
use crate::finding::{Finding, Mend};
use crate::outside::Outside;
use crate::report::Log;
use crate::subject::{Subject, Trouble};

/// Looks at the file from outside.
struct OutsideCheck {
    name: &'static str,
    run: fn(&Outside, &mut Log),
}

/// Looks into the file.
struct ContentCheck {
    name: &'static str,
    run: Run,
}

/// How a check of the content ends.
enum Run {
    /// It says itself what it could not look at.
    Whole(fn(&Subject, &mut Log)),
    /// At the first trouble; the rest of it is skipped.
    Until(fn(&Subject, &mut Log) -> Result<(), Trouble>),
}

const OUTSIDE: &[OutsideCheck] = &[
    OutsideCheck { name: "the file's size", run: file::check_size },
    OutsideCheck { name: "locks", run: locks::check },
    OutsideCheck { name: "journal and WAL", run: journal::check },
    OutsideCheck { name: "the disks", run: place::check },
];

const CONTENT: &[ContentCheck] = &[
    ContentCheck { name: "the journal mode", run: Run::Whole(journal::check_encrypted) },
    ContentCheck { name: "settings of the file", run: Run::Until(settings::check) },
    ContentCheck { name: "free pages", run: Run::Whole(fragmentation::check) },
    ContentCheck { name: "indexes", run: Run::Until(indexes::check) },
    ContentCheck { name: "statistics", run: Run::Until(statistics::check) },
    ContentCheck { name: "layout", run: Run::Until(layout::check) },
    ContentCheck { name: "queries", run: Run::Until(queries::check) },
    ContentCheck { name: "foreign keys", run: Run::Until(foreign_keys::check) },
    ContentCheck { name: "integrity", run: Run::Whole(integrity::check) },
];

/// Runs the checks that need no connection.
pub(crate) fn outside(outside: &Outside, log: &mut Log) {
    for check in OUTSIDE {
        (check.run)(outside, log);
        log.check(check.name);
    }
    unseen(outside, log);
}

/// Says whose open files could not be seen.
fn unseen(outside: &Outside, log: &mut Log) {
    let count = outside.users.unseen_count;
    if count > 0 {
        let why = format!("{count} processes show their open files to root alone");
        log.skip("who else has the file open", why);
    }
}

/// Runs the checks of the content.
pub(crate) fn content(subject: &Subject, log: &mut Log) {
    if subject.lacks_wal() {
        log.skip("what was written last", WITHOUT_WAL);
    }
    let mut fault = None;
    for check in CONTENT {
        if subject.budget.is_spent() {
            log.skip(check.name, TIME);
            continue;
        }
        subject.allow(std::time::Duration::MAX);
        let ended = match check.run {
            Run::Whole(run) => {
                run(subject, log);
                Ok(())
            }
            Run::Until(run) => run(subject, log),
        };
        match ended {
            Ok(()) => {}
            Err(trouble) if trouble.is_fault() => {
                fault = Some(trouble);
                log.skip(check.name, "a page that it needs is broken");
            }
            Err(trouble) => log.skip(check.name, why(&trouble)),
        }
    }
    // The integrity check, which comes last, has said which page it is, if it came so far.
    if let Some(trouble) = fault.filter(|_| !log.has("page_broken")) {
        integrity::fault(&trouble, log);
    }
}

const TIME: &str = "the time was over";

/// Why a check ended early, in words.
fn why(trouble: &Trouble) -> String {
    match trouble {
        _ if trouble.is_time() => TIME.to_owned(),
        _ if trouble.is_busy() => "another process kept it locked".to_owned(),
        trouble => trouble.to_string(),
    }
}

/// Why a file is seen only in part.
const WITHOUT_WAL: &str =
    "it is in the WAL, which cannot be read without a -shm file: checkpoint it";

/// Says that not even page 1 could be read.
pub(crate) fn unreadable(trouble: &Trouble, is_immutable: bool, outside: &Outside, log: &mut Log) {
    if is_immutable && outside.has_wal_content() {
        log.skip("the content", WITHOUT_WAL);
        return;
    }
    if trouble.is_fault() && !log.has("file_truncated") {
        integrity::fault(trouble, log);
    }
    log.skip("the content", why(trouble));
}

/// Says that the schema could not be read.
pub(crate) fn schema_unreadable(error: &rusqlite::Error, log: &mut Log) {
    let text = error.to_string();
    if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) {
        log.skip("the tables", "another process kept it locked");
        return;
    }
    let mend = "Copy the file first; then see what the shell's .recover saves of it.";
    let finding =
        Finding::new("page_broken", "the schema cannot be read", Mend::Advice(mend.into()));
    log.find(finding.evidence(text));
}
