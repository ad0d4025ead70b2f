//! Tests each judgment on settings that deserve it, and on the same settings without the fault.

use std::path::PathBuf;

use serde_json::json;

use super::facts::ConnectionFacts;
use super::judge;
use crate::catalogue::finding_code::FindingCode;
use crate::program::settings::ConnectionSettings;
use crate::report::CheckResults;
use crate::report::finding::{DoctorFinding, Fix};

/// The settings of a program in production, which must not cause any finding.
const HEALTHY: &str = "framework=better-sqlite3\njournal_mode=wal\nsynchronous=1\nbusy_timeout=30000\n\
    foreign_keys=1\ncache_size=-16000\nmmap_size=0\ntemp_store=1\nsecure_delete=1\nauto_vacuum=1\n\
    encoding=UTF-8\npage_size=4096\nwal_autocheckpoint=1000\njournal_size_limit=-1\n\
    locking_mode=normal\ncompile_options=THREADSAFE=2\ncompile_options=DQS=0\n\
    sqlite_version=3.54.0\nSQLITE_TMPDIR=/srv/tmp\nTMPDIR=\n";
const GB: u64 = 1_000_000_000;

/// Returns the settings with some lines replaced by those of the same name. An empty value removes
/// the line.
fn settings(changes: &[(&str, &str)]) -> ConnectionSettings {
    let is_changed = |line: &&str| {
        let name = line.split('=').next().unwrap();
        changes.iter().any(|(of, _)| of.split('=').next() == Some(name))
    };
    let mut lines: Vec<String> =
        HEALTHY.lines().filter(|line| !is_changed(line)).map(str::to_owned).collect();
    let added = changes.iter().filter(|(_, value)| !value.is_empty());
    lines.extend(added.map(|(name, value)| format!("{name}={value}")));
    ConnectionSettings::parse(lines.join("\n").as_bytes()).unwrap()
}

fn facts(settings: &ConnectionSettings) -> ConnectionFacts<'_> {
    ConnectionFacts {
        settings,
        is_wal: true,
        page_bytes: 4_096,
        content_bytes: GB,
        free_bytes: 40_960,
        auto_vacuum: 1,
        encoding: "UTF-8".to_owned(),
        referring: vec!["book".to_owned()],
        is_encrypted: false,
        memory_bytes: Some(16 * GB),
        users_count: 2,
        temp: Some((PathBuf::from("/srv/tmp"), false)),
        other_file: None,
    }
}

