//! Prints the report as text: the file, the findings, and which checks were done or skipped.

use std::fmt::Display;
use std::time::Duration;

use doctor::{CatalogueEntry, DoctorFinding, DoctorReport, FileSummary, IgnoredFinding, counted};
use indicatif::DecimalBytes;

use crate::output::Printer;

/// The width that most terminals show without wrapping.
const WIDTH_MAX: usize = 100;
const INDENT: &str = "         ";

pub(super) fn report(report: &DoctorReport, output: Printer) {
    file(&report.file, output);
    if let Some(workload) = &report.workload {
        super::load::print(workload, output);
    }
    for finding in &report.findings {
        self::finding(finding, output);
    }
    for ignored in &report.ignored {
        let IgnoredFinding { finding: DoctorFinding { code, summary, .. }, reason } = ignored;
        output.line(format_args!(""));
        block("ignored", &format!("{code}: {summary}: {reason}"), output);
    }
    if report.findings.is_empty() {
        output.line(format_args!(""));
        let scope = if report.integrity.complete { "" } else { " in what was checked" };
        output.line(format_args!("no problems found{scope}"));
    }
    output.line(format_args!(""));
    block("checked", &report.checked.join("; "), output);
    for skipped in &report.skipped {
        block("skipped", &format!("{}: {}", skipped.check, skipped.reason), output);
    }
    if !report.integrity.complete && report.integrity.unchecked.is_empty() {
        let is_closed = report.file.open_mode.is_none();
        let what = if is_closed { "the content" } else { "the integrity" };
        block("note", &format!("{what} was not checked: see \"skipped\" above"), output);
    }
    for what in &report.integrity.unchecked {
        block("note", &format!("not fully checked: {what}"), output);
    }
    if report.findings.iter().any(|finding| finding.fix_sql.is_some()) {
        block("fix", "apply with --fix CODE or --fix all; add --dry-run to preview", output);
    }
    let duration = Duration::from_millis(report.duration_ms);
    output.line(format_args!("{:.1} s", duration.as_secs_f64()));
}

/// Prints the lines of `--ignore` that matched no finding.
pub(super) fn needless(lines: &[String], output: Printer) {
    for line in lines {
        block("unused", &format!("ignore rule: {line}"), output);
    }
}

fn file(file: &FileSummary, output: Printer) {
    let mut facts = vec![DecimalBytes(file.file_bytes).to_string()];
    let mut add = |fact: Option<String>| facts.extend(fact);
    add(file
        .pages_count
        .zip(file.page_bytes)
        .map(|(pages, size)| format!("{} of {size} bytes", counted(pages, "page", "pages"))));
    add(file.journal.map(|journal| format!("journal {journal}")));
    add(file.wal_bytes.map(|bytes| format!("WAL of {}", DecimalBytes(bytes))));
    add(file.cipher.map(|cipher| format!("cipher {cipher}")));
    let count = |count: usize| count.try_into().unwrap_or(u64::MAX);
    add(file.tables_count.map(|tables| counted(count(tables), "table", "tables")));
    add(file.indexes_count.map(|indexes| counted(count(indexes), "index", "indexes")));
    add(file.sqlite_version.as_ref().map(|version| format!("written by SQLite {version}")));
    add(file.file_system.as_ref().map(|kind| format!("on {kind}")));
    let users: Vec<String> =
        file.processes.iter().map(|user| format!("{} (pid {})", user.name, user.pid)).collect();
    add((!users.is_empty()).then(|| format!("open in {}", users.join(", "))));
    output.line(format_args!("{}", file.path));
    for line in wrap(&facts.join(", "), WIDTH_MAX - 2) {
        output.line(format_args!("  {line}"));
    }
}

fn finding(finding: &DoctorFinding, output: Printer) {
    output.line(format_args!(""));
    let DoctorFinding { severity, code, summary, .. } = finding;
    let mut lines = wrap(&format!("{code}: {summary}"), WIDTH_MAX - INDENT.len()).into_iter();
    output.line(format_args!("{severity:8} {}", lines.next().unwrap_or_default()));
    for line in lines {
        output.line(format_args!("{INDENT}{line}"));
    }
    for line in finding.evidence.iter().flat_map(|line| wrap(line, WIDTH_MAX - INDENT.len())) {
        output.line(format_args!("{INDENT}{line}"));
    }
    if !finding.impact.is_empty() {
        block("  impact", &finding.impact, output);
    }
    let mut fix = finding.fix.to_string();
    if matches!(finding.fix, doctor::Fix::Advice(_)) {
        fix = wrap(&fix, WIDTH_MAX - INDENT.len()).join("\n");
    }
    // Lines of code stay whole, so that they can be copied.
    for (index, line) in fix.lines().enumerate() {
        let label = if index == 0 { "fix" } else { "" };
        output.line(format_args!("{label:>8} {line}"));
    }
}

/// Prints the explanation of a code.
pub(super) fn entry(entry: &CatalogueEntry, output: Printer) {
    let CatalogueEntry { code, severity, title, why, reference, detection, fix } = entry;
    output.line(format_args!("{severity:8} {code}: {title}"));
    output.line(format_args!(""));
    block("why", why, output);
    block("source", reference, output);
    block("how", detection, output);
    block("fix", fix, output);
}

/// Prints a label and, next to it, a wrapped text.
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
