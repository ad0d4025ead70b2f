//! Lists the candidates, which are single settings, as data.
//!
//! # Invariants
//! - Among the values of one PRAGMA, the cheaper one comes before the more expensive one.
//! - A candidate that switches to WAL also sets `synchronous`: some builds have another default
//!   there, and a change made for speed must not reduce durability.

use super::settings::PragmaSettings;

/// A setting to try.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TuneCandidate {
    pub(crate) pragma: &'static str,
    pub(crate) value: &'static str,
    /// The cost in words; empty if there is none.
    pub(crate) impact: &'static str,
    /// The most additional memory for each connection.
    pub(crate) memory_bytes: u64,
}

/// The properties of the file on which candidates are tried.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TuneCondition {
    pub(crate) bytes: u64,
    pub(crate) is_encrypted: bool,
}

/// The largest file that is copied for each page size; beyond this, copying takes longer than
/// measuring.
pub(crate) const CONVERTED_BYTES_MAX: u64 = 1 << 30;

const fn one(pragma: &'static str, value: &'static str, impact: &'static str) -> TuneCandidate {
    TuneCandidate { pragma, value, impact, memory_bytes: 0 }
}

const fn cache(value: &'static str, kib: u64) -> TuneCandidate {
    TuneCandidate { pragma: "cache_size", value, impact: "", memory_bytes: kib << 10 }
}

const VACUUM: &str = "needs one VACUUM, and free disk space of twice the file size";
const MMAP: &str = "uses address space; an I/O error terminates the process (SIGBUS)";

/// All candidates, from those of the ten PRAGMAs that affect speed.
pub(crate) const CANDIDATES: &[TuneCandidate] = &[
    one(
        "journal_mode",
        "WAL",
        "creates -wal and -shm files; does not work on network file systems",
    ),
    one("journal_mode", "TRUNCATE", ""),
    one("journal_mode", "PERSIST", "the journal file is not deleted"),
    one("journal_mode", "MEMORY", "a crash during a commit may corrupt the file"),
    one("synchronous", "NORMAL", "a power loss may undo the last commits; no corruption"),
    one("synchronous", "OFF", "a power loss may corrupt the file"),
    one("wal_autocheckpoint", "4000", "a WAL of about 16 MB"),
    one("wal_autocheckpoint", "16000", "a WAL of about 64 MB"),
    one("temp_store", "MEMORY", "memory for temporary tables and large sorts"),
    cache("-8000", 8_000),
    cache("-32000", 32_000),
    cache("-128000", 128_000),
    cache("-512000", 512_000),
    one("mmap_size", "268435456", MMAP),
    one("mmap_size", "2147418112", MMAP),
    one("page_size", "4096", VACUUM),
    one("page_size", "8192", VACUUM),
    one("page_size", "16384", VACUUM),
    one("auto_vacuum", "NONE", "needs one VACUUM; free pages stay in the file"),
];

impl TuneCandidate {
    /// Returns the name in the report.
    pub(crate) fn name(&self) -> String {
        format!("{} {}", self.pragma, self.value)
    }

    /// Returns `settings` with this candidate.
    pub(crate) fn apply(&self, settings: &PragmaSettings) -> PragmaSettings {
        let with = settings.with(self.pragma, self.value);
        let is_raised = self.value == "WAL" && settings.get("synchronous") == "NORMAL";
        // NORMAL with a rollback journal waits for the disk at each commit, but NORMAL with a WAL
        // does not.
        if is_raised { with.with("synchronous", "FULL") } else { with }
    }

    /// Returns whether the candidate can make a difference, given `settings`.
    pub(crate) fn applies(&self, settings: &PragmaSettings, to: TuneCondition) -> bool {
        let TuneCondition { bytes, is_encrypted } = to;
        let now = settings.get(self.pragma);
        if now == self.value {
            return false;
        }
        match self.pragma {
            "journal_mode" if self.value == "WAL" || self.value == "MEMORY" => true,
            "journal_mode" => now == "DELETE",
            "synchronous" if self.value == "NORMAL" => settings.is_wal() && now != "OFF",
            "wal_autocheckpoint" => settings.is_wal() && number(self.value) > number(now),
            "cache_size" => {
                let has = cache_bytes(now, settings.get("page_size"));
                self.memory_bytes > has && bytes > has.max(self.smaller(cache_size))
            }
            "mmap_size" => {
                let has = number(now).max(self.smaller(|of| number(of.value)));
                !is_encrypted && number(self.value) > number(now) && (bytes > has || has == 0)
            }
            "page_size" | "auto_vacuum" => !is_encrypted && bytes <= CONVERTED_BYTES_MAX,
            _ => true,
        }
    }

