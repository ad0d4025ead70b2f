//! Reads settings from a TOML file.
//!
//! # Invariants
//! - Messages never show the value of a secret setting, nor a line of the file.

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::Path;

use anyhow::Context;
use clap::builder::Resettable;
use clap::{Arg, Command};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::definition::{SettingKind, is_list, name};
use super::resolved::{InvalidSettings, ResolvedSetting, SettingOrigin};

/// The minimum similarity, from 0 to 1, at which a setting is suggested for an unknown name: clap's
/// own measure for options.
const LIKENESS_MIN: f64 = 0.7;

/// Reads the settings of a file, by the ids of their options.
pub(super) fn read(
    path: &Path,
    definition: &Command,
) -> anyhow::Result<HashMap<String, ResolvedSetting>> {
    let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
    let line_of = |at: usize| text[..at].matches('\n').count() + 1;
    let table = DeTable::parse(&text).map_err(|error| {
        let line = error.span().map(|span| line_of(span.start));
        InvalidSettings::new(path, line, error.message())
    })?;
    let mut entries: Vec<_> = table.get_ref().iter().collect();
    entries.sort_by_key(|(key, _)| key.span().start);
    let mut settings = HashMap::new();
    for (key, value) in entries {
        let line = line_of(key.span().start);
        let invalid = |problem: String| InvalidSettings::new(path, Some(line), problem);
        let arg = find(definition, key.get_ref()).map_err(invalid)?;
        let folder = path.parent().unwrap_or(Path::new(""));
        let values = values(arg, value, folder)
            .map_err(|problem| invalid(format!("`{}` {problem}", key.get_ref())))?;
        let setting =
            ResolvedSetting { arg: arg.clone(), values, origin: SettingOrigin::File { line } };
        settings.insert(arg.get_id().to_string(), setting);
    }
    Ok(settings)
}

fn find<'a>(definition: &'a Command, key: &str) -> Result<&'a Arg, String> {
    if let Some(arg) = definition.get_arguments().find(|arg| name(arg) == key) {
        return Ok(arg);
    }
    let hint = match nearest(definition, key) {
        Some(arg) => format!("; did you mean `{}`?", name(arg)),
        None => "; run `warren serve --help` to list the settings".to_owned(),
    };
    Err(format!("unknown setting `{key}`{hint}"))
}

/// Returns the setting that was probably meant by an unknown name.
pub(super) fn nearest<'a>(definition: &'a Command, key: &str) -> Option<&'a Arg> {
    let key = key.replace('_', "-");
    let alike = |arg: &&Arg| strsim::jaro_winkler(name(arg), &key);
    let nearest = definition.get_arguments().max_by(|a, b| alike(a).total_cmp(&alike(b)));
    nearest.filter(|arg| alike(arg) >= LIKENESS_MIN)
}

/// Returns the values in the form that the command line has.
fn values(arg: &Arg, value: &Spanned<DeValue<'_>>, folder: &Path) -> Result<Vec<OsString>, String> {
    let one = |value: &DeValue<'_>| {
        let word = word(arg, value)?;
        check(arg, &word)?;
        let is_path = SettingKind::from_arg(arg) == SettingKind::Path;
        Ok(if is_path { folder.join(word).into() } else { OsString::from(word) })
    };
    match value.get_ref() {
        DeValue::Array(values) if is_list(arg) => {
            values.iter().map(|value| one(value.get_ref())).collect()
        }
        _ if is_list(arg) => Err(format!("must be a list, as in `{} = [\"…\"]`", name(arg))),
        value => Ok(vec![one(value)?]),
    }
}

fn word(arg: &Arg, value: &DeValue<'_>) -> Result<String, String> {
    match (SettingKind::from_arg(arg), value) {
        (SettingKind::Boolean, DeValue::Boolean(value)) => Ok(value.to_string()),
        (SettingKind::Integer, DeValue::Integer(value)) => {
            let number = i128::from_str_radix(value.as_str(), value.radix());
            Ok(number.map_err(|error| error.to_string())?.to_string())
        }
        (SettingKind::Path | SettingKind::String, DeValue::String(value)) => Ok(value.to_string()),
        (SettingKind::Boolean, _) => Err("must be true or false".to_owned()),
        (SettingKind::Integer, _) => Err("must be an integer".to_owned()),
        (SettingKind::Path, _) => Err("must be a path in quotation marks".to_owned()),
        (SettingKind::String, _) => Err("must be a string in quotation marks".to_owned()),
    }
}

/// Checks the value with the option's own parser.
fn check(arg: &Arg, word: &str) -> Result<(), String> {
    let alone = arg.clone().conflicts_with(Resettable::Reset).requires(Resettable::Reset);
    let command = Command::new("serve").no_binary_name(true).arg(alone);
    let Err(error) = command.try_get_matches_from([format!("--{}={word}", name(arg))]) else {
        return Ok(());
    };
    let shown = if arg.is_hide_env_values_set() { "its value" } else { word };
    let reason = std::error::Error::source(&error).map(|reason| format!(": {reason}"));
    Err(format!("cannot be {shown:?}{}", reason.unwrap_or_default()))
}
