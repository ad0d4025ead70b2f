//! Arguments that are not understood, and the help that they may ask for.

use std::process::ExitCode;

use clap::Command;
use clap::builder::{StyledStr, Styles};
use clap::error::{ContextKind, ContextValue, ErrorKind};

use crate::commands::serve::settings::definition::variable;
use crate::output::escaped_text::EscapedText;
use crate::output::print_error;

/// Prints why the arguments are not understood, or the help that they ask for; `command` is what
/// they were for.
pub(crate) fn report_usage(error: &clap::Error, command: Command) -> ExitCode {
    use ErrorKind::{DisplayHelp, DisplayHelpOnMissingArgumentOrSubcommand, DisplayVersion};
    let status = ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(u8::MAX));
    let kind = error.kind();
    if [DisplayHelp, DisplayVersion, DisplayHelpOnMissingArgumentOrSubcommand].contains(&kind) {
        // Nothing of it is from the arguments. Where the output is closed, nobody reads it.
        drop(error.print());
        return status;
    }
    // An error repeats arguments, whose escape sequences could not be told from those of its own
    // colours. So it is made again without colours.
    let command = command.styles(Styles::plain());
    if let Err(plain) = command.try_get_matches_from(std::env::args_os()) {
        let plain = mention_variable(plain);
        print_error(&EscapedText::text(plain.render().ansi().to_string().trim_end()));
    }
    status
}

/// Says so if it is a variable that has the wrong value: clap only names the option.
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
        let tip = StyledStr::from(format!("the value is that of the variable {variable}"));
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip]));
    }
    error
}
