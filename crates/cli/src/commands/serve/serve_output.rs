//! What `warren serve` prints with `--json`.

use std::collections::BTreeMap;

use serde::Serialize;
use utoipa::ToSchema;

/// The output of `warren serve`.
#[derive(Serialize, ToSchema)]
#[serde(untagged)]
pub(crate) enum ServeOutput {
    /// The server answers from now on.
    Start(ServerStart),
    /// With `--print-config`: the settings, and nothing is served.
    Config(PrintedConfig),
}

/// Where a server that has started answers, and with what.
#[derive(Serialize, ToSchema)]
pub(crate) struct ServerStart {
    /// The URL of the server.
    pub(crate) address: String,
    /// The URL for Actual Budget's apps; null without `--actual-budget`.
    pub(crate) actual_budget_address: Option<String>,
    /// The path of the data directory.
    pub(crate) data_dir: String,
}

/// The final settings.
#[derive(Serialize, ToSchema)]
pub(crate) struct PrintedConfig {
    /// The path of the settings file; null if none was given.
    pub(crate) config_file: Option<String>,
    /// All settings by their names.
    pub(crate) settings: BTreeMap<String, PrintedSetting>,
}

/// A setting with its final value.
#[derive(Serialize, ToSchema)]
pub(crate) struct PrintedSetting {
    /// The value; null if there is none, or if it is a secret.
    pub(crate) value: Option<SettingValue>,
    /// Whether the value is a secret.
    pub(crate) secret: bool,
    /// Which layer the value comes from.
    pub(crate) source: SettingSource,
    /// Where the value is: file and line, variable or option; null for a default.
    pub(crate) location: Option<String>,
}

/// A value of a setting.
#[derive(Serialize, ToSchema)]
#[serde(untagged)]
pub(crate) enum SettingValue {
    /// True or false.
    Boolean(bool),
    /// A whole number.
    Integer(i64),
    /// A text, a path, or a number above 2⁶³ − 1.
    Text(String),
    /// The values of a list.
    List(Vec<String>),
}

/// Which layer of the settings a value comes from.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum SettingSource {
    /// It is the default.
    Default,
    /// The settings file.
    File,
    /// A variable of the environment.
    Environment,
    /// An option of the command line.
    CommandLine,
}
