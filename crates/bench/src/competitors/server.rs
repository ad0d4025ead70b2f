//! Runs competitors that are servers: each is started with a plan and called over HTTP, and ends
//! when its standard input closes, which the system does if the benchmark is killed.

use std::fmt;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::Duration;

use anyhow::{Context, ensure};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use super::process::{self, DriverProgram};

/// The time limit for `about`. Python takes a second to load its packages.
const ABOUT_TIME_MAX: Duration = Duration::from_mins(1);
/// The time limit for the first line of a server that starts.
const START_TIME_MAX: Duration = Duration::from_mins(1);
/// The time limit for a server to end, workers included.
const END_TIME_MAX: Duration = Duration::from_secs(20);
/// The size limit of a server's first line.
const LINE_BYTES_MAX: u64 = 64 << 10;

/// The identity of a competing server, and the work that it does for each message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub(crate) struct CompetitorServerInfo {
    /// The server's name.
    pub(crate) server: String,
    /// The server's version.
    pub(crate) version: String,
    /// The compiler or interpreter of the server, with its version.
    pub(crate) runtime: String,
    /// The work for each message: a sentence each on durability, encryption at rest and
    /// deduplication.
    pub(crate) does: String,
}

impl fmt::Display for CompetitorServerInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}; {}): {}", self.server, self.version, self.runtime, self.does)
    }
}

/// A competing server that can be started on this machine.
#[derive(Debug)]
pub(crate) struct CompetitorService {
    pub(crate) about: CompetitorServerInfo,
    program: DriverProgram,
}

/// The plan with which a server is started.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct ServicePlan<'a> {
    /// The folder for all files of the server; files in it are from an earlier start.
    pub(crate) folder: &'a Path,
    pub(crate) workers: usize,
    /// The journal mode, or `None` for the server's own.
    pub(crate) journal_mode: Option<&'static str>,
    /// The synchronous level, or `None` for the server's own.
    pub(crate) synchronous: Option<&'static str>,
}

/// A running server, which ends when this value is dropped.
#[derive(Debug)]
pub(crate) struct RunningService {
    child: Child,
    stdin: Option<ChildStdin>,
    end: Receiver<()>,
    pub(crate) address: String,
}

/// The first line that a server prints.
#[derive(Debug, Deserialize)]
struct StartupLine {
    address: String,
    settings: Value,
}

impl CompetitorService {
    /// Asks the program for its identification, because an installed program may still not run on
    /// this machine.
    pub(crate) fn ask(program: DriverProgram) -> anyhow::Result<Self> {
        let output = process::run(program.command().arg("about"), "", ABOUT_TIME_MAX)?;
        Ok(Self { about: super::parse(&output, "Format 7").context("`about`")?, program })
    }

    /// Starts the server and waits until it responds.
    pub(crate) fn start(&self, plan: &ServicePlan<'_>) -> anyhow::Result<RunningService> {
        self.start_as_planned(plan).with_context(|| format!("cannot start {}", self.about.server))
    }

    fn start_as_planned(&self, plan: &ServicePlan<'_>) -> anyhow::Result<RunningService> {
        let mut command = self.program.command();
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let mut stdin = child.stdin.take().context("standard input")?;
        let (lines, end) = first_line(child.stdout.take().context("standard output")?);
        // From here on, dropping the value ends the process.
        let mut running = RunningService { child, stdin: None, end, address: String::new() };
        stdin.write_all(format!("{}\n", serde_json::to_string(plan)?).as_bytes())?;
        running.stdin = Some(stdin);
        let line = lines.recv_timeout(START_TIME_MAX).context("it printed no line")??;
        let said: Value = serde_json::from_str(&line).context("its first line is not JSON")?;
        if let Some(error) = said["error"].as_str() {
            anyhow::bail!("{error}");
        }
        let said: StartupLine =
            serde_json::from_value(said).context("its first line does not follow Format 7")?;
        plan.check(&said.settings)?;
        running.address = said.address;
        Ok(running)
    }
}

impl ServicePlan<'_> {
    /// Fails unless the server uses the planned settings.
    fn check(&self, settings: &Value) -> anyhow::Result<()> {
        if let Some(expected) = self.journal_mode {
            let journal_mode = settings["journal_mode"].as_str().unwrap_or_default();
            ensure!(
                journal_mode.eq_ignore_ascii_case(expected),
                "it uses journal_mode {journal_mode}"
            );
        }
        if let Some(expected) = self.synchronous {
            // `PRAGMA synchronous` returns these numbers.
            let number = ["OFF", "NORMAL", "FULL"].iter().position(|name| *name == expected);
            let synchronous = &settings["synchronous"];
            ensure!(
                synchronous.as_u64() == number.map(|n| n as u64),
                "it uses synchronous {synchronous}"
            );
        }
        Ok(())
    }
}

