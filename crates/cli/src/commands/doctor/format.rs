//! Formats findings for other programs: GitHub's annotations, JUnit, Prometheus, SARIF.

use std::fmt::Write;
use std::time::Duration;

use doctor::{CatalogueEntry, DoctorFinding, Severity};
use serde_json::{Value, json};

use super::doctor_args::DoctorFormat;
use super::examined_file::ExaminedFile;
use crate::output::Printer;

/// Prints the findings in the format, which takes precedence over `--json`.
pub(super) fn print(format: DoctorFormat, examined: &[ExaminedFile]) {
    let text = match format {
        DoctorFormat::Github => github(examined),
        DoctorFormat::Junit => junit(examined),
        DoctorFormat::Prometheus => prometheus(examined),
        DoctorFormat::Sarif => format!("{:#}\n", sarif(examined)),
        DoctorFormat::Text => String::new(),
    };
    Printer { json: false }.text(format_args!("{}", text.trim_end()));
}

/// Formats annotations:
/// <https://docs.github.com/actions/reference/workflow-commands-for-github-actions>.
fn github(examined: &[ExaminedFile]) -> String {
    let escape = |text: &str| text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A");
    let escape_property = |text: &str| escape(text).replace(':', "%3A").replace(',', "%2C");
    let mut text = String::new();
    for file in examined {
        let path = escape_property(&file.path);
        for DoctorFinding { severity, code, summary, .. } in file.new_findings() {
            let level = match severity {
                Severity::Error => "error",
                Severity::Warning => "warning",
                Severity::Info => "notice",
            };
            writeln!(text, "::{level} file={path},title={code}::{}", escape(summary))
                .expect(STRING);
        }
        if let Some(error) = &file.error {
            let (code, message) = (error.code, escape(&error.message));
            writeln!(text, "::error file={path},title={code}::{message}").expect(STRING);
        }
    }
    text
}

/// Formats a test case for each file: <https://github.com/testmoapp/junitxml>.
fn junit(examined: &[ExaminedFile]) -> String {
    let failures = examined.iter().filter(|file| file.new_findings().next().is_some()).count();
    let errors = examined.iter().filter(|file| file.error.is_some()).count();
    let mut text = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"warren doctor\" \
         tests=\"{}\" failures=\"{failures}\" errors=\"{errors}\">\n",
        examined.len()
    );
    for file in examined {
        let path = xml(&file.path);
        let duration_ms = file.report.as_ref().map_or(0, |report| report.duration_ms);
        let seconds = Duration::from_millis(duration_ms).as_secs_f64();
        writeln!(text, "  <testcase name=\"{path}\" time=\"{seconds:.3}\">").expect(STRING);
        for DoctorFinding { severity, code, summary, .. } in file.new_findings() {
            let summary = xml(summary);
            writeln!(text, "    <failure type=\"{severity} {code}\" message=\"{summary}\"/>")
                .expect(STRING);
        }
        if let Some(error) = &file.error {
            let (code, message) = (error.code, xml(&error.message));
            writeln!(text, "    <error type=\"{code}\" message=\"{message}\"/>").expect(STRING);
        }
        text.push_str("  </testcase>\n");
    }
    text.push_str("</testsuite>\n");
    text
}

/// Escapes text for an XML attribute. XML cannot represent control characters.
fn xml(text: &str) -> String {
    let mut escaped = String::new();
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '"' => escaped.push_str("&quot;"),
            c if c.is_control() => escaped.push('\u{fffd}'),
            c => escaped.push(c),
        }
    }
    escaped
}

/// Formats metrics: <https://prometheus.io/docs/instrumenting/exposition_formats/>.
fn prometheus(examined: &[ExaminedFile]) -> String {
    let escape = |text: &str| text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    let mut text = String::new();
    let mut gauge = |name: &str, help: &str, values: Vec<(String, f64)>| {
        writeln!(text, "# HELP {name} {help}\n# TYPE {name} gauge").expect(STRING);
        for (labels, value) in values {
            writeln!(text, "{name}{{{labels}}} {value}").expect(STRING);
        }
    };
    let path = |file: &ExaminedFile| format!("path=\"{}\"", escape(&file.path));
    let of_each = |value: &dyn Fn(&doctor::DoctorReport) -> Option<f64>| -> Vec<(String, f64)> {
        let value = |file| Some((path(file), value(file.report.as_ref()?)?));
        examined.iter().filter_map(value).collect()
    };
    #[expect(clippy::cast_precision_loss, reason = "metrics are floating point numbers")]
    let number = |count: u64| count as f64;
    let findings = examined.iter().flat_map(|file| {
        file.new_findings().map(move |DoctorFinding { severity, code, .. }| {
            (format!("{},code=\"{code}\",severity=\"{severity}\"", path(file)), 1.0)
        })
    });
    let mut by_labels = std::collections::BTreeMap::<String, f64>::new();
    for (labels, count) in findings {
        *by_labels.entry(labels).or_default() += count;
    }
    gauge("warren_doctor_findings", "Findings by code.", by_labels.into_iter().collect());
    gauge(
        "warren_doctor_file_bytes",
        "Size of the main file.",
        of_each(&|report| Some(number(report.file.file_bytes))),
    );
    gauge(
        "warren_doctor_free_pages",
        "Free pages in the file.",
        of_each(&|report| report.file.free_pages_count.map(number)),
    );
    gauge(
        "warren_doctor_integrity_complete",
        "1 if all of the file was checked.",
        of_each(&|report| Some(f64::from(u8::from(report.integrity.complete)))),
    );
    let failed = |file: &ExaminedFile| (path(file), f64::from(u8::from(file.error.is_some())));
    let failed = examined.iter().map(failed).collect();
    gauge("warren_doctor_failed", "1 if the file could not be examined.", failed);
    text
}

/// Formats a SARIF log: <https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html>.
fn sarif(examined: &[ExaminedFile]) -> Value {
    let level = |severity: Severity| match severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Info => "note",
    };
    let rules: Vec<Value> = doctor::catalogue()
        .iter()
        .map(|CatalogueEntry { code, severity, title, why, reference, fix, .. }| {
            json!({
                "id": code,
                "shortDescription": {"text": title},
                "fullDescription": {"text": why},
                "help": {"text": fix},
                "helpUri": reference,
                "defaultConfiguration": {"level": level(*severity)},
            })
        })
        .collect();
    let results: Vec<Value> = examined
        .iter()
        .flat_map(|file| {
            file.new_findings().map(|finding| {
                json!({
                    "ruleId": finding.code,
                    "level": level(finding.severity),
                    "message": {"text": finding.summary},
                    "locations": [{"physicalLocation": {
                        "artifactLocation": {"uri": file.path},
                    }}],
                    "properties": {"details": finding.details, "fix": finding.fix},
                })
            })
        })
        .collect();
    json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {
                "name": "warren doctor",
                "version": env!("CARGO_PKG_VERSION"),
                "rules": rules,
            }},
            "results": results,
        }],
    })
}

const STRING: &str = "a String takes all that is written to it";
