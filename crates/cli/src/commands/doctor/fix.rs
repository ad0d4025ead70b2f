//! Implements `warren doctor --fix` and `--undo`: prints the planned or applied fixes, and undoes
//! them.

use std::path::Path;
use std::time::Duration;

use doctor::{ExamineOptions, FixReport, FixSelection};
use engine::FileEncryption;
use indicatif::DecimalBytes;

use super::doctor_args::DoctorArgs;
use super::doctor_output::{DoctorOutput, UndoReport};
use super::finding_code::finding_code;
use super::print;
use super::severity_status::{status, verdict};
use crate::output::Printer;

pub(super) fn run(
    file: &Path,
    encryption: &FileEncryption,
    options: &ExamineOptions,
    code: &str,
    arguments: &DoctorArgs,
    output: Printer,
) -> anyhow::Result<()> {
    let wanted = match code {
        "all" => FixSelection::All,
        code => FixSelection::Code(finding_code(code)?),
    };
    let spinner = output.spinner(format_args!("fixing {}", file.display()));
    let fixed = doctor::fix(file, encryption, options, wanted, arguments.dry_run);
    spinner.finish_and_clear();
    let fixed = fixed?;
    print_report(file, &fixed, output);
    let status = status(&fixed.report, arguments);
    output.json(&DoctorOutput::Fix(Box::new(fixed)))?;
    verdict(status)
}

fn print_report(file: &Path, fixed: &FixReport, output: Printer) {
    if fixed.fixes.is_empty() {
        output.line(format_args!("nothing to fix"));
    }
    for fix in &fixed.fixes {
        output.line(format_args!("{}: {}", fix.code, fix.summary));
        for line in fix.sql.lines() {
            output.line(format_args!("         {line}"));
        }
        if let Some(ms) = fix.rehearsal_duration_ms {
            let seconds = Duration::from_millis(ms).as_secs_f64();
            output.line(format_args!(
                "         tried in memory: {seconds:.3} s, integrity check passed"
            ));
        }
    }
    if !fixed.fixes.is_empty() && !fixed.rehearsed {
        output.line(format_args!("not tried in memory: the file is too large"));
    }
    if let Some(after) = fixed.after_bytes {
        let (before, after) = (DecimalBytes(fixed.before_bytes), DecimalBytes(after));
        output.line(format_args!("{before} before, {after} after"));
    }
    match &fixed.undo_path {
        Some(folder) => {
            output.line(format_args!("original kept in {folder}"));
            output.line(format_args!("to undo: warren doctor {} --undo", file.display()));
            output.line(format_args!(""));
            print::report(&fixed.report, output);
        }
        None if !fixed.fixes.is_empty() => output.line(format_args!("nothing was changed")),
        None => {}
    }
}

pub(super) fn undo(file: &Path, output: Printer) -> anyhow::Result<()> {
    let folder = doctor::undo_fix(file)?;
    output.line(format_args!("restored {} from {}", file.display(), folder.display()));
    let (path, undo_path) = (file.display().to_string(), folder.display().to_string());
    output.json(&DoctorOutput::Undo(UndoReport { path, undo_path }))
}
