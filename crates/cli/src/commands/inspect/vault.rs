//! Implements `warren inspect --login`: shows the contents of an account's vault and its
//! sub-vaults.

use accounts::{Login, UnlockedAccount};
use doctor::counted;
use protocol::ErrorCode;
use serde::Serialize;
use sync_store::{Vault, VaultDamage, VaultLocation, VaultSummary};
use utoipa::ToSchema;

use super::file_health::{FileHealth, FileStats};
use super::inspected_kind::InspectedKind;
use crate::args::data_dir::{DataDir, FileOrAccountArgs};
use crate::output::{CommandError, Printer};

/// The output of `warren inspect --login`: an account's vault.
#[derive(Serialize, ToSchema)]
pub(crate) struct VaultInspection {
    /// The kind of this output; always `vault`.
    kind: InspectedKind,
    /// The login of the account.
    login: String,
    /// The storage of the vault: a file or PostgreSQL.
    storage: VaultStorage,
    /// The number of messages.
    messages_count: u64,
    /// The size of all message contents in bytes.
    content_bytes: u64,
    /// The digest of the messages: 32 hex digits.
    digest: String,
    /// The newest sequence number; 0 if there is no message.
    cursor: u64,
    /// The number of devices in the vault.
    devices_count: u64,
    /// Whether the recorded fingerprints match the messages; null without `--verify`.
    verified: Option<bool>,
    /// The damaged vaults that were repaired; null without `--repair`.
    repaired: Option<Vec<VaultRepair>>,
    /// The account's sub-vaults.
    sub_vaults: Vec<SubVaultInspection>,
}

/// The storage of a vault.
#[derive(Serialize, ToSchema)]
#[serde(untagged)]
pub(crate) enum VaultStorage {
    /// A file that contains only this vault.
    File(VaultFileStorage),
    /// Rows of a PostgreSQL database.
    Postgres(PostgresStorage),
}

/// The file of a vault.
#[derive(Serialize, ToSchema)]
pub(crate) struct VaultFileStorage {
    /// The path of the file.
    path: String,
    /// The size of the file in bytes, without its WAL.
    file_bytes: u64,
    /// The size of the unused pages in bytes.
    free_bytes: u64,
    /// The name of the cipher of the file.
    cipher: &'static str,
    /// The name of the profile that the file is opened with.
    profile: &'static str,
    /// The fragmentation, the WAL and the other users of the file.
    health: FileHealth,
}

/// The PostgreSQL database that stores the rows of a vault.
#[derive(Serialize, ToSchema)]
pub(crate) struct PostgresStorage {
    /// The host and port, or the socket, and the name of the requested database.
    postgres_address: String,
    /// The name of the database that stores the rows; behind a router it differs from the one in
    /// `postgres_address`.
    database: String,
    /// The version of PostgreSQL.
    postgres_version: String,
    /// The size of the tables and indexes in bytes, including all other vaults in them.
    table_bytes: u64,
}

/// A damaged vault that was repaired.
#[derive(Serialize, ToSchema)]
pub(crate) struct VaultRepair {
    /// The path of the vault's file.
    path: String,
    /// A description of the damage, for people.
    damage: String,
    /// The path to which the damaged file was moved.
    quarantined_path: String,
}

/// A sub-vault of the account.
#[derive(Serialize, ToSchema)]
pub(crate) struct SubVaultInspection {
    /// The id of the sub-vault.
    vault_id: String,
    /// The number of messages.
    messages_count: u64,
    /// The size of all message contents in bytes.
    content_bytes: u64,
    /// The digest of the messages: 32 hex digits.
    digest: String,
    /// The newest sequence number; 0 if there is no message.
    cursor: u64,
    /// The size of the gateway's state in bytes.
    gateway_state_bytes: usize,
    /// The number of chunks of the gateway's blobs.
    blob_chunks_count: usize,
    /// The size of the sub-vault's file in bytes, without its WAL; null in PostgreSQL.
    file_bytes: Option<u64>,
    /// Whether the recorded fingerprints match the messages; null without `--verify`.
    verified: Option<bool>,
}

