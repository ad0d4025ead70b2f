//! A PostgreSQL of the benchmark's own: an empty cluster, and a runtime to talk to it.
//!
//! # Not here
//! - Processes, files and settings of the server → `postgres-lab`.
//! - What is run on it → `tps/postgres.rs`, `bulk/postgres.rs`.

use std::path::Path;

use anyhow::Context;
pub(crate) use postgres_lab::MAX_WAL_BYTES;
use postgres_lab::PostgresServer;
use tokio::runtime::{Builder, Runtime};
use tokio_postgres::{Client, Config};

/// What a report says of the server.
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

/// A server with its own files and port; it ends with this value.
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

    /// How to connect to it.
    pub(crate) fn config(&self) -> &Config {
        self.server.config()
    }

    /// To be used in the runtime.
    pub(crate) async fn connect(&self) -> anyhow::Result<Client> {
        self.server.connect("postgres").await
    }

    /// Where its connections live.
    pub(crate) fn runtime(&self) -> &Runtime {
        &self.runtime
    }

    /// What it runs with, as it says itself: name and value. A case may set `synchronous_commit`
    /// and the isolation otherwise, and then says so in its name.
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

    /// The same in one line.
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
