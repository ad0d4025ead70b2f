//! What settings there are: the arguments of `warren serve`, and what a file and variables call
//! them.

use std::any::TypeId;
use std::fmt;
use std::fmt::Display;
use std::path::PathBuf;

use clap::builder::{BoolishValueParser, OsStr as ClapOsStr};
use clap::{Arg, ArgAction, Args, Command};

use crate::commands::serve::serve_args::ServeArgs;

/// What all variables of settings begin with.
pub(crate) const PREFIX: &str = "WARREN_";

/// The options as `serve` declares them, each with a value.
pub(crate) fn definition() -> Command {
    ServeArgs::augment_args(Command::new("serve")).mut_args(as_value)
}

/// The setting's name: that of its option.
pub(crate) fn name(arg: &Arg) -> &str {
    arg.get_long().expect("every option of `warren serve` has a long name")
}

pub(crate) fn variable(name: &str) -> String {
    format!("{PREFIX}{}", name.to_uppercase().replace('-', "_"))
}

pub(crate) fn is_list(arg: &Arg) -> bool {
    matches!(arg.get_action(), ArgAction::Append)
}

/// Lets a flag be `false`, too, where a lower layer has set it, and gives a list in one word.
pub(crate) fn as_value(arg: Arg) -> Arg {
    match arg.get_action() {
        ArgAction::SetTrue => arg
            .action(ArgAction::Set)
            .num_args(0..=1)
            .require_equals(true)
            .default_value("false")
            .default_missing_value("true")
            .value_parser(BoolishValueParser::new())
            .value_name("true|false")
            .hide_default_value(true)
            .hide_possible_values(true),
        ArgAction::Append => arg.value_delimiter(','),
        _ => arg,
    }
}

/// Adds the variable. An empty one counts as unset, as it is what a container or a unit makes of a
/// variable of its own that is not set.
pub(crate) fn with_variable(arg: Arg) -> Arg {
    let variable = variable(name(&arg));
    let is_empty = std::env::var_os(&variable).is_some_and(|value| value.is_empty());
    if is_empty { arg } else { arg.env(ClapOsStr::from(variable)).hide_env_values(true) }
}

/// What a setting's value is in TOML.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum SettingKind {
    Boolean,
    Integer,
    /// A string, taken from the file's folder where it is relative.
    Path,
    String,
}

impl SettingKind {
    pub(crate) fn from_arg(arg: &Arg) -> Self {
        let integers = [
            TypeId::of::<u16>(),
            TypeId::of::<u32>(),
            TypeId::of::<u64>(),
            TypeId::of::<usize>(),
            TypeId::of::<i64>(),
        ];
        match arg.get_value_parser().type_id() {
            of if of == TypeId::of::<bool>() => Self::Boolean,
            of if of == TypeId::of::<PathBuf>() => Self::Path,
            of if integers.iter().any(|integer| of == *integer) => Self::Integer,
            _ => Self::String,
        }
    }
}

impl Display for SettingKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Boolean => "true or false",
            Self::Integer => "integer",
            Self::Path => "path",
            Self::String => "string",
        })
    }
}
