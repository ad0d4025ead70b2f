//! Reads the settings of `warren serve` from the command line, the environment and a TOML file.
//!
//! A setting is an option of `serve::ServeArgs`; it is declared only there. Its name in the file is
//! the option's long name, its variable is `WARREN_` and that name in capitals, and its type is
//! that of the field. `hide_env_values` marks a secret, which is never shown.
//!
//! # Invariants
//! - The command line wins over the environment, the environment over the file, and the file over
//!   defaults. A setting of a lower layer that conflicts with one of a higher layer is ignored.
//! - Conflicts and requirements between settings are checked on the final values, regardless of
//!   their source.
//! - No other command reads these variables.

mod config_file;
pub(crate) mod definition;
pub(crate) mod markdown_table;
mod print_config;
pub(crate) mod resolved;
mod variables;

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use clap::builder::{Resettable, StyledStr};
use clap::error::{ContextKind, ContextValue};
use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Args, Command, FromArgMatches};

use self::definition::{SettingKind, as_value, definition, with_variable};
pub(crate) use self::markdown_table::SettingsTableArgs;
use self::resolved::{ResolvedSetting, ResolvedSettings, SettingOrigin};
pub(crate) use self::variables::warn_of_unknown_variables;
use super::serve_args::ServeArgs;
use crate::output::Printer;

// These options control where settings come from, and are not settings themselves. A doc comment
// would become the help of the whole command.
#[derive(Args)]
#[command(next_help_heading = "Configuration")]
struct ConfigArgs {
    /// Read settings from this TOML file. Keys are the long option names, as in `listen =
    /// "0.0.0.0:4600"`. Options and environment variables take precedence.
    #[arg(long, value_name = "FILE", env = "WARREN_CONFIG", hide_env_values = true)]
    config: Option<PathBuf>,
    /// Check all settings, print them as TOML with their sources (without secrets), and exit.
    #[arg(long)]
    print_config: bool,
}

/// The options of `warren serve` from the command line and the environment.
pub(crate) struct LayeredServeArgs {
    options: ConfigArgs,
    given: ArgMatches,
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

    /// Adds the settings of the file, and checks all layers together.
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

    /// Returns the setting, if the command line or the environment contains it.
    fn command_line_or_env(&self, arg: &Arg) -> Option<ResolvedSetting> {
        let id = arg.get_id().as_str();
        let origin = match self.given.value_source(id)? {
            ValueSource::CommandLine => SettingOrigin::CommandLine,
            ValueSource::EnvVariable => SettingOrigin::Environment,
            _ => return None,
        };
        let values = match SettingKind::from_arg(arg) {
            // This is the parsed value: a variable may contain `yes`.
            SettingKind::Boolean => vec![self.given.get_flag(id).to_string().into()],
            _ => self.given.get_raw(id)?.map(OsStr::to_owned).collect(),
        };
        Some(ResolvedSetting { arg: arg.clone(), values, origin })
    }
}

impl ResolvedSettings {
    /// Parses the final values as if all had been written on the command line.
    fn arguments(&self) -> anyhow::Result<ServeArgs> {
        // A flag that is `false` counts as absent: settings that conflict with it are allowed.
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
                let tip = "`warren serve --print-config` shows where each setting comes from";
                let tips = ContextValue::StyledStrs(vec![StyledStr::from(tip)]);
                error.insert(ContextKind::Suggested, tips);
            }
            error.exit()
        });
        Ok(ServeArgs::from_arg_matches(&matches)?)
    }
}

impl Args for LayeredServeArgs {
    /// Each option is checked when it is parsed, but conflicts and requirements only when all
    /// layers are known.
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

fn is_conflict(definition: &Command, a: &Arg, b: &Arg) -> bool {
    let excludes = |a: &Arg, b: &Arg| {
        definition.get_arg_conflicts_with(a).iter().any(|other| other.get_id() == b.get_id())
    };
    excludes(a, b) || excludes(b, a)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::serve::settings::definition::name;

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
