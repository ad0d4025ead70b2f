//! Runs other programs for a limited time and with a limited amount of output.

use std::io::{ErrorKind, Read, Write};
use std::path::PathBuf;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::Duration;

use anyhow::{Context, bail};
use engine::clock::now;

/// The limit of each output; a failed build prints about 100 KB.
const OUTPUT_BYTES_MAX: u64 = 1 << 20;
/// The limits of an error reason, in lines and in characters.
const REASON_LINES_MAX: usize = 3;
const REASON_CHARS_MAX: usize = 400;

/// The command that starts a driver.
#[derive(Clone, Debug)]
pub(crate) struct DriverProgram {
    pub(crate) program: PathBuf,
    pub(crate) arguments: Vec<PathBuf>,
}

impl DriverProgram {
    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.args(&self.arguments);
        command
    }
}

/// The output of a program that has ended.
#[derive(Debug)]
pub(crate) struct ProgramOutput {
    status: ExitStatus,
    pub(crate) stdout: String,
    stderr: String,
}

impl ProgramOutput {
    /// Returns an error with a short reason if the program failed.
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        if self.status.success() {
            return Ok(());
        }
        match reason(&self.stderr) {
            Some(reason) => bail!("{}: {reason}", self.status),
            None => bail!("{}", self.status),
        }
    }
}

/// Runs a program to its end, at most for `time_max`. The input must fit into a pipe, or the
/// program must read it.
pub(crate) fn run(
    command: &mut Command,
    input: &str,
    time_max: Duration,
) -> anyhow::Result<ProgramOutput> {
    let name = command.get_program().to_string_lossy().into_owned();
    let start = now();
    let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = piped.spawn().with_context(|| format!("cannot start {name}"))?;
    let stdout = read(child.stdout.take().context("standard output")?);
    let stderr = read(child.stderr.take().context("standard error")?);
    let mut stdin = child.stdin.take().context("standard input")?;
    match stdin.write_all(input.as_bytes()) {
        // The program ended without reading all input; its outputs contain the reason.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => {}
        written => written.with_context(|| format!("cannot write to {name}"))?,
    }
    drop(stdin);
    let text = |output: &Receiver<std::io::Result<Vec<u8>>>| {
        output.recv_timeout(time_max.saturating_sub(start.elapsed()))
    };
    let (Ok(stdout), Ok(stderr)) = (text(&stdout), text(&stderr)) else {
        // The program may have ended just now; then there is no process to kill.
        drop(child.kill());
        child.wait()?;
        bail!("{name} took more than {time_max:?}");
    };
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    Ok(ProgramOutput { status: child.wait()?, stdout: text(stdout?), stderr: text(stderr?) })
}

/// Reads all output on its own thread, so that a full pipe blocks neither side.
fn read(from: impl Read + Send + 'static) -> Receiver<std::io::Result<Vec<u8>>> {
    let (tx, rx) = sync_channel(1);
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let read = from.take(OUTPUT_BYTES_MAX).read_to_end(&mut bytes);
        // After a time-out, no receiver is left.
        drop(tx.send(read.map(|_| bytes)));
    });
    rx
}

/// Returns the lines that mention an error, or else the last line.
fn reason(stderr: &str) -> Option<String> {
    let lines = || stderr.lines().map(str::trim).filter(|line| !line.is_empty());
    let errors = lines().filter(|line| line.to_lowercase().contains("error"));
    let mut reason: Vec<&str> = errors.take(REASON_LINES_MAX).collect();
    if reason.is_empty() {
        reason.extend(lines().next_back());
    }
    let reason: String = reason.join("; ").chars().take(REASON_CHARS_MAX).collect();
    (!reason.is_empty()).then_some(reason)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn a_program_reads_its_input_and_ends() {
        let output = run(&mut shell("cat; echo e >&2"), "input", Duration::from_mins(1)).unwrap();
        assert_eq!((output.stdout.as_str(), output.stderr.as_str()), ("input", "e\n"));
        output.check().unwrap();
        let output = run(&mut shell("exit 3"), &"x".repeat(1 << 20), Duration::from_mins(1));
        assert_eq!(output.unwrap().check().unwrap_err().to_string(), "exit status: 3");
    }

    #[test]
    fn a_program_that_does_not_end_is_ended() {
        let error = run(&mut shell("exec sleep 600"), "", Duration::from_millis(50)).unwrap_err();
        assert_eq!(error.to_string(), "sh took more than 50ms");
    }

    #[test]
    fn the_reason_is_in_the_lines_that_name_an_error() {
        let check =
            |stderr, expected: Option<&str>| assert_eq!(reason(stderr).as_deref(), expected);
        check("building\n error: no network\nhint\n", Some("error: no network"));
        check("a\nnpm ERROR 1\nerror 2\nerror 3\nerror 4", Some("npm ERROR 1; error 2; error 3"));
        check("one\nlast\n\n", Some("last"));
        check("\n", None);
    }
}
