//! `warren vault`: where an account's vault is kept.

use clap::{Args, Subcommand, ValueEnum};
use serde_json::json;
use sync_store::Vaults;

use crate::account::{House, Place};
use crate::output::Output;
use crate::password::Source;

/// Move vaults between files and PostgreSQL.
#[derive(Subcommand)]
pub(crate) enum Command {
    Move(Move),
}

/// Copy an account's vault to PostgreSQL, or from there into a file, and check that both are equal.
///
/// Stop the server first; afterwards start it with the store that the vaults are in. A move that
/// broke off can be run again, and goes on. The vault stays where it was, too, unless
/// --remove-source is given.
#[derive(Args)]
#[command(after_help = "Example:\n  \
                        warren vault move ada --to postgres --postgres-file url.txt --data ./data")]
pub(crate) struct Move {
    login: String,
    #[arg(long, value_name = "STORE")]
    to: Store,
    /// Remove what is at the destination first: it is not a copy that broke off.
    #[arg(long)]
    start_over: bool,
    /// Remove the vault from where it was, once both are equal.
    #[arg(long)]
    remove_source: bool,
    #[command(flatten)]
    place: Place,
    #[command(flatten)]
    password: Source,
}

#[derive(Clone, Copy, ValueEnum)]
enum Store {
    Postgres,
    Sqlite,
}

pub(crate) fn run(command: Command, output: Output) -> anyhow::Result<()> {
    match command {
        Command::Move(arguments) => carry(&arguments, output),
    }
}

fn carry(arguments: &Move, output: Output) -> anyhow::Result<()> {
    let house = House::open(&arguments.place)?;
    let in_postgres = house.vaults.clone();
    let is_named = matches!(in_postgres, Vaults::Postgres(_));
    anyhow::ensure!(is_named, "say which PostgreSQL: --postgres or --postgres-file");
    let unlocked = house.unlock(&arguments.login, &arguments.password)?;
    let in_files = Vaults::Files(house.files.clone());
    let (from, to) = match arguments.to {
        Store::Postgres => (in_files, in_postgres),
        Store::Sqlite => (in_postgres, in_files),
    };
    let copied = house.wait(async {
        if arguments.start_over {
            to.remove(&unlocked.vault).await?;
        }
        let (source, copy) = (from.open(&unlocked)?, to.open(&unlocked)?);
        let bar = output.progress().with_message("moving");
        bar.set_length(source.state().await?.fingerprint.count);
        let copied = sync_store::copy(&source, &copy, |count| bar.set_position(count)).await?;
        bar.finish_and_clear();
        drop(source);
        if arguments.remove_source {
            from.remove(&unlocked.vault).await?;
        }
        anyhow::Ok(copied)
    })?;
    let (login, fingerprint) = (&unlocked.login, copied.fingerprint);
    output.line(format_args!("moved the vault of {login}: {fingerprint}; both are equal"));
    output.value(&json!({
        "login": login.as_str(),
        "count": fingerprint.count,
        "digest": format!("{:032x}", fingerprint.digest),
        "cursor": copied.cursor,
        "source_removed": arguments.remove_source,
    }))
}
