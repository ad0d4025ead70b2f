//! Runs a PostgreSQL server for the benchmark alone: an empty cluster, and a runtime for its
//! connections.
//!
//! # Not here
//! - Processes, files and settings of the server → `postgres-lab`.
//! - The work on the server → `tps/postgres.rs`, `bulk/postgres.rs`.

use std::path::Path;

use anyhow::Context;
pub(crate) use postgres_lab::MAX_WAL_BYTES;
use postgres_lab::PostgresServer;
use tokio::runtime::{Builder, Runtime};
use tokio_postgres::{Client, Config};

/// The settings of the server that a report contains.
const REPORTED: [&str; 8] = [
    "server_version",
    "shared_buffers",
    "synchronous_commit",
    "fsync",
    "full_page_writes",
    "max_wal_size",
    "default_transaction_isolation",
    "deadlock_timeout",
];

/// A server with its own files and port, which ends when this value is dropped.
pub(crate) struct BenchPostgres {
    server: PostgresServer,
    runtime: Runtime,
}

impl BenchPostgres {
    /// Starts an empty server with its files in `folder/postgres`.
    pub(crate) fn start(folder: &Path) -> anyhow::Result<Self> {
        let runtime = Builder::new_multi_thread().enable_all().build().context("tokio")?;
        let server = PostgresServer::start(folder, &runtime)?;
        Ok(Self { server, runtime })
    }

    /// Returns the configuration for connections to the server.
    pub(crate) fn config(&self) -> &Config {
        self.server.config()
    }

    /// Opens a connection, which must be used in the runtime.
    pub(crate) async fn connect(&self) -> anyhow::Result<Client> {
        self.server.connect("postgres").await
    }

    /// Returns the runtime of the connections.
    pub(crate) fn runtime(&self) -> &Runtime {
        &self.runtime
    }

    /// Returns the server's own settings: name and value. A case may set `synchronous_commit` and
    /// the isolation differently, and then its name contains that.
    pub(crate) fn settings(&self) -> anyhow::Result<Vec<(&'static str, String)>> {
        self.runtime.block_on(async {
            let client = self.connect().await?;
            let mut settings = Vec::with_capacity(REPORTED.len());
            for name in REPORTED {
                let row = client.query_one(&format!("SHOW {name}"), &[]).await?;
                settings.push((name, row.try_get(0)?));
            }
            Ok(settings)
        })
    }

    /// Returns the settings in one line.
    pub(crate) fn settings_text(&self) -> anyhow::Result<String> {
        let settings = self.settings()?;
        let settings = settings.into_iter().map(|(name, value)| format!("{name} {value}"));
        Ok(settings.collect::<Vec<_>>().join(", "))
    }

    #[cfg(test)]
    pub(crate) fn pid(&self) -> u32 {
        self.server.pid()
    }
}
