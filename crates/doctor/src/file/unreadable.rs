//! Reports files that cannot be read completely, and the checks that end early because of it.

use super::check_error::CheckError;
use super::schema::quote_for_shell;
use crate::catalogue::finding_code::FindingCode;
use crate::environment::file_environment::FileEnvironment;
use crate::report::CheckResults;
use crate::report::finding::{DoctorFinding, Fix};

pub(crate) const TIME_LIMIT_REACHED: &str = "time limit reached";

/// Reports a page that could not be read, or whose content is invalid.
pub(crate) fn report_fault(
    error: &CheckError,
    environment: &FileEnvironment,
    log: &mut CheckResults,
) {
    let text = error.to_string();
    let is_known = log.findings.iter().any(|finding| finding.evidence.contains(&text));
    if !is_known {
        let finding = DoctorFinding::new(
            FindingCode::PageBroken,
            "a page cannot be read",
            recovery_advice(environment),
        )
        .detail("message", text.as_str());
        log.add(finding.evidence(text).impact("The content of this page cannot be read."));
    }
}

pub(crate) fn recovery_advice(environment: &FileEnvironment) -> Fix {
    Fix::Advice(format!(
        "First copy the file with its -wal and -journal. Then restore a backup, or save the \
         readable content to a new file: {}",
        recover_command(environment)
    ))
}

/// Returns the command that recovers the file. It writes a new file, so it is not a fix of this
/// one.
pub(crate) fn recover_command(environment: &FileEnvironment) -> String {
    let file = environment.path.display().to_string();
    let (file, new) = (quote_for_shell(&file), quote_for_shell(&format!("{file}.recovered")));
    let key = if environment.is_keyed { " --key-file KEY (or --passphrase-file)" } else { "" };
    format!("warren recover {file} {new}{key}")
}

/// Describes why a check ended early.
pub(crate) fn skip_reason(error: &CheckError) -> String {
    match error {
        _ if error.is_time() => TIME_LIMIT_REACHED.to_owned(),
        _ if error.is_busy() => "another process kept the file locked".to_owned(),
        _ if error.is_memory() => {
            "this check needs more than 512 MiB of memory for what it writes".to_owned()
        }
        error => error.to_string(),
    }
}

/// Reports that not even page 1 could be read.
pub(crate) fn report_unreadable(
    error: &CheckError,
    environment: &FileEnvironment,
    log: &mut CheckResults,
) {
    if error.is_fault() && !log.has(FindingCode::FileTruncated) {
        report_fault(error, environment, log);
    }
    log.add_skipped("content", skip_reason(error));
}

/// Reports that the schema could not be read.
pub(crate) fn report_unreadable_schema(
    error: &CheckError,
    environment: &FileEnvironment,
    log: &mut CheckResults,
) {
    if error.is_fault() {
        let fix = recovery_advice(environment);
        let finding = DoctorFinding::new(FindingCode::PageBroken, "the schema cannot be read", fix);
        log.add(finding.detail("message", error.to_string()).evidence(error.to_string()));
    }
    log.add_skipped("tables", skip_reason(error));
}
