//! Reads a key from the output of a command, such as a password manager, or a program that derives
//! a key for each file.
//!
//! # Invariants
//! - The output is zeroized, and both its size and the running time are limited.

use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use anyhow::{Context, bail};
use protocol::ErrorCode;
use zeroize::Zeroizing;

use crate::output::CommandError;

/// The size limit of the output.
const KEY_BYTES_MAX: u64 = 4_096;
/// The time limit of a command: a person may have to touch a hardware token.
const TIME_MAX: Duration = Duration::from_mins(1);
/// The environment variable that contains the path of the file.
const FILE_VARIABLE: &str = "WARREN_FILE";

/// Runs the command for this file in a shell, and returns its output.
pub(super) fn run(command: &str, file: &Path) -> anyhow::Result<Zeroizing<Vec<u8>>> {
    let started = Command::new("sh")
        .args(["-c", command])
        .env(FILE_VARIABLE, file)
        .stdout(Stdio::piped())
        .spawn();
    let mut child = started.with_context(|| format!("cannot run --key-command {command:?}"))?;
    let printed = read(&mut child, command);
    if printed.is_err() {
        // Reading has failed already, and the process may have ended before the kill.
        drop(child.kill());
    }
    let status = child.wait().context("cannot wait for --key-command")?;
    let printed = printed?;
    if !status.success() {
        let file = file.display();
        bail!(failure(format!("--key-command {command:?} failed for {file}: {status}")));
    }
    if printed.is_empty() {
        bail!(failure(format!("--key-command {command:?} printed nothing for {}", file.display())));
    }
    Ok(printed)
}

fn read(child: &mut Child, command: &str) -> anyhow::Result<Zeroizing<Vec<u8>>> {
    let stdout = child.stdout.take().context("--key-command has no standard output")?;
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let mut printed = Zeroizing::new(Vec::with_capacity(2 * 4_096));
        let read = stdout.take(KEY_BYTES_MAX + 1).read_to_end(&mut printed);
        // The receiver may be gone after a timeout.
        drop(sender.send(read.map(|_| printed)));
    });
    let Ok(printed) = receiver.recv_timeout(TIME_MAX) else {
        let seconds = TIME_MAX.as_secs();
        bail!(failure(format!("--key-command {command:?} took longer than {seconds} seconds")));
    };
    let printed = printed.context("cannot read the output of --key-command")?;
    let is_small = printed.len() as u64 <= KEY_BYTES_MAX;
    if !is_small {
        bail!(failure(format!(
            "--key-command {command:?} printed more than {KEY_BYTES_MAX} bytes"
        )));
    }
    Ok(printed)
}

fn failure(message: String) -> CommandError {
    CommandError::new(ErrorCode::KeyCommandFailed, message)
}
