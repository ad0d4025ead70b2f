//! Reports invalid arguments, and prints the help that the arguments request.

use std::process::ExitCode;

use clap::Command;
use clap::builder::{StyledStr, Styles};
use clap::error::{ContextKind, ContextValue, ErrorKind};

use protocol::ErrorCode;

use super::exit_status::STATUS_USAGE;
use super::{ErrorDetails, EscapedText, Printer, print_error};
use crate::commands::serve::settings::definition::variable;

/// Prints why the arguments are invalid, or the help that they request; `command` is the definition
/// that parsed them.
pub(crate) fn report_usage(error: &clap::Error, command: Command) -> ExitCode {
    use ErrorKind::{DisplayHelp, DisplayHelpOnMissingArgumentOrSubcommand, DisplayVersion};
    let is_help = [DisplayHelp, DisplayVersion].contains(&error.kind());
    let is_command_missing = error.kind() == DisplayHelpOnMissingArgumentOrSubcommand;
    if !is_help && asks_for_json() {
        let message = if is_command_missing {
            "a command or an argument is missing".to_owned()
        } else {
            first_paragraph(&render_plainly(command))
        };
        let hint = Some("run the command with --help to see its usage".to_owned());
        let code = ErrorCode::InvalidArgument;
        Printer { json: true }.fail(ErrorDetails { code, message, hint });
    } else if is_help || is_command_missing {
        // This contains nothing from the arguments. If the output is closed, it is lost.
        drop(error.print());
    } else {
        print_error(&EscapedText::text(render_plainly(command).trim_end()));
    }
    ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(STATUS_USAGE))
}

/// Returns whether `--json` is present, as far as this is clear in invalid arguments.
fn asks_for_json() -> bool {
    std::env::args_os().take_while(|word| word != "--").any(|word| word == "--json")
}

/// Returns the error without colors: it repeats arguments, whose escape sequences would be
/// indistinguishable from those of its own colors.
fn render_plainly(command: Command) -> String {
    let command = command.styles(Styles::plain());
    let parsed = command.try_get_matches_from(std::env::args_os());
    parsed
        .err()
        .map_or_else(String::new, |plain| mention_variable(plain).render().ansi().to_string())
}

/// Returns the first paragraph of an error, without the usage that clap adds.
fn first_paragraph(error: &str) -> String {
    let paragraph = error.split("\n\n").next().unwrap_or_default();
    let words: Vec<_> = paragraph.split_whitespace().collect();
    words.join(" ").trim_start_matches("error: ").to_owned()
}

/// Mentions the variable if the wrong value comes from one: clap only names the option.
fn mention_variable(mut error: clap::Error) -> clap::Error {
    let (Some(ContextValue::String(arg)), Some(ContextValue::String(value))) =
        (error.get(ContextKind::InvalidArg), error.get(ContextKind::InvalidValue))
    else {
        return error;
    };
    let option = arg.split([' ', '[', '=']).next().unwrap_or_default();
    let variable = variable(option.trim_start_matches('-'));
    let is_its_value = std::env::var_os(&variable)
        .is_some_and(|text| text.to_string_lossy().split(',').any(|part| part == value));
    let is_on_command_line = std::env::args_os().any(|word| {
        let word = word.to_string_lossy();
        word == option || word.starts_with(&format!("{option}="))
    });
    if is_its_value && !is_on_command_line {
        let tip =
            StyledStr::from(format!("the value comes from the environment variable {variable}"));
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip]));
    }
    error
}
