//! Tests that a missing file, a wrong key, a file in use and a full disk each cause the same error
//! in every command, with one code, one exit status and one form of JSON.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::thread;

use engine::{Cipher, DatabaseKey, FileEncryption, Profile, open_connection};

use crate::fixture::SyncFixture;
use crate::output_schema;
use crate::processes::{CommandOutput, OpenTransaction, json, sql, warren, warren_in};
use crate::shim::{FaultMode, ShimControl, operation};

/// The commands that read no file that the user names, or that create their own.
const WITHOUT_FILE: &[&str] = &[
    "bench actual",
    "bench browser",
    "bench bulk",
    "bench checkpoint",
    "bench cipher",
    "bench mail",
    "bench pragma",
    "bench reconcile",
    "bench runtime",
    "bench sync",
    "bench tps",
    "bench vacuum",
    "command-reference",
    "completions",
    "json-schema",
    "man",
    "settings",
    "storage schema",
];
/// The error "No space left on device" (errno-base.h of Linux).
const ENOSPC: i32 = 28;

/// The words of a command; those in capitals stand for paths and for the server's address.
type CommandWords = &'static str;

/// The commands that open a tracked file, and fail if it cannot be opened.
const OF_TRACKED_FILES: &[CommandWords] = &[
    "track FILE --all",
    "untrack FILE t",
    "sync FILE",
    "status FILE",
    "conflicts FILE",
    "history FILE t 1",
    "recovery-phrase FILE",
    "erase FILE",
    "device list FILE",
    "device revoke 0 FILE",
    "inspect FILE",
];
/// The commands that work on any SQLite file.
const OF_ANY_FILE: &[CommandWords] = &[
    "doctor FILE",
    "doctor FILE --fix all",
    "recover FILE OUT",
    "vacuum FILE",
    "vacuum FILE --in-place",
    "tune FILE --minutes 0.01",
];
/// The commands that work on a server's data directory, or on something that was created from one.
const OF_DATA: &[CommandWords] = &[
    "account list --data DATA",
    "account password ada --data DATA --password-file PASSWORD --new-password-file PASSWORD",
    "account quota ada --messages 1 --data DATA",
    "account recovery-phrase ada --data DATA --password-file PASSWORD",
    "account remove ada --yes --data DATA",
    "account show ada --data DATA --password-file PASSWORD",
    "actual-budget export --login ada --data DATA --password-file PASSWORD --output OUT",
    "actual-budget list --login ada --data DATA --password-file PASSWORD",
    "actual-budget restore 0 --login ada --data DATA --password-file PASSWORD",
    "backup OUT --data DATA",
    "device list --login ada --data DATA --password-file PASSWORD",
    "doctor --login ada --data DATA --password-file PASSWORD",
    "inspect --login ada --data DATA --password-file PASSWORD",
    "mail address add a@example.org --login ada --data DATA --password-file PASSWORD",
    "mail address list --data DATA",
    "mail address remove a@example.org --data DATA",
    "mail export mbox OUT --login ada --data DATA --password-file PASSWORD",
    "mail import mbox OUT --login ada --data DATA --password-file PASSWORD",
    "mail list --login ada --data DATA --password-file PASSWORD",
    "mail mailboxes --login ada --data DATA --password-file PASSWORD",
    "mail password add --login ada --data DATA --password-file PASSWORD",
    "mail password list --login ada --data DATA --password-file PASSWORD",
    "mail password remove 0 --login ada --data DATA",
    "mail search text --login ada --data DATA --password-file PASSWORD",
    "mail spool list --data DATA",
    "mail spool remove 1 --yes --data DATA",
    "mail show 1 --login ada --data DATA --password-file PASSWORD",
    "restore DATA --data OUT",
    "storage migrate ada --to sqlite --postgres postgres://0 --data DATA --password-file PASSWORD",
];
/// The commands that read an additional file, or that create the file or directory that they work
/// on.
const OF_OTHER_FILES: &[CommandWords] = &[
    "account add eve --data OUT --password-file FILE",
    "actual-budget import DATA --data OUT",
    "bench compare FILE FILE",
    "clone OUT --server http://127.0.0.1:9 --login ada --password-file FILE",
    "serve --config FILE",
    "serve --data OUT --admin-token-file FILE",
    "serve --data OUT --tls-cert FILE --tls-key FILE",
    "sync TRACKED --server http://127.0.0.1:9 --login ada --password-file FILE",
    "sync TRACKED --server http://127.0.0.1:9 --ca-file FILE",
    "track TRACKED --all --recovery-phrase-file FILE",
    "status TRACKED --key-file FILE",
    "status TRACKED --passphrase-file FILE",
    "doctor TRACKED --key-file FILE",
    "doctor TRACKED --ignore FILE",
    "doctor TRACKED --queries FILE",
    "doctor TRACKED --settings FILE",
    "doctor TRACKED --baseline FILE",
    "doctor FILE --watch",
    "restore DATA --revocations FILE --data OUT",
];

