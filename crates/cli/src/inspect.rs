//! `warren inspect`: what is in a replica or in a vault.

use std::path::Path;

use accounts::{Login, Unlocked};
use clap::Args;
use doctor::holders;
use serde_json::{Value, json};
use sync_store::{State, Storage, Vault, VaultDamage};

use crate::account::{House, Subject};
use crate::key::KeySource;
use crate::output::Output;
use crate::status;

/// Show what is in a tracked file; or in an account's vault, and in those that belong to it.
#[derive(Args)]
#[command(after_help = "Example:\n  warren inspect a.db\n  \
                        warren inspect --login ada --data ./data --verify\n  \
                        warren inspect --login ada --data ./data --repair")]
pub(crate) struct Arguments {
    #[command(flatten)]
    subject: Subject,
    /// Recompute the vaults' fingerprints from their messages; rebuild those that are wrong.
    #[arg(long, requires = "login")]
    verify: bool,
    /// Read all pages of the vaults. One that is damaged is put aside, as NAME.damaged, and made
    /// anew with what can be read; devices send the rest. Stop the server first.
    #[arg(long, requires = "login")]
    repair: bool,
}

pub(crate) fn run(arguments: &Arguments, output: Output) -> anyhow::Result<()> {
    match &arguments.subject.file {
        Some(file) => replica(file, &arguments.subject.key, output),
        None => vault(arguments, output),
    }
}

fn replica(path: &Path, key: &KeySource, output: Output) -> anyhow::Result<()> {
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
    let file = Figures {
        path,
        file_bytes,
        free_bytes: u64::from(free_pages) * u64::from(page_bytes),
        wal_bytes: side_file_bytes(path, "-wal"),
    };
    let (count, digest) = (status.fingerprint.count, status.fingerprint.digest);
    output.line(format_args!("replica {}, node {}", path.display(), status.node));
    output.line(format_args!(
        "file {file_bytes} bytes, {own_bytes} of them Warren's; cipher {cipher}; journal {journal}; pages of {page_bytes}"
    ));
    let health = file.describe(output);
    let bytes = status.bytes;
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
    output.value(&value)
}

fn vault(arguments: &Arguments, output: Output) -> anyhow::Result<()> {
    let (house, unlocked) = arguments.subject.unlock()?;
    let login = &unlocked.login;
    let repaired = arguments.repair.then(|| repair(arguments, &house, &unlocked, output));
    let repaired = repaired.transpose()?;
    let vault = house.vaults.open(&unlocked)?;
    let status = house.wait(vault.status())?;
    let State { cursor, bytes, fingerprint } = status.state;
    let mut value = storage(login, &status.storage, output);
    let (count, digest) = (fingerprint.count, fingerprint.digest);
    output.line(format_args!(
        "{count} messages, {bytes} bytes, cursor {cursor}, fingerprint {digest:032x}"
    ));
    output.line(format_args!("{} devices", status.clients_count));
    let verified = if arguments.verify { Some(verify(&house, &vault, output)?) } else { None };
    value["kind"] = "vault".into();
    value["login"] = login.as_str().into();
    value["count"] = count.into();
    value["digest"] = format!("{digest:032x}").into();
    value["cursor"] = cursor.into();
    value["clients"] = status.clients_count.into();
    value["verified"] = verified.into();
    value["repaired"] = repaired.into();
    let children = house.children(&unlocked)?;
    let children =
        children.iter().map(|unlocked| child(&house, unlocked, arguments.verify, output));
    value["children"] = children.collect::<anyhow::Result<_>>()?;
    output.value(&value)
}

/// Looks at the files of the account's vaults, and repairs what is damaged. Returns what was.
fn repair(
    arguments: &Arguments,
    house: &House,
    unlocked: &Unlocked,
    output: Output,
) -> anyhow::Result<Vec<Value>> {
    let _lock = arguments.subject.place.lock("warren inspect --repair")?;
    let files = house.files.clone().repairing(actual::repair_record);
    let mut vaults = vec![unlocked.clone()];
    vaults.extend(house.children(unlocked)?);
    let mut damages = Vec::new();
    for unlocked in vaults {
        let path = house.vault_path(&unlocked.vault)?;
        let Some(VaultDamage { found, put_aside }) = files.repair(&unlocked)? else {
            output.line(format_args!("{}: all pages read back as written", path.display()));
            continue;
        };
        let (path, put_aside) = (path.display().to_string(), put_aside.display().to_string());
        output.line(format_args!(
            "{path} was damaged: {found}. It is {put_aside} now; what could be read of it is in \
             the new file, and devices send what is missing when they sync."
        ));
        damages.push(json!({"path": path, "found": found, "put_aside": put_aside}));
    }
    Ok(damages)
}

