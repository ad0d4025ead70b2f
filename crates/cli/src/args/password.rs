//! Reads passwords from a file, from a pipe, or from a prompt without echo.

use std::io::{BufRead, IsTerminal};
use std::path::{Path, PathBuf};

use anyhow::Context;
use protocol::ErrorCode;
use zeroize::Zeroizing;

use crate::output::{CommandError, EscapedText};

/// Source of a password.
#[derive(clap::Args)]
pub(crate) struct PasswordSource {
    /// Read the password from the first line of this file instead of prompting.
    #[arg(long, value_name = "FILE")]
    pub(crate) password_file: Option<PathBuf>,
}

impl PasswordSource {
    /// Reads the password; `prompt` is shown on a terminal.
    pub(crate) fn read(&self, prompt: &str) -> anyhow::Result<Zeroizing<String>> {
        read(self.password_file.as_deref(), prompt)
    }

    /// Reads a new password, which must be typed twice on a terminal.
    pub(crate) fn read_new(&self, prompt: &str) -> anyhow::Result<Zeroizing<String>> {
        read_new(self.password_file.as_deref(), prompt)
    }
}

pub(crate) fn read(file: Option<&Path>, prompt: &str) -> anyhow::Result<Zeroizing<String>> {
    if let Some(path) = file {
        return first_line(path);
    }
    if std::io::stdin().is_terminal() {
        return Ok(Zeroizing::new(rpassword::prompt_password(
            EscapedText::line(prompt).to_string(),
        )?));
    }
    let mut line = Zeroizing::new(String::new());
    let read = std::io::stdin().lock().read_line(&mut line);
    let is_given = read.context("cannot read the password from standard input")? > 0;
    anyhow::ensure!(is_given, password_missing());
    Ok(Zeroizing::new(line.trim_end_matches(['\r', '\n']).to_owned()))
}

pub(crate) fn read_new(file: Option<&Path>, prompt: &str) -> anyhow::Result<Zeroizing<String>> {
    let password = read(file, prompt)?;
    if file.is_none() && std::io::stdin().is_terminal() {
        let again = Zeroizing::new(rpassword::prompt_password("Repeat the password: ")?);
        let differs =
            || CommandError::new(ErrorCode::InvalidPassword, "the passwords do not match");
        anyhow::ensure!(*again == *password, differs());
    }
    Ok(password)
}

/// Returns the error for a standard input that is closed or empty, so that no password can be
/// typed.
fn password_missing() -> CommandError {
    CommandError::new(ErrorCode::InvalidPassword, "no password was given").with_hint(
        "pass a file that contains it, such as --password-file FILE, or write it to standard input",
    )
}

/// Reads the first line of a file that contains a secret.
pub(crate) fn first_line(path: &Path) -> anyhow::Result<Zeroizing<String>> {
    let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
    let text = Zeroizing::new(text);
    Ok(Zeroizing::new(text.lines().next().unwrap_or_default().to_owned()))
}
