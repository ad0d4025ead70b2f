//! Tests of file modes: under the usual umask, only the owner may read the files that commands
//! create, even when a command is interrupted. They also check which processes hide their memory
//! from others.

use std::collections::BTreeSet;
use std::fs::{self, Permissions};
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

use crate::cutting_proxy::{CutAction, CuttingProxy, ProxyEvent};
use crate::fixture::DISK;
use crate::processes::{CommandOutput, sql};

const WARREN: &str = env!("CARGO_BIN_EXE_warren");
const PASSWORD: &str = "a pass-phrase of ada's own";
/// The time limit of a wait, on a busy machine.
const WAIT_MAX: Duration = Duration::from_mins(2);

/// The commands. Each creates or changes files, and earlier ones have created what it needs.
/// `SERVER` stands for the address of the server on `data`.
const COMMANDS: &[&str] = &[
    "account add eve --data data --password-file password",
    "account quota ada --data data --devices 9",
    "track a.db --all",
    "sync a.db --server SERVER --login ada --password-file password",
    "clone b.db --server SERVER --login ada --password-file password",
    "clone c.db --server SERVER --login ada --password-file password --key-file key",
    "sync b.db",
    "status b.db",
    "inspect b.db",
    "device list b.db",
    "conflicts b.db",
    "history b.db t 1",
    "vacuum b.db",
    "vacuum b.db --in-place",
    "inspect --login ada --data data --password-file password",
    "device revoke --login ada --inactive-for 1000d --yes --data data --password-file password",
    "account password ada --data data --password-file password --new-password-file password",
    "backup saved --data data",
    "restore saved --data restored",
    "account remove eve --data data --yes",
    "untrack c.db --key-file key --force",
];

/// Creates a folder with a password, a key and a database of the user's that every user may read.
pub(crate) fn folder() -> TempDir {
    let folder = tempfile::tempdir_in(DISK).unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::write(at("password"), PASSWORD).unwrap();
    fs::write(at("key"), "7".repeat(64)).unwrap();
    let made =
        "CREATE TABLE t (id INTEGER PRIMARY KEY, x); INSERT INTO t VALUES (1, randomblob(99))";
    sql(at("a.db").to_str().unwrap(), made);
    for name in OF_USER {
        set_mode(&at(name), 0o644);
    }
    folder
}

/// The user's own files, whose modes do not change.
pub(crate) const OF_USER: [&str; 3] = ["a.db", "key", "password"];

pub(crate) fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

/// Sets the modes of everything in a folder.
fn set_modes(folder: &Path, mode: u32) {
    for path in below(folder) {
        set_mode(&path, mode);
    }
}

pub(crate) fn mode(path: &Path) -> u32 {
    path.symlink_metadata().unwrap().mode() & 0o7777
}

/// Returns the command `warren …` in a folder, under the usual umask, that SIGINT interrupts even
/// if the tests run in the background. It needs a shell, because a test must not set its own
/// umask, which all threads share.
fn command(folder: &Path, words: &[&str]) -> Command {
    let mut command = Command::new("sh");
    command
        .args(["-c", "umask 022 && exec env --default-signal=INT \"$0\" \"$@\"", WARREN])
        .args(words);
    command.current_dir(folder).stdin(Stdio::null());
    command
}

pub(crate) fn run(folder: &Path, words: &[&str]) -> CommandOutput {
    CommandOutput::new(command(folder, words).output().unwrap())
}

pub(crate) fn words(line: &str) -> Vec<&str> {
    line.split(' ').collect()
}

/// A running program, which is killed on drop.
pub(crate) struct RunningCommand(pub(crate) Child);

impl RunningCommand {
    pub(crate) fn of(command: &mut Command) -> Self {
        Self(command.stdout(Stdio::piped()).spawn().unwrap())
    }

    pub(crate) fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(i32::try_from(self.0.id()).unwrap()).unwrap();
        kill_process(pid, signal).unwrap();
    }

    pub(crate) fn wait(&mut self) -> ExitStatus {
        self.0.wait().unwrap()
    }

    /// Returns the first line of its output.
    fn first_line(&mut self) -> String {
        let mut line = String::new();
        BufReader::new(self.0.stdout.take().unwrap()).read_line(&mut line).unwrap();
        line
    }

    /// Returns the address of a server from its first line.
    fn address(&mut self) -> String {
        let said: Value = serde_json::from_str(&self.first_line()).unwrap();
        said["address"].as_str().unwrap().to_owned()
    }
}

