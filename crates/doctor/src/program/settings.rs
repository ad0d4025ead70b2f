//! Parses the settings that a live connection of a program reported, one per line
//! (`docs/reference/formats/19-settings.md`).
//!
//! # Invariants
//! - The text is untrusted: its size is limited, and its parts are only used as a number, a
//!   version, a word, or a text to show.
//!
//! # Not here
//! - Judging the settings → `checks/connection.rs`. The code that prints them → `bench`,
//!   `tune/emit.rs`.

use std::collections::{BTreeMap, BTreeSet};

use crate::environment::temp_dirs::TempDirVariables;
use crate::error::{Error, Result};

/// The maximum size of the settings. The output of the snippets has about 3 kB.
pub const SETTINGS_BYTES_MAX: usize = 65_536;
const NAME_BYTES_MAX: usize = 64;
const VALUE_BYTES_MAX: usize = 4_096;
/// The maximum number of characters of a value that an error shows.
const SHOWN_CHARACTERS_MAX: usize = 40;

/// The PRAGMAs whose value is a whole number.
const NUMBERS: &[&str] = &[
    "analysis_limit",
    "auto_vacuum",
    "busy_timeout",
    "cache_size",
    "cell_size_check",
    "foreign_keys",
    "journal_size_limit",
    "mmap_size",
    "page_size",
    "query_only",
    "recursive_triggers",
    "secure_delete",
    "synchronous",
    "temp_store",
    "trusted_schema",
    "wal_autocheckpoint",
];

/// The settings whose value is a text.
const TEXTS: &[&str] = &[
    "SQLITE_TMPDIR",
    "TMPDIR",
    "cipher",
    "cipher_version",
    "encoding",
    "file",
    "framework",
    "journal_mode",
    "locking_mode",
    "sqlite_version",
    "temp_store_directory",
];

/// The settings that the checks use.
const JUDGED: &[&str] = &[
    "busy_timeout",
    "cache_size",
    "encoding",
    "foreign_keys",
    "journal_mode",
    "secure_delete",
    "sqlite_version",
    "synchronous",
    "temp_store",
    "wal_autocheckpoint",
];

const COMPILE_OPTIONS: &str = "compile_options";
/// The prefix of a PRAGMA's name in a line with the value that the program intends.
const WANTED: &str = "wanted.";

/// Formats a PRAGMA with this name and value in the syntax of a framework.
pub type SettingLine = fn(&str, &str) -> String;

/// The settings of one connection.
#[derive(Clone, Debug, Default)]
pub struct ConnectionSettings {
    numbers: BTreeMap<&'static str, i64>,
    texts: BTreeMap<&'static str, String>,
    compile_options: Vec<String>,
    wanted: BTreeMap<&'static str, String>,
    unknown: BTreeSet<String>,
    /// The syntax for fixes; without it, fixes name the PRAGMA.
    pub line: Option<SettingLine>,
}

impl ConnectionSettings {
    /// Parses the output of a snippet.
    pub fn parse(bytes: &[u8]) -> Result<Self> {
        let wrong = |line: usize, why: String| Error::InvalidSettings { line, why };
        if bytes.len() > SETTINGS_BYTES_MAX {
            return Err(wrong(
                1,
                format!("the settings have more than {SETTINGS_BYTES_MAX} bytes"),
            ));
        }
        let text = std::str::from_utf8(bytes).map_err(|error| {
            let before = bytes[..error.valid_up_to()].iter().filter(|byte| **byte == b'\n');
            wrong(before.count() + 1, error.to_string())
        })?;
        let mut settings = Self::default();
        for (index, line) in text.lines().enumerate() {
            if !line.trim().is_empty() {
                settings.read_line(line).map_err(|why| wrong(index + 1, why))?;
            }
        }
        if settings.numbers.is_empty() && settings.texts.is_empty() {
            return Err(wrong(1, "no known setting found".to_owned()));
        }
        Ok(settings)
    }