fn found(
    changes: &[(&str, &str)],
    change: impl FnOnce(&mut ConnectionFacts<'_>),
) -> Vec<DoctorFinding> {
    let settings = settings(changes);
    let mut facts = facts(&settings);
    change(&mut facts);
    let mut log = CheckResults::default();
    judge(&facts, &mut log);
    log.findings
}

/// Checks that exactly this code is found, with evidence, and that its fix contains this text.
#[track_caller]
fn check(
    code: FindingCode,
    changes: &[(&str, &str)],
    change: impl FnOnce(&mut ConnectionFacts<'_>),
    fix: &str,
) -> DoctorFinding {
    let found = found(changes, change);
    let codes: Vec<FindingCode> = found.iter().map(|finding| finding.code).collect();
    assert_eq!(codes, [code], "{found:#?}");
    let finding = found.into_iter().next().unwrap();
    assert!(!finding.evidence.is_empty() && !finding.details.is_empty(), "{finding:#?}");
    assert!(!finding.impact.is_empty() && finding.fix.to_string().contains(fix), "{finding:#?}");
    finding
}

#[track_caller]
fn check_none(changes: &[(&str, &str)], change: impl FnOnce(&mut ConnectionFacts<'_>)) {
    let found = found(changes, change);
    assert!(found.is_empty(), "{found:#?}");
}

const fn same(_: &mut ConnectionFacts<'_>) {}

/// Reduces the content to a size for which the cache in `HEALTHY` is not too small.
const fn small(facts: &mut ConnectionFacts<'_>) {
    facts.content_bytes = 100_000_000;
}

#[test]
fn of_settings_that_are_well_nothing_is_said() {
    check_none(&[], small);
    check_none(&[("compile_options", "")], small);
}

#[test]
fn what_waits_for_no_lock_is_found() {
    let change = ("busy_timeout", "0");
    let finding =
        check(FindingCode::BusyTimeoutAbsent, &[change], small, "PRAGMA busy_timeout = 5000");
    assert_eq!(
        (&finding.details["setting"], &finding.details["value"]),
        (&json!("busy_timeout"), &json!(0))
    );
    check_none(&[change, ("locking_mode", "exclusive")], small);
}

#[test]
fn a_fix_is_written_as_the_framework_has_it() {
    let mut settings = settings(&[("busy_timeout", "0")]);
    settings.line = Some(|name, value| format!("db.pragma('{name} = {value}');"));
    let mut log = CheckResults::default();
    judge(&ConnectionFacts { content_bytes: 0, ..facts(&settings) }, &mut log);
    let fix =
        "In the program, on each connection (better-sqlite3): db.pragma('busy_timeout = 5000');";
    assert_eq!(log.findings[0].fix, Fix::Advice(fix.to_owned()));
}

#[test]
fn what_a_power_loss_or_a_crash_breaks_is_found() {
    let rollback = |facts: &mut ConnectionFacts<'_>| {
        small(facts);
        facts.is_wal = false;
    };
    check(FindingCode::SynchronousOff, &[("synchronous", "0")], small, "synchronous = NORMAL");
    let delete = ("journal_mode", "delete");
    check(
        FindingCode::SynchronousOff,
        &[("synchronous", "0"), delete],
        rollback,
        "synchronous = FULL",
    );
    check(FindingCode::SynchronousLow, &[delete], rollback, "synchronous = FULL");
    check_none(&[delete, ("synchronous", "2")], rollback);
    for mode in ["memory", "OFF"] {
        let changes = [("journal_mode", mode), ("synchronous", "2")];
        check(FindingCode::JournalModeUnsafe, &changes, rollback, "journal_mode = WAL");
    }
}

#[test]
fn a_wal_that_nobody_moves_is_found() {
    let off = ("wal_autocheckpoint", "0");
    check(FindingCode::CheckpointsOff, &[off], small, "wal_autocheckpoint = 1000");
    check_none(&[off, ("journal_mode", "delete"), ("synchronous", "2")], |facts| {
        small(facts);
        facts.is_wal = false;
    });
}

#[test]
fn references_that_are_not_kept_are_found() {
    let off = ("foreign_keys", "0");
    let finding = check(FindingCode::ForeignKeysOff, &[off], small, "foreign_keys = ON");
    assert_eq!(finding.details["tables"], json!(["book"]));
    check_none(&[off], |facts| {
        small(facts);
        facts.referring.clear();
    });
}

#[test]
fn versions_that_lose_data_are_found() {
    let faulty = |version: &str, fixed: &str| {
        let finding =
            check(FindingCode::SqliteFaulty, &[("sqlite_version", version)], small, fixed);
        assert_eq!(finding.details["fixed_in"], fixed);
    };
    for version in ["3.7.0", "3.44.5", "3.45.1", "3.50.6", "3.51.0", "3.51.2"] {
        faulty(version, "3.51.3");
    }
    for version in ["3.44.6", "3.44.9", "3.50.7", "3.51.3", "3.52.0", "3.54.0"] {
        check_none(&[("sqlite_version", version)], small);
    }
    let rollback = |facts: &mut ConnectionFacts<'_>| {
        small(facts);
        facts.is_wal = false;
    };
    let changes = [("sqlite_version", "3.36.0"), ("journal_mode", "delete"), ("synchronous", "2")];
    check_none(&changes, rollback);
    let in_memory = [&changes[..], &[("temp_store", "2")]].concat();
    check(FindingCode::SqliteFaulty, &in_memory, rollback, "3.37.2");
    check_none(&[("sqlite_version", "3.45.1"), ("locking_mode", "exclusive")], small);
}

#[test]
fn how_the_library_was_compiled_is_judged() {
    let option = |option: &str| [("compile_options", option.to_owned())];
    let check = |code: FindingCode, compiled: &str, fix: &str| {
        let compiled = option(compiled);
        let changes: Vec<(&str, &str)> = compiled.iter().map(|(a, b)| (*a, b.as_str())).collect();
        let dqs = ("compile_options", "DQS=0");
        let changes = if code == FindingCode::ThreadsUnsafe {
            [&changes[..], &[dqs]].concat()
        } else {
            changes
        };
        check(code, &changes, small, fix);
    };
    check(FindingCode::ThreadsUnsafe, "THREADSAFE=0", "THREADSAFE=1");
    check(FindingCode::DoubleQuotedStrings, "THREADSAFE=1", "DQS");
    check(FindingCode::DoubleQuotedStrings, "DQS=3", "DQS");
}

#[test]
fn content_that_takes_more_room_or_stays_too_long_is_found() {
    let utf16 = |facts: &mut ConnectionFacts<'_>| {
        small(facts);
        facts.encoding = "UTF-16le".to_owned();
    };
    check(FindingCode::EncodingWide, &[("encoding", "UTF-16le")], utf16, "UTF-8");
    check(FindingCode::SecureDeleteOff, &[("secure_delete", "0")], small, "secure_delete = ON");
    check_none(&[("secure_delete", "2")], small);
    let finding = check(
        FindingCode::SecureDeleteOff,
        &[("secure_delete", "0"), ("temp_store", "2")],
        |facts| {
            small(facts);
            facts.is_encrypted = true;
        },
        "secure_delete = ON",
    );
    assert!(finding.impact.contains("key"), "{finding:?}");
}

#[test]
fn a_cache_is_judged_by_the_file_and_the_memory() {
    // The proposal is the minimum of 1 GB of content, a sixteenth of 8 GB of memory, and 256 MiB.
    let small_cache = ("cache_size", "-2000");
    let proposed = |memory: u64, content: u64| {
        let finding = check(
            FindingCode::CacheSmall,
            &[small_cache],
            |facts| {
                facts.memory_bytes = Some(memory);
                facts.content_bytes = content;
            },
            "cache_size = -",
        );
        finding.details["proposed_bytes"].as_u64().unwrap() >> 20
    };
    assert_eq!(
        [proposed(8 * GB, GB), proposed(2 * GB, GB), proposed(8 * GB, 100 << 20)],
        [256, 119, 100]
    );
    check_none(&[("cache_size", "20000")], same);
    check_none(&[small_cache, ("mmap_size", "2000000000")], same);
    check_none(&[small_cache], |facts| facts.content_bytes = 10_000_000);
    check_none(&[small_cache], |facts| facts.memory_bytes = Some(100_000_000));
    check_none(&[small_cache], |facts| facts.memory_bytes = None);

    let large = ("cache_size", "-2000000");
    let finding = check(
        FindingCode::CacheLarge,
        &[large],
        |facts| facts.memory_bytes = Some(GB),
        "cache_size = -60416",
    );
    assert_eq!(finding.details["cache_bytes"], 2_048_000_000_u64);
    check_none(&[large], same);
    check_none(&[large], |facts| (facts.memory_bytes, facts.content_bytes) = (Some(GB), 1_000_000));
    check_none(&[("cache_size", "-9223372036854775808")], |facts| facts.content_bytes = 1_000_000);
}

#[test]
fn temporary_files_are_judged_by_where_they_go() {
    let cache = ("cache_size", "-256000");
    let in_shm = |memory: u64| {
        move |facts: &mut ConnectionFacts<'_>| {
            facts.temp = Some((PathBuf::from("/dev/shm"), true));
            facts.memory_bytes = Some(memory);
        }
    };
    let finding = check(FindingCode::TempInMemory, &[cache], in_shm(3 * GB), "warren vacuum");
    assert!(finding.summary.contains("/dev/shm is in memory"), "{finding:?}");
    check_none(&[cache], in_shm(5 * GB));
    let memory = |facts: &mut ConnectionFacts<'_>| facts.memory_bytes = Some(3 * GB);
    check(FindingCode::TempInMemory, &[cache, ("temp_store", "2")], memory, "warren vacuum");
    check_none(&[cache], memory);

    let encrypted = |facts: &mut ConnectionFacts<'_>| {
        small(facts);
        facts.is_encrypted = true;
    };
    check(FindingCode::TempUnencrypted, &[], encrypted, "temp_store = MEMORY");
    check_none(&[("temp_store", "2")], encrypted);
}

