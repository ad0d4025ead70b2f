//! `warren doctor --fix`: what would be done, what was, and how to take it back.

use std::path::Path;

use anyhow::ensure;
use doctor::{DoctorReport, ExamineOptions, FixReport, FixSelection};
use engine::FileEncryption;
use indicatif::DecimalBytes;
use serde_json::json;

use super::print;
use crate::output::Printer;

pub(super) fn run(
    file: &Path,
    encryption: &FileEncryption,
    options: &ExamineOptions,
    code: &str,
    is_dry_run: bool,
    output: Printer,
) -> anyhow::Result<DoctorReport> {
    let wanted = match code {
        "all" => FixSelection::All,
        code => FixSelection::Code(code.to_owned()),
    };
    let is_known = wanted == FixSelection::All || doctor::entry(code).is_some();
    ensure!(is_known, "no code {code:?}: `warren doctor --list`");
    let spinner = output.spinner(format_args!("fixing {}", file.display()));
    let fixed = doctor::fix(file, encryption, options, &wanted, is_dry_run);
    spinner.finish_and_clear();
    let fixed = fixed?;
    print_report(file, &fixed, output);
    output.json(&fixed)?;
    Ok(fixed.report)
}

fn print_report(file: &Path, fixed: &FixReport, output: Printer) {
    if fixed.fixes.is_empty() {
        output.line(format_args!("nothing to fix"));
    }
    for fix in &fixed.fixes {
        output.line(format_args!("{}: {}", fix.code, fix.what));
        for line in fix.sql.lines() {
            output.line(format_args!("         {line}"));
        }
        if let Some(seconds) = fix.rehearsed_seconds {
            output
                .line(format_args!("         tried in memory: {seconds:.3} s, the file is whole"));
        }
    }
    if !fixed.fixes.is_empty() && !fixed.is_rehearsed {
        output.line(format_args!("not tried in memory: the file is too large for that"));
    }
    if let Some(after) = fixed.bytes_after {
        let (before, after) = (DecimalBytes(fixed.bytes_before), DecimalBytes(after));
        output.line(format_args!("{before} before, {after} after"));
    }
    match &fixed.undo {
        Some(folder) => {
            output.line(format_args!("as it was: {}", folder.display()));
            output.line(format_args!("to go back: warren doctor {} --undo", file.display()));
            output.line(format_args!(""));
            print::report(&fixed.report, output);
        }
        None if !fixed.fixes.is_empty() => output.line(format_args!("nothing was changed")),
        None => {}
    }
}

pub(super) fn undo(file: &Path, output: Printer) -> anyhow::Result<()> {
    let folder = doctor::undo_fix(file)?;
    output.line(format_args!("{} is as it was in {}", file.display(), folder.display()));
    output
        .json(&json!({"file": file.display().to_string(), "undone": folder.display().to_string()}))
}