    /// Returns the largest of the values of the same PRAGMA before this one; 0 if there is none.
    fn smaller(&self, size: impl Fn(&Self) -> u64) -> u64 {
        let before = CANDIDATES.iter().take_while(|of| *of != self);
        before.filter(|of| of.pragma == self.pragma).map(size).max().unwrap_or(0)
    }
}

fn cache_size(of: &TuneCandidate) -> u64 {
    of.memory_bytes
}

fn number(value: &str) -> u64 {
    value.parse().unwrap_or(0)
}

/// Converts a cache size to bytes: positive numbers are pages, negative ones KiB.
pub(crate) fn cache_bytes(value: &str, page_size: &str) -> u64 {
    match value.strip_prefix('-') {
        Some(kib) => number(kib) << 10,
        None => number(value) * number(page_size),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEFAULTS: [(&str, &str); 8] = [
        ("page_size", "4096"),
        ("auto_vacuum", "NONE"),
        ("journal_mode", "DELETE"),
        ("synchronous", "FULL"),
        ("wal_autocheckpoint", "1000"),
        ("temp_store", "DEFAULT"),
        ("cache_size", "-2000"),
        ("mmap_size", "0"),
    ];

    fn settings(changes: &[(&str, &str)]) -> PragmaSettings {
        let all = DEFAULTS.iter().chain(changes);
        all.fold(PragmaSettings::default(), |settings, (name, value)| settings.with(name, value))
    }

    fn applying(pragma: &str, changes: &[(&str, &str)], to: TuneCondition) -> Vec<&'static str> {
        let settings = settings(changes);
        let all = CANDIDATES.iter().filter(|one| one.pragma == pragma);
        all.filter(|one| one.applies(&settings, to)).map(|one| one.value).collect()
    }

    #[test]
    fn only_what_can_matter_is_tried() {
        let small = TuneCondition { bytes: 1 << 20, is_encrypted: false };
        let large = TuneCondition { bytes: 100 << 20, is_encrypted: false };
        let huge = TuneCondition { bytes: 10 << 30, is_encrypted: false };
        let encrypted = TuneCondition { is_encrypted: true, ..large };
        let wal = [("journal_mode", "WAL")];
        let check = |pragma, changes: &[_], to, expected: &[&str]| {
            assert_eq!(applying(pragma, changes, to), expected, "{pragma} {to:?}");
        };
        check("cache_size", &[], small, &[]);
        check("cache_size", &[], large, &["-8000", "-32000", "-128000"]);
        check("cache_size", &[("cache_size", "16000")], large, &["-128000"]);
        check("cache_size", &[], huge, &["-8000", "-32000", "-128000", "-512000"]);
        check("mmap_size", &[], large, &["268435456"]);
        check("mmap_size", &[], huge, &["268435456", "2147418112"]);
        check("mmap_size", &[], encrypted, &[]);
        check("page_size", &[], large, &["8192", "16384"]);
        check("page_size", &[("page_size", "1024")], large, &["4096", "8192", "16384"]);
        check("page_size", &[], huge, &[]);
        check("page_size", &[], encrypted, &[]);
        check("auto_vacuum", &[], large, &[]);
        check("auto_vacuum", &[("auto_vacuum", "FULL")], large, &["NONE"]);
        check("wal_autocheckpoint", &[], large, &[]);
        check("wal_autocheckpoint", &wal, large, &["4000", "16000"]);
        check("journal_mode", &wal, large, &["MEMORY"]);
        check("synchronous", &[], large, &["OFF"]);
        check("synchronous", &wal, large, &["NORMAL", "OFF"]);
    }

    #[test]
    fn a_switch_to_wal_keeps_commits_durable() {
        let wal = &CANDIDATES[0];
        let check = |before: &str, after: &str| {
            let settings = settings(&[("synchronous", before)]);
            assert_eq!(wal.apply(&settings).get("synchronous"), after);
        };
        check("FULL", "FULL");
        check("EXTRA", "EXTRA");
        check("NORMAL", "FULL");
    }
}