impl RunningService {
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for RunningService {
    fn drop(&mut self) {
        drop(self.stdin.take());
        if self.end.recv_timeout(END_TIME_MAX) == Err(RecvTimeoutError::Timeout) {
            // The server may have ended just now; then there is no process to kill.
            drop(self.child.kill());
        }
        drop(self.child.wait());
    }
}

type StdoutLine = std::io::Result<String>;

/// Returns receivers for the first line and for the end of the output.
fn first_line(stdout: impl Read + Send + 'static) -> (Receiver<StdoutLine>, Receiver<()>) {
    let (line_tx, lines) = sync_channel(1);
    // No value is ever sent: the channel closes when the output ends.
    let (end_tx, end) = sync_channel::<()>(1);
    std::thread::spawn(move || {
        let mut stdout = BufReader::new(stdout);
        let mut line = String::new();
        let read = (&mut stdout).take(LINE_BYTES_MAX).read_line(&mut line);
        // After a time-out, no receiver is left.
        drop(line_tx.send(read.map(|_| line)));
        // The rest of the output is discarded, because a full pipe would block the server.
        drop(std::io::copy(&mut stdout, &mut std::io::sink()));
        drop(end_tx);
    });
    (lines, end)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::PathBuf;

    use super::*;

    fn full() -> ServicePlan<'static> {
        let (journal_mode, synchronous) = (Some("WAL"), Some("FULL"));
        ServicePlan { folder: Path::new("data"), workers: 2, journal_mode, synchronous }
    }

    /// Returns a server that identifies itself and runs `start` with a plan.
    fn fake(folder: &Path, start: &str) -> CompetitorService {
        let script = folder.join("server.sh");
        let about = r#"{"server":"fake","version":"1","runtime":"sh","does":"nothing"}"#;
        let text = format!("if [ \"$1\" = about ]; then echo '{about}'; exit; fi\n{start}\n");
        fs::write(&script, text).unwrap();
        CompetitorService::ask(DriverProgram {
            program: PathBuf::from("sh"),
            arguments: vec![script],
        })
        .unwrap()
    }

    #[test]
    fn a_server_gets_the_plan_and_ends_with_its_input() {
        let folder = tempfile::tempdir().unwrap();
        let (seen, ended) = (folder.path().join("seen"), folder.path().join("ended"));
        let line =
            r#"{"address":"http://127.0.0.1:1","settings":{"journal_mode":"wal","synchronous":2}}"#;
        let start = format!(
            "read -r plan; echo \"$plan\" > '{}'; echo '{line}'; cat; touch '{}'",
            seen.display(),
            ended.display()
        );
        let service = fake(folder.path(), &start);
        assert_eq!(service.about.to_string(), "fake (1; sh): nothing");
        let running = service.start(&full()).unwrap();
        assert_eq!(running.address, "http://127.0.0.1:1");
        assert!(running.pid() > 0 && !ended.exists());
        drop(running);
        assert!(ended.exists());
        let plan: Value = serde_json::from_str(&fs::read_to_string(seen).unwrap()).unwrap();
        let expected = serde_json::json!({
            "folder": "data", "workers": 2, "journal_mode": "WAL", "synchronous": "FULL",
        });
        assert_eq!(plan, expected);
    }

    #[test]
    fn a_server_that_cannot_do_it_says_why() {
        let check = |start: &str, expected: &str| {
            let folder = tempfile::tempdir().unwrap();
            let error = fake(folder.path(), start).start(&full()).unwrap_err();
            assert_eq!(format!("{error:#}"), format!("cannot start fake: {expected}"));
        };
        let says = |settings: &str| {
            format!(r#"read -r plan; echo '{{"address":"http://a","settings":{settings}}}'; cat"#)
        };
        check(r#"read -r plan; echo '{"error":"no port"}'; exit 1"#, "no port");
        check(&says(r#"{"journal_mode":"delete","synchronous":2}"#), "it uses journal_mode delete");
        check(&says(r#"{"journal_mode":"wal","synchronous":1}"#), "it uses synchronous 1");
        check(&says("{}"), "it uses journal_mode ");
    }
}
