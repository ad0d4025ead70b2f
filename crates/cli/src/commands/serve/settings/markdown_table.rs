//! `warren settings`, not listed: the table of `docs/operating/settings.md`.

use clap::{Arg, Args};
use serde_json::json;

use super::definition;
use super::definition::{SettingKind, is_list, name, variable};
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
    let values = rows.iter().map(|row| {
        json!({
            "setting": row.name,
            "variable": row.variable,
            "value": row.value,
            "default": row.default,
            "secret": row.is_secret,
            "help": row.help,
        })
    });
    output.json(&values.collect::<Vec<_>>())
}

struct SettingsTableRow {
    name: String,
    variable: String,
    value: String,
    default: Option<String>,
    is_secret: bool,
    help: String,
}

impl SettingsTableRow {
    fn new(arg: &Arg) -> Self {
        let help = arg.get_long_help().or_else(|| arg.get_help());
        let help = help.map(ToString::to_string).unwrap_or_default();
        // A default that depends on something is told in words, as clap would show it.
        let (help, told) = match help.strip_suffix(']').and_then(|h| h.rsplit_once(" [default: ")) {
            Some((help, told)) => (format!("{help}."), Some(told.to_owned())),
            None => (help.trim_end_matches('.').to_owned() + ".", None),
        };
        let defaults = arg.get_default_values();
        let written: Vec<_> = defaults.iter().map(|value| value.to_string_lossy()).collect();
        let written = (!written.is_empty()).then(|| format!("`{}`", written.join(", ")));
        let kind = SettingKind::from_arg(arg);
        Self {
            name: name(arg).to_owned(),
            variable: variable(name(arg)),
            value: if is_list(arg) { format!("list of {kind}s") } else { kind.to_string() },
            default: written.or(told),
            is_secret: arg.is_hide_env_values_set(),
            help: help.split_whitespace().collect::<Vec<_>>().join(" "),
        }
    }

    fn markdown(&self) -> String {
        let Self { name, variable, value, help, .. } = self;
        let default = self.default.as_deref().unwrap_or("none");
        let help = help.replace('|', "\\|").replace('*', "\\*").replace('<', "\\<");
        let secret = if self.is_secret { " A secret." } else { "" };
        format!("| `{name}` | `{variable}` | {value} | {default} | {help}{secret} |")
    }
}