impl Drop for RunningCommand {
    fn drop(&mut self) {
        // The program may have ended already.
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

pub(crate) fn start(folder: &Path, words: &[&str]) -> RunningCommand {
    RunningCommand::of(command(folder, words).stderr(Stdio::null()))
}

/// Starts a server on `data`, and returns its address.
fn serve(folder: &Path) -> (RunningCommand, String) {
    let line = "serve --listen 127.0.0.1:0 --json --log error --data data";
    let mut server = start(folder, &words(line));
    let address = server.address();
    (server, address)
}

/// Returns every file and folder below a folder that still exists when it is read.
pub(crate) fn below(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let Ok(entries) = fs::read_dir(folder) else { return found };
    for entry in entries.flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            found.extend(below(&entry.path()));
        }
        found.push(entry.path());
    }
    found
}

/// Returns the names below a folder that other users may read, write or enter.
fn open_to_others(folder: &Path) -> BTreeSet<String> {
    let is_open = |path: &PathBuf| path.symlink_metadata().is_ok_and(|it| it.mode() & 0o077 != 0);
    let name = |path: PathBuf| path.strip_prefix(folder).unwrap().display().to_string();
    below(folder).into_iter().filter(is_open).map(name).collect()
}

/// Checks that only the user's own files are open to others.
#[track_caller]
fn check_closed(folder: &Path, after: &str) {
    assert_eq!(open_to_others(folder), OF_USER.map(str::to_owned).into(), "after {after}");
}

/// Waits until a condition holds.
#[track_caller]
pub(crate) fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let end = now() + WAIT_MAX;
    while !is_so() {
        assert!(now() < end, "{what}: not within {WAIT_MAX:?}");
        std::thread::yield_now();
    }
}

#[expect(clippy::disallowed_methods, reason = "a wait that ends")]
fn now() -> Instant {
    Instant::now()
}

#[test]
fn what_any_command_makes_is_the_owners_alone() {
    let folder = folder();
    let path = folder.path();
    run(path, &words("account add ada --data data --password-file password")).succeeded();
    check_closed(path, "account add");
    let (mut server, address) = serve(path);
    for line in COMMANDS {
        if line.starts_with("restore") {
            // The restored files do not depend on the modes of the backup's files.
            set_modes(&path.join("saved"), 0o755);
        }
        run(path, &words(&line.replace("SERVER", &address))).succeeded();
        if line.starts_with("restore") {
            set_modes(&path.join("saved"), 0o700);
        }
        check_closed(path, line);
        for name in OF_USER {
            assert_eq!(mode(&path.join(name)), 0o644, "{name} after {line}");
        }
    }
    // Files that the test could miss do exist.
    for name in [
        "data/server.lock",
        "data/disk-reserve",
        "data/revocations",
        "restored/accounts.sqlite",
        "c.db",
    ] {
        assert!(path.join(name).is_file(), "{name}");
    }
    server.signal(Signal::INT);
    assert!(server.wait().success());
    check_closed(path, "serve");
}

#[test]
fn a_file_that_others_may_read_is_named_when_secrets_come_into_it() {
    let folder = folder();
    let path = folder.path();
    run(path, &words("account add ada --data data --password-file password")).succeeded();
    let (_server, address) = serve(path);
    let told = |line: &str| {
        let ran = run(path, &words(&line.replace("SERVER", &address))).succeeded();
        let lines = ran.stdout.lines().filter(|line| line.contains("is readable by other users"));
        lines.map(str::to_owned).collect::<Vec<String>>()
    };
    let track = "track a.db --all --e2ee";
    let sync = "sync a.db --server SERVER --login ada --password-file password";
    for line in [track, sync] {
        let expected = "warning: a.db contains secrets of this device and is readable by other \
                        users (mode 0644); run `chmod 600 a.db`";
        assert_eq!(told(line), [expected], "{line}");
    }
    assert_eq!(mode(&path.join("a.db")), 0o644, "it is the user's");
    for line in [track, "sync a.db", "sync a.db --server SERVER --login ada"] {
        assert!(told(line).is_empty(), "nothing comes into the file: {line}");
    }
    // A file that only the owner may read causes no warning.
    let phrase = run(path, &["recovery-phrase", "a.db"]).succeeded().stdout;
    fs::write(path.join("phrase"), phrase).unwrap();
    let clone = "clone b.db --server SERVER --login ada --password-file password \
                 --recovery-phrase-file phrase";
    assert!(told(clone).is_empty());
}

