//! Implements `warren inspect`: shows the contents of a replica or a vault.

mod file_health;
mod inspected_kind;
mod vault;

use std::path::Path;

use clap::Args;
use doctor::counted;
use engine::wal_bytes;
use replica::ReplicaStatus;
use serde::Serialize;
use utoipa::ToSchema;

use self::file_health::{FileHealth, FileStats};
use self::inspected_kind::InspectedKind;
use self::vault::{VaultChecks, VaultInspection};
use super::status;
use crate::args::data_dir::FileOrAccountArgs;
use crate::args::key_args::FileKeyArgs;
use crate::output::{NonZeroExit, Printer};

/// Show the contents of a tracked file, or of an account's vault and sub-vaults.
#[derive(Args)]
#[command(after_help = "Examples:\n  warren inspect a.db\n  \
                        warren inspect --login ada --data ./data --verify\n  \
                        warren inspect --login ada --data ./data --repair")]
pub(crate) struct InspectArgs {
    #[command(flatten)]
    subject: FileOrAccountArgs,
    /// Recompute the fingerprints of the vaults from their messages, and rebuild wrong ones. Exits
    /// with status 4 if any fingerprint was wrong.
    #[arg(long, requires = "login")]
    verify: bool,
    /// Check every page of the vaults. A damaged vault is moved to NAME.damaged and rebuilt from
    /// its readable pages; devices resend the rest. Stop the server first.
    #[arg(long, requires = "login")]
    repair: bool,
}

/// The output of `warren inspect`.
#[derive(Serialize, ToSchema)]
#[serde(untagged)]
pub(crate) enum InspectOutput {
    /// The inspection of a tracked file.
    Replica(Box<ReplicaInspection>),
    /// The inspection of an account's vault.
    Vault(Box<VaultInspection>),
}

/// The output of `warren inspect FILE`: the contents of a tracked file.
#[derive(Serialize, ToSchema)]
pub(crate) struct ReplicaInspection {
    /// The kind of this output; always `replica`.
    kind: InspectedKind,
    #[serde(flatten)]
    status: ReplicaStatus,
    /// The file's size in bytes.
    file_bytes: u64,
    /// The size of Warren's own tables in the file in bytes.
    overhead_bytes: u64,
    /// The journal mode of the file, such as `wal` or `delete`.
    journal_mode: String,
    /// The size of a page of the file in bytes.
    page_bytes: u32,
    /// The name of the cipher; `none` if the file is not encrypted.
    cipher: String,
    /// The fragmentation, the WAL and the other users of the file.
    health: FileHealth,
}

pub(crate) fn run(arguments: &InspectArgs, output: Printer) -> anyhow::Result<()> {
    let InspectArgs { subject, verify, repair } = arguments;
    if let Some(file) = &subject.file {
        let inspected = inspect_replica(file, &subject.key, output)?;
        return output.json(&InspectOutput::Replica(Box::new(inspected)));
    }
    let checks = VaultChecks { verify: *verify, repair: *repair };
    let inspected = vault::inspect(subject, checks, output)?;
    let differs = inspected.has_mismatch();
    output.json(&InspectOutput::Vault(Box::new(inspected)))?;
    NonZeroExit::if_differing(differs)
}

fn inspect_replica(
    path: &Path,
    key: &FileKeyArgs,
    output: Printer,
) -> anyhow::Result<ReplicaInspection> {
    let replica = key.open(path)?;
    let status = replica.status()?;
    let db = replica.connection();
    let cipher = if key.is_given() {
        db.query_row("PRAGMA cipher", [], |row| row.get(0))?
    } else {
        "none".to_owned()
    };
    let journal_mode: String = db.query_row("PRAGMA journal_mode", [], |row| row.get(0))?;
    let page_bytes: u32 = db.query_row("PRAGMA page_size", [], |row| row.get(0))?;
    let file_bytes = std::fs::metadata(path)?.len();
    let sql = "SELECT coalesce(sum(pgsize), 0) FROM dbstat WHERE name LIKE 'warren%'";
    let overhead_bytes: i64 = db.query_row(sql, [], |row| row.get(0))?;
    let free_pages: u32 = db.query_row("PRAGMA freelist_count", [], |row| row.get(0))?;
    let file = FileStats {
        path,
        file_bytes,
        free_bytes: u64::from(free_pages) * u64::from(page_bytes),
        wal_bytes: wal_bytes(path),
    };
    let (count, digest) = (status.messages_count, status.digest);
    output.line(format_args!("replica {}, node id {}", path.display(), status.node_id));
    output.line(format_args!(
        "file {file_bytes} bytes, {overhead_bytes} of them in Warren's tables; cipher {cipher}; \
         journal mode {journal_mode}; page size {page_bytes} bytes"
    ));
    let health = file.describe(output);
    let (messages, bytes) = (counted(count, "message", "messages"), status.content_bytes);
    output.line(format_args!("{messages}, {bytes} bytes, fingerprint {digest:032x}"));
    if let Some(remote) = &status.remote {
        output.line(format_args!("cursor {}", remote.cursor));
    }
    status::describe(&status, output);
    Ok(ReplicaInspection {
        kind: InspectedKind::Replica,
        status,
        file_bytes,
        overhead_bytes: overhead_bytes.cast_unsigned(),
        journal_mode,
        page_bytes,
        cipher,
        health,
    })
}
