//! Runs `warren serve`: the shipped binary, on a free loopback port, with a fresh data directory
//! that already has accounts.
//!
//! Over HTTP every account costs a password hash. Here the accounts are created before the server
//! starts, by the same crate, at the lowest cost; each has one device, which registers the others
//! with its token. Vaults and their keys are created as usual.

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;

use accounts::{Accounts, KdfCost, Login, Password};
use anyhow::Context;
use engine::{Databases, EngineLimits};

use crate::http::socket_address;
use crate::message_generator::FIRST_MS;
use crate::processes::{ProcessScope, ProcessUsage};

/// The number of threads that create accounts: writes that wait together share a commit.
const THREADS_COUNT: usize = 64;
/// The password of every account.
pub(crate) const PASSWORD: &str = "correct horse battery";

/// A running server, which ends when this value is dropped.
pub(crate) struct ServerProcess {
    child: Child,
    pub(crate) address: SocketAddr,
    /// The address for Actual's apps, if the gateway is enabled.
    pub(crate) actual: Option<SocketAddr>,
    /// The address for mail by LMTP, if mail is received.
    pub(crate) lmtp: Option<SocketAddr>,
}

impl ServerProcess {
    /// Starts a server; `data` is created if it does not exist.
    pub(crate) fn start(program: &Path, data: &Path, more: &[&str]) -> anyhow::Result<Self> {
        let mut command = Command::new(program);
        // Settings of the user's own server must not affect the measurement.
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("WARREN_") {
                command.env_remove(name);
            }
        }
        let mut child = command
            .args(["serve", "--listen", "127.0.0.1:0", "--json", "--log", "error", "--data"])
            .arg(data)
            .args(more)
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot start {}", program.display()))?;
        let stdout = child.stdout.take().context("its standard output")?;
        // From here on, dropping the value ends the process.
        let nowhere = SocketAddr::from(([127, 0, 0, 1], 0));
        let mut served = Self { child, address: nowhere, actual: None, lmtp: None };
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line)?;
        let said: serde_json::Value =
            serde_json::from_str(&line).context("`warren serve` did not print JSON")?;
        served.address =
            socket_address(said["address"].as_str().context("`warren serve` printed no address")?)?;
        served.actual = said["actual_budget_address"].as_str().map(socket_address).transpose()?;
        served.lmtp = said["lmtp_address"].as_str().map(socket_address).transpose()?;
        Ok(served)
    }

    /// Ends the server like its operator would, so that its files are complete.
    pub(crate) fn stop(mut self) -> anyhow::Result<()> {
        let pid = self.child.id().to_string();
        let signalled = Command::new("kill").arg(&pid).status().context("kill")?;
        anyhow::ensure!(signalled.success(), "kill {pid}: {signalled}");
        let status = self.child.wait()?;
        anyhow::ensure!(status.success(), "warren serve: {status}");
        Ok(())
    }

    pub(crate) fn processes(&self) -> ProcessUsage {
        ProcessUsage { root: self.child.id(), part: ProcessScope::Root }
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        // The server may have ended already; then there is no process to kill.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// A data directory without a running server, which is copied for use.
#[derive(Debug)]
pub(crate) struct PreparedDataDir {
    folder: PathBuf,
    /// The tokens of the first accounts, one device each.
    pub(crate) tokens: Vec<String>,
}

impl PreparedDataDir {
    /// Creates `count` accounts in `folder`, `active` of them with a device.
    pub(crate) fn make(folder: PathBuf, count: usize, active: usize) -> anyhow::Result<Self> {
        let databases = Databases::start(EngineLimits::default())?;
        let accounts = Accounts::open(&databases, &folder, KdfCost::insecure_for_tests(1))?;
        let share = count.div_ceil(THREADS_COUNT);
        let made: Vec<anyhow::Result<Vec<String>>> = thread::scope(|scope| {
            let threads: Vec<_> = (0..THREADS_COUNT)
                .map(|index| (index * share).min(count)..((index + 1) * share).min(count))
                .map(|numbers| scope.spawn(|| make(&accounts, numbers, active)))
                .collect();
            let joined = threads.into_iter().map(thread::ScopedJoinHandle::join);
            joined.map(|made| made.unwrap_or_else(|_| anyhow::bail!("a panic"))).collect()
        });
        drop(accounts);
        databases.shutdown();
        let made: anyhow::Result<Vec<Vec<String>>> = made.into_iter().collect();
        Ok(Self { folder, tokens: made?.concat() })
    }

    /// Copies the files into a new directory.
    pub(crate) fn copy_to(&self, data: &Path) -> anyhow::Result<()> {
        fs::create_dir_all(data)?;
        for entry in fs::read_dir(&self.folder)? {
            let entry = entry?;
            fs::copy(entry.path(), data.join(entry.file_name()))?;
        }
        Ok(())
    }
}

/// Creates the accounts and returns the tokens of the active ones.
fn make(
    accounts: &Accounts,
    numbers: std::ops::Range<usize>,
    active: usize,
) -> anyhow::Result<Vec<String>> {
    let mut tokens = Vec::new();
    for number in numbers {
        let login = Login::parse(&format!("user{number}"))?;
        let password = Password::parse(PASSWORD.to_owned())?;
        let unlocked = accounts.add(&login, &password, FIRST_MS)?;
        if number < active {
            let registered = accounts.register(&unlocked, None, FIRST_MS)?;
            tokens.push(registered.token.to_text().to_string());
        }
    }
    Ok(tokens)
}
