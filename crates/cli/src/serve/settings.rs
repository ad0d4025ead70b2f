//! The settings of `warren serve`: from the command line, the environment and a TOML file.
//!
//! A setting is an option of `serve::ServeArgs`; it is declared there and nowhere else. Its name in
//! the file is the option's long name, its variable is `WARREN_` and that name in capitals, and its
//! type is that of the field. A secret is marked by `hide_env_values`, and never shown.
//!
//! # Invariants
//! - The command line wins over the environment, that over the file, and the file over defaults. A
//!   setting of a lower layer that conflicts with one of a higher layer is ignored.
//! - Which settings go together is checked on the final values, wherever they come from.
//! - No other command reads these variables.

mod config_file;
pub(crate) mod markdown_table;
mod print_config;
mod variables;

use std::any::TypeId;
use std::ffi::{OsStr, OsString};
use std::fmt::{self, Display};
use std::path::{Path, PathBuf};

use clap::builder::{BoolishValueParser, OsStr as ClapOsStr, Resettable, StyledStr};
use clap::error::{ContextKind, ContextValue};
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};

use super::ServeArgs;
use crate::output::Printer;
pub(crate) use markdown_table::SettingsTableArgs;
pub(crate) use variables::warn_of_unknown_variables;

/// What all variables of settings begin with.
const PREFIX: &str = "WARREN_";

// What tells where settings come from, and is none itself. A doc comment would become the help of
// the whole command.
#[derive(Args)]
#[command(next_help_heading = "Configuration")]
struct ConfigArgs {
    /// Read settings from this TOML file: the long names of these options, as in
    /// `listen = "0.0.0.0:4600"`. Options and environment variables come before it.
    #[arg(long, value_name = "FILE", env = "WARREN_CONFIG", hide_env_values = true)]
    config: Option<PathBuf>,
    /// Print all settings and where each comes from, as a TOML file without secrets; check them, and
    /// serve nothing.
    #[arg(long)]
    print_config: bool,
}

/// The options of `warren serve` as the command line and the environment give them.
pub(crate) struct LayeredServeArgs {
    options: ConfigArgs,
    given: ArgMatches,
}

/// A file or a value in it that is not as it must be.
#[derive(Debug, thiserror::Error)]
#[error("{}{}: {problem}", file.display(), line.map(|line| format!(":{line}")).unwrap_or_default())]
pub(crate) struct InvalidSettings {
    file: PathBuf,
    line: Option<usize>,
    problem: String,
}

/// All settings with their final values.
struct ResolvedSettings {
    config: Option<PathBuf>,
    settings: Vec<ResolvedSetting>,
}

/// One setting with its final value.
struct ResolvedSetting {
    arg: Arg,
    /// None if it is not set; several if it is a list.
    values: Vec<OsString>,
    origin: SettingOrigin,
}

/// Where a value comes from.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SettingOrigin {
    Default,
    File { line: usize },
    Environment,
    CommandLine,
}

/// What a setting's value is in TOML.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SettingKind {
    Boolean,
    Integer,
    /// A string, taken from the file's folder where it is relative.
    Path,
    String,
}

impl LayeredServeArgs {
    pub(crate) fn prints_config(&self) -> bool {
        self.options.print_config
    }

    pub(crate) fn print_config(&self, output: Printer) -> anyhow::Result<()> {
        let settings = self.settings()?;
        settings.print(output)?;
        settings.arguments().map(drop)
    }

    /// Adds the file, and checks what all layers make together.
    pub(crate) fn resolve(&self) -> anyhow::Result<ServeArgs> {
        self.settings()?.arguments()
    }

    fn settings(&self) -> anyhow::Result<ResolvedSettings> {
        let definition = definition();
        let config = self.options.config.clone();
        let entries =
            config.as_deref().map(|path| config_file::read(path, &definition)).transpose()?;
        let mut entries = entries.unwrap_or_default();
        let mut settings: Vec<ResolvedSetting> = definition
            .get_arguments()
            .map(|arg| {
                let entry = entries.remove(arg.get_id().as_str());
                self.command_line_or_env(arg)
                    .or(entry)
                    .unwrap_or_else(|| ResolvedSetting::default_of(arg))
            })
            .collect();
        for index in 0..settings.len() {
            let setting = &settings[index];
            let is_displaced = settings.iter().any(|other| {
                other.origin.rank() > setting.origin.rank()
                    && is_conflict(&definition, &other.arg, &setting.arg)
            });
            if is_displaced && setting.origin != SettingOrigin::Default {
                settings[index] = ResolvedSetting::default_of(&setting.arg);
            }
        }
        Ok(ResolvedSettings { config, settings })
    }

    /// The setting, if the command line or the environment has it.
    fn command_line_or_env(&self, arg: &Arg) -> Option<ResolvedSetting> {
        let id = arg.get_id().as_str();
        let origin = match self.given.value_source(id)? {
            ValueSource::CommandLine => SettingOrigin::CommandLine,
            ValueSource::EnvVariable => SettingOrigin::Environment,
            _ => return None,
        };
        let values = match SettingKind::from_arg(arg) {
            // As it was understood: a variable may say `yes`.
            SettingKind::Boolean => vec![self.given.get_flag(id).to_string().into()],
            _ => self.given.get_raw(id)?.map(OsStr::to_owned).collect(),
        };
        Some(ResolvedSetting { arg: arg.clone(), values, origin })
    }
}

