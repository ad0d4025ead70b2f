//! What the process keeps from other users of the machine: the files that it makes, and its memory.
//!
//! | Command | Files that it makes | Core dumps | Attached to, and read in `/proc`, by |
//! |---|---|---|---|
//! | on a data directory: `serve`, `account`, … | owner only | none | root |
//! | on a device's file: `sync`, `vacuum`, … | owner only | none to files | its user |
//! | `bench` | as the umask says | as the limit says | its user |
//!
//! Benchmarks work on data that they make up, run other people's programs, and write reports that
//! are meant to be shown.
//!
//! # Not here
//! - A data directory that is open to others already → `commands/serve/permissions.rs`.

use anyhow::Context;
use rustix::fs::Mode;
use rustix::process::{Resource, Rlimit, setrlimit, umask};

use crate::command::CliCommand;

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
            | CliCommand::ActualBudget(_)
            | CliCommand::Storage(_)
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
