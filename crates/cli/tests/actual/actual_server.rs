//! A running server that Actual's clients can use: the published one, or Warren in its place.
//!
//! Each has an empty data directory of its own, listens on a port of the loopback address that was
//! free, keeps both when it is killed and started again, and ends with its value. What it writes is
//! kept in a file, which a test that fails shows.
//!
//! # Not here
//! - Its packages → `.ci/setup.sh` installs what `tests/actual/package.json` names.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Duration;

use postgres_lab::ReservedPort;
use serde_json::Value;
use tempfile::TempDir;

const WARREN: &str = env!("CARGO_BIN_EXE_warren");
const PACKAGES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/actual/node_modules");
/// For a start on a machine that is busy.
const START_TIME_MAX: Duration = Duration::from_mins(2);
/// Bytes of the log's end that a failed test shows.
const SHOWN_BYTES_MAX: usize = 8 << 10;

/// Which server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ActualServerKind {
    Published,
    Warren,
    /// Warren under a path of its own address, and without the web app.
    WarrenPath,
}

pub(crate) struct ActualServer {
    kind: ActualServerKind,
    /// Further options of `warren serve`.
    options: Vec<String>,
    folder: TempDir,
    port: ReservedPort,
    address: String,
    /// While it runs.
    child: Option<Child>,
}

impl ActualServer {
    /// The published server, which is ready when this returns.
    pub(crate) fn published() -> Self {
        Self::start(ActualServerKind::Published, &[])
    }

    /// `warren serve --actual-budget`, with the published web app.
    pub(crate) fn warren() -> Self {
        Self::start(ActualServerKind::Warren, &[])
    }

    /// `options` are for `warren serve`.
    pub(crate) fn start(kind: ActualServerKind, options: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let port = ReservedPort::new().unwrap();
        let path = if kind == ActualServerKind::WarrenPath { "/actual" } else { "" };
        let address = format!("http://127.0.0.1:{}{path}", port.number());
        let options = options.iter().map(|&option| option.to_owned()).collect();
        let mut target = Self { kind, options, folder, port, address, child: None };
        fs::create_dir(target.data()).unwrap();
        target.restart();
        target
    }

    /// `http://127.0.0.1:…`, perhaps with a path; the same after a restart.
    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// Where it stores everything.
    pub(crate) fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// What it has written to standard output and standard error.
    pub(crate) fn log(&self) -> String {
        read(&self.log_path())
    }

    /// `kill -9`.
    pub(crate) fn kill(&mut self) {
        let mut child = self.child.take().unwrap();
        child.kill().unwrap();
        let status = child.wait().unwrap();
        assert_eq!(status.code(), None, "it had ended by itself: {status}\n{}", self.log());
    }

    /// From its next start on it listens where the other one does, which must not run then.
    pub(crate) fn move_to(&mut self, other: &Self) {
        self.port = other.port.clone();
        self.address.clone_from(&other.address);
    }

