//! Defines the JSON output of `warren serve`.

use std::collections::BTreeMap;

use serde::Serialize;
use utoipa::ToSchema;

/// The output of `warren serve`.
#[derive(Serialize, ToSchema)]
#[serde(untagged)]
pub(crate) enum ServeOutput {
    /// The addresses of a server that has started.
    Start(ServerStart),
    /// The final settings, with `--print-config`.
    Config(PrintedConfig),
}

/// The addresses and the data directory of a server that has started.
#[derive(Serialize, ToSchema)]
pub(crate) struct ServerStart {
    /// The URL of the server.
    pub(crate) address: String,
    /// The URL for Actual Budget apps; null without `--actual-budget`.
    pub(crate) actual_budget_address: Option<String>,
    /// The address at which the server receives mail by LMTP; null without `--lmtp`.
    pub(crate) lmtp_address: Option<String>,
    /// The path of the data directory.
    pub(crate) data_dir: String,
}

/// The output of `warren serve --print-config`: the final settings.
#[derive(Serialize, ToSchema)]
pub(crate) struct PrintedConfig {
    /// The path of the settings file; null if none was given.
    pub(crate) config_file: Option<String>,
    /// The final values of all settings, by name.
    pub(crate) settings: BTreeMap<String, PrintedSetting>,
}

/// A setting with its final value.
#[derive(Serialize, ToSchema)]
pub(crate) struct PrintedSetting {
    /// The value of the setting; null if it has none, or if the value is a secret.
    pub(crate) value: Option<SettingValue>,
    /// Whether the value is a secret.
    pub(crate) secret: bool,
    /// The source of the value.
    pub(crate) source: SettingSource,
    /// The location of the value: a file and line, a variable or an option; null for a default.
    pub(crate) location: Option<String>,
}

/// A value of a setting.
#[derive(Serialize, ToSchema)]
#[serde(untagged)]
pub(crate) enum SettingValue {
    /// A boolean, true or false.
    Boolean(bool),
    /// A whole number.
    Integer(i64),
    /// A text, a path, or a number above 2⁶³ − 1.
    Text(String),
    /// A list of strings.
    List(Vec<String>),
}

/// The source of a setting's value.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum SettingSource {
    /// The default of the setting.
    Default,
    /// The settings file.
    File,
    /// An environment variable.
    Environment,
    /// A command-line option.
    CommandLine,
}
