//! The driver of `sqlx`: a pool of one connection that writes, and a pool of read-only ones.

use std::process::ExitCode;

use competitor::{About, Competitor, Plan, Request, Settings};

mod pools;

use pools::Pools;

impl Competitor for Pools {
    async fn about() -> anyhow::Result<About> {
        Ok(About {
            driver: "sqlx",
            version: competitor::locked_version(include_str!("../Cargo.lock"), "sqlx")?,
            sqlite: pools::sqlite_version().await?,
            runtime: competitor::runtime(),
            concurrent: true,
        })
    }

    async fn open(plan: &Plan) -> anyhow::Result<Self> {
        Ok(Pools::open(plan).await?)
    }

    async fn settings(&self) -> anyhow::Result<Settings> {
        Ok(Settings {
            journal_mode: self.pragma("PRAGMA journal_mode").await?,
            synchronous: self.pragma("PRAGMA synchronous").await?,
            cache_size: self.pragma("PRAGMA cache_size").await?,
        })
    }

    async fn run(&self, request: Request) -> anyhow::Result<()> {
        if request.reads > 0 {
            self.read(request).await?;
        }
        Ok(self.transfer(request).await?)
    }

    async fn close(self) -> anyhow::Result<()> {
        self.readers.close().await;
        self.writer.close().await;
        Ok(())
    }
}

fn main() -> ExitCode {
    competitor::drive::<Pools>()
}
