//! Which PostgreSQL database has the vaults, and `warren postgres`: its schema.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use serde_json::json;
use zeroize::Zeroizing;

use super::password::first_line;
use crate::output::Printer;

/// Where the vaults are, if they are not files below the data directory.
#[derive(Args, Default)]
pub(crate) struct PostgresArgs {
    /// Keep vaults in this PostgreSQL database: `postgres://user:password@host/database`.
    #[arg(long, value_name = "URL", conflicts_with = "postgres_file", hide_env_values = true)]
    postgres: Option<String>,
    /// The same, read from the first line of this file: other users see the command line.
    #[arg(long, value_name = "FILE")]
    postgres_file: Option<PathBuf>,
}

impl PostgresArgs {
    /// The file that may hold a password.
    pub(crate) fn file(&self) -> Option<&Path> {
        self.postgres_file.as_deref()
    }

    pub(crate) fn url(&self) -> anyhow::Result<Option<Zeroizing<String>>> {
        match &self.postgres_file {
            Some(file) => first_line(file).map(Some),
            None => Ok(self.postgres.clone().map(Zeroizing::new)),
        }
    }
}

/// Print the SQL that a PostgreSQL database needs, where Warren may not make it itself.
#[derive(Subcommand)]
pub(crate) enum PostgresCommand {
    Schema(StorageSchemaArgs),
}

/// Print the SQL that makes or updates the tables and functions.
#[derive(Args)]
#[command(after_help = "Example:\n  warren postgres schema | psql shard0\n  \
                        warren postgres schema --plproxy | psql proxy")]
pub(crate) struct StorageSchemaArgs {
    /// The functions of a PL/Proxy database instead, which pass calls on to the shards.
    #[arg(long)]
    plproxy: bool,
}

pub(crate) fn run(command: &PostgresCommand, output: Printer) -> anyhow::Result<()> {
    let PostgresCommand::Schema(StorageSchemaArgs { plproxy }) = command;
    let sql = if *plproxy { sync_store::plproxy_sql() } else { sync_store::schema_sql() };
    output.text(format_args!("{}", sql.trim_end()));
    output.json(&json!({"sql": sql}))
}
