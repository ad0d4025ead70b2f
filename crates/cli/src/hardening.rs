//! Protects the files that the process creates, and its memory, from other users of the machine.
//!
//! | Command | Files that it creates | Core dumps | Attached to, and read in `/proc`, by |
//! |---|---|---|---|
//! | on a data directory: `serve`, `account`, … | owner only | none | root |
//! | on a device's file: `sync`, `vacuum`, … | owner only | none to files | its user |
//! | `bench` | depends on the umask | depends on the limit | its user |
//!
//! Benchmarks work on generated data, run other people's programs, and write reports that are meant
//! to be shared.
//!
//! # Not here
//! - A data directory that other users can already access → `commands/serve/permissions.rs`.

use anyhow::Context;
use rustix::fs::Mode;
use rustix::process::{Resource, Rlimit, setrlimit, umask};

use crate::command::CliCommand;

/// Must be called once, before any thread starts and before any file is opened.
pub(crate) fn harden(command: &CliCommand) -> anyhow::Result<()> {
    if matches!(command, CliCommand::Bench(_)) {
        return Ok(());
    }
    umask(Mode::RWXG | Mode::RWXO);
    let none = Rlimit { current: Some(0), maximum: Some(0) };
    setrlimit(Resource::Core, none).context("turning core dumps off")?;
    if is_on_data_directory(command) { hide_memory() } else { Ok(()) }
}

/// Returns whether the command handles the passwords and keys of a server's users.
///
/// The other commands stay visible to their own user: `warren vacuum` and `warren doctor` read
/// `/proc/PID/fd` to find the processes that have a file open, and a hidden process also hides its
/// descriptors. Locks show that a server's database is in use, but a device's file may have none.
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

/// Prevents core dumps even if the system pipes them to a program, which ignores the limit, and
/// debuggers of the same user.
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