    fn read_line(&mut self, line: &str) -> Result<(), String> {
        let is_part = |c: char| c.is_ascii_alphanumeric() || "_.".contains(c);
        let pair = line.split_once('=').filter(|(name, _)| {
            !name.is_empty() && name.len() <= NAME_BYTES_MAX && name.chars().all(is_part)
        });
        let (name, value) =
            pair.ok_or_else(|| format!("not NAME=VALUE: {}", quote_setting(line)))?;
        if value.len() > VALUE_BYTES_MAX {
            return Err(format!("the value of {name} has more than {VALUE_BYTES_MAX} bytes"));
        }
        let known =
            |names: &[&'static str], name: &str| names.iter().copied().find(|it| *it == name);
        let is_first = if let Some(name) = name.strip_prefix(WANTED) {
            match known(NUMBERS, name).or_else(|| known(TEXTS, name)) {
                Some(name) => self.wanted.insert(name, word(value)?).is_none(),
                None => self.unknown.insert(format!("{WANTED}{name}")),
            }
        } else if let Some(name) = known(NUMBERS, name) {
            let number = value.parse();
            let number = number.map_err(|_error: std::num::ParseIntError| {
                format!("{name} is not a whole number: {}", quote_setting(value))
            })?;
            self.numbers.insert(name, number).is_none()
        } else if let Some(name) = known(TEXTS, name) {
            if name == "sqlite_version" && version(value).is_none() {
                return Err(format!("{name} is not a version: {}", quote_setting(value)));
            }
            self.texts.insert(name, value.to_owned()).is_none()
        } else if name == COMPILE_OPTIONS {
            self.compile_options.push(value.to_owned());
            true
        } else {
            self.unknown.insert(name.to_owned());
            true
        };
        is_first.then_some(()).ok_or_else(|| format!("{name} is set twice"))
    }

    pub(crate) fn number(&self, name: &str) -> Option<i64> {
        self.numbers.get(name).copied()
    }

    /// Returns a text setting that is not empty.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.texts.get(name).map(String::as_str).filter(|text| !text.is_empty())
    }

    /// Returns the framework whose snippet printed the settings.
    pub fn framework(&self) -> Option<&str> {
        self.text("framework")
    }

    /// Returns the path of the connection's file as the program reported it: empty if there is no
    /// file.
    pub(crate) fn file(&self) -> Option<&str> {
        self.texts.get("file").map(String::as_str)
    }

    pub(crate) fn is_journal(&self, modes: &[&str]) -> bool {
        let mode = self.text("journal_mode");
        mode.is_some_and(|mode| modes.iter().any(|it| it.eq_ignore_ascii_case(mode)))
    }

    /// Checks whether the connection keeps its locks, so that no other connection can lock the
    /// file.
    pub(crate) fn is_exclusive(&self) -> bool {
        self.text("locking_mode").is_some_and(|mode| mode.eq_ignore_ascii_case("exclusive"))
    }

    pub(crate) fn version(&self) -> Option<[u32; 3]> {
        version(self.text("sqlite_version")?)
    }

    pub(crate) const fn wanted(&self) -> &BTreeMap<&'static str, String> {
        &self.wanted
    }

    /// Returns a value as the connection reported it.
    pub(crate) fn value(&self, name: &str) -> Option<String> {
        let number = self.number(name).map(|number| number.to_string());
        number.or_else(|| self.text(name).map(str::to_owned))
    }

    /// Checks whether the library reported its compile options.
    pub(crate) const fn has_compile_options(&self) -> bool {
        !self.compile_options.is_empty()
    }

    /// Returns the value of a compile option, such as `0` for `THREADSAFE=0`.
    pub(crate) fn compile_option(&self, name: &str) -> Option<&str> {
        let mut options = self.compile_options.iter();
        options.find_map(|option| option.strip_prefix(name)?.strip_prefix('='))
    }

    /// Checks whether temporary files are kept in memory
    /// (<https://sqlite.org/tempfiles.html#the_sqlite_temp_store_compile_time_parameter_and_pragma>).
    pub(crate) fn keeps_temp_in_memory(&self) -> bool {
        match (self.compile_option("TEMP_STORE").unwrap_or("1"), self.number("temp_store")) {
            ("0", _) => false,
            ("3", _) | (_, Some(2)) => true,
            ("2", chosen) => chosen != Some(1),
            _ => false,
        }
    }

    /// Returns the temporary directories in the program's environment, or `None` if it is unknown.
    pub(crate) fn places(&self) -> Option<TempDirVariables> {
        let is_told = ["SQLITE_TMPDIR", "TMPDIR"].iter().any(|name| self.texts.contains_key(name));
        let directory = self.text("temp_store_directory").or_else(|| self.text("SQLITE_TMPDIR"));
        is_told.then(|| TempDirVariables {
            sqlite_tmpdir: directory.map(Into::into),
            tmpdir: self.text("TMPDIR").map(Into::into),
            is_told: true,
        })
    }

    /// Returns the names that are not recognized.
    pub(crate) fn unknown(&self) -> Vec<&str> {
        self.unknown.iter().map(String::as_str).collect()
    }

    /// Returns the names of settings that the checks use, but that are missing.
    pub(crate) fn untold(&self) -> Vec<&'static str> {
        let is_told = |name: &str| self.numbers.contains_key(name) || self.texts.contains_key(name);
        JUDGED.iter().copied().filter(|name| !is_told(name)).collect()
    }
}

