//! The checks, in the order in which they run: cheap ones first, then those that take what time is
//! left.
//!
//! To add one: a code in the catalogue, a row here, a function in the group's module.

mod file;
mod fragmentation;
mod integrity;
mod locks;

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
    run: fn(&Subject, &mut Log) -> Result<(), Trouble>,
}

const OUTSIDE: &[OutsideCheck] = &[
    OutsideCheck { name: "the file's size", run: file::check_size },
    OutsideCheck { name: "locks", run: locks::check },
];

const CONTENT: &[ContentCheck] = &[
    ContentCheck { name: "free pages", run: fragmentation::check },
    ContentCheck { name: "integrity", run: integrity::check },
];

/// Runs the checks that need no connection.
pub(crate) fn outside(outside: &Outside, log: &mut Log) {
    for check in OUTSIDE {
        (check.run)(outside, log);
        log.check(check.name);
    }
}

/// Runs the checks of the content.
pub(crate) fn content(subject: &Subject, log: &mut Log) {
    for check in CONTENT {
        if subject.budget.is_spent() {
            log.skip(check.name, TIME);
            continue;
        }
        subject.allow(std::time::Duration::MAX);
        match (check.run)(subject, log) {
            Ok(()) => {}
            Err(trouble) if trouble.is_fault() => {
                integrity::fault(&trouble, log);
                log.skip(check.name, "a page that it needs is broken");
            }
            Err(trouble) => log.skip(check.name, why(&trouble)),
        }
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

/// Says that not even page 1 could be read.
pub(crate) fn unreadable(trouble: &Trouble, log: &mut Log) {
    if trouble.is_fault() {
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
