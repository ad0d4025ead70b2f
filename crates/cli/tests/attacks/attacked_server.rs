//! The server under attack: a running `warren serve` with open registration.

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Resource, Rlimit, Signal, getrlimit, kill_process, setrlimit};
use serde_json::Value;
use tempfile::TempDir;

use crate::raw_client::{RawHttpClient, address};

pub(crate) const ADMIN: &str = "the-operators-token-of-this-test";

/// A running `warren serve` with open registration, which is killed on drop.
pub(crate) struct AttackedServer {
    child: Child,
    pub(crate) port: u16,
    /// The port of the gateway for Actual's apps.
    pub(crate) gateway_port: u16,
    _folder: TempDir,
}

/// Returns the binary of these tests, or an older one to compare it with.
fn warren() -> PathBuf {
    let other = std::env::var_os("WARREN_ATTACKED").map(PathBuf::from);
    other.unwrap_or(env!("CARGO_BIN_EXE_warren").into())
}

/// Returns whether the binary has a setting for the memory of bodies and answers.
pub(crate) fn knows_room() -> bool {
    let help = Command::new(warren()).args(["serve", "--help"]).output().unwrap();
    String::from_utf8_lossy(&help.stdout).contains("--body-memory-mib")
}

impl AttackedServer {
    pub(crate) fn start(options: &[&str]) -> Self {
        // Some attacks open thousands of connections.
        let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
        setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let token = folder.path().join("admin.txt");
        fs::write(&token, format!("{ADMIN}\n")).unwrap();
        let mut command = Command::new(warren());
        command
            .args(["serve", "--listen", "127.0.0.1:0", "--json"])
            .args(["--actual-budget", "127.0.0.1:0", "--actual-budget-open-registration"])
            .args(["--open-registration", "--log", "error", "--admin-token-file"])
            .arg(token)
            .arg("--data")
            .arg(folder.path().join("data"))
            .args(options)
            .stdin(Stdio::null())
            .stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let said: Value = serde_json::from_str(&line).unwrap_or_else(|e| panic!("{e}: {line:?}"));
        let port = |name: &str| {
            let (_, port) = said[name].as_str().unwrap().rsplit_once(':').unwrap();
            port.parse().unwrap()
        };
        let (port, gateway_port) = (port("address"), port("actual_budget_address"));
        Self { child, port, gateway_port, _folder: folder }
    }

    pub(crate) fn address(&self) -> SocketAddrV4 {
        SocketAddrV4::new(Ipv4Addr::LOCALHOST, self.port)
    }

    pub(crate) fn gateway(&self) -> SocketAddrV4 {
        SocketAddrV4::new(Ipv4Addr::LOCALHOST, self.gateway_port)
    }

    /// Kills the server, which also ends the attackers' waits.
    pub(crate) fn end(&self) {
        let id = i32::try_from(self.child.id()).unwrap();
        kill_process(Pid::from_raw(id).unwrap(), Signal::KILL).unwrap();
    }

    /// Returns the number of accounts.
    pub(crate) fn accounts_count(&self) -> u64 {
        let mut operator = RawHttpClient::new(address(1), self.address());
        let overview = operator.ask("GET", "/v1/admin/overview", ADMIN, &Value::Null).unwrap();
        overview.1["accounts_count"].as_u64().unwrap()
    }

    /// Returns the peak of the server's memory, in MiB.
    pub(crate) fn memory_high_mib(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() >> 10
    }
}

impl Drop for AttackedServer {
    fn drop(&mut self) {
        // The server may have ended already.
        drop(self.child.kill());
        self.child.wait().unwrap();
    }
}
