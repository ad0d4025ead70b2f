//! `warren inspect`: what is in a replica or in a vault.

use std::path::Path;

use accounts::{Login, UnlockedAccount};
use clap::Args;
use doctor::file_holders;
use engine::wal_bytes;
use serde_json::{Value, json};
use sync_store::{Vault, VaultDamage, VaultLocation, VaultSummary};

use super::status;
use crate::args::data_dir::{DataDir, FileOrAccountArgs};
use crate::args::key_args::FileKeyArgs;
use crate::output::Printer;

/// Show the contents of a tracked file, or of an account's vault and sub-vaults.
#[derive(Args)]
#[command(after_help = "Examples:\n  warren inspect a.db\n  \
                        warren inspect --login ada --data ./data --verify\n  \
                        warren inspect --login ada --data ./data --repair")]
pub(crate) struct InspectArgs {
    #[command(flatten)]
    subject: FileOrAccountArgs,
    /// Recompute the fingerprints from the messages, and rebuild those that are wrong.
    #[arg(long, requires = "login")]
    verify: bool,
    /// Check every page of the vaults. A damaged vault is moved to NAME.damaged and rebuilt from
    /// what is readable; devices resend the rest. Stop the server first.
    #[arg(long, requires = "login")]
    repair: bool,
}

pub(crate) fn run(arguments: &InspectArgs, output: Printer) -> anyhow::Result<()> {
    match &arguments.subject.file {
        Some(file) => inspect_replica(file, &arguments.subject.key, output),
        None => inspect_vault(arguments, output),
    }
}

fn inspect_replica(path: &Path, key: &FileKeyArgs, output: Printer) -> anyhow::Result<()> {
    let replica = key.open(path)?;
    let status = replica.status()?;
    let db = replica.connection();
    let cipher = if key.is_given() {
        db.query_row("PRAGMA cipher", [], |row| row.get(0))?
    } else {
        "none".to_owned()
    };
    let journal: String = db.query_row("PRAGMA journal_mode", [], |row| row.get(0))?;
    let page_bytes: u32 = db.query_row("PRAGMA page_size", [], |row| row.get(0))?;
    let file_bytes = std::fs::metadata(path)?.len();
    let sql = "SELECT coalesce(sum(pgsize), 0) FROM dbstat WHERE name LIKE 'warren%'";
    let own_bytes: i64 = db.query_row(sql, [], |row| row.get(0))?;
    let free_pages: u32 = db.query_row("PRAGMA freelist_count", [], |row| row.get(0))?;
    let file = FileStats {
        path,
        file_bytes,
        free_bytes: u64::from(free_pages) * u64::from(page_bytes),
        wal_bytes: wal_bytes(path),
    };
    let (count, digest) = (status.fingerprint.count, status.fingerprint.digest);
    output.line(format_args!("replica {}, node {}", path.display(), status.node_id));
    output.line(format_args!(
        "file {file_bytes} bytes, {own_bytes} of them Warren's; cipher {cipher}; journal {journal}; pages of {page_bytes}"
    ));
    let health = file.describe(output);
    let bytes = status.content_bytes;
    output.line(format_args!("{count} messages, {bytes} bytes, fingerprint {digest:032x}"));
    if let Some(remote) = &status.remote {
        output.line(format_args!("cursor {}", remote.cursor));
    }
    status::describe(&status, output);
    let mut value = status.to_json();
    value["kind"] = "replica".into();
    value["file_bytes"] = file_bytes.into();
    value["warren_bytes"] = own_bytes.into();
    value["journal_mode"] = journal.into();
    value["page_bytes"] = page_bytes.into();
    value["cipher"] = cipher.into();
    value["health"] = health;
    output.json(&value)
}

fn inspect_vault(arguments: &InspectArgs, output: Printer) -> anyhow::Result<()> {
    let (data_dir, unlocked) = arguments.subject.unlock()?;
    let login = &unlocked.login;
    let repaired = arguments.repair.then(|| repair(arguments, &data_dir, &unlocked, output));
    let repaired = repaired.transpose()?;
    let vault = data_dir.vaults.open(&unlocked)?;
    let status = data_dir.wait(vault.status())?;
    let VaultSummary { cursor, bytes, fingerprint } = status.state;
    let mut value = describe_storage(login, &status.storage, output);
    let (count, digest) = (fingerprint.count, fingerprint.digest);
    output.line(format_args!(
        "{count} messages, {bytes} bytes, cursor {cursor}, fingerprint {digest:032x}"
    ));
    output.line(format_args!("{} devices", status.devices_count));
    let verified = if arguments.verify { Some(verify(&data_dir, &vault, output)?) } else { None };
    value["kind"] = "vault".into();
    value["login"] = login.as_str().into();
    value["count"] = count.into();
    value["digest"] = format!("{digest:032x}").into();
    value["cursor"] = cursor.into();
    value["clients"] = status.devices_count.into();
    value["verified"] = verified.into();
    value["repaired"] = repaired.into();
    let children = data_dir.sub_vaults(&unlocked)?;
    let children = children
        .iter()
        .map(|unlocked| inspect_sub_vault(&data_dir, unlocked, arguments.verify, output));
    value["children"] = children.collect::<anyhow::Result<_>>()?;
    output.json(&value)
}

