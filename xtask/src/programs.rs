//! Runs other programs that must succeed.

use std::process::Command;

use anyhow::{Context, Result, ensure};

pub(crate) fn succeed(command: &mut Command) -> Result<()> {
    let program = command.get_program().to_string_lossy().into_owned();
    let status = command.status().with_context(|| format!("cannot start `{program}`"))?;
    ensure!(status.success(), "`{program}` failed ({status})");
    Ok(())
}

/// Returns what the program prints.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.output().with_context(|| format!("cannot start `{program}`"))?;
    let stderr = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "`{program}` failed ({}): {}", output.status, stderr.trim());
    String::from_utf8(output.stdout).with_context(|| format!("`{program}` prints no UTF-8"))
}