/// A vault that belongs to the account.
fn child(house: &House, child: &Unlocked, verifies: bool, output: Output) -> anyhow::Result<Value> {
    let vault = house.vaults.open(child)?;
    let (status, record, pieces) = house.wait(async {
        let (status, recorded) = (vault.status().await?, vault.record().await?);
        Ok::<_, sync_store::Error>((status, recorded.record, vault.pieces().await?))
    })?;
    let State { cursor, bytes, fingerprint } = status.state;
    let (count, digest) = (fingerprint.count, fingerprint.digest);
    let (id, record_bytes, pieces_count) = (&child.vault, record.len(), pieces.len());
    let file_bytes = match status.storage {
        Storage::Sqlite { file_bytes, .. } => Some(file_bytes),
        Storage::Postgres { .. } => None,
    };
    let size = file_bytes.map(|bytes| format!(", file {bytes} bytes")).unwrap_or_default();
    output.line(format_args!(
        "its vault {id}: {count} messages, {bytes} bytes, cursor {cursor}, fingerprint \
         {digest:032x}; record {record_bytes} bytes, {pieces_count} pieces{size}"
    ));
    let verified = if verifies { Some(verify(house, &vault, output)?) } else { None };
    if verifies {
        // Reading opens them.
        for piece in pieces {
            house.wait(vault.piece(piece))?;
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
fn storage(login: &Login, storage: &Storage, output: Output) -> Value {
    match storage {
        Storage::Sqlite { path: file, file_bytes, free_bytes, wal_bytes, cipher, profile } => {
            let path = file.display().to_string();
            output.line(format_args!("vault {path} of {login}"));
            output.line(format_args!(
                "file {file_bytes} bytes, {free_bytes} of them free; cipher {cipher}; profile {profile}"
            ));
            let (file_bytes, free_bytes, wal_bytes) = (*file_bytes, *free_bytes, *wal_bytes);
            let health = Figures { path: file, file_bytes, free_bytes, wal_bytes };
            json!({
                "path": path,
                "file_bytes": file_bytes,
                "free_bytes": free_bytes,
                "cipher": cipher,
                "profile": profile,
                "health": health.describe(output),
            })
        }
        Storage::Postgres { address, database, version, tables_bytes } => {
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
struct Figures<'a> {
    path: &'a Path,
    file_bytes: u64,
    free_bytes: u64,
    wal_bytes: u64,
}

impl Figures<'_> {
    fn describe(&self, output: Output) -> Value {
        let Self { path, file_bytes, free_bytes, wal_bytes } = *self;
        #[expect(clippy::cast_precision_loss, reason = "sizes stay far below 2⁵³")]
        let fragmentation =
            if file_bytes == 0 { 0.0 } else { free_bytes as f64 / file_bytes as f64 };
        let percent = fragmentation * 100.0;
        output.line(format_args!("fragmentation {percent:.1} %; WAL {wal_bytes} bytes"));
        let holders = holders(path);
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

fn side_file_bytes(path: &Path, suffix: &str) -> u64 {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    std::fs::metadata(name).map_or(0, |metadata| metadata.len())
}

/// Compares what is recorded with the messages themselves; what is wrong is made anew. Returns
/// whether all was right.
fn verify(house: &House, vault: &Vault, output: Output) -> anyhow::Result<bool> {
    let found = house.wait(vault.verify())?;
    if found.is_equal() {
        output.line(format_args!("verified: the fingerprints are those of the messages"));
        return Ok(true);
    }
    let (recorded, computed) = (found.recorded.fingerprint, found.computed.fingerprint);
    house.wait(vault.rebuild())?;
    anyhow::ensure!(house.wait(vault.verify())?.is_equal(), "rebuilding did not help");
    output.line(format_args!(
        "rebuilt: {} windows were not those of the messages; recorded {recorded}; found {computed}",
        found.windows_wrong
    ));
    Ok(false)
}
