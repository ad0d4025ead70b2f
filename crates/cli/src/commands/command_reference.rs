//! Implements the hidden command `warren command-reference`: prints `docs/reference/commands.md`,
//! which is generated from the definitions of the commands.
//!
//! # Not here
//! - The manual pages → `man.rs`.
//! - The table of settings → `serve/settings/markdown_table.rs`.

use std::fmt;
use std::fmt::Write;

use clap::builder::{PossibleValue, StyledStr};
use clap::{Arg, Args, Command};
use serde::Serialize;
use utoipa::ToSchema;

use crate::args::argument_help::{ArgumentHelp, default_values, escape_markdown};
use crate::command_groups::GROUPS;
use crate::commands::man::without_help_command;
use crate::output::Printer;

/// Options that every command has. They are described once, at the top.
const COMMON_OPTIONS: &[&str] = &["help", "version", "json"];

const INTRODUCTION: &str = "\
# Commands

This page describes every command of `warren`. `cargo xtask docs` generates it from the same \
definitions as `--help`.

All commands take these options:

- `--json`: print JSON instead of text. \
[JSON output of the commands](formats/21-cli-json.md) describes it.
- `-h`, `--help`: print the help. `-h` prints a summary.
- `-V`, `--version`: print the version.

An error has a [code](formats/4-errors.md) and sets the exit status.
";

/// Print the reference of all commands as a Markdown document.
#[derive(Args)]
#[command(hide = true, after_help = "Example:\n  warren command-reference > commands.md")]
pub(crate) struct CommandReferenceArgs {}

/// The output of `warren command-reference`.
#[derive(Serialize, ToSchema)]
pub(crate) struct CommandReference {
    /// The reference of all commands, in Markdown.
    markdown: String,
}

pub(crate) fn run(
    _: &CommandReferenceArgs,
    command: Command,
    output: Printer,
) -> anyhow::Result<()> {
    let command = without_help_command(command);
    let mut markdown = INTRODUCTION.to_owned();
    for (heading, names) in GROUPS {
        writeln!(markdown, "\n## {heading}")?;
        for command in names.iter().filter_map(|name| command.find_subcommand(name)) {
            write_command(&mut markdown, command, "###")?;
        }
    }
    output.text(format_args!("{}", markdown.trim_end()));
    output.json(&CommandReference { markdown })
}

/// Writes the section of a command, and those of its subcommands.
fn write_command(text: &mut String, command: &Command, heading: &str) -> fmt::Result {
    let name = command.get_bin_name().unwrap_or_else(|| command.get_name());
    let about = command.get_long_about().or_else(|| command.get_about());
    let about = about.map(paragraphs).unwrap_or_default();
    writeln!(text, "\n{heading} {name}\n\n{}.", about.trim_end_matches('.'))?;
    if command.has_subcommands() {
        let mut visible = command.get_subcommands().filter(|below| !below.is_hide_set());
        return visible.try_for_each(|below| write_command(text, below, &format!("{heading}#")));
    }
    let usage = command.clone().render_usage().to_string();
    writeln!(text, "\n```text\n{}\n```", usage.trim_start_matches("Usage: ").trim_end())?;
    write_arguments(text, command)?;
    match command.get_after_long_help().or_else(|| command.get_after_help()) {
        Some(help) => write_examples(text, &help.to_string()),
        None => Ok(()),
    }
}

/// Describes the arguments, below the headings from the help. Positional arguments come first.
fn write_arguments(text: &mut String, command: &Command) -> fmt::Result {
    let is_described =
        |arg: &&Arg| !arg.is_hide_set() && !COMMON_OPTIONS.contains(&arg.get_id().as_str());
    let described: Vec<&Arg> = command.get_arguments().filter(is_described).collect();
    let (positional, options): (Vec<&Arg>, Vec<&Arg>) =
        described.into_iter().partition(|arg| arg.is_positional());
    let arguments = [positional, options].concat();
    let mut headings: Vec<Option<&str>> = Vec::new();
    for heading in arguments.iter().map(|arg| arg.get_help_heading()) {
        if !headings.contains(&heading) {
            headings.push(heading);
        }
    }
    for heading in headings {
        match heading {
            Some(heading) => writeln!(text, "\n{heading}:\n")?,
            None => writeln!(text)?,
        }
        for arg in arguments.iter().filter(|arg| arg.get_help_heading() == heading) {
            write_argument(text, arg)?;
        }
    }
    Ok(())
}

