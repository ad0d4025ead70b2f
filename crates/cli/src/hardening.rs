//! What the process keeps from other users of the machine: the files that it makes, and its memory.
//!
//! | Command | Files that it makes | Core dumps | Attached to, and read in `/proc`, by |
//! |---|---|---|---|
//! | on a data directory: `serve`, `account`, … | owner only | none | root |
//! | on a device's file: `sync`, `vacuum`, … | owner only | none to files | its user |
//! | `bench` | as the umask says | as the limit says | its user |
//!
//! Benchmarks work on data that they make up, run other people's programs, and write reports that are
//! meant to be shown.
//!
//! # Not here
//! - A data directory that is open to others already → `serve/permissions.rs`.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use anyhow::Context;
use rustix::fs::Mode;
use rustix::process::{Resource, Rlimit, setrlimit, umask};

use crate::command::CliCommand;
use crate::output::Printer;

/// To be called once, before there are threads and before anything is opened.
pub(crate) fn harden(command: &CliCommand) -> anyhow::Result<()> {
    if matches!(command, CliCommand::Bench(_)) {
        return Ok(());
    }
    umask(Mode::RWXG | Mode::RWXO);
    let none = Rlimit { current: Some(0), maximum: Some(0) };
    setrlimit(Resource::Core, none).context("turning core dumps off")?;
    if is_on_data_directory(command) { hide_memory() } else { Ok(()) }
}

/// Commands that hold the passwords and keys of a server's users.
///
/// The others are left visible to their own user: `warren vacuum` and `warren doctor` look into
/// `/proc/PID/fd` for who has a file open, and a process that is hidden has its descriptors hidden.
/// A database of a server is found to be in use by its locks, a device's file may have none.
fn is_on_data_directory(command: &CliCommand) -> bool {
    matches!(
        command,
        CliCommand::Serve(_)
            | CliCommand::Account(_)
            | CliCommand::Actual(_)
            | CliCommand::Vault(_)
            | CliCommand::Backup(_)
            | CliCommand::Restore(_)
    )
}

/// No core dump either where the system pipes them to a program, which asks no limit, and no
/// debugger of the same user.
#[cfg(target_os = "linux")]
fn hide_memory() -> anyhow::Result<()> {
    use rustix::process::{DumpableBehavior, set_dumpable_behavior};

    set_dumpable_behavior(DumpableBehavior::NotDumpable).context("hiding the process' memory")
}

#[cfg(not(target_os = "linux"))]
#[expect(clippy::unnecessary_wraps, reason = "as it is on Linux")]
fn hide_memory() -> anyhow::Result<()> {
    Ok(())
}

/// Tells if others may read a file that a token or a phrase was just put into. Its mode is its
/// owner's business.
pub(crate) fn warn_if_readable_by_others(file: &Path, output: Printer) -> anyhow::Result<()> {
    const READ_BY_OTHERS: u32 = 0o044;
    let metadata = fs::metadata(file).with_context(|| file.display().to_string())?;
    let mode = metadata.permissions().mode() & 0o777;
    if mode & READ_BY_OTHERS != 0 {
        let file = file.display();
        output.line(format_args!(
            "{file} holds secrets of this device, and other users may read it (mode {mode:04o}): \
             `chmod 600 {file}` ends that"
        ));
    }
    Ok(())
}
