//! Implements the hidden command `warren settings`: prints the table of
//! `docs/operating/settings.md`.

use clap::{Arg, Args};
use serde::Serialize;
use utoipa::ToSchema;

use super::definition;
use super::definition::{SettingKind, is_list, name, variable};
use crate::args::argument_help::{ArgumentHelp, default_values};
use crate::output::Printer;

/// Print the settings of `warren serve` as a Markdown table.
#[derive(Args)]
#[command(hide = true, after_help = "Examples:\n  warren settings\n  warren settings --json")]
pub(crate) struct SettingsTableArgs {}

pub(crate) fn run(_: &SettingsTableArgs, output: Printer) -> anyhow::Result<()> {
    let definition = definition();
    let rows: Vec<SettingsTableRow> =
        definition.get_arguments().map(SettingsTableRow::new).collect();
    output.line(format_args!("| Setting | Variable | Value | Default | What it does |"));
    output.line(format_args!("|---|---|---|---|---|"));
    for row in &rows {
        output.line(format_args!("{}", row.markdown()));
    }
    output.json(&rows)
}

/// A setting in the output of `warren settings`.
#[derive(Serialize, ToSchema)]
pub(crate) struct SettingsTableRow {
    /// The name of the setting in the settings file, and of its command-line option.
    name: String,
    /// The name of the environment variable for the setting.
    variable: String,
    /// The type of the value, in words, such as `integer` or `list of strings`.
    r#type: String,
    /// The default of the setting, as Markdown; null if it has none.
    default: Option<String>,
    /// Whether the value is a secret.
    secret: bool,
    /// The description of the setting, as Markdown.
    help: String,
}

impl SettingsTableRow {
    fn new(arg: &Arg) -> Self {
        let help = ArgumentHelp::from_arg(arg);
        let kind = SettingKind::from_arg(arg);
        Self {
            name: name(arg).to_owned(),
            variable: variable(name(arg)),
            r#type: if is_list(arg) { format!("list of {kind}s") } else { kind.to_string() },
            default: default_values(arg, ", ").or(help.default_in_words),
            secret: arg.is_hide_env_values_set(),
            help: help.text,
        }
    }

    fn markdown(&self) -> String {
        let Self { name, variable, r#type: kind, help, .. } = self;
        let default = self.default.as_deref().unwrap_or("none");
        let help = help.replace('|', "\\|");
        let secret = if self.secret { " A secret." } else { "" };
        format!("| `{name}` | `{variable}` | {kind} | {default} | {help}{secret} |")
    }
}
