//! The checks, in the order in which they run: cheap ones first, then those that take what time is
//! left.
//!
//! To add one: a code in the catalogue, a row here, a function in the group's module.

mod cardinality;
mod connection;
mod declarations;
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
mod recovered;
mod settings;
mod statistics;

use crate::error::Result;
use crate::finding::Finding;
use crate::outside::Outside;
use crate::report::Log;
use crate::subject::Subject;
use crate::trouble::Trouble;

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
    OutsideCheck { name: "its other names", run: file::check_links },
    OutsideCheck { name: "what is beside it", run: file::check_companions },
    OutsideCheck { name: "locks", run: locks::check },
    OutsideCheck { name: "journal and WAL", run: journal::check },
    OutsideCheck { name: "the disks", run: place::check },
];

const CONTENT: &[ContentCheck] = &[
    ContentCheck { name: "the journal mode", run: Run::Whole(journal::check_encrypted) },
    ContentCheck { name: "settings of the file", run: Run::Until(settings::check) },
    ContentCheck { name: "what the program sets", run: Run::Until(connection::check) },
    ContentCheck { name: "views and triggers", run: Run::Until(declarations::check) },
    ContentCheck { name: "free pages", run: Run::Whole(fragmentation::check) },
    ContentCheck { name: "indexes", run: Run::Until(indexes::check) },
    ContentCheck { name: "statistics", run: Run::Until(statistics::check) },
    ContentCheck { name: "layout", run: Run::Until(layout::check) },
    ContentCheck { name: "queries", run: Run::Until(queries::check) },
    ContentCheck { name: "foreign keys", run: Run::Until(foreign_keys::check) },
    ContentCheck { name: "integrity", run: Run::Whole(integrity::check) },
    ContentCheck { name: "what was left beside it", run: Run::Until(recovered::check) },
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
        integrity::fault(&trouble, &subject.outside, log);
    }
}

pub(crate) const TIME: &str = "the time was over";

/// Why a check ended early, in words.
fn why(trouble: &Trouble) -> String {
    match trouble {
        _ if trouble.is_time() => TIME.to_owned(),
        _ if trouble.is_busy() => "another process kept it locked".to_owned(),
        _ if trouble.is_memory() => "what it writes does not fit into 512 MiB of memory".to_owned(),
        trouble => trouble.to_string(),
    }
}

/// Says that not even page 1 could be read.
pub(crate) fn unreadable(trouble: &Trouble, outside: &Outside, log: &mut Log) {
    if trouble.is_fault() && !log.has("file_truncated") {
        integrity::fault(trouble, outside, log);
    }
    log.skip("the content", why(trouble));
}

/// Says that the schema could not be read.
pub(crate) fn schema_unreadable(trouble: &Trouble, outside: &Outside, log: &mut Log) {
    if trouble.is_fault() {
        let mend = integrity::mend(outside);
        let finding = Finding::new("page_broken", "the schema cannot be read", mend);
        log.find(finding.field("message", trouble.to_string()).evidence(trouble.to_string()));
    }
    log.skip("the tables", why(trouble));
}
