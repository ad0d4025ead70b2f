//! Defines which settings exist: the arguments of `warren serve`, and their names in files and
//! variables.

use std::any::TypeId;
use std::fmt;
use std::fmt::Display;
use std::path::PathBuf;

use clap::builder::{BoolishValueParser, OsStr as ClapOsStr};
use clap::{Arg, ArgAction, Args, Command};

use crate::commands::serve::serve_args::ServeArgs;

/// The prefix of the variables of all settings.
pub(crate) const PREFIX: &str = "WARREN_";

/// Returns the options that `serve` declares, each with a value.
pub(crate) fn definition() -> Command {
    ServeArgs::augment_args(Command::new("serve")).mut_args(as_value)
}

/// Returns the name of a setting, which is that of its option.
pub(crate) fn name(arg: &Arg) -> &str {
    arg.get_long().expect("every option of `warren serve` has a long name")
}

pub(crate) fn variable(name: &str) -> String {
    format!("{PREFIX}{}", name.to_uppercase().replace('-', "_"))
}

pub(crate) fn is_list(arg: &Arg) -> bool {
    matches!(arg.get_action(), ArgAction::Append)
}

/// Allows `false` for a flag, because a lower layer may have set it, and a list in one word.
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

/// Adds the variable. An empty one counts as unset, because containers and units set it to an empty
/// text if a variable of their own is not set.
pub(crate) fn with_variable(arg: Arg) -> Arg {
    let variable = variable(name(&arg));
    let is_empty = std::env::var_os(&variable).is_some_and(|value| value.is_empty());
    if is_empty { arg } else { arg.env(ClapOsStr::from(variable)).hide_env_values(true) }
}

/// The type of a setting's value in TOML.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum SettingKind {
    Boolean,
    Integer,
    /// A string; a relative path is relative to the file's directory.
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
