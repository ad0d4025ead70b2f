//! Contains the connection pools and the work on them.

use competitor::{Plan, Request, Synchronous};
use sqlx::sqlite::{
    SqliteConnectOptions, SqliteJournalMode, SqlitePool, SqlitePoolOptions, SqliteRow,
    SqliteSynchronous,
};
use sqlx::{ConnectOptions, Connection, Decode, Sqlite, Type};

/// SQLite lets one connection write at a time: several writers would wait for each other in
/// SQLite's busy handler, which sleeps, instead of in the pool's queue, which is fair.
const WRITERS: u32 = 1;

pub(crate) struct Pools {
    pub(crate) writer: SqlitePool,
    pub(crate) readers: SqlitePool,
}

impl Pools {
    pub(crate) async fn open(plan: &Plan) -> sqlx::Result<Self> {
        let synchronous = match plan.synchronous {
            Synchronous::Normal => SqliteSynchronous::Normal,
            Synchronous::Full => SqliteSynchronous::Full,
        };
        let options = SqliteConnectOptions::new()
            .filename(&plan.database)
            .journal_mode(SqliteJournalMode::Wal)
            .synchronous(synchronous)
            .pragma("cache_size", plan.cache_size().to_string());
        let readers = std::thread::available_parallelism().map_or(1, usize::from);
        let readers = u32::try_from(readers).unwrap_or(u32::MAX);
        // A file on this machine does not go away, so a ping before each use would be wasted.
        let pool = || SqlitePoolOptions::new().test_before_acquire(false);
        let writer = pool().max_connections(WRITERS).connect_with(options.clone()).await?;
        let readers = pool().max_connections(readers).connect_with(options.read_only(true)).await?;
        Ok(Self { writer, readers })
    }

    pub(crate) async fn pragma<T>(&self, sql: &'static str) -> sqlx::Result<T>
    where
        T: for<'r> Decode<'r, Sqlite> + Type<Sqlite> + Send + Unpin,
        (T,): for<'r> sqlx::FromRow<'r, SqliteRow>,
    {
        sqlx::query_scalar(sql).fetch_one(&self.writer).await
    }

    pub(crate) async fn read(&self, request: Request) -> sqlx::Result<()> {
        let mut reader = self.readers.acquire().await?;
        for _ in 0..request.reads {
            let balance = sqlx::query_scalar(competitor::BALANCE_SQL).bind(request.credit);
            let _balance: i64 = balance.fetch_one(&mut *reader).await?;
        }
        Ok(())
    }

    pub(crate) async fn transfer(&self, request: Request) -> sqlx::Result<()> {
        let mut tx = self.writer.begin_with(competitor::BEGIN_SQL).await?;
        sqlx::query(competitor::CREDIT_SQL).bind(request.credit).execute(&mut *tx).await?;
        sqlx::query(competitor::DEBIT_SQL).bind(request.debit).execute(&mut *tx).await?;
        tx.commit().await
    }
}

pub(crate) async fn sqlite_version() -> sqlx::Result<String> {
    let mut db = SqliteConnectOptions::new().in_memory(true).connect().await?;
    let version = sqlx::query_scalar("SELECT sqlite_version()").fetch_one(&mut db).await?;
    db.close().await?;
    Ok(version)
}