/// A folder with a tracked file and a server's data, and the paths for the commands.
struct CommandPlace {
    fixture: SyncFixture,
    file: String,
    out: String,
    data: String,
    tracked: String,
    backup: String,
    server: String,
}

impl CommandPlace {
    fn new() -> Self {
        let fixture = SyncFixture::new();
        let tracked = fixture.at("tracked.db");
        sql(&tracked, "CREATE TABLE t (id INTEGER PRIMARY KEY, x); INSERT INTO t VALUES (1, 'a')");
        json(&["track", &tracked, "--all"]);
        let (file, data) = (tracked.clone(), fixture.data.clone());
        let (out, backup) = (fixture.at("out"), fixture.at("backup"));
        Self { file, out, data, tracked, backup, server: String::new(), fixture }
    }

    fn words(&self, command: &str) -> Vec<String> {
        let path = |word: &str| match word {
            "FILE" => self.file.clone(),
            "OUT" => self.out.clone(),
            "DATA" => self.data.clone(),
            "TRACKED" => self.tracked.clone(),
            "BACKUP" => self.backup.clone(),
            "SERVER" => self.server.clone(),
            "PASSWORD" => self.fixture.password.clone(),
            word => word.to_owned(),
        };
        command.split(' ').chain(["--json"]).map(path).collect()
    }

    fn run(&self, command: &str, options: &[&str]) -> CommandOutput {
        let words = self.words(command);
        let words: Vec<_> =
            words.iter().map(String::as_str).chain(options.iter().copied()).collect();
        warren(&words)
    }
}