#[test]
fn a_command_that_is_interrupted_leaves_nothing_open() {
    let folder = folder();
    let path = folder.path();
    run(path, &words("account add ada --data data --password-file password")).succeeded();
    let rows = "WITH RECURSIVE n(i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n WHERE i < 20000)
                INSERT INTO t SELECT i, randomblob(900) FROM n";
    sql(path.join("a.db").to_str().unwrap(), rows);
    let (mut server, address) = serve(path);
    run(path, &words("track a.db --all")).succeeded();
    let sync = "sync a.db --server SERVER --login ada --password-file password";
    run(path, &words(&sync.replace("SERVER", &address))).succeeded();

    let proxy = CuttingProxy::to(&address);
    let clone = "clone b.db --server SERVER --login ada --password-file password";
    let mut process = start(path, &words(&clone.replace("SERVER", &proxy.address)));
    let watch = proxy.watch(1_000_000, CutAction::Hold, &mut process.0);
    assert!(matches!(watch.next(), ProxyEvent::Passed));
    process.signal(Signal::INT);
    let status = process.wait();
    assert_eq!(status.signal(), Some(Signal::INT.as_raw()), "{status}");
    assert!(path.join("b.db").is_file());
    check_closed(path, "clone");

    for (line, made) in [("backup saved --data data", "saved"), ("vacuum a.db", "a.db.compacting")]
    {
        let mut process = start(path, &words(line));
        // A command that was faster than this cannot be interrupted.
        wait_until(line, || path.join(made).exists() || process.0.try_wait().unwrap().is_some());
        if process.0.try_wait().unwrap().is_none() {
            process.signal(Signal::INT);
            process.wait();
            assert!(!path.join("a.db.compacting").exists(), "after {line}");
        }
        if path.join("saved/unfinished").exists() {
            run(path, &words(line)).succeeded();
        }
        let mut open = open_to_others(path);
        // A copy may have the same readers as the original.
        open.retain(|name| !name.starts_with("a.db."));
        assert_eq!(open, OF_USER.map(str::to_owned).into(), "after {line}");
    }
    server.signal(Signal::INT);
    server.wait();
    run(path, &words("vacuum a.db")).succeeded();
    check_closed(path, "serve");
}

#[test]
fn a_data_directory_that_is_open_is_closed_at_the_start() {
    let folder = folder();
    let (path, data) = (folder.path(), folder.path().join("data"));
    run(path, &words("account add ada --data data --password-file password")).succeeded();
    run(path, &words("inspect --login ada --data data --password-file password")).succeeded();
    fs::write(data.join("admin-token.txt"), "token").unwrap();
    let log = |more: &[&str]| {
        set_modes(&data, 0o755);
        set_mode(&data, 0o755);
        let line = "serve --listen 127.0.0.1:0 --json --data data --log info";
        let mut command = command(path, &[&words(line)[..], more].concat());
        let mut server = RunningCommand::of(command.stderr(Stdio::piped()));
        server.address();
        let open = open_to_others(&data);
        server.signal(Signal::TERM);
        server.wait();
        let mut log = String::new();
        server.0.stderr.take().unwrap().read_to_string(&mut log).unwrap();
        (open, log)
    };
    let (left, said) = log(&[]);
    assert_eq!((left, mode(&data)), (BTreeSet::new(), 0o700));
    assert!(said.contains("removed other users' access to the data directory"), "{said}");
    assert!(said.contains("0755"), "{said}");

    // The directory contains more than a server's data.
    fs::create_dir(data.join("photos")).unwrap();
    fs::write(data.join("photos/1"), "").unwrap();
    let (left, said) = log(&[]);
    let of_others = ["admin-token.txt", "photos", "photos/1"].map(str::to_owned);
    assert_eq!((left, mode(&data)), (of_others.into(), 0o755));
    assert!(said.contains("not used by Warren alone"), "{said}");
}

/// Returns the user and the group that own a process in `/proc`: root, if its memory is hidden.
fn owner_in_proc(pid: u32) -> (u32, u32) {
    let metadata = fs::metadata(format!("/proc/{pid}/environ")).unwrap();
    (metadata.uid(), metadata.gid())
}

fn core_limit(pid: u32) -> Vec<String> {
    let limits = fs::read_to_string(format!("/proc/{pid}/limits")).unwrap();
    let line = limits.lines().find_map(|line| line.strip_prefix("Max core file size"));
    line.unwrap().split_whitespace().take(2).map(str::to_owned).collect()
}

#[test]
fn no_command_leaves_its_memory_in_a_core_dump() {
    let folder = folder();
    let path = folder.path();
    run(path, &words("account add ada --data data --password-file password")).succeeded();
    // Root's processes always belong to root, so under root they get another group.
    let is_root = rustix::process::geteuid().is_root();
    let start = |line: &str| {
        let mut command = command(path, &words(line));
        if is_root {
            command.gid(65_534);
        }
        RunningCommand::of(&mut command)
    };
    let mut server = start("serve --listen 127.0.0.1:0 --json --log error --data data");
    let address = server.address();
    run(path, &words("track a.db --all")).succeeded();
    let sync = "sync a.db --server SERVER --login ada --password-file password --watch";
    let mut watch = start(&sync.replace("SERVER", &address));
    watch.first_line();

    let (server, watch) = (server.0.id(), watch.0.id());
    assert_eq!(core_limit(server), ["0", "0"]);
    assert_eq!(owner_in_proc(server), (0, 0), "its memory is hidden");
    // Other processes of this user must be able to see that it has the file open.
    assert_eq!(core_limit(watch), ["0", "0"]);
    assert_ne!(owner_in_proc(watch), (0, 0));
}