impl VaultInspection {
    /// Returns whether `--verify` found recorded fingerprints that do not match the messages.
    pub(super) fn has_mismatch(&self) -> bool {
        let sub_vaults = self.sub_vaults.iter().map(|vault| vault.verified);
        sub_vaults.chain([self.verified]).any(|verified| verified == Some(false))
    }
}

/// The optional checks of the vaults.
#[derive(Clone, Copy)]
pub(super) struct VaultChecks {
    /// Whether to compare the fingerprints with the messages.
    pub(super) verify: bool,
    /// Whether to check for damaged pages.
    pub(super) repair: bool,
}

/// Prints the contents of the account's vault, and returns them.
pub(super) fn inspect(
    subject: &FileOrAccountArgs,
    checks: VaultChecks,
    output: Printer,
) -> anyhow::Result<VaultInspection> {
    let (data_dir, unlocked) = subject.unlock()?;
    let login = &unlocked.login;
    let repaired = checks.repair.then(|| repair(subject, &data_dir, &unlocked, output));
    let repaired = repaired.transpose()?;
    let vault = data_dir.vaults.open(&unlocked)?;
    let status = data_dir.wait(vault.status())?;
    let VaultSummary { cursor, bytes, fingerprint } = status.state;
    let storage = describe_storage(login, status.storage, output);
    let (count, digest) = (fingerprint.count, fingerprint.digest);
    let messages = counted(count, "message", "messages");
    output.line(format_args!(
        "{messages}, {bytes} bytes, cursor {cursor}, fingerprint {digest:032x}"
    ));
    output.line(format_args!("{}", counted(status.devices_count, "device", "devices")));
    let verified = checks.verify.then(|| verify(&data_dir, &vault, output)).transpose()?;
    let sub_vaults = data_dir.sub_vaults(&unlocked)?;
    let sub_vaults = sub_vaults
        .iter()
        .map(|unlocked| inspect_sub_vault(&data_dir, unlocked, checks.verify, output));
    Ok(VaultInspection {
        kind: InspectedKind::Vault,
        login: login.to_string(),
        storage,
        messages_count: count,
        content_bytes: bytes,
        digest: format!("{digest:032x}"),
        cursor,
        devices_count: status.devices_count,
        verified,
        repaired,
        sub_vaults: sub_vaults.collect::<anyhow::Result<_>>()?,
    })
}

/// Checks the files of the account's vaults, repairs damaged ones, and returns them.
fn repair(
    subject: &FileOrAccountArgs,
    data_dir: &DataDir,
    unlocked: &UnlockedAccount,
    output: Printer,
) -> anyhow::Result<Vec<VaultRepair>> {
    let _lock = subject.place.lock("warren inspect --repair")?;
    let files = data_dir.files.clone().with_repair(actual::repair_gateway_state);
    let mut vaults = vec![unlocked.clone()];
    vaults.extend(data_dir.sub_vaults(unlocked)?);
    let mut repairs = Vec::new();
    for unlocked in vaults {
        let path = data_dir.vault_path(&unlocked.vault)?;
        let Some(VaultDamage { found: damage, quarantined_path }) = files.repair(&unlocked)? else {
            output.line(format_args!("{}: all pages are intact", path.display()));
            continue;
        };
        let (path, quarantined_path) =
            (path.display().to_string(), quarantined_path.display().to_string());
        output.line(format_args!(
            "{path} was damaged: {damage}. The damaged file was moved to {quarantined_path}; a new \
             file contains all readable data, and devices resend the rest when they sync."
        ));
        repairs.push(VaultRepair { path, damage, quarantined_path });
    }
    Ok(repairs)
}