fn write_argument(text: &mut String, arg: &Arg) -> fmt::Result {
    let help = ArgumentHelp::from_arg(arg);
    let short = arg.get_short().map(|letter| format!("-{letter}, ")).unwrap_or_default();
    write!(text, "- `{short}{arg}`: {}", help.text)?;
    let takes_values = arg.get_num_args().is_some_and(|count| count.takes_values());
    let is_shown = takes_values && !arg.is_hide_default_value_set();
    let values = is_shown.then(|| default_values(arg, " ")).flatten();
    if let Some(default) = values.or(help.default_in_words) {
        write!(text, " Default: {default}.")?;
    }
    if let Some(variable) = arg.get_env() {
        write!(text, " Environment variable: `{}`.", variable.to_string_lossy())?;
    }
    writeln!(text)?;
    let values = arg.get_possible_values();
    let is_listed =
        |value: &&PossibleValue| !value.is_hide_set() && !arg.is_hide_possible_values_set();
    for value in values.iter().filter(is_listed) {
        let help = value.get_help().map(|help| format!(": {}", paragraphs(help)));
        writeln!(text, "  - `{}`{}", value.get_name(), help.unwrap_or_default())?;
    }
    Ok(())
}

/// Writes the end of a help text. Its indented lines become a block of code.
fn write_examples(text: &mut String, help: &str) -> fmt::Result {
    let mut is_code = false;
    writeln!(text)?;
    for line in help.lines().filter(|line| !line.is_empty()) {
        let example = line.strip_prefix("  ");
        match (is_code, example.is_some()) {
            (false, true) => writeln!(text, "\n```text")?,
            (true, false) => writeln!(text, "```\n")?,
            _ => {}
        }
        is_code = example.is_some();
        writeln!(text, "{}", example.map_or_else(|| escape_markdown(line), str::to_owned))?;
    }
    if is_code { writeln!(text, "```") } else { Ok(()) }
}

/// Returns the help in paragraphs, each on one line.
fn paragraphs(help: &StyledStr) -> String {
    let help = help.to_string();
    let line = |paragraph: &str| paragraph.split_whitespace().collect::<Vec<_>>().join(" ");
    let lines: Vec<String> =
        help.split("\n\n").map(|paragraph| escape_markdown(&line(paragraph))).collect();
    lines.join("\n\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_argument_has_its_default_its_variable_and_its_values() {
        let arg = Arg::new("color").long("color").short('c').value_name("WHEN");
        let arg = arg.help("Colors, as in <em>.").default_value("auto");
        let arg = arg.value_parser(["auto", "never"]).env("COLOR");
        let mut command = Command::new("paint").arg(arg);
        command.build();
        let mut text = String::new();
        write_arguments(&mut text, &command).unwrap();
        let expected = "\n- `-c, --color <WHEN>`: Colors, as in \\<em>. Default: `auto`. \
                        Environment variable: `COLOR`.\n  - `auto`\n  - `never`\n";
        assert_eq!(text, expected);
    }

    #[test]
    fn what_is_indented_is_code() {
        let check = |help: &str, expected: &str| {
            let mut text = String::new();
            write_examples(&mut text, help).unwrap();
            assert_eq!(text, expected);
        };
        check(
            "Examples:\n  a <b>\n  c\n\nExit status: 0 *",
            "\nExamples:\n\n```text\na <b>\nc\n```\n\nExit status: 0 \\*\n",
        );
        check("Example:\n  a", "\nExample:\n\n```text\na\n```\n");
    }
}
