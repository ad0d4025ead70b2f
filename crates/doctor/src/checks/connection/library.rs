//! Judges the program's SQLite library: its version, its compile options and how it treats content.

use indicatif::DecimalBytes;

use super::facts::ConnectionFacts;
use crate::catalogue::finding_code::FindingCode;
use crate::report::finding::{DoctorFinding, Fix};

/// A bug of SQLite that loses data.
struct SqliteBug {
    /// The first version that has the bug.
    since: [u32; 3],
    /// The first version in which the bug is fixed.
    fixed: [u32; 3],
    /// Patch releases of older versions that contain the fix, too.
    backports: &'static [[u32; 3]],
    what: &'static str,
    needs: &'static str,
    source: &'static str,
    concerns: fn(&ConnectionFacts<'_>) -> bool,
}

const FAULTS: &[SqliteBug] = &[
    SqliteBug {
        since: [3, 7, 0],
        fixed: [3, 51, 3],
        backports: &[[3, 44, 6], [3, 50, 7]],
        what: "the WAL-reset bug: a checkpoint may skip committed transactions",
        needs: "two connections that write or checkpoint at the same moment (rare)",
        source: "https://sqlite.org/wal.html#walresetbug",
        concerns: |facts| facts.is_wal && !facts.settings.is_exclusive(),
    },
    SqliteBug {
        since: [3, 35, 0],
        fixed: [3, 37, 2],
        backports: &[],
        what: "a savepoint that is rolled back in memory may corrupt the file",
        needs: "savepoint journals in memory (temp_store = MEMORY), and ROLLBACK TO (rare)",
        source: "https://sqlite.org/releaselog/3_37_2.html",
        concerns: |facts| facts.settings.keeps_temp_in_memory(),
    },
];

impl SqliteBug {
    fn is_in(&self, version: [u32; 3]) -> bool {
        let is_patched = |patch: &[u32; 3]| patch[..2] == version[..2] && version >= *patch;
        (self.since..self.fixed).contains(&version) && !self.backports.iter().any(is_patched)
    }
}

pub(super) fn version(facts: &ConnectionFacts<'_>) -> Option<DoctorFinding> {
    let version = facts.settings.version()?;
    let mut faults =
        FAULTS.iter().filter(|it| it.is_in(version) && (it.concerns)(facts)).peekable();
    faults.peek()?;
    let faults: Vec<&SqliteBug> = faults.collect();
    let [major, minor, patch] = faults.iter().map(|fault| fault.fixed).max()?;
    let fixed = format!("{major}.{minor}.{patch}");
    let text = facts.settings.text("sqlite_version")?;
    let what = format!("SQLite {text} has a bug that can lose data; it is fixed in {fixed}");
    let mut finding = facts.finding(FindingCode::SqliteFaulty, "sqlite_version", what);
    for fault in &faults {
        finding =
            finding.evidence(format!("{}; needs {}: {}", fault.what, fault.needs, fault.source));
    }
    let advice = format!(
        "Update the library that contains SQLite until `SELECT sqlite_version()` returns {fixed} \
         or later. A distribution may have added the fix to an older version: see its changelog."
    );
    Some(finding.detail("fixed_in", fixed).with_fix(Fix::Advice(advice)).impact(
        "In rare cases, and without an error, commits are lost or the file becomes malformed.",
    ))
}

pub(super) fn threads(facts: &ConnectionFacts<'_>) -> Option<DoctorFinding> {
    (facts.settings.compile_option("THREADSAFE")? == "0").then(|| {
        let fix = "Use SQLite from one thread only, or use a library that is compiled with \
                    THREADSAFE=1 or 2.";
        DoctorFinding::new(
            FindingCode::ThreadsUnsafe,
            "the library is compiled without locks between threads",
            Fix::Advice(fix.to_owned()),
        )
        .evidence("compile_options: THREADSAFE=0")
        .detail("compile_option", "THREADSAFE=0")
        .impact(
            "Two threads that use SQLite at the same time corrupt memory, even on two connections.",
        )
    })
}

pub(super) fn double_quotes(facts: &ConnectionFacts<'_>) -> Option<DoctorFinding> {
    let dqs = facts.settings.compile_option("DQS").unwrap_or("3");
    (facts.settings.has_compile_options() && dqs != "0").then(|| {
        let fix = "Write strings in single quotes: 'text'. To make SQLite reject strings in double \
                    quotes, turn off SQLITE_DBCONFIG_DQS_DML and SQLITE_DBCONFIG_DQS_DDL in the \
                    program, or build the library with -DSQLITE_DQS=0.";
        let what = "a misspelled column in double quotes is taken as a string";
        DoctorFinding::new(FindingCode::DoubleQuotedStrings, what, Fix::Advice(fix.to_owned()))
            .evidence(format!("the library is compiled with DQS={dqs}, not 0"))
            .detail("compile_option", format!("DQS={dqs}"))
            .impact("WHERE \"nmae\" = 'Ada' finds nothing, without an error.")
    })
}

pub(super) fn encoding(facts: &ConnectionFacts<'_>) -> Option<DoctorFinding> {
    let encoding = facts.settings.text("encoding")?;
    encoding.to_ascii_uppercase().starts_with("UTF-16").then(|| {
        let fix = "Copy the content into a new file: set PRAGMA encoding = 'UTF-8' before you \
                    create its first table, then use .dump and .read, or ATTACH and INSERT … \
                    SELECT.";
        facts
            .finding(FindingCode::EncodingWide, "encoding", format!("text is stored as {encoding}"))
            .with_fix(Fix::Advice(fix.to_owned()))
            .impact("Latin text takes twice the space, in the file and in the cache.")
    })
}

pub(super) fn secure_delete(facts: &ConnectionFacts<'_>) -> Option<DoctorFinding> {
    (facts.settings.number("secure_delete")? == 0).then(|| {
        let cost = if facts.is_encrypted {
            "Anyone who has the key can read deleted content until it is overwritten."
        } else {
            "Anyone who can read the file can read deleted content until it is overwritten."
        };
        let what = "deleted content stays in the file: secure_delete is off";
        facts
            .finding(FindingCode::SecureDeleteOff, "secure_delete", what)
            .evidence(format!("free pages of the file: {}", DecimalBytes(facts.free_bytes)))
            .with_fix(facts.set("secure_delete", "ON"))
            .impact(cost)
    })
}