/// Asserts that all these commands fail with this code.
#[track_caller]
fn check(commands: &[CommandWords], code: &str, run: impl Fn(&str) -> CommandOutput) {
    let fault = |command: &&str| Some(format!("{command}: {}", run(command).fault(code)?));
    let faults: Vec<_> = commands.iter().filter_map(fault).collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn a_missing_file_is_one_error_for_every_command() {
    let mut place = CommandPlace::new();
    let missing = place.fixture.at("missing");
    (place.file, place.data) = (missing.clone(), missing);
    let lists = [OF_TRACKED_FILES, OF_ANY_FILE, OF_DATA, OF_OTHER_FILES];
    for list in lists {
        check(list, "file_not_found", |command| place.run(command, &[]));
    }
    assert!(!Path::new(&place.file).exists());
    // The lists contain every command.
    let described = json(&["json-schema"]);
    let described: BTreeSet<_> =
        described["properties"].as_object().unwrap().keys().map(String::as_str).collect();
    let name = |words: &&str| output_schema::command(&words.split(' ').collect::<Vec<_>>());
    let checked: BTreeSet<_> = lists.concat().iter().map(name).collect();
    let checked = checked.iter().map(String::as_str).chain(WITHOUT_FILE.iter().copied());
    assert_eq!(checked.collect::<BTreeSet<_>>(), described);
}

#[test]
fn a_file_of_another_kind_is_one_error_for_every_command() {
    let mut place = CommandPlace::new();
    place.file = place.fixture.write("notes.txt", "GET / 200");
    json(&["backup", &place.backup, "--data", &place.data]);
    let commands = [
        "bench compare FILE FILE",
        "doctor TRACKED --baseline FILE",
        "doctor TRACKED --queries FILE",
        "restore BACKUP --revocations FILE --data OUT",
    ];
    check(&commands, "invalid_file", |command| place.run(command, &[]));
    let commands = ["doctor TRACKED --key-file FILE", "status TRACKED --key-file FILE"];
    check(&commands, "invalid_key", |command| place.run(command, &[]));
    let commands = ["serve --config FILE", "serve --data OUT --admin-token-file FILE"];
    check(&commands, "invalid_settings", |command| place.run(command, &[]));
}

#[test]
fn a_wrong_key_is_one_error_for_every_command_and_a_missing_one_too() {
    let mut place = CommandPlace::new();
    place.file = place.fixture.at("encrypted.db");
    let key = DatabaseKey::from_bytes([7; 32]);
    let encryption = FileEncryption::Key { key, cipher: Some(Cipher::ChaCha20) };
    let (db, _) =
        open_connection(Path::new(&place.file), &encryption, Profile::SERVER, false, true).unwrap();
    db.execute_batch("CREATE TABLE t (id INTEGER PRIMARY KEY); INSERT INTO t VALUES (1)").unwrap();
    drop(db);
    let wrong = place.fixture.write("wrong.key", &"00".repeat(32));
    let passphrase = place.fixture.write("passphrase.txt", "three other words");
    let other_options =
        [["--key-file", wrong.as_str()], ["--passphrase-file", passphrase.as_str()]];
    for option in other_options {
        for list in [OF_TRACKED_FILES, OF_ANY_FILE] {
            check(list, "wrong_key", |command| place.run(command, &option));
        }
    }
    // Without a key, an encrypted file is like any other file that is not a database.
    for name in ["encrypted.db", "text.db"] {
        place.file = place.fixture.at(name);
        if name == "text.db" {
            place.fixture.write(name, &"no database ".repeat(1_000));
        }
        check(OF_TRACKED_FILES, "not_a_database", |command| place.run(command, &[]));
        let of_any_file: Vec<_> =
            OF_ANY_FILE.iter().copied().filter(|command| !command.starts_with("recover")).collect();
        check(&of_any_file, "not_a_database", |command| place.run(command, &[]));
    }
}

#[test]
fn a_file_in_use_is_one_error_for_every_command() {
    let place = CommandPlace::new();
    let _holder = OpenTransaction::begin(&place.file, "BEGIN EXCLUSIVE; SELECT 1");
    // The doctor reports its findings in a locked file, too.
    let of_any_file = OF_ANY_FILE.iter().filter(|command| **command != "doctor FILE");
    let commands = OF_TRACKED_FILES.iter().chain(of_any_file);
    // Each command waits some seconds for the lock, so they wait at the same time.
    let faults: Vec<_> = thread::scope(|scope| {
        let run = |command: &'static str| {
            let place = &place;
            scope.spawn(move || {
                Some(format!("{command}: {}", place.run(command, &[]).fault("busy")?))
            })
        };
        let running: Vec<_> = commands.copied().map(run).collect();
        running.into_iter().filter_map(|command| command.join().unwrap()).collect()
    });
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// The commands that write to a file, to a new one or to a data directory.
const WRITERS: &[CommandWords] = &[
    "track FILE --all",
    "untrack TRACKED t",
    "sync TRACKED --server SERVER --login ada --password-file PASSWORD",
    "clone OUT --server SERVER --login ada --password-file PASSWORD",
    "vacuum FILE",
    "vacuum FILE --in-place",
    "recover FILE OUT",
    "doctor FILE --fix index_duplicate",
    "doctor FILE --history OUT",
    "tune FILE --minutes 0.01 --work-dir .",
    "account add eve --data DATA --password-file PASSWORD",
    "account quota ada --messages 1 --data DATA",
    "backup OUT --data DATA",
    "restore BACKUP --data OUT",
];

#[test]
fn a_full_disk_is_one_error_for_every_command() {
    let mut place = CommandPlace::new();
    let server_data = SyncFixture::new();
    let server = server_data.serve();
    place.server.clone_from(&server.address);
    place.file = place.fixture.chinook("chinook.db");
    sql(&place.file, "CREATE INDEX a ON Track (Name); CREATE INDEX b ON Track (Name)");
    json(&["backup", &place.backup, "--data", &place.data]);

    let outside = tempfile::tempdir().unwrap();
    let control = ShimControl::new(outside.path());
    let folder = place.fixture.at("");
    let variables = control.environment(Path::new(&folder), None);
    let variables: Vec<_> =
        variables.iter().map(|(name, value)| (name.as_str(), value.to_str().unwrap())).collect();
    check(WRITERS, "disk_full", |command| {
        control.arm(FaultMode::From, 1, operation::WRITE, ENOSPC);
        let words = place.words(command);
        let words: Vec<_> = words.iter().map(String::as_str).collect();
        let ran = warren_in(&folder, &variables, &words);
        control.disarm();
        // The same command would resume from the files that it leaves, so they are removed.
        drop(fs::remove_file(&place.out));
        drop(fs::remove_dir_all(&place.out));
        ran
    });
}

#[test]
fn a_server_that_is_gone_is_one_error_for_every_command() {
    let mut place = CommandPlace::new();
    let server = place.fixture.serve();
    place.server.clone_from(&server.address);
    let first_time = place.fixture.first_time(&server.address);
    json(&[&["sync", &place.tracked], &first_time[..]].concat());
    server.stop();
    let commands = [
        "sync TRACKED",
        "clone OUT --server SERVER --login ada --password-file PASSWORD",
        "device list TRACKED",
        "device revoke 0 TRACKED",
        "erase TRACKED t 1 --column x --yes --password-file PASSWORD",
    ];
    check(&commands, "unreachable", |command| place.run(command, &[]));
    assert!(!Path::new(&place.out).exists(), "a clone that never began leaves no file");
}

#[test]
fn a_missing_password_and_a_missing_data_directory_are_named() {
    let place = SyncFixture::new();
    let message = |arguments: &[&str], code: &str| {
        let ran = warren(&[arguments, &["--json"]].concat());
        ran.refused(code);
        ran.value()["error"]["message"].as_str().unwrap().to_owned()
    };
    let no_password =
        message(&["account", "add", "bob", "--data", &place.data], "invalid_password");
    assert_eq!(no_password, "no password was given");
    let none = place.at("none");
    let no_data = message(&["account", "list", "--data", &none], "file_not_found");
    assert_eq!(no_data, format!("{none} does not exist"));
    let no_server_data =
        message(&["account", "list", "--data", &place.at(".")], "not_a_data_directory");
    assert!(no_server_data.ends_with("is not a Warren data directory"), "{no_server_data}");
}
