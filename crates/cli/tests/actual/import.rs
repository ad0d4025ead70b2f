//! Tests of `warren actual-budget import`: Warren has all data of the published server, and its
//! apps notice no difference.

pub(crate) mod published_server;

use std::fs;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread;

use rusqlite::Connection;
use rustix::fs::{CWD, FileType, Mode, OFlags, mknodat};
use serde_json::{Value, json};

use self::published_server::{
    BUDGETS, DELETED, FRESH, MAIN, PASSWORD, RESET, SECRET, files, series, used,
};
use crate::actual_server::ActualServer;
use crate::output_schema;

const WARREN: &str = env!("CARGO_BIN_EXE_warren");

/// Returns the command, with the password in a file next to the data directory.
fn command(old: &Path, data: &Path, password: &str) -> Command {
    let file = data.with_file_name("password.txt");
    fs::write(&file, format!("{password}\n")).unwrap();
    let mut command = Command::new(WARREN);
    command.args(["actual-budget", "import", "--json"]).arg(old).arg("--data").arg(data);
    command.arg("--password-file").arg(file).stdin(Stdio::null());
    command
}

fn json_of(output: &Output) -> Value {
    let text = String::from_utf8_lossy(&output.stdout);
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

pub(crate) fn import(old: &Path, data: &Path) -> Value {
    let output = command(old, data, PASSWORD).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8_lossy(&output.stdout);
    output_schema::check(&["actual-budget", "import", "--json"], &text);
    json_of(&output)["report"].take()
}

/// Runs an import that fails; returns the error's code and message.
fn refused(old: &Path, data: &Path, password: &str) -> (String, String) {
    let output = command(old, data, password).output().unwrap();
    // Status 75: the file is open elsewhere; 77: not allowed (Format 4).
    assert!(matches!(output.status.code(), Some(1 | 75 | 77)), "{output:?}");
    let error = json_of(&output)["error"].take();
    let text = |member: &str| error[member].as_str().unwrap().to_owned();
    (text("code"), text("message"))
}

/// Returns a stopped Warren without any data.
pub(crate) fn empty_warren() -> ActualServer {
    let mut warren = ActualServer::warren();
    warren.kill();
    fs::remove_dir_all(warren.data()).unwrap();
    warren
}

fn logins(data: &Path) -> Vec<String> {
    let mut command = Command::new(WARREN);
    let list = command.args(["account", "list", "--json", "--data"]).arg(data).output().unwrap();
    let list = json_of(&list);
    let login = |account: &Value| account["login"].as_str().unwrap().to_owned();
    list.as_array().unwrap().iter().map(login).collect()
}

/// Returns the number of vault files.
fn vaults_count(data: &Path) -> usize {
    let Ok(folders) = fs::read_dir(data.join("vaults")) else { return 0 };
    let is_vault = |path: PathBuf| path.extension().is_some_and(|end| end == "sqlite");
    let in_folder = |folder: PathBuf| fs::read_dir(folder).into_iter().flatten().flatten();
    let entries = folders.flatten().flat_map(|folder| in_folder(folder.path()));
    entries.filter(|entry| is_vault(entry.path())).count()
}

/// Kills an import when it reaches a budget's file, which is replaced by a pipe for that time.
fn kill_at(file: &str, old: &Path, data: &Path) {
    let blob = old.join(format!("user-files/file-{file}.blob"));
    let aside = data.with_file_name("aside");
    fs::rename(&blob, &aside).unwrap();
    mknodat(CWD, &blob, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    let mut import = command(old, data, PASSWORD).stdout(Stdio::null()).spawn().unwrap();
    // The pipe cannot be opened for writing without a reader.
    let is_reached = || {
        let flags = OFlags::NONBLOCK.bits().cast_signed();
        fs::File::options().write(true).custom_flags(flags).open(&blob)
    };
    let pipe = loop {
        assert_eq!(import.try_wait().unwrap(), None, "it has not come to {file}");
        match is_reached() {
            Ok(pipe) => break pipe,
            Err(_) => thread::yield_now(),
        }
    };
    import.kill().unwrap();
    import.wait().unwrap();
    drop(pipe);
    fs::rename(&aside, &blob).unwrap();
}

#[test]
fn apps_go_on_where_the_published_server_stopped() {
    let (mut published, mut app) = used();
    let expected = app.sees();
    let mut warren = empty_warren();
    let (old, data) = (published.data(), warren.data());
    let (code, message) = refused(&old, &data, PASSWORD);
    assert!(
        code == "busy" && message.contains("the old server is still running: "),
        "{code}: {message}"
    );
    published.kill();
    let before = files(&old);
    let (code, message) = refused(&old, &data, "correct horse");
    assert_eq!((&*code, data.exists()), ("wrong_password", false), "{message}");

    for (file, vaults) in [(FRESH, 5), (MAIN, 1)] {
        kill_at(file, &old, &data);
        assert_eq!(logins(&data), ["actual.unfinished-import"]);
        assert_eq!(vaults_count(&data), vaults);
    }
    let report = import(&old, &data);
    assert_eq!(report["resumed"], true);
    assert_eq!(logins(&data), ["actual"]);
    // Each budget has a vault, and the account has one; those of the interrupted imports are gone.
    assert_eq!(vaults_count(&data), BUDGETS.len() + 1);
    check_report(&report);
    let (code, message) = refused(&old, &data, PASSWORD);
    assert_eq!(code, "account_exists", "{message}");
    assert!(before == files(&old), "the old server's files have changed");

    warren.restart();
    app.address = warren.address().to_owned();
    let found = app.sees();
    for (what, expected) in &expected {
        assert!(found[what] == *expected, "{what}\npublished {expected}\nWarren {}", found[what]);
    }
    assert_eq!(app.sync(FRESH, &json!([])).unwrap().merkle, "{}");
    // The list works while the server runs.
    check_list(&list(&data, &[]));
    assert_eq!(app.login("correct horse").0, 400);
    assert_eq!(app.login(PASSWORD).0, 200);

    // Users can return to the old server; and both servers treat more messages in the same way.
    published.restart();
    for batch in [
        series("2024-02-29T08:00:00.000Z", 7, 86_400_000),
        series("2026-11-02T08:00:00.000Z", 3, 60_000),
    ] {
        app.address = published.address().to_owned();
        let expected = app.sync(MAIN, &json!([batch])).unwrap();
        app.address = warren.address().to_owned();
        let found = app.sync(MAIN, &json!([batch])).unwrap();
        assert_eq!(found.merkle, expected.merkle);
        assert!(found == expected, "other messages");
    }
}

/// Runs `warren actual-budget list --verify`; the password is in the import's file.
fn list(data: &Path, place: &[&str]) -> Value {
    let mut command = Command::new(WARREN);
    command.args(["actual-budget", "list", "--verify", "--json", "--data"]).arg(data).args(place);
    command.arg("--password-file").arg(data.with_file_name("password.txt"));
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    json_of(&output)
}

fn check_list(list: &Value) {
    let told = list.as_array().unwrap().iter().map(|budget| {
        assert_eq!((&budget["verified"], &budget["file_bytes"]), (&json!(true), &json!(600_000)));
        let count = budget["messages_count"].as_u64().unwrap();
        (budget["file_id"].as_str().unwrap(), count, budget["deleted"].as_bool().unwrap())
    });
    let expected =
        [(MAIN, 2_309, false), (SECRET, 2, false), (RESET, 0, false), (DELETED, 3, true)];
    assert_eq!(told.take(4).collect::<Vec<_>>(), expected);
}

fn check_report(report: &Value) {
    let budgets = report["budgets"].as_array().unwrap();
    let told = budgets.iter().map(|budget| {
        assert!(budget["trie_fault"].is_null(), "{budget}");
        assert_eq!(budget["file_bytes"], 600_000);
        let count = budget["messages_count"].as_u64().unwrap();
        let is = |member: &str| budget[member].as_bool().unwrap();
        (budget["file_id"].as_str().unwrap(), count, is("encrypted"), is("deleted"))
    });
    let expected = [
        (MAIN, 2_309, false, false),
        (SECRET, 2, true, false),
        (RESET, 0, false, false),
        (DELETED, 3, false, true),
        (FRESH, 0, false, false),
    ];
    assert_eq!(told.collect::<Vec<_>>(), expected);
    assert_eq!(report["tokens_count"], 1);
    assert_eq!(report["skipped"]["stray_files"], json!([]));
}

/// A hash of [`PASSWORD`] in the format of older releases of the published server.
const BCRYPT: &str = "$2b$05$eg1vLBSkqLI8YdF5NDDTxeC6PkMikOzg5NfZk/cT2Ehft968hOO1i";

/// Checks that an import that fails midway leaves nothing behind.
fn check_nothing_stays(old: &Path, data: &Path) {
    let blob = old.join(format!("user-files/file-{FRESH}.blob"));
    let aside = data.with_file_name("aside");
    fs::rename(&blob, &aside).unwrap();
    fs::create_dir(&blob).unwrap();
    let (_, message) = refused(old, data, PASSWORD);
    assert!(message.contains(blob.to_str().unwrap()), "{message}");
    assert_eq!((logins(data), vaults_count(data)), (vec![], 0));
    fs::remove_dir(&blob).unwrap();
    fs::rename(&aside, &blob).unwrap();
}

/// Adds everything that may be wrong in an old server's files, or that Warren does not import.
fn spoil(old: &Path, group: impl Fn(&str) -> PathBuf) {
    let account = Connection::open(old.join("server-files/account.sqlite")).unwrap();
    account.execute("UPDATE auth SET extra_data = ?1", [BCRYPT]).unwrap();
    let sql =
        "INSERT INTO users (id, user_name, display_name, role) VALUES ('u', 'ada', 'A', 'BASIC');
         INSERT INTO files (id, group_id, sync_version, name, owner)
             VALUES ('Others-6', 'g', 2, 'Ada''s', 'u'), ('no id', 'h', 2, NULL, NULL);
         INSERT INTO user_access (user_id, file_id) VALUES ('u', 'My-Finances-1'), ('u', 'Others-6');
         INSERT INTO sessions (token, expires_at, user_id, auth_method)
             SELECT 'a-token-of-the-user-that-is-too-late', 1000, id, 'password' FROM users
                 WHERE user_name = ''
             UNION ALL SELECT 'short', -1, id, 'password' FROM users WHERE user_name = ''
             UNION ALL SELECT 'a-token-of-ada-who-is-another-user-here', -1, 'u', 'openid';
         INSERT INTO secrets (name, value) VALUES ('bank', 'x')";
    account.execute_batch(sql).unwrap();
    let main = Connection::open(group(MAIN)).unwrap();
    let sql = "INSERT INTO messages_binary VALUES ('2026-01-05T08:00:00.000Z-00ab-aaaaaaaaaaaaaaaa', 0, 'x')";
    main.execute_batch(sql).unwrap();
    let secret = Connection::open(group(SECRET)).unwrap();
    secret.execute("UPDATE messages_merkles SET merkle = '{\"hash\":'", []).unwrap();
    let deleted = Connection::open(group(DELETED)).unwrap();
    deleted.execute("UPDATE messages_merkles SET merkle = '{\"hash\":7}'", []).unwrap();
    fs::remove_file(old.join(format!("user-files/file-{FRESH}.blob"))).unwrap();
    fs::write(old.join("user-files/group-of-nobody.sqlite"), "").unwrap();
}

/// Checks the same import into PostgreSQL.
fn check_postgres(old: &Path, report: &Value) {
    let lab = postgres_lab::PostgresServer::start_temporary(&[]).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let (data, url) = (folder.path().join("data"), folder.path().join("url.txt"));
    fs::write(&url, lab.url("postgres")).unwrap();
    let place = ["--postgres-file", url.to_str().unwrap()];
    let output = command(old, &data, PASSWORD).args(place).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(json_of(&output)["report"], *report);
    let list = list(&data, &place);
    let verified = list.as_array().unwrap().iter().map(|budget| &budget["verified"]);
    assert_eq!(verified.collect::<Vec<_>>(), vec![&json!(true); BUDGETS.len()]);
    assert_eq!(list[0]["messages_count"], 2_309);
    assert_eq!(vaults_count(&data), 0);
}

#[test]
fn what_is_wrong_in_the_old_files_is_told_and_repaired() {
    let (mut published, mut app) = used();
    published.kill();
    let (mut warren, old) = (empty_warren(), published.data());
    check_nothing_stays(&old, &warren.data());
    let groups = &app.groups;
    spoil(&old, |file| old.join(format!("user-files/group-{}.sqlite", groups[file])));
    let report = import(&old, &warren.data());
    let budget = |file: &str| {
        let budgets = report["budgets"].as_array().unwrap();
        budgets.iter().find(|budget| budget["file_id"] == file).unwrap()
    };
    let fault = |file: &str| budget(file)["trie_fault"].as_str().unwrap().to_owned();
    assert_eq!(fault(MAIN), "it includes messages that were skipped");
    let examples = json!(["2026-01-05T08:00:00.000Z-00ab-aaaaaaaaaaaaaaaa"]);
    assert_eq!(budget(MAIN)["not_canonical"], json!({"rows_count": 1, "examples": examples}));
    assert!(fault(SECRET).starts_with("not a valid trie: "), "{}", fault(SECRET));
    assert!(fault(DELETED).starts_with("its hash is 7, but the messages have "));
    assert!(budget(FRESH)["file_bytes"].is_null());
    assert!(budget(RESET)["trie_fault"].is_null());
    assert_eq!(report["tokens_count"], 1);
    assert_eq!(
        report["skipped"],
        json!({
            "files_of_others": [{"file_id": "Others-6", "name": "Ada's", "owner": "ada"}],
            "access_of_others": [{"file_id": MAIN, "name": format!("{MAIN} ☂"), "user": "ada"}],
            "files_with_invalid_id": ["no id"],
            "stray_files": ["group-of-nobody.sqlite"],
            "expired_tokens_count": 1,
            "tokens_of_others_count": 1,
            "invalid_tokens_count": 1,
            "secrets_count": 1,
            "openid": false,
        })
    );
    check_postgres(&old, &report);
    // The tries match the messages again.
    warren.restart();
    app.address = warren.address().to_owned();
    for (file, count) in [(MAIN, 2_309), (SECRET, 2)] {
        let answer = app.sync(file, &json!([])).unwrap();
        let messages = answer.messages();
        assert_eq!(messages.len(), count);
        let mut trie = actual::trie::MerkleTrie::new();
        for message in &messages {
            trie.insert(message.timestamp.parse().unwrap());
        }
        trie.prune();
        let mut expected = String::new();
        trie.write_json(&mut expected);
        assert_eq!(answer.merkle, expected);
    }
    assert_eq!(
        app.sync(FRESH, &json!([series("2026-11-01T08:00:00.000Z", 1, 1)])).unwrap().messages(),
        []
    );
    assert_eq!(app.login(PASSWORD).0, 200);
}
