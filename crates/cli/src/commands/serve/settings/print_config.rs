//! Implements `warren serve --print-config`: prints the final settings as a file for `--config`.

use toml::Value;

use super::definition::{SettingKind, is_list, variable};
use super::resolved::{ResolvedSetting, ResolvedSettings, SettingOrigin};
use crate::commands::serve::serve_output::{
    PrintedConfig, PrintedSetting, ServeOutput, SettingSource, SettingValue,
};
use crate::output::Printer;

impl ResolvedSettings {
    pub(super) fn print(&self, output: Printer) -> anyhow::Result<()> {
        for setting in &self.settings {
            let (assignment, origin) = (setting.assignment(), self.origin_text(setting));
            output.line(format_args!("{assignment:<44} # {origin}"));
        }
        let settings = self.settings.iter().map(|setting| {
            let is_default = setting.origin == SettingOrigin::Default;
            let printed = PrintedSetting {
                value: setting.shown().map(to_setting_value),
                secret: setting.is_secret(),
                source: setting.origin.source(),
                location: (!is_default).then(|| self.origin_text(setting)),
            };
            (setting.name().to_owned(), printed)
        });
        let settings = settings.collect();
        let config_file = self.config.as_ref().map(|path| path.display().to_string());
        output.json(&ServeOutput::Config(PrintedConfig { config_file, settings }))
    }

    /// Returns the source of the value, for people.
    fn origin_text(&self, setting: &ResolvedSetting) -> String {
        match (setting.origin, &self.config) {
            (SettingOrigin::File { line }, Some(path)) => format!("{}:{line}", path.display()),
            (SettingOrigin::Environment, _) => variable(setting.name()),
            (SettingOrigin::CommandLine, _) => format!("--{}", setting.name()),
            _ => "default".to_owned(),
        }
    }
}

impl SettingOrigin {
    fn source(self) -> SettingSource {
        match self {
            Self::Default => SettingSource::Default,
            Self::File { .. } => SettingSource::File,
            Self::Environment => SettingSource::Environment,
            Self::CommandLine => SettingSource::CommandLine,
        }
    }
}

/// Converts a value for programs: lists are lists of texts.
fn to_setting_value(value: Value) -> SettingValue {
    match value {
        Value::Boolean(value) => SettingValue::Boolean(value),
        Value::Integer(value) => SettingValue::Integer(value),
        Value::Array(values) => SettingValue::List(values.into_iter().map(to_text).collect()),
        value => SettingValue::Text(to_text(value)),
    }
}

fn to_text(value: Value) -> String {
    match value {
        Value::String(text) => text,
        other => other.to_string(),
    }
}

impl ResolvedSetting {
    /// Returns a line of TOML; a comment if there is no value, or if it is a secret.
    fn assignment(&self) -> String {
        let name = self.name();
        match self.shown() {
            Some(value) => format!("{name} = {value}"),
            None if self.values.is_empty() => format!("# {name}: not set"),
            None => format!("# {name}: secret, not shown"),
        }
    }

    /// Returns the value, if there is one and it is not a secret.
    fn shown(&self) -> Option<Value> {
        let is_unset = self.values.is_empty() && !is_list(&self.arg);
        if is_unset || self.is_secret() {
            return None;
        }
        let mut values = self.values.iter().map(|value| self.to_toml(&value.to_string_lossy()));
        if is_list(&self.arg) { Some(Value::Array(values.collect())) } else { values.next() }
    }

    fn to_toml(&self, word: &str) -> Value {
        let text = || Value::String(word.to_owned());
        match SettingKind::from_arg(&self.arg) {
            SettingKind::Boolean => Value::Boolean(word == "true"),
            // A number that is too large for TOML's integers is printed as text.
            SettingKind::Integer => word.parse().map_or_else(|_| text(), Value::Integer),
            SettingKind::Path | SettingKind::String => text(),
        }
    }
}