fn version(text: &str) -> Option<[u32; 3]> {
    let mut parts = text.split('.').map(|part| part.parse::<u32>().ok());
    let version = [parts.next()??, parts.next()??, parts.next().unwrap_or(Some(0))?];
    parts.next().is_none().then_some(version)
}

/// Parses a value that is safe to insert into a statement.
fn word(value: &str) -> Result<String, String> {
    let word = value.trim_matches('\'');
    let is_part = |c: char| c.is_ascii_alphanumeric() || "_-".contains(c);
    let is_word = !word.is_empty() && word.len() <= NAME_BYTES_MAX && word.chars().all(is_part);
    is_word
        .then(|| word.to_owned())
        .ok_or_else(|| format!("not a PRAGMA value: {}", quote_setting(value)))
}

fn quote_setting(text: &str) -> String {
    let mut shown: String = text.chars().take(SHOWN_CHARACTERS_MAX).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    format!("{shown:?}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn wrong(text: &[u8]) -> (usize, String) {
        match ConnectionSettings::parse(text) {
            Err(Error::InvalidSettings { line, why }) => (line, why),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn settings_are_read() {
        let text = b"framework=go\r\n\njournal_mode=wal\ncache_size=-2000\nfile=/a=b.db\n\
                     compile_options=THREADSAFE=0\ncompile_options=DQS=0\nnonsense=1\n\
                     wanted.auto_vacuum='FULL'\nwanted.color=red\nsqlite_version=3.45.1\n";
        let settings = ConnectionSettings::parse(text).unwrap();
        assert_eq!((settings.framework(), settings.file()), (Some("go"), Some("/a=b.db")));
        assert_eq!(
            (settings.number("cache_size"), settings.number("synchronous")),
            (Some(-2000), None)
        );
        assert!(settings.is_journal(&["WAL"]) && !settings.is_exclusive());
        assert_eq!(settings.compile_option("THREADSAFE"), Some("0"));
        assert_eq!(settings.wanted()["auto_vacuum"], "FULL");
        assert_eq!(settings.unknown(), ["nonsense", "wanted.color"]);
        assert_eq!(settings.version(), Some([3, 45, 1]));
        assert!(settings.places().is_none() && settings.untold().contains(&"busy_timeout"));
    }

    #[test]
    fn what_is_wrong_is_told_with_its_line() {
        let check = |text: &[u8], line: usize, why: &str| {
            let (found, said) = wrong(text);
            assert!(found == line && said.contains(why), "{found}: {said}");
        };
        check(b"", 1, "no known setting");
        check(b"only=unknown\n", 1, "no known setting");
        check(b"synchronous=1\nhello\n", 2, "not NAME=VALUE");
        check(b"synchronous=1\n\nhello world=3", 3, "not NAME=VALUE");
        check(b"synchronous=FULL", 1, "whole number");
        check(b"synchronous=99999999999999999999", 1, "whole number");
        check(b"synchronous=1\nsynchronous=1", 2, "twice");
        check(b"sqlite_version=new", 1, "not a version");
        check(b"synchronous=1\nwanted.auto_vacuum=FULL; DROP TABLE t", 2, "not a PRAGMA value");
        check(b"synchronous=1\nfile=\xff", 2, "utf-8");
        check(&vec![b'a'; SETTINGS_BYTES_MAX + 1], 1, "bytes");
        let long = format!("file={}", "x".repeat(VALUE_BYTES_MAX + 1));
        check(long.as_bytes(), 1, "bytes");
        let (_, said) = wrong(&[b'a'; 5000]);
        assert!(said.len() < 100, "{said}");
    }

    #[test]
    fn where_temporary_files_are_is_told_as_sqlite_decides_it() {
        let check = |compiled: &str, chosen: &str, expected: bool| {
            let text = format!("temp_store={chosen}\n{compiled}");
            let settings = ConnectionSettings::parse(text.as_bytes()).unwrap();
            assert_eq!(settings.keeps_temp_in_memory(), expected, "{text}");
        };
        check("", "0", false);
        check("", "2", true);
        check("compile_options=TEMP_STORE=0", "2", false);
        check("compile_options=TEMP_STORE=2", "0", true);
        check("compile_options=TEMP_STORE=2", "1", false);
        check("compile_options=TEMP_STORE=3", "1", true);
        let text = b"SQLITE_TMPDIR=\nTMPDIR=/t\ntemp_store_directory=/d\n";
        let places = ConnectionSettings::parse(text).unwrap().places().unwrap();
        assert_eq!(places.sqlite_tmpdir.as_deref(), Some("/d".as_ref()));
        assert_eq!(places.tmpdir.as_deref(), Some("/t".as_ref()));
    }
}