/// Inspects a sub-vault of the account.
fn inspect_sub_vault(
    data_dir: &DataDir,
    unlocked: &UnlockedAccount,
    verifies: bool,
    output: Printer,
) -> anyhow::Result<SubVaultInspection> {
    let vault = data_dir.vaults.open(unlocked)?;
    let (status, gateway_state, chunks) = data_dir.wait(async {
        let (status, recorded) = (vault.status().await?, vault.gateway_state().await?);
        Ok::<_, sync_store::Error>((status, recorded.state, vault.chunk_ids().await?))
    })?;
    let VaultSummary { cursor, bytes, fingerprint } = status.state;
    let (count, digest) = (fingerprint.count, fingerprint.digest);
    let (id, gateway_state_bytes, blob_chunks_count) =
        (&unlocked.vault, gateway_state.len(), chunks.len());
    let file_bytes = match status.storage {
        VaultLocation::Sqlite { file_bytes, .. } => Some(file_bytes),
        VaultLocation::Postgres { .. } => None,
    };
    let size = file_bytes.map(|bytes| format!(", file {bytes} bytes")).unwrap_or_default();
    let messages = counted(count, "message", "messages");
    let blobs = counted(blob_chunks_count as u64, "blob chunk", "blob chunks");
    output.line(format_args!(
        "sub-vault {id}: {messages}, {bytes} bytes, cursor {cursor}, fingerprint {digest:032x}; \
         gateway state {gateway_state_bytes} bytes, {blobs}{size}"
    ));
    let verified = verifies.then(|| verify(data_dir, &vault, output)).transpose()?;
    if verifies {
        // In PostgreSQL, reading a chunk unseals it, which fails if it was altered.
        for chunk in chunks {
            data_dir.wait(vault.chunk(chunk))?;
        }
    }
    Ok(SubVaultInspection {
        vault_id: id.to_string(),
        messages_count: count,
        content_bytes: bytes,
        digest: format!("{digest:032x}"),
        cursor,
        gateway_state_bytes,
        blob_chunks_count,
        file_bytes,
        verified,
    })
}

/// Prints and returns where the vault is stored, and with which settings.
fn describe_storage(login: &Login, storage: VaultLocation, output: Printer) -> VaultStorage {
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
            let stats = FileStats { path: &file, file_bytes, free_bytes, wal_bytes };
            let health = stats.describe(output);
            let file = VaultFileStorage { path, file_bytes, free_bytes, cipher, profile, health };
            VaultStorage::File(file)
        }
        VaultLocation::Postgres { address, database, version, tables_bytes } => {
            output.line(format_args!("vault of {login} in PostgreSQL {version} at {address}"));
            output.line(format_args!("database {database}, {tables_bytes} bytes for all vaults"));
            VaultStorage::Postgres(PostgresStorage {
                postgres_address: address,
                database,
                postgres_version: version,
                table_bytes: tables_bytes,
            })
        }
    }
}

/// Compares the recorded fingerprints with the messages, and rebuilds wrong ones. Returns whether
/// all were right.
fn verify(data_dir: &DataDir, vault: &Vault, output: Printer) -> anyhow::Result<bool> {
    let found = data_dir.wait(vault.verify())?;
    if found.is_equal() {
        output.line(format_args!("verified: the fingerprints match the messages"));
        return Ok(true);
    }
    let (recorded, computed) = (found.recorded.fingerprint, found.computed.fingerprint);
    data_dir.wait(vault.rebuild())?;
    let unhelpful = || {
        let message = "the fingerprints do not match the messages, even after a rebuild";
        CommandError::new(ErrorCode::CorruptDatabase, message)
    };
    anyhow::ensure!(data_dir.wait(vault.verify())?.is_equal(), unhelpful());
    output.line(format_args!(
        "rebuilt: {} did not match the messages; recorded {recorded}, computed {computed}",
        counted(found.windows_wrong, "fingerprint window", "fingerprint windows")
    ));
    Ok(false)
}
