//! Runs `cargo xtask docs`: writes the documents, and the tables in others, that are generated from
//! the code.
//!
//! # Not here
//! - The checks that they are up to date → `crates/cli/tests/e2e/manuals.rs` and `settings.rs`, in
//!   `cargo xtask ci`.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use crate::cargo_artifacts;
use crate::programs::output;
use crate::terminal::print_line;

const COMMANDS: &str = "docs/reference/commands.md";
const SETTINGS: &str = "docs/operating/settings.md";

pub(crate) fn run(root: &Path) -> Result<bool> {
    let made = cargo_artifacts::compile(root, &["build", "--workspace", "--bin", "warren"])?;
    let warren = cargo_artifacts::warren(&made)?;
    fs::write(root.join(COMMANDS), output(Command::new(warren).arg("command-reference"))?)
        .context(COMMANDS)?;
    print_line(format_args!("wrote {COMMANDS}"))?;
    let path = root.join(SETTINGS);
    let document = fs::read_to_string(&path).context(SETTINGS)?;
    let document = with_table(&document, &output(Command::new(warren).arg("settings"))?);
    fs::write(&path, document).context(SETTINGS)?;
    print_line(format_args!("wrote the table in {SETTINGS}"))?;
    Ok(true)
}

/// Replaces the only table of a document.
fn with_table(document: &str, table: &str) -> String {
    let is_row = |line: &&str| line.starts_with('|');
    let before = document.lines().take_while(|line| !is_row(line));
    let after = document.lines().skip_while(|line| !is_row(line)).skip_while(is_row);
    let lines: Vec<_> = before.chain(table.lines()).chain(after).collect();
    lines.join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_replaced_and_the_text_around_it_stays() {
        let document = "# A\n\n| a |\n|---|\n| 1 |\n\nb\n";
        assert_eq!(with_table(document, "| c |\n|---|\n"), "# A\n\n| c |\n|---|\n\nb\n");
    }
}
