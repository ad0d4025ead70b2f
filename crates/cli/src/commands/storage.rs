//! Implements `warren storage`: moves an account's vault between files and PostgreSQL, and prints
//! the database schema.

pub(crate) mod schema;

use accounts::UnlockedAccount;
use clap::{Args, Subcommand, ValueEnum};
use protocol::ErrorCode;
use serde::Serialize;
use sync_store::{Vault, VaultSummary, Vaults};
use utoipa::ToSchema;

use crate::args::data_dir::{DataDir, StorageArgs};
use crate::args::password::PasswordSource;
use crate::output::{CommandError, Printer};

/// Migrate vaults between files and PostgreSQL, or print the database schema.
#[derive(Subcommand)]
pub(crate) enum StorageCommand {
    Migrate(StorageMigrateArgs),
    Schema(schema::StorageSchemaArgs),
}

/// Migrate an account's vault and sub-vaults between files and PostgreSQL.
///
/// Stop the server first, and start it with the new storage afterwards. An interrupted migration
/// resumes when you run it again. Copies are verified; the originals stay unless you pass
/// --remove-source.
#[derive(Args)]
#[command(after_help = "Example:\n  \
                        warren storage migrate ada --to postgres --postgres-file url.txt --data ./data")]
pub(crate) struct StorageMigrateArgs {
    /// Account to migrate.
    login: String,
    /// Storage to migrate to.
    #[arg(long, value_name = "STORAGE")]
    to: MigrationTarget,
    /// First delete the copy at the destination, instead of resuming the migration.
    #[arg(long)]
    overwrite_destination: bool,
    /// Delete the originals after all copies have been verified.
    #[arg(long)]
    remove_source: bool,
    #[command(flatten)]
    place: StorageArgs,
    #[command(flatten)]
    password: PasswordSource,
}

#[derive(Clone, Copy, ValueEnum)]
enum MigrationTarget {
    Postgres,
    Sqlite,
}

/// The output of `warren storage migrate`: the copies of the account's vault and sub-vaults.
#[derive(Serialize, ToSchema)]
pub(crate) struct StorageMigrateOutput {
    /// The login of the account.
    login: String,
    /// The number of messages in the vault.
    messages_count: u64,
    /// The digest of the messages, as 32 hex digits.
    digest: String,
    /// The newest sequence number in the vault; 0 if it has no messages.
    cursor: u64,
    /// Whether the originals were deleted.
    source_removed: bool,
    /// The sub-vaults that were copied, without empty ones and those that an earlier run had
    /// migrated.
    sub_vaults: Vec<SubVaultMigration>,
}

/// A sub-vault that `warren storage migrate` copied.
#[derive(Serialize, ToSchema)]
pub(crate) struct SubVaultMigration {
    /// The id of the sub-vault.
    vault_id: String,
    /// The number of messages in the vault.
    messages_count: u64,
    /// The digest of the messages, as 32 hex digits.
    digest: String,
    /// The newest sequence number in the vault; 0 if it has no messages.
    cursor: u64,
}

impl SubVaultMigration {
    fn new(unlocked: &UnlockedAccount, copied: &VaultSummary) -> Self {
        Self {
            vault_id: unlocked.vault.to_string(),
            messages_count: copied.fingerprint.count,
            digest: format!("{:032x}", copied.fingerprint.digest),
            cursor: copied.cursor,
        }
    }
}

pub(crate) fn run(command: StorageCommand, output: Printer) -> anyhow::Result<()> {
    match command {
        StorageCommand::Migrate(arguments) => migrate(&arguments, output),
        StorageCommand::Schema(arguments) => schema::print_schema(&arguments, output),
    }
}

fn migrate(arguments: &StorageMigrateArgs, output: Printer) -> anyhow::Result<()> {
    // A running server would continue to write to the vault that is being moved.
    let _lock = arguments.place.lock("warren storage migrate")?;
    let data_dir = DataDir::open(&arguments.place)?;
    let in_postgres = data_dir.vaults.clone();
    let is_named = matches!(in_postgres, Vaults::Postgres(_));
    let message = "no PostgreSQL database given: pass --postgres or --postgres-file";
    anyhow::ensure!(is_named, CommandError::usage(message));
    let unlocked = data_dir.unlock(&arguments.login, &arguments.password)?;
    let in_files = Vaults::Files(data_dir.files.clone());
    let (from, to) = match arguments.to {
        MigrationTarget::Postgres => (in_files, in_postgres),
        MigrationTarget::Sqlite => (in_postgres, in_files),
    };
    let children = data_dir.sub_vaults(&unlocked)?;
    let (copied, moved) = data_dir.wait(async {
        let copied = copy(&unlocked, &from, &to, arguments.overwrite_destination, output).await?;
        let mut moved = Vec::new();
        for child in &children {
            // An empty one was moved by an interrupted run, or never had any contents.
            if !is_empty(&from.open(child)?).await? {
                let copied =
                    copy(child, &from, &to, arguments.overwrite_destination, output).await?;
                moved.push((child, copied));
            }
        }
        if arguments.remove_source {
            // The account's own vault is last: while it exists, the whole migration can be
            // repeated.
            for one in children.iter().chain([&unlocked]) {
                from.remove(&one.vault).await?;
            }
        }
        anyhow::Ok((copied, moved))
    })?;
    let login = &unlocked.login;
    let fingerprint = copied.fingerprint;
    output.line(format_args!("migrated the vault of {login}: {fingerprint}; copy verified"));
    for (child, copied) in &moved {
        let (vault, fingerprint) = (&child.vault, copied.fingerprint);
        output.line(format_args!("migrated sub-vault {vault}: {fingerprint}; copy verified"));
    }
    let sub_vaults = moved.iter().map(|(child, copied)| SubVaultMigration::new(child, copied));
    output.json(&StorageMigrateOutput {
        login: login.to_string(),
        messages_count: fingerprint.count,
        digest: format!("{:032x}", fingerprint.digest),
        cursor: copied.cursor,
        source_removed: arguments.remove_source,
        sub_vaults: sub_vaults.collect(),
    })
}

async fn copy(
    unlocked: &UnlockedAccount,
    from: &Vaults,
    to: &Vaults,
    overwrite_destination: bool,
    output: Printer,
) -> anyhow::Result<VaultSummary> {
    let source = from.open(unlocked)?;
    if overwrite_destination {
        let is_only_copy = is_empty(&source).await? && !is_empty(&to.open(unlocked)?).await?;
        let message = "the source vault is empty, and the destination has the only copy";
        anyhow::ensure!(!is_only_copy, CommandError::new(ErrorCode::NotFound, message));
        to.remove(&unlocked.vault).await?;
    }
    let copy = to.open(unlocked)?;
    let bar = output.progress().with_message("migrating");
    bar.set_length(source.summary().await?.fingerprint.count);
    let copied = sync_store::copy_vault(&source, &copy, |count| bar.set_position(count)).await?;
    bar.finish_and_clear();
    Ok(copied)
}

async fn is_empty(vault: &Vault) -> anyhow::Result<bool> {
    let is_empty = vault.summary().await? == VaultSummary::default()
        && vault.gateway_state().await?.state.is_empty()
        && vault.chunk_ids().await?.is_empty();
    Ok(is_empty)
}
