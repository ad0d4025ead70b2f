//! Implements `warren completions`: prints the script with which a shell completes commands and
//! options.

use clap::{Args, Command};
use clap_complete::Shell;
use serde::Serialize;
use utoipa::ToSchema;

use crate::output::Printer;

/// Print a shell completion script.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    warren completions bash > ~/.local/share/bash-completion/completions/warren\n  \
    warren completions zsh > /usr/local/share/zsh/site-functions/_warren\n  \
    warren completions fish > ~/.config/fish/completions/warren.fish")]
pub(crate) struct CompletionsArgs {
    /// Shell to generate the script for.
    shell: Shell,
}

/// The output of `warren completions`.
#[derive(Serialize, ToSchema)]
pub(crate) struct CompletionsOutput {
    /// The name of the shell that the script is for.
    shell: String,
    /// The text of the completion script.
    script: String,
}

pub(crate) fn run(
    arguments: &CompletionsArgs,
    mut command: Command,
    output: Printer,
) -> anyhow::Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut command, "warren", &mut script);
    let script = String::from_utf8(script)?;
    output.text(format_args!("{}", script.trim_end()));
    output.json(&CompletionsOutput { shell: arguments.shell.to_string(), script })
}