/// Looks at the files of the account's vaults, and repairs what is damaged. Returns what was.
fn repair(
    arguments: &InspectArgs,
    data_dir: &DataDir,
    unlocked: &UnlockedAccount,
    output: Printer,
) -> anyhow::Result<Vec<Value>> {
    let _lock = arguments.subject.place.lock("warren inspect --repair")?;
    let files = data_dir.files.clone().with_repair(actual::repair_gateway_state);
    let mut vaults = vec![unlocked.clone()];
    vaults.extend(data_dir.sub_vaults(unlocked)?);
    let mut damages = Vec::new();
    for unlocked in vaults {
        let path = data_dir.vault_path(&unlocked.vault)?;
        let Some(VaultDamage { found, quarantined_path }) = files.repair(&unlocked)? else {
            output.line(format_args!("{}: all pages read back as written", path.display()));
            continue;
        };
        let (path, quarantined_path) =
            (path.display().to_string(), quarantined_path.display().to_string());
        output.line(format_args!(
            "{path} was damaged: {found}. It is {quarantined_path} now; what could be read of it is in \
             the new file, and devices send what is missing when they sync."
        ));
        damages.push(json!({"path": path, "found": found, "put_aside": quarantined_path}));
    }
    Ok(damages)
}

/// A vault that belongs to the account.
fn inspect_sub_vault(
    data_dir: &DataDir,
    child: &UnlockedAccount,
    verifies: bool,
    output: Printer,
) -> anyhow::Result<Value> {
    let vault = data_dir.vaults.open(child)?;
    let (status, record, pieces) = data_dir.wait(async {
        let (status, recorded) = (vault.status().await?, vault.gateway_state().await?);
        Ok::<_, sync_store::Error>((status, recorded.state, vault.chunk_ids().await?))
    })?;
    let VaultSummary { cursor, bytes, fingerprint } = status.state;
    let (count, digest) = (fingerprint.count, fingerprint.digest);
    let (id, record_bytes, pieces_count) = (&child.vault, record.len(), pieces.len());
    let file_bytes = match status.storage {
        VaultLocation::Sqlite { file_bytes, .. } => Some(file_bytes),
        VaultLocation::Postgres { .. } => None,
    };
    let size = file_bytes.map(|bytes| format!(", file {bytes} bytes")).unwrap_or_default();
    output.line(format_args!(
        "its vault {id}: {count} messages, {bytes} bytes, cursor {cursor}, fingerprint \
         {digest:032x}; record {record_bytes} bytes, {pieces_count} pieces{size}"
    ));
    let verified = if verifies { Some(verify(data_dir, &vault, output)?) } else { None };
    if verifies {
        // Reading opens them.
        for piece in pieces {
            data_dir.wait(vault.chunk(piece))?;
        }
    }
    Ok(json!({
        "vault": id.as_str(),
        "count": count,
        "bytes": bytes,
        "digest": format!("{digest:032x}"),
        "cursor": cursor,
        "record_bytes": record_bytes,
        "pieces": pieces_count,
        "file_bytes": file_bytes,
        "verified": verified,
    }))
}

/// Says where the vault is, and how it is kept.
fn describe_storage(login: &Login, storage: &VaultLocation, output: Printer) -> Value {
    match storage {
        VaultLocation::Sqlite {
            path: file,
            file_bytes,
            free_bytes,
            wal_bytes,
            cipher,
            profile,
        } => {
            let path = file.display().to_string();
            output.line(format_args!("vault {path} of {login}"));
            output.line(format_args!(
                "file {file_bytes} bytes, {free_bytes} of them free; cipher {cipher}; profile {profile}"
            ));
            let (file_bytes, free_bytes, wal_bytes) = (*file_bytes, *free_bytes, *wal_bytes);
            let health = FileStats { path: file, file_bytes, free_bytes, wal_bytes };
            json!({
                "path": path,
                "file_bytes": file_bytes,
                "free_bytes": free_bytes,
                "cipher": cipher,
                "profile": profile,
                "health": health.describe(output),
            })
        }
        VaultLocation::Postgres { address, database, version, tables_bytes } => {
            output.line(format_args!("vault of {login} in PostgreSQL {version} at {address}"));
            output.line(format_args!("database {database}, {tables_bytes} bytes with all vaults"));
            json!({
                "postgres": address,
                "database": database,
                "postgres_version": version,
                "tables_bytes": tables_bytes,
            })
        }
    }
}

/// How a file is, and what is in its way.
struct FileStats<'a> {
    path: &'a Path,
    file_bytes: u64,
    free_bytes: u64,
    wal_bytes: u64,
}

impl FileStats<'_> {
    fn describe(&self, output: Printer) -> Value {
        let Self { path, file_bytes, free_bytes, wal_bytes } = *self;
        #[expect(clippy::cast_precision_loss, reason = "sizes stay far below 2⁵³")]
        let fragmentation =
            if file_bytes == 0 { 0.0 } else { free_bytes as f64 / file_bytes as f64 };
        let percent = fragmentation * 100.0;
        output.line(format_args!("fragmentation {percent:.1} %; WAL {wal_bytes} bytes"));
        let holders = file_holders(path);
        for holder in &holders {
            output.line(format_args!("open in {holder}"));
        }
        json!({
            "fragmentation": fragmentation,
            "wal_bytes": wal_bytes,
            "holders": holders,
        })
    }
}

/// Compares what is recorded with the messages themselves; what is wrong is made anew. Returns
/// whether all was right.
fn verify(data_dir: &DataDir, vault: &Vault, output: Printer) -> anyhow::Result<bool> {
    let found = data_dir.wait(vault.verify())?;
    if found.is_equal() {
        output.line(format_args!("verified: the fingerprints are those of the messages"));
        return Ok(true);
    }
    let (recorded, computed) = (found.recorded.fingerprint, found.computed.fingerprint);
    data_dir.wait(vault.rebuild())?;
    anyhow::ensure!(data_dir.wait(vault.verify())?.is_equal(), "rebuilding did not help");
    output.line(format_args!(
        "rebuilt: {} windows were not those of the messages; recorded {recorded}; found {computed}",
        found.windows_wrong
    ));
    Ok(false)
}