    /// Starts it on what it stored, where it listened before. It must have been killed.
    pub(crate) fn restart(&mut self) {
        assert!(self.child.is_none(), "{:?} runs", self.kind);
        let mut command = match self.kind {
            ActualServerKind::Published => self.published_command(),
            ActualServerKind::Warren => self.warren_command(),
            ActualServerKind::WarrenPath => self.warren_path_command(),
        };
        let log = File::options().create(true).append(true).open(self.log_path()).unwrap();
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log.try_clone().unwrap());
        let mut child = command.spawn().unwrap();
        let ready = follow(child.stdout.take().unwrap(), log, self.kind);
        self.child = Some(child);
        let said = ready.recv_timeout(START_TIME_MAX);
        let said = said.unwrap_or_else(|e| panic!("{:?} is not ready: {e}", self.kind));
        if self.kind != ActualServerKind::Published {
            let said: Value = serde_json::from_str(&said).unwrap();
            assert_eq!(said["actual_budget_address"], self.address, "{said}");
        }
    }

    fn published_command(&self) -> Command {
        let node = installed(".bin/node");
        let data = self.data();
        let mut command = Command::new(node);
        command.arg(installed("@actual-app/sync-server/build/bin/actual-server.js"));
        command.current_dir(&data).env("NODE_ENV", "production").env("NO_COLOR", "1");
        command
            .env("ACTUAL_HOSTNAME", "127.0.0.1")
            .env("ACTUAL_PORT", self.port.number().to_string());
        // A test that asks more than 500 times a minute names another address with each request.
        command.env("ACTUAL_TRUSTED_PROXIES", "127.0.0.1/32");
        command.env("ACTUAL_DATA_DIR", &data);
        command.env("ACTUAL_SERVER_FILES", data.join("server-files"));
        command.env("ACTUAL_USER_FILES", data.join("user-files"));
        command
    }

    fn warren_command(&self) -> Command {
        let mut command = self.serve_command("127.0.0.1:0");
        command.arg("--actual-budget").arg(format!("127.0.0.1:{}", self.port.number()));
        command.arg("--actual-budget-open-registration");
        command.arg("--actual-budget-web").arg(installed("@actual-app/web/build"));
        command
    }

    fn warren_path_command(&self) -> Command {
        let mut command = self.serve_command(&format!("127.0.0.1:{}", self.port.number()));
        command.args(["--actual-budget", "/actual", "--actual-budget-open-registration"]);
        command
    }

    fn serve_command(&self, listen: &str) -> Command {
        let mut command = Command::new(WARREN);
        command.args(["serve", "--json", "--log", "info", "--listen", listen]);
        command.arg("--data").arg(self.data()).args(&self.options);
        command
    }

    fn log_path(&self) -> PathBuf {
        self.folder.path().join("log.txt")
    }
}

impl Drop for ActualServer {
    #[expect(clippy::print_stdout, reason = "libtest shows it when the test fails")]
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            if let Ok(Some(status)) = child.try_wait() {
                println!("{:?} had ended: {status}", self.kind);
            }
            // Then there is nothing to end.
            drop(child.kill());
            drop(child.wait());
        }
        if thread::panicking() {
            let end = end_of_log(&self.log_path());
            println!("{:?} {} wrote:\n{end}", self.kind, self.address);
        }
    }
}

fn read(log: &Path) -> String {
    String::from_utf8_lossy(&fs::read(log).unwrap_or_default()).into_owned()
}

/// As much of it as a failed test shows.
pub(crate) fn end_of_log(path: &Path) -> String {
    let log = read(path);
    let shown = log.ceil_char_boundary(log.len().saturating_sub(SHOWN_BYTES_MAX));
    format!("…{}", &log[shown..])
}

/// Where the published packages are.
pub(crate) fn packages() -> PathBuf {
    installed("")
}

/// Something of the published packages.
pub(crate) fn installed(path: &str) -> PathBuf {
    let path = Path::new(PACKAGES).join(path);
    assert!(path.exists(), "no {}: `make test` installs it", path.display());
    path
}

/// Writes what a server says to its log, and sends the line that says that it listens.
fn follow(stdout: ChildStdout, mut log: File, kind: ActualServerKind) -> Receiver<String> {
    let (sender, receiver) = mpsc::sync_channel(1);
    let is_ready = move |line: &str| match kind {
        ActualServerKind::Published => line.starts_with("Listening on "),
        ActualServerKind::Warren | ActualServerKind::WarrenPath => line.starts_with('{'),
    };
    thread::spawn(move || {
        // It is dropped at the end of standard output: a server that has ended is not waited for.
        let mut sender = Some(sender);
        for line in BufReader::new(stdout).lines() {
            let line = line.unwrap();
            writeln!(log, "{line}").unwrap();
            if is_ready(&line)
                && let Some(sender) = sender.take()
            {
                sender.send(line).unwrap();
            }
        }
    });
    receiver
}
