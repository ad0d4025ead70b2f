//! Reads the settings of a program's connection for `--settings`, and finds the syntax with which
//! the program's framework writes a setting.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use anyhow::{Context, ensure};
#[cfg(feature = "bench")]
use bench::tune::emit::TargetFramework;
use doctor::{ConnectionSettings, SETTINGS_BYTES_MAX, SettingLine};

use super::doctor_args::DoctorArgs;
use crate::output::CommandError;

pub(super) fn from_args(arguments: &DoctorArgs) -> anyhow::Result<Option<ConnectionSettings>> {
    let Some(path) = arguments.settings.as_deref() else { return Ok(None) };
    let is_one = matches!(&arguments.files[..], [file] if !file.is_dir());
    let message = "--settings is for one connection: pass exactly one file, the one it has open";
    ensure!(is_one, CommandError::usage(message));
    let mut settings = ConnectionSettings::parse(&read(path)?)?;
    settings.line = line(&settings);
    Ok(Some(settings))
}

/// Returns the syntax with which the program's framework writes a setting.
#[cfg(feature = "bench")]
fn line(settings: &ConnectionSettings) -> Option<SettingLine> {
    settings.framework().and_then(TargetFramework::by_name).map(|framework| framework.line)
}

/// Returns nothing in a build without `warren tune`, which knows no frameworks; SQL is used then.
#[cfg(not(feature = "bench"))]
fn line(_: &ConnectionSettings) -> Option<SettingLine> {
    None
}

/// Reads the file, but at most one byte more than valid settings can have.
fn read(path: &Path) -> anyhow::Result<Vec<u8>> {
    let limit = SETTINGS_BYTES_MAX.saturating_add(1).try_into().unwrap_or(u64::MAX);
    let mut bytes = Vec::new();
    let done = if path == Path::new("-") {
        io::stdin().lock().take(limit).read_to_end(&mut bytes)
    } else {
        File::open(path).and_then(|file| file.take(limit).read_to_end(&mut bytes))
    };
    done.with_context(|| path.display().to_string())?;
    Ok(bytes)
}
