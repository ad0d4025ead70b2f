//! Defines the state that the cases of a benchmark share: the loaded table, the transactions, the
//! runtime.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use engine::{
    Database, DatabaseOptions, Databases, EngineLimits, FileEncryption, PragmaScope, PragmaSetting,
    Profile, wal_bytes,
};
use indicatif::ProgressBar;
use rusqlite::Connection;
use tokio::runtime::{Builder, Runtime};

use super::accounts::{self, TransferPairs};
use super::bare_loop::BareLoop;
use super::producers::{self, ProducerLoad};
use crate::measure::RoundSample;

/// The `server` profile with the page cache of those measurements with which the published page is
/// compared.
static PROFILE: Profile = Profile {
    name: "bench",
    about: "server, with a page cache of 64 MB",
    base: Profile::SERVER.changes,
    changes: &[PragmaSetting {
        name: "cache_size",
        value: "-64000",
        read_back: "-64000",
        scope: PragmaScope::Always,
    }],
};
pub(crate) const CACHE_KIB: u32 = 64_000;

/// A loaded table with its transactions and runtime.
#[derive(Clone)]
pub(crate) struct TpsFixture {
    pub(crate) path: PathBuf,
    pub(crate) encryption: FileEncryption,
    pub(crate) rows: i64,
    pub(crate) pairs: Arc<TransferPairs>,
    pub(crate) runtime: Arc<Runtime>,
}

impl TpsFixture {
    /// Loads the table into `path`, unless it exists already.
    pub(crate) fn load(
        path: PathBuf,
        encryption: FileEncryption,
        rows: i64,
        bar: &ProgressBar,
    ) -> anyhow::Result<Self> {
        let is_new = !path.exists();
        let (db, _) = engine::open_connection(&path, &encryption, &PROFILE, false, is_new)?;
        if is_new {
            accounts::load(&db, rows, bar)?;
        }
        let last = "SELECT max(id) FROM account";
        let found: i64 =
            db.query_row(last, [], |row| row.get(0)).context("cannot read the loaded table")?;
        anyhow::ensure!(found == rows, "{} has {found} accounts, not {rows}", path.display());
        let runtime = Builder::new_multi_thread().enable_time().build().context("tokio")?;
        let pairs = Arc::new(TransferPairs::draw(rows, SEED));
        Ok(Self { path, encryption, rows, pairs, runtime: Arc::new(runtime) })
    }

    /// Opens a separate connection.
    pub(crate) fn connection(&self) -> anyhow::Result<Connection> {
        Ok(engine::open_connection(&self.path, &self.encryption, &PROFILE, false, false)?.0)
    }

    /// Runs a bare loop with this `synchronous` level.
    pub(crate) fn bare(
        &self,
        work: BareLoop,
        synchronous: &str,
        duration: Duration,
    ) -> anyhow::Result<RoundSample> {
        let db = self.connection()?;
        db.pragma_update(None, "synchronous", synchronous)?;
        let mut sample = work.run(&db, &self.pairs, 0, duration)?;
        sample.metrics.push(("largest WAL, MB", wal_megabytes(&self.path)));
        Ok(sample)
    }

    /// Runs the engine under this load.
    pub(crate) fn engine(
        &self,
        load: ProducerLoad,
        duration: Duration,
    ) -> anyhow::Result<RoundSample> {
        self.with_database(|database| self.sample(database, load, duration))
    }

    /// Runs the load on the open database.
    pub(crate) fn sample(
        &self,
        database: &Arc<Database>,
        load: ProducerLoad,
        duration: Duration,
    ) -> anyhow::Result<RoundSample> {
        let mut sample = producers::run(&self.runtime, database, &self.pairs, load, duration)?;
        let pause = database.stats().checkpoint_pause_max.as_secs_f64() * 1_000.0;
        sample.metrics.push(("longest WAL reset, ms", pause));
        sample.metrics.push(("largest WAL, MB", wal_megabytes(&self.path)));
        Ok(sample)
    }

    /// Opens the database with the engine for `work`, and closes it.
    pub(crate) fn with_database<T>(
        &self,
        work: impl FnOnce(&Arc<Database>) -> anyhow::Result<T>,
    ) -> anyhow::Result<T> {
        let entered = self.runtime.enter();
        let databases = Databases::start(EngineLimits::default())?;
        drop(entered);
        let options = || DatabaseOptions {
            profile: &PROFILE,
            is_sole_writer: true,
            ..DatabaseOptions::new(self.encryption.clone())
        };
        let database = databases.open(&self.path, options)?;
        work(&database)
    }

    /// Returns an error if a transaction was half done.
    pub(crate) fn check_sum(&self) -> anyhow::Result<()> {
        accounts::check_sum(&self.path, &self.connection()?, self.rows)
    }
}

/// The seed of the draws, which is the same in each run, so that runs are comparable.
pub(super) const SEED: u64 = 20_261_121;

/// Returns the size of the file's WAL.
pub(crate) fn wal_megabytes(path: &Path) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "a file's size")]
    let bytes = wal_bytes(path) as f64;
    bytes / f64::from(1 << 20)
}
