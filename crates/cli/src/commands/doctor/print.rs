//! The report as text: what file it is, the findings, what was checked and what was not.

use std::fmt::Display;

use doctor::{CatalogueEntry, DoctorFinding, DoctorReport, FileSummary, IgnoredFinding};
use indicatif::DecimalBytes;

use crate::output::Printer;

/// What most terminals show without folding.
const WIDTH_MAX: usize = 100;
const INDENT: &str = "         ";

pub(super) fn report(report: &DoctorReport, output: Printer) {
    about(&report.about, output);
    if let Some(load) = &report.load {
        super::load::print(load, output);
    }
    for finding in &report.findings {
        self::finding(finding, output);
    }
    for ignored in &report.ignored {
        let IgnoredFinding { finding: DoctorFinding { code, what, .. }, why } = ignored;
        output.line(format_args!(""));
        block("ignored", &format!("{code}: {what}: {why}"), output);
    }
    if report.findings.is_empty() {
        output.line(format_args!(""));
        output.line(format_args!("nothing found"));
    }
    output.line(format_args!(""));
    block("checked", &report.checked.join("; "), output);
    for skipped in &report.skipped {
        block("skipped", &format!("{}: {}", skipped.what, skipped.why), output);
    }
    if !report.integrity.is_complete && report.integrity.unchecked.is_empty() {
        block("not", "compared: anything", output);
    }
    for what in &report.integrity.unchecked {
        block("not", &format!("compared: {what}"), output);
    }
    if report.findings.iter().any(|finding| finding.fix.is_some()) {
        block("fix", "with --fix CODE, or --fix all: first see --dry-run", output);
    }
    output.line(format_args!("{:.1} s", report.seconds));
}

/// Lines of `--ignore` for what was not found.
pub(super) fn needless(lines: &[String], output: Printer) {
    for line in lines {
        block("needless", line, output);
    }
}

fn about(about: &FileSummary, output: Printer) {
    let mut facts = vec![DecimalBytes(about.file_bytes).to_string()];
    let mut add = |fact: Option<String>| facts.extend(fact);
    add(about
        .pages_count
        .zip(about.page_bytes)
        .map(|(pages, size)| format!("{pages} pages of {size}")));
    add(about.journal.map(|journal| format!("journal {journal}")));
    add(about.wal_bytes.map(|bytes| format!("WAL of {}", DecimalBytes(bytes))));
    add(about.cipher.map(|cipher| format!("cipher {cipher}")));
    add(about.tables_count.map(|tables| format!("{tables} tables")));
    add(about.indexes_count.map(|indexes| format!("{indexes} indexes")));
    add(about.sqlite_version.as_ref().map(|version| format!("written by SQLite {version}")));
    add(about.file_system.as_ref().map(|kind| format!("on {kind}")));
    let users: Vec<String> =
        about.processes.iter().map(|user| format!("{} (pid {})", user.name, user.pid)).collect();
    add((!users.is_empty()).then(|| format!("open in {}", users.join(", "))));
    output.line(format_args!("{}", about.path));
    for line in wrap(&facts.join(", "), WIDTH_MAX - 2) {
        output.line(format_args!("  {line}"));
    }
}

fn finding(finding: &DoctorFinding, output: Printer) {
    output.line(format_args!(""));
    let DoctorFinding { severity, code, what, .. } = finding;
    let mut lines = wrap(&format!("{code}: {what}"), WIDTH_MAX - INDENT.len()).into_iter();
    output.line(format_args!("{severity:8} {}", lines.next().unwrap_or_default()));
    for line in lines {
        output.line(format_args!("{INDENT}{line}"));
    }
    for line in finding.evidence.iter().flat_map(|line| wrap(line, WIDTH_MAX - INDENT.len())) {
        output.line(format_args!("{INDENT}{line}"));
    }
    if !finding.cost.is_empty() {
        block("    cost", &finding.cost, output);
    }
    let mut fix = finding.mend.to_string();
    if matches!(finding.mend, doctor::Fix::Advice(_)) {
        fix = wrap(&fix, WIDTH_MAX - INDENT.len()).join("\n");
    }
    // Whole lines, to be copied.
    for (index, line) in fix.lines().enumerate() {
        let label = if index == 0 { "mend" } else { "" };
        output.line(format_args!("{label:>8} {line}"));
    }
}

/// What a code means.
pub(super) fn entry(entry: &CatalogueEntry, output: Printer) {
    let CatalogueEntry { code, severity, title, why, source, how, mend: fix } = entry;
    output.line(format_args!("{severity:8} {code}: {title}"));
    output.line(format_args!(""));
    block("why", why, output);
    block("source", source, output);
    block("how", how, output);
    block("mend", fix, output);
}

/// A label and a text, wrapped beside it.
fn block(label: &str, text: &str, output: Printer) {
    for (index, line) in wrap(text, WIDTH_MAX - INDENT.len()).iter().enumerate() {
        let label: &dyn Display = if index == 0 { &label } else { &"" };
        output.line(format_args!("{label:8} {line}"));
    }
}

fn wrap(text: &str, characters_max: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= characters_max => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}
