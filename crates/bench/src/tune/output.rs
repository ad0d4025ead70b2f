//! Defines all output of `warren tune --json` (`docs/reference/formats/14-tune.md`).

use serde::Serialize;
use utoipa::ToSchema;

use super::emit::{PragmaRecipe, TargetFramework};
use super::result::TuneReport;
use super::settings::PragmaValue;

/// The output of `warren tune`, in one of these shapes.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(untagged)]
pub enum TuneOutput {
    /// The output without `--emit`: the report of the measurements.
    Report(Box<TuneReport>),
    /// The output with `--emit`: settings as code.
    Settings(SettingsSnippet),
    /// The output with `--emit --check`: code that prints the settings of a live connection.
    Check(CheckSnippet),
}

/// Settings as code for a framework.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct SettingsSnippet {
    /// The name of the framework, as `--emit` accepts it.
    pub framework: &'static str,
    /// The code that applies the settings.
    pub code: String,
    /// The settings that the code applies to each connection, in this order.
    pub connection_settings: Vec<PragmaValue>,
    /// The settings that the file stores; they apply if set before its first table, or by VACUUM.
    pub file_settings: Vec<PragmaValue>,
}

/// Code for a framework that prints the settings of a live connection.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct CheckSnippet {
    /// The name of the framework, as `--emit` accepts it.
    pub framework: &'static str,
    /// The code that prints the settings, as input for `warren doctor --settings`.
    pub code: String,
}

impl SettingsSnippet {
    /// Writes the settings for the framework.
    pub fn new(framework: &TargetFramework, recipe: &PragmaRecipe) -> Self {
        Self {
            framework: framework.name,
            code: framework.write(recipe),
            connection_settings: PragmaValue::list(&recipe.connection_settings),
            file_settings: PragmaValue::list(&recipe.file_settings),
        }
    }
}

impl CheckSnippet {
    /// Writes the code for the framework.
    pub fn new(framework: &TargetFramework) -> Self {
        Self { framework: framework.name, code: framework.check() }
    }
}