#[test]
fn settings_of_another_file_are_found() {
    let finding = check(
        FindingCode::SettingsMismatch,
        &[],
        |facts| {
            small(facts);
            facts.other_file = Some("/srv/other.db".to_owned());
        },
        "which file",
    );
    assert_eq!(finding.details["differ"], json!(["file"]));
    let finding = check(
        FindingCode::SettingsMismatch,
        &[("synchronous", "2")],
        |facts| {
            small(facts);
            (facts.page_bytes, facts.is_wal) = (8_192, false);
        },
        "which file",
    );
    assert_eq!(finding.details["differ"], json!(["page_size", "journal_mode"]));
}

#[test]
fn settings_that_did_nothing_are_found() {
    let none = |facts: &mut ConnectionFacts<'_>| {
        small(facts);
        facts.auto_vacuum = 0;
    };
    let wanted = ("wanted.auto_vacuum", "FULL");
    let finding = check(
        FindingCode::SettingIneffective,
        &[wanted],
        none,
        "PRAGMA auto_vacuum = FULL;\nVACUUM;",
    );
    assert!(
        finding.summary.contains("the value is NONE") && finding.fix_sql.is_some(),
        "{finding:?}"
    );
    check_none(&[wanted], small);
    check(FindingCode::SettingIneffective, &[("wanted.auto_vacuum", "9")], none, "cannot be 9");

    let wanted = ("wanted.page_size", "8192");
    let fix = "PRAGMA journal_mode = DELETE;\nPRAGMA page_size = 8192;\nVACUUM;";
    check(FindingCode::SettingIneffective, &[wanted], small, fix);
    check(FindingCode::SettingIneffective, &[("wanted.page_size", "5000")], small, "cannot be");
    for wanted in [("wanted.synchronous", "FULL"), ("wanted.mmap_size", "268435456")] {
        check(FindingCode::SettingIneffective, &[wanted], small, "PRAGMA");
    }
    let agree = [
        ("wanted.journal_mode", "WAL"),
        ("wanted.synchronous", "normal"),
        ("wanted.foreign_keys", "ON"),
        ("wanted.secure_delete", "true"),
        ("wanted.encoding", "'utf8'"),
        ("wanted.busy_timeout", "30000"),
    ];
    check_none(&agree, small);
}

