//! Drives `tokio-rusqlite`: one connection on its own thread, to which closures are sent.

use std::process::ExitCode;

use anyhow::Context;
use competitor::{About, Competitor, Plan, Request, Settings};
use rusqlite::TransactionBehavior::Immediate;
use tokio_rusqlite::Connection;

/// The connection for reads and writes, which share one closure: another connection for the reads
/// would cost a second way to a thread and back.
struct TokioRusqlite(Connection);

impl Competitor for TokioRusqlite {
    async fn about() -> anyhow::Result<About> {
        Ok(About {
            driver: "tokio-rusqlite",
            version: competitor::locked_version(include_str!("../Cargo.lock"), "tokio-rusqlite")?,
            sqlite: rusqlite::version().to_owned(),
            runtime: competitor::runtime(),
            concurrent: true,
        })
    }

    async fn open(plan: &Plan) -> anyhow::Result<Self> {
        let connection = Connection::open(&plan.database).await?;
        let (synchronous, cache_size) = (format!("{:?}", plan.synchronous), plan.cache_size());
        let set = connection.call(move |db| {
            db.pragma_update(None, "journal_mode", "wal")?;
            db.pragma_update(None, "synchronous", synchronous)?;
            db.pragma_update(None, "cache_size", cache_size)
        });
        set.await.context("settings")?;
        Ok(Self(connection))
    }

    async fn settings(&self) -> anyhow::Result<Settings> {
        let settings = self.0.call(|db| {
            Ok::<_, rusqlite::Error>(Settings {
                journal_mode: db.pragma_query_value(None, "journal_mode", |row| row.get(0))?,
                synchronous: db.pragma_query_value(None, "synchronous", |row| row.get(0))?,
                cache_size: db.pragma_query_value(None, "cache_size", |row| row.get(0))?,
            })
        });
        Ok(settings.await?)
    }

    async fn run(&self, request: Request) -> anyhow::Result<()> {
        Ok(self.0.call(move |db| transfer(db, request)).await?)
    }

    async fn close(self) -> anyhow::Result<()> {
        Ok(self.0.close().await?)
    }
}

fn transfer(db: &mut rusqlite::Connection, request: Request) -> rusqlite::Result<()> {
    for _ in 0..request.reads {
        let mut balance = db.prepare_cached(competitor::BALANCE_SQL)?;
        balance.query_one([request.credit], |row| row.get::<_, i64>(0))?;
    }
    let tx = db.transaction_with_behavior(Immediate)?;
    tx.prepare_cached(competitor::CREDIT_SQL)?.execute([request.credit])?;
    tx.prepare_cached(competitor::DEBIT_SQL)?.execute([request.debit])?;
    tx.commit()
}

fn main() -> ExitCode {
    competitor::drive::<TokioRusqlite>()
}
