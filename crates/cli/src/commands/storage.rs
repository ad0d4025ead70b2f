//! `warren storage`: where an account's vault is kept.

mod schema;

use accounts::UnlockedAccount;
use clap::{Args, Subcommand, ValueEnum};
use serde_json::{Value, json};
use sync_store::{Vault, VaultSummary, Vaults};

use crate::args::data_dir::{DataDir, StorageArgs};
use crate::args::password::PasswordSource;
use crate::output::Printer;

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
    /// Delete what is already at the destination first, instead of resuming.
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

pub(crate) fn run(command: StorageCommand, output: Printer) -> anyhow::Result<()> {
    match command {
        StorageCommand::Migrate(arguments) => migrate(&arguments, output),
        StorageCommand::Schema(arguments) => schema::print_schema(&arguments, output),
    }
}

fn migrate(arguments: &StorageMigrateArgs, output: Printer) -> anyhow::Result<()> {
    // A server would go on storing into what is moved away.
    let _lock = arguments.place.lock("warren storage migrate")?;
    let data_dir = DataDir::open(&arguments.place)?;
    let in_postgres = data_dir.vaults.clone();
    let is_named = matches!(in_postgres, Vaults::Postgres(_));
    anyhow::ensure!(is_named, "say which PostgreSQL: --postgres or --postgres-file");
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
            // It was moved by a run that broke off, or nothing was ever in it.
            if !is_empty(&from.open(child)?).await? {
                let copied =
                    copy(child, &from, &to, arguments.overwrite_destination, output).await?;
                moved.push((child, copied));
            }
        }
        if arguments.remove_source {
            // The account's own last: while it is there, all of it can be done again.
            for one in children.iter().chain([&unlocked]) {
                from.remove(&one.vault).await?;
            }
        }
        anyhow::Ok((copied, moved))
    })?;
    let login = &unlocked.login;
    let fingerprint = copied.fingerprint;
    output.line(format_args!("moved the vault of {login}: {fingerprint}; both are equal"));
    for (child, copied) in &moved {
        let (vault, fingerprint) = (&child.vault, copied.fingerprint);
        output.line(format_args!("moved its vault {vault}: {fingerprint}; both are equal"));
    }
    let mut value = to_json(&copied);
    value["login"] = login.as_str().into();
    value["source_removed"] = arguments.remove_source.into();
    let children = moved.iter().map(|(child, copied)| {
        let mut value = to_json(copied);
        value["vault"] = child.vault.as_str().into();
        value
    });
    value["children"] = children.collect();
    output.json(&value)
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
        anyhow::ensure!(!is_only_copy, "nothing is where the vault would be moved from");
        to.remove(&unlocked.vault).await?;
    }
    let copy = to.open(unlocked)?;
    let bar = output.progress().with_message("moving");
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

fn to_json(copied: &VaultSummary) -> Value {
    let fingerprint = copied.fingerprint;
    json!({
        "count": fingerprint.count,
        "digest": format!("{:032x}", fingerprint.digest),
        "cursor": copied.cursor,
    })
}
