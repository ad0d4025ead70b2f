//! Runs the checks in their order: cheap ones first, then those that use the remaining time.
//!
//! To add a check, add a code to the catalogue, a row here, and a function in the group's module.

mod cardinality;
mod connection;
mod declarations;
mod disk;
mod file;
mod foreign_keys;
mod fragmentation;
mod indexes;
pub(crate) mod integrity;
mod journal;
mod layout;
mod locks;
mod queries;
mod recovered;
mod settings;
mod statistics;

use crate::catalogue::finding_code::FindingCode;
use crate::environment::file_environment::FileEnvironment;
use crate::error::Result;
use crate::file::check_error::CheckError;
use crate::file::opened_file::OpenedFile;
use crate::file::unreadable::{TIME_LIMIT_REACHED, report_fault, skip_reason};
use crate::format::counted;
use crate::report::CheckResults;

/// A check that inspects the file from outside.
struct EnvironmentCheck {
    name: &'static str,
    run: fn(&FileEnvironment, &mut CheckResults),
}

/// A check that reads the content of the file.
struct ContentCheck {
    name: &'static str,
    run: CheckFn,
}

/// The function of a content check, with how it reports that it could not finish.
enum CheckFn {
    /// The function itself reports what it could not check.
    ReportsItself(fn(&OpenedFile, &mut CheckResults)),
    /// The function returns at its first error, and the rest of its check is skipped.
    StopsAtError(fn(&OpenedFile, &mut CheckResults) -> Result<(), CheckError>),
}

const OUTSIDE: &[EnvironmentCheck] = &[
    EnvironmentCheck { name: "file size", run: file::check_size },
    EnvironmentCheck { name: "hard links", run: file::check_links },
    EnvironmentCheck {
        name: "companion files (-journal, -wal, -shm)",
        run: file::check_companions,
    },
    EnvironmentCheck { name: "locks", run: locks::check },
    EnvironmentCheck { name: "journal and WAL", run: journal::check },
    EnvironmentCheck { name: "file system and disk space", run: disk::check },
];

const CONTENT: &[ContentCheck] = &[
    ContentCheck { name: "journal mode", run: CheckFn::ReportsItself(journal::check_encrypted) },
    ContentCheck { name: "file settings", run: CheckFn::StopsAtError(settings::check) },
    ContentCheck { name: "program settings", run: CheckFn::StopsAtError(connection::check) },
    ContentCheck { name: "views and triggers", run: CheckFn::StopsAtError(declarations::check) },
    ContentCheck { name: "free pages", run: CheckFn::ReportsItself(fragmentation::check) },
    ContentCheck { name: "indexes", run: CheckFn::StopsAtError(indexes::check) },
    ContentCheck { name: "statistics", run: CheckFn::StopsAtError(statistics::check) },
    ContentCheck { name: "row layout", run: CheckFn::StopsAtError(layout::check) },
    ContentCheck { name: "queries", run: CheckFn::StopsAtError(queries::check) },
    ContentCheck { name: "foreign keys", run: CheckFn::StopsAtError(foreign_keys::check) },
    ContentCheck { name: "integrity", run: CheckFn::ReportsItself(integrity::check) },
    ContentCheck { name: "abandoned journal or WAL", run: CheckFn::StopsAtError(recovered::check) },
];

/// Runs the checks that need no connection.
pub(crate) fn run_environment_checks(environment: &FileEnvironment, log: &mut CheckResults) {
    for check in OUTSIDE {
        (check.run)(environment, log);
        log.add_checked(check.name);
    }
    report_hidden_processes(environment, log);
}

/// Reports how many processes have open files that could not be seen.
fn report_hidden_processes(environment: &FileEnvironment, log: &mut CheckResults) {
    let count = environment.users.hidden_count;
    if count > 0 {
        let processes = counted(count.try_into().unwrap_or(u64::MAX), "process", "processes");
        let why = format!("only root can see the open files of {processes}");
        log.add_skipped("other processes that have the file open", why);
    }
}

/// Runs the checks of the content.
pub(crate) fn run_content_checks(subject: &OpenedFile, log: &mut CheckResults) {
    let mut fault = None;
    for check in CONTENT {
        if subject.time_limit.is_spent() {
            log.add_skipped(check.name, TIME_LIMIT_REACHED);
            continue;
        }
        subject.grant_time(std::time::Duration::MAX);
        let ended = match check.run {
            CheckFn::ReportsItself(run) => {
                run(subject, log);
                Ok(())
            }
            CheckFn::StopsAtError(run) => run(subject, log),
        };
        match ended {
            Ok(()) => {}
            Err(error) if error.is_fault() => {
                fault = Some(error);
                log.add_skipped(check.name, "a page that this check needs is damaged");
            }
            Err(error) => log.add_skipped(check.name, skip_reason(&error)),
        }
    }
    // The integrity check runs last and has reported the damaged page, if it got that far.
    if let Some(error) = fault.filter(|_| !log.has(FindingCode::PageBroken)) {
        report_fault(&error, &subject.environment, log);
    }
}
