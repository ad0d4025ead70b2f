//! Runs other programs that must succeed.

use std::process::Command;

use anyhow::{Context, Result, ensure};

pub(crate) fn succeed(command: &mut Command) -> Result<()> {
    let name = name(command);
    let status = command.status().with_context(|| format!("cannot start `{name}`"))?;
    ensure!(status.success(), "`{name}` failed ({status})");
    Ok(())
}

/// Returns what the program prints.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let name = name(command);
    let output = command.output().with_context(|| format!("cannot start `{name}`"))?;
    let stderr = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "`{name}` failed ({}): {}", output.status, stderr.trim());
    String::from_utf8(output.stdout).with_context(|| format!("`{name}` did not print UTF-8"))
}

/// Returns the program and its first argument, which often is a command.
fn name(command: &Command) -> String {
    let program = command.get_program().to_string_lossy();
    let first = command.get_args().next().map(|first| format!(" {}", first.to_string_lossy()));
    format!("{program}{}", first.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failing_program_is_named_with_its_message() {
        let error = output(Command::new("sh").args(["-c", "echo no >&2; exit 3"])).unwrap_err();
        let text = error.to_string();
        assert!(text.starts_with("`sh -c` failed") && text.ends_with(": no"), "{text}");
        assert!(succeed(&mut Command::new("false")).is_err());
        assert_eq!(output(Command::new("echo").arg("yes")).unwrap(), "yes\n");
    }
}
