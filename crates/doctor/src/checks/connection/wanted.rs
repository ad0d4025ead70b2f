//! Compares the settings that the program intends with those that it has: settings without effect,
//! and settings of another file.

use super::facts::ConnectionFacts;
use crate::catalogue::finding_code::FindingCode;
use crate::report::finding::{DoctorFinding, Fix};

/// Reports that the connection has another file open, or that the settings are from an earlier
/// state of this file.
pub(super) fn mismatch(facts: &ConnectionFacts<'_>) -> Option<DoctorFinding> {
    let settings = facts.settings;
    let mut evidence: Vec<(&str, String)> = Vec::new();
    if let Some(file) = &facts.other_file {
        evidence.push(("file", format!("file of the connection: {file}")));
    }
    let mut compare = |name: &'static str, of_file: String| {
        let found = settings.value(name).filter(|value| !value.eq_ignore_ascii_case(&of_file));
        if let Some(value) = found {
            evidence.push((
                name,
                format!("{name} is {value} on the connection, and {of_file} in the file"),
            ));
        }
    };
    compare("page_size", facts.page_bytes.to_string());
    compare("encoding", facts.encoding.clone());
    if settings.text("journal_mode").is_some() && settings.is_journal(&["wal"]) != facts.is_wal {
        compare("journal_mode", if facts.is_wal { "wal" } else { "not WAL" }.to_owned());
    }
    let differ: Vec<&str> = evidence.iter().map(|(name, _)| *name).collect();
    if differ.is_empty() {
        return None;
    }
    let fix = "Find out which file the program opens (a relative path starts at the program's \
                working directory), and print its settings again.";
    let what = "the settings belong to another file, or to an earlier state of this one";
    let mut finding =
        DoctorFinding::new(FindingCode::SettingsMismatch, what, Fix::Advice(fix.to_owned()));
    for (_, line) in &evidence {
        finding = finding.evidence(line.clone());
    }
    Some(finding.detail("differ", differ).impact(
        "A program that opens a wrong path creates an empty database there, and finds no rows.",
    ))
}

/// Reports that the program expects the file to be encrypted, and it is not.
pub(super) fn encryption(facts: &ConnectionFacts<'_>) -> Option<DoctorFinding> {
    let cipher = facts.settings.wanted().get("cipher")?;
    let settings = facts.settings;
    let has_cipher = settings.text("cipher").or_else(|| settings.text("cipher_version"));
    (!facts.is_encrypted).then(|| {
        let why = match has_cipher {
            Some(name) => {
                format!(
                    "the library has ciphers ({name}), but no key was set when the file was new"
                )
            }
            None => {
                "the library has no ciphers, and ignores PRAGMA cipher and PRAGMA key".to_owned()
            }
        };
        let fix = "Use a build of SQLite that has the cipher (SQLite3 Multiple Ciphers, \
                    SQLCipher), and encrypt the file with it: PRAGMA rekey, or VACUUM INTO.";
        let what = format!("the program expects {cipher}, and the file is not encrypted");
        DoctorFinding::new(FindingCode::EncryptionIneffective, what, Fix::Advice(fix.to_owned()))
            .evidence(why)
            .detail("setting", "cipher")
            .detail("wanted", cipher.as_str())
            .impact("Anyone who can read the file can read everything in it.")
    })
}

/// Reports the settings that had no effect.
pub(super) fn ineffective(facts: &ConnectionFacts<'_>) -> Vec<DoctorFinding> {
    let all =
        facts.settings.wanted().iter().filter(|(name, _)| **name != "cipher" || facts.is_encrypted);
    all.filter_map(|(name, wanted)| one_ineffective(facts, name, wanted)).collect()
}