#[test]
fn a_file_that_was_meant_to_be_encrypted_is_found() {
    let wanted = ("wanted.cipher", "chacha20");
    let finding = check(FindingCode::EncryptionIneffective, &[wanted], small, "rekey");
    assert!(finding.evidence[0].contains("no ciphers"), "{finding:?}");
    let has = [wanted, ("cipher", "chacha20")];
    let finding = check(FindingCode::EncryptionIneffective, &has, small, "rekey");
    assert!(finding.evidence[0].contains("chacha20"), "{finding:?}");
    let encrypted = |facts: &mut ConnectionFacts<'_>| {
        small(facts);
        facts.is_encrypted = true;
    };
    let in_memory = ("temp_store", "2");
    check_none(&[wanted, ("cipher", "chacha20"), in_memory], encrypted);
    check(
        FindingCode::SettingIneffective,
        &[wanted, ("cipher", "aes256cbc"), in_memory],
        encrypted,
        "chacha20",
    );
}

#[test]
fn what_was_not_told_is_not_judged() {
    let settings = ConnectionSettings::parse(b"journal_mode=wal\n").unwrap();
    let mut log = CheckResults::default();
    judge(&facts(&settings), &mut log);
    assert!(log.findings.is_empty(), "{:#?}", log.findings);
}
