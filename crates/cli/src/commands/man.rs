//! Implements `warren man`: writes the manual pages.

use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::{Args, Command};
use doctor::counted;
use serde::Serialize;
use utoipa::ToSchema;

use crate::output::Printer;

/// Write the man pages, one per command.
#[derive(Args)]
#[command(after_help = "Examples:\n  warren man /usr/local/share/man/man1\n  \
                        warren man > warren.1 && man -l warren.1")]
pub(crate) struct ManArgs {
    /// Directory for the man pages. Created if missing. Without DIR, prints the man page of
    /// `warren`.
    #[arg(value_name = "DIR")]
    folder: Option<PathBuf>,
}

/// The output of `warren man`.
#[derive(Serialize, ToSchema)]
#[serde(untagged)]
pub(crate) enum ManOutput {
    /// The output without a directory: the manual page of `warren` itself.
    Page {
        /// The manual page in roff.
        page: String,
    },
    /// The output with a directory: the manual pages that were written.
    Pages {
        /// The path of the directory that the pages were written to.
        path: String,
        /// The names of the written files.
        pages: Vec<String>,
    },
}

pub(crate) fn run(arguments: &ManArgs, command: Command, output: Printer) -> anyhow::Result<()> {
    let command = without_help_command(command);
    let Some(folder) = &arguments.folder else {
        let mut page = Vec::new();
        clap_mangen::Man::new(command).render(&mut page)?;
        let page = String::from_utf8(page)?;
        output.text(format_args!("{}", page.trim_end()));
        return output.json(&ManOutput::Page { page });
    };
    std::fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    let pages = write(&command, folder)?;
    let path = folder.display().to_string();
    let count = counted(pages.len() as u64, "manual page", "manual pages");
    output.line(format_args!("wrote {count} to {path}"));
    output.json(&ManOutput::Pages { path, pages })
}

/// Prepares the command for documents: its subcommands have their full names, and `warren help` is
/// not one of them.
pub(crate) fn without_help_command(command: Command) -> Command {
    let mut command = command.disable_help_subcommand(true);
    command.build();
    command
}

/// Writes the pages of a command and its subcommands; returns the names of the files.
fn write(command: &Command, folder: &Path) -> anyhow::Result<Vec<String>> {
    let page = clap_mangen::Man::new(command.clone());
    let name = page.get_filename();
    page.generate_to(folder).with_context(|| folder.join(&name).display().to_string())?;
    let mut names = vec![name];
    for below in command.get_subcommands().filter(|below| !below.is_hide_set()) {
        names.extend(write(below, folder)?);
    }
    Ok(names)
}