impl ResolvedSettings {
    /// Parses the final values as if all had been written on the command line.
    fn arguments(&self) -> anyhow::Result<ServeArgs> {
        // A flag that is `false` is as good as absent: what conflicts with it may be there.
        let is_off = |one: &ResolvedSetting| {
            SettingKind::from_arg(&one.arg) == SettingKind::Boolean && one.values == ["false"]
        };
        let is_given =
            |one: &&ResolvedSetting| one.origin != SettingOrigin::Default && !is_off(one);
        let set = self.settings.iter().filter(is_given);
        let words = set.flat_map(|setting| {
            setting.values.iter().map(|value| {
                let mut word = OsString::from(format!("--{}=", setting.name()));
                word.push(value);
                word
            })
        });
        let words = std::iter::once(OsString::from("warren serve")).chain(words);
        let matches = definition().bin_name("warren serve").try_get_matches_from(words);
        let matches = matches.unwrap_or_else(|mut error| {
            let is_unseen =
                |origin| matches!(origin, SettingOrigin::File { .. } | SettingOrigin::Environment);
            if self.settings.iter().any(|setting| is_unseen(setting.origin)) {
                let tip = "`warren serve --print-config` tells where each setting comes from";
                let tips = ContextValue::StyledStrs(vec![StyledStr::from(tip)]);
                error.insert(ContextKind::Suggested, tips);
            }
            error.exit()
        });
        Ok(ServeArgs::from_arg_matches(&matches)?)
    }
}

impl ResolvedSetting {
    fn default_of(arg: &Arg) -> Self {
        let values = arg.get_default_values().iter().map(ClapOsStr::to_os_string).collect();
        Self { arg: arg.clone(), values, origin: SettingOrigin::Default }
    }

    fn name(&self) -> &str {
        name(&self.arg)
    }

    fn is_secret(&self) -> bool {
        self.arg.is_hide_env_values_set()
    }
}

impl SettingOrigin {
    /// What ranks higher wins.
    fn rank(self) -> u8 {
        match self {
            Self::Default => 0,
            Self::File { .. } => 1,
            Self::Environment => 2,
            Self::CommandLine => 3,
        }
    }
}

impl SettingKind {
    fn from_arg(arg: &Arg) -> Self {
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

impl Args for LayeredServeArgs {
    /// Everything on its own is checked when this is parsed, everything together only when all
    /// layers are there.
    fn augment_args(command: Command) -> Command {
        let command = ServeArgs::augment_args(command).mut_args(|arg| {
            let arg = as_value(arg);
            let arg = arg.conflicts_with(Resettable::Reset).requires(Resettable::Reset);
            with_variable(arg)
        });
        ConfigArgs::augment_args(command)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for LayeredServeArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        Ok(Self { options: ConfigArgs::from_arg_matches(matches)?, given: matches.clone() })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// Says so if it is a variable that has the wrong value: clap only names the option.
pub(crate) fn mention_variable(mut error: clap::Error) -> clap::Error {
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

/// The options as `serve` declares them, each with a value.
fn definition() -> Command {
    ServeArgs::augment_args(Command::new("serve")).mut_args(as_value)
}

/// Lets a flag be `false`, too, where a lower layer has set it, and gives a list in one word.
fn as_value(arg: Arg) -> Arg {
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
fn with_variable(arg: Arg) -> Arg {
    let variable = variable(name(&arg));
    let is_empty = std::env::var_os(&variable).is_some_and(|value| value.is_empty());
    if is_empty { arg } else { arg.env(ClapOsStr::from(variable)).hide_env_values(true) }
}

/// The setting's name: that of its option.
fn name(arg: &Arg) -> &str {
    arg.get_long().expect("every option of `warren serve` has a long name")
}

fn variable(name: &str) -> String {
    format!("{PREFIX}{}", name.to_uppercase().replace('-', "_"))
}

fn is_list(arg: &Arg) -> bool {
    matches!(arg.get_action(), ArgAction::Append)
}

fn is_conflict(definition: &Command, a: &Arg, b: &Arg) -> bool {
    let excludes = |a: &Arg, b: &Arg| {
        definition.get_arg_conflicts_with(a).iter().any(|other| other.get_id() == b.get_id())
    };
    excludes(a, b) || excludes(b, a)
}

impl InvalidSettings {
    fn new(file: &Path, line: Option<usize>, problem: impl Into<String>) -> Self {
        Self { file: file.to_owned(), line, problem: problem.into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_a_number_as_its_default_is_a_number_in_the_file() {
        for arg in definition().get_arguments() {
            let defaults = arg.get_default_values().iter();
            let mut texts = defaults.map(|value| value.to_string_lossy());
            if texts.any(|text| text.parse::<u64>().is_ok()) {
                assert!(
                    SettingKind::from_arg(arg) == SettingKind::Integer,
                    "add the type of {arg} to Kind::of"
                );
            }
        }
    }

    #[test]
    fn all_settings_can_be_told_apart_and_explain_themselves() {
        let definition = definition();
        let mut names: Vec<_> = definition.get_arguments().map(name).collect();
        names.extend(["config", "print-config"]);
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count, "{names:?}");
        for arg in definition.get_arguments() {
            assert!(arg.get_help().is_some(), "{arg} has no help");
        }
    }
}
