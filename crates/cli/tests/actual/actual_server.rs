//! A running server that Actual's clients can use: the published one, or Warren in its place.
//!
//! Each server has an empty data directory of its own and listens on a free port of the loopback
//! address. It keeps both when it is killed and restarted, and is killed on drop. Its output is
//! kept in a file, which a failing test shows.
//!
//! # Not here
//! - Its packages → `.ci/setup.sh` installs the packages that `tests/actual/package.json` names.

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
/// The time limit of a start, on a busy machine.
const START_TIME_MAX: Duration = Duration::from_mins(2);
/// The number of bytes at the log's end that a failed test shows.
const SHOWN_BYTES_MAX: usize = 8 << 10;

/// The kinds of servers.
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
    /// The process, while it runs.
    child: Option<Child>,
}

impl ActualServer {
    /// Starts the published server, which is ready when this returns.
    pub(crate) fn published() -> Self {
        Self::start(ActualServerKind::Published, &[])
    }

    /// Starts `warren serve --actual-budget` with the published web app.
    pub(crate) fn warren() -> Self {
        Self::start(ActualServerKind::Warren, &[])
    }

    /// Starts a server; `options` are for `warren serve`.
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

    /// Returns `http://127.0.0.1:…`, perhaps with a path; a restart does not change it.
    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// Returns the directory in which the server stores everything.
    pub(crate) fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// Returns what the server has written to standard output and standard error.
    pub(crate) fn log(&self) -> String {
        read(&self.log_path())
    }

    /// Kills the server, as `kill -9` does.
    pub(crate) fn kill(&mut self) {
        let mut child = self.child.take().unwrap();
        child.kill().unwrap();
        let status = child.wait().unwrap();
        assert_eq!(status.code(), None, "it had ended by itself: {status}\n{}", self.log());
    }

    /// Moves this server to the other one's port from its next start on. The other must not run
    /// then.
    pub(crate) fn move_to(&mut self, other: &Self) {
        self.port = other.port.clone();
        self.address.clone_from(&other.address);
    }

    /// Restarts the killed server with its data, on its former port.
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
        // A test that sends more than 500 requests a minute names another address with each
        // request.
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
            // If it has ended, there is no process to kill.
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

/// Returns as much of a log's end as a failed test shows.
pub(crate) fn end_of_log(path: &Path) -> String {
    let log = read(path);
    let shown = log.ceil_char_boundary(log.len().saturating_sub(SHOWN_BYTES_MAX));
    format!("…{}", &log[shown..])
}

/// Returns the directory of the published packages.
pub(crate) fn packages() -> PathBuf {
    installed("")
}

/// Returns the path of a file or directory of the published packages.
pub(crate) fn installed(path: &str) -> PathBuf {
    let path = Path::new(PACKAGES).join(path);
    assert!(path.exists(), "no {}: `make test` installs it", path.display());
    path
}

/// Writes a server's output to its log, and sends the line that reports that it listens.
fn follow(stdout: ChildStdout, mut log: File, kind: ActualServerKind) -> Receiver<String> {
    let (sender, receiver) = mpsc::sync_channel(1);
    let is_ready = move |line: &str| match kind {
        ActualServerKind::Published => line.starts_with("Listening on "),
        ActualServerKind::Warren | ActualServerKind::WarrenPath => line.starts_with('{'),
    };
    thread::spawn(move || {
        // The sender is dropped at the end of standard output, so that the test does not wait for
        // a server that has ended.
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
