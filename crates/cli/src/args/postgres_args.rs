//! Defines the arguments for the PostgreSQL database that stores the vaults.

use std::path::{Path, PathBuf};

use clap::Args;
use zeroize::Zeroizing;

use super::password::first_line;

/// PostgreSQL storage of the vaults.
#[derive(Args, Default)]
pub(crate) struct PostgresArgs {
    /// PostgreSQL database that stores the vaults: `postgres://user:password@host/database`.
    #[arg(long, value_name = "URL", conflicts_with = "postgres_file", hide_env_values = true)]
    postgres: Option<String>,
    /// Read the PostgreSQL URL from the first line of this file. Safer than --postgres, which other
    /// users can see in the process list.
    #[arg(long, value_name = "FILE")]
    postgres_file: Option<PathBuf>,
}

impl PostgresArgs {
    /// Returns the path of the file with the URL, which may contain a password.
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