fn one_ineffective(
    facts: &ConnectionFacts<'_>,
    name: &'static str,
    wanted: &str,
) -> Option<DoctorFinding> {
    let found = match name {
        // The value in the file counts, because it may have been changed since.
        "auto_vacuum" => facts.auto_vacuum.to_string(),
        "page_size" => facts.page_bytes.to_string(),
        "cipher" => facts.settings.text(name).unwrap_or("none").to_owned(),
        _ => facts.settings.value(name)?,
    };
    if plain(name, &found) == plain(name, wanted) {
        return None;
    }
    let what = format!("{name} = {wanted} had no effect: the value is {}", named(name, &found));
    let mut finding =
        DoctorFinding::new(FindingCode::SettingIneffective, what, setting_fix(facts, name, wanted))
            .evidence(format!("expected {wanted}, found {found}"))
            .detail("setting", name)
            .detail("wanted", wanted)
            .detail("value", found);
    if let Some(why) = why(name) {
        finding = finding.evidence(why);
    }
    Some(finding.impact("The setting is not active, and SQLite reported no error."))
}

fn setting_fix(facts: &ConnectionFacts<'_>, name: &str, wanted: &str) -> Fix {
    match name {
        "auto_vacuum" | "page_size" if !is_possible(name, wanted) => {
            Fix::Advice(format!("{name} cannot be {wanted}: see https://sqlite.org/pragma.html"))
        }
        "auto_vacuum" => Fix::Sql(format!("PRAGMA auto_vacuum = {wanted};\nVACUUM;")),
        "page_size" if facts.is_encrypted => Fix::Advice(
            "Create a new file with this page size and the key, and copy the rows.".to_owned(),
        ),
        "page_size" if facts.is_wal => Fix::Sql(format!(
            "PRAGMA journal_mode = DELETE;\nPRAGMA page_size = {wanted};\nVACUUM;\n\
             PRAGMA journal_mode = WAL;"
        )),
        "page_size" => Fix::Sql(format!("PRAGMA page_size = {wanted};\nVACUUM;")),
        name => facts.set(name, wanted),
    }
}

/// Checks whether a setting of the file can have this value.
fn is_possible(name: &str, wanted: &str) -> bool {
    let number = plain(name, wanted).parse::<u32>().ok();
    number.is_some_and(|number| match name {
        "page_size" => number.is_power_of_two() && (512..=65_536).contains(&number),
        _ => number <= 2,
    })
}

/// Explains why SQLite ignores a setting, where a reason is known.
fn why(name: &str) -> Option<&'static str> {
    Some(match name {
        "auto_vacuum" | "page_size" => {
            "it takes effect only if it is set before the first page of a file is written \
             (journal_mode = WAL writes one), and later only with VACUUM"
        }
        "encoding" => "it takes effect only before the first table of a file is created",
        "foreign_keys" => {
            "it has no effect within a transaction, and some libraries start one first"
        }
        "synchronous" => "it cannot be changed within a transaction",
        "journal_mode" => {
            "it cannot be changed within a transaction, or while others have the file open; WAL \
             needs shared memory and a writable file"
        }
        "cipher" => "a library without this cipher ignores it",
        "temp_store" => "a library may be compiled with one fixed choice (TEMP_STORE 0 or 3)",
        "mmap_size" => {
            "an encrypted file has no memory map, and a library may be compiled without memory \
             maps"
        }
        _ => return None,
    })
}

const NAMES: &[(&str, &[&str])] = &[
    ("auto_vacuum", &["none", "full", "incremental"]),
    ("secure_delete", &["off", "on", "fast"]),
    ("synchronous", &["off", "normal", "full", "extra"]),
    ("temp_store", &["default", "file", "memory"]),
];

/// Normalizes a value, so that different spellings of it become equal.
fn plain(name: &str, value: &str) -> String {
    let value = value.to_ascii_lowercase();
    let names = NAMES.iter().find(|(of, _)| *of == name);
    if let Some(index) = names.and_then(|(_, names)| names.iter().position(|it| *it == value)) {
        return index.to_string();
    }
    match value.as_str() {
        "on" | "true" | "yes" => "1".to_owned(),
        "off" | "false" | "no" => "0".to_owned(),
        "utf8" => "utf-8".to_owned(),
        _ => value,
    }
}

/// Returns a value as people write it.
fn named(name: &str, value: &str) -> String {
    let names = NAMES.iter().find(|(of, _)| *of == name);
    let index = value.parse::<usize>().ok();
    let found = names.zip(index).and_then(|((_, names), index)| names.get(index));
    found.map_or_else(|| value.to_owned(), |name| name.to_ascii_uppercase())
}
