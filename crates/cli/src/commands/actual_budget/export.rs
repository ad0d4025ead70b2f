//! Implements `warren actual-budget export`: writes budgets as files that Actual's apps import.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use actual::export::{ExportError, ExportedBudget};
use actual::inventory::StoredBudget;
use anyhow::Context;
use clap::Args;
use doctor::counted;
use indicatif::DecimalBytes;
use protocol::ErrorCode;
use serde::Serialize;
use tokio::runtime::Handle;
use utoipa::ToSchema;

use super::budget_account::{BudgetAccountArgs, inventory};
use crate::args::password::first_line;
use crate::output::{CommandError, Printer};

/// The size limit of a name from a budget: a file's name has at most 255 bytes, and the id and the
/// extension follow.
const STEM_BYTES_MAX: usize = 180;

/// Export budgets as ZIP archives for "Import file" in Actual Budget.
///
/// Each archive contains everything the apps have synced, and is not encrypted. Works while the
/// server is running and never overwrites a file.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  warren actual-budget export --output backup --data /srv/warren\n  \
                        warren actual-budget export Home --output . --budget-password-file key.txt"
)]
pub(crate) struct BudgetExportArgs {
    /// Budgets to export, by name or id. Default: all budgets that are not deleted.
    #[arg(value_name = "BUDGET")]
    budgets: Vec<String>,
    /// Directory to write to. Created if missing.
    #[arg(long, value_name = "DIR")]
    output: PathBuf,
    /// Read the end-to-end encryption password of the budgets from the first line of this file.
    #[arg(long, value_name = "FILE")]
    budget_password_file: Option<PathBuf>,
    #[command(flatten)]
    account: BudgetAccountArgs,
}

/// A budget in the output of `warren actual-budget export`.
#[derive(Serialize, ToSchema)]
pub(crate) struct BudgetExportItem {
    /// The permanent id of the budget.
    file_id: String,
    /// The name that the apps show; the id if they gave none.
    name: String,
    /// The path of the ZIP archive.
    path: String,
    /// The size of the archive in bytes.
    archive_bytes: u64,
    /// The number of messages that were applied to the file that an app uploaded last.
    applied_messages_count: u64,
}

pub(crate) fn run(arguments: &BudgetExportArgs, output: Printer) -> anyhow::Result<()> {
    let key_password = arguments.budget_password_file.as_deref().map(first_line).transpose()?;
    let (data_dir, unlocked) = arguments.account.unlock()?;
    let inventory = inventory(&data_dir, &unlocked);
    let budgets = if arguments.budgets.is_empty() {
        inventory.all()
    } else {
        arguments.budgets.iter().map(|named| inventory.find(named)).collect()
    };
    let budgets = budgets?;
    check_keys(&budgets, key_password.is_some())?;
    let paths = paths(&budgets, &arguments.output)?;
    fs::create_dir_all(&arguments.output)
        .with_context(|| arguments.output.display().to_string())?;
    let mut items = Vec::new();
    for (stored, path) in budgets.iter().zip(paths) {
        let key_password = key_password.as_ref().map(|password| password.as_str());
        items.push(export(stored, &path, key_password, data_dir.runtime(), output)?);
    }
    if items.is_empty() {
        output.line(format_args!("no budgets"));
    }
    output.json(&items)
}

/// Checks that the needed password is given, before anything is written.
fn check_keys(budgets: &[StoredBudget], has_password: bool) -> anyhow::Result<()> {
    let encrypted = budgets.iter().filter(|stored| stored.is_encrypted() && !has_password);
    let names: Vec<&str> = encrypted.map(name).collect();
    if names.is_empty() {
        return Ok(());
    }
    let names = names.join(", ");
    let context = format!("cannot export {names} without --budget-password-file");
    Err(anyhow::Error::from(ExportError::Encrypted).context(context))
}

pub(crate) fn name(stored: &StoredBudget) -> &str {
    stored.budget.name.as_deref().unwrap_or(&stored.budget.file_id)
}

/// Returns the path of each archive: if an earlier one has the same name, the budget's id is
/// appended.
fn paths(budgets: &[StoredBudget], folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let (mut taken, mut paths) = (BTreeSet::new(), Vec::new());
    for stored in budgets {
        let stem = file_stem(name(stored));
        let is_free = taken.insert(stem.to_lowercase());
        let id = if is_free { String::new() } else { format!(" {}", stored.budget.file_id) };
        let path = folder.join(format!("{stem}{id}.zip"));
        let message = || format!("{} already exists and is not overwritten", path.display());
        let exists = || CommandError::new(ErrorCode::FileExists, message());
        anyhow::ensure!(!path.exists(), exists());
        paths.push(path);
    }
    Ok(paths)
}

/// Removes characters from a name that file names cannot have, or that would hide the file.
fn file_stem(name: &str) -> String {
    let replaced = |c: char| if c.is_control() || "/\\:*?\"<>|".contains(c) { '_' } else { c };
    let stem: String = name.chars().map(replaced).collect();
    let stem = stem.trim().trim_start_matches('.');
    let stem = if stem.is_empty() { "budget" } else { stem };
    stem[..stem.floor_char_boundary(STEM_BYTES_MAX)].to_owned()
}

fn export(
    stored: &StoredBudget,
    path: &Path,
    key_password: Option<&str>,
    runtime: &Handle,
    output: Printer,
) -> anyhow::Result<BudgetExportItem> {
    let name = name(stored);
    let spinner = output.spinner(format_args!("exporting {name}"));
    let exported = stored.export(runtime, key_password);
    spinner.finish_and_clear();
    let exported = exported.with_context(|| name.to_owned())?;
    let ExportedBudget { archive, name: in_apps, applied_messages_count } = exported;
    let name = in_apps.as_deref().unwrap_or(name);
    write(path, &archive).with_context(|| path.display().to_string())?;
    let (archive_bytes, path) = (archive.len() as u64, path.display());
    output.line(format_args!(
        "{name}: {path}, {}, including {} since its last upload",
        DecimalBytes(archive_bytes),
        counted(applied_messages_count, "message", "messages")
    ));
    Ok(BudgetExportItem {
        file_id: stored.budget.file_id.clone(),
        name: name.to_owned(),
        path: path.to_string(),
        archive_bytes,
        applied_messages_count,
    })
}

/// Writes a file that other users cannot read, and removes it if writing fails.
fn write(path: &Path, archive: &[u8]) -> std::io::Result<()> {
    let mut file = fs::File::options().write(true).create_new(true).mode(0o600).open(path)?;
    let written = file.write_all(archive).and_then(|()| file.sync_all());
    if written.is_err() {
        // The first error is reported instead.
        drop(fs::remove_file(path));
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_budget_becomes_that_of_a_file() {
        assert_eq!(file_stem("Zuhause & Büro"), "Zuhause & Büro");
        assert_eq!(file_stem("../../etc/passwd"), "_.._etc_passwd");
        assert_eq!(file_stem(" a\u{1b}\nb "), "a__b");
        assert_eq!(file_stem("..."), "budget");
        assert_eq!(file_stem(&"ä".repeat(200)).len(), 180);
    }
}
