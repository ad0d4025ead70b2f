//! Everything that `warren tune` prints with `--json` (`docs/reference/formats/14-tune.md`).

use serde::Serialize;
use utoipa::ToSchema;

use super::emit::{PragmaRecipe, TargetFramework};
use super::result::TuneReport;
use super::settings::PragmaValue;

/// What `warren tune` prints: one of these shapes.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(untagged)]
pub enum TuneOutput {
    /// Without `--emit`: what was measured.
    Report(Box<TuneReport>),
    /// `--emit`: settings as code.
    Settings(SettingsSnippet),
    /// `--emit --check`: code that prints the settings of a live connection.
    Check(CheckSnippet),
}

/// Settings as code for a framework.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct SettingsSnippet {
    /// The framework, as `--emit` calls it.
    pub framework: &'static str,
    /// The code.
    pub code: String,
    /// What the code sets on each connection, in this order.
    pub connection_settings: Vec<PragmaValue>,
    /// What the file keeps: it takes them before its first table, or by VACUUM.
    pub file_settings: Vec<PragmaValue>,
}

/// Code for a framework that prints the settings of a live connection.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct CheckSnippet {
    /// The framework, as `--emit` calls it.
    pub framework: &'static str,
    /// The code; what it prints is for `warren doctor --settings`.
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
