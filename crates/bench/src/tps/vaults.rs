//! Measures many databases at once: thousands of encrypted vaults, of which some are busy and most
//! are idle.
//!
//! Every vault is a copy of one file with a hundred accounts and one key. Opening, locking and
//! writing cost the same as for files that differ.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;
use std::time::Duration;

use anyhow::Context;
use engine::clock::now;
use engine::{
    Database, DatabaseKey, DatabaseOptions, Databases, Durability, EngineLimits, Error,
    FileEncryption, Profile,
};
use indicatif::ProgressBar;
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use tokio::runtime::Runtime;

use super::accounts::{self, TransferPair};
use super::producers::{transfer, wait};
use crate::format::counted;
use crate::measure::{LatencyRecorder, RoundSample};
use crate::suite::{BenchCase, BenchSection};

const ACCOUNTS: i64 = 100;
const PAIR: TransferPair = TransferPair { credit: 7, debit: 8 };
const CALLERS: usize = 1_000;
/// The number of callers where each request opens a vault, because opening keeps a thread busy.
const OPENING_CALLERS: usize = 16;
/// The most vaults that are in use at the same time.
const ACTIVE_MAX: usize = 1_000;
/// The pause between two transactions of the quiet vault.
const QUIET_PAUSE: Duration = Duration::from_millis(2);

/// The files of the vaults.
#[derive(Clone)]
pub(super) struct VaultFilesFixture {
    paths: Arc<Vec<PathBuf>>,
    runtime: Arc<Runtime>,
}

impl VaultFilesFixture {
    /// Creates `count` files in `folder`.
    pub(super) fn create(
        folder: &Path,
        count: usize,
        runtime: &Arc<Runtime>,
        bar: &ProgressBar,
    ) -> anyhow::Result<Self> {
        let folder = folder.join("vaults");
        std::fs::create_dir_all(&folder).context("cannot create the directory of the vaults")?;
        let template = folder.join("template.db");
        let profile = Profile::SERVER;
        let (db, _) = engine::open_connection(&template, &encryption(), profile, false, true)?;
        accounts::load(&db, ACCOUNTS, &ProgressBar::hidden())?;
        db.close().map_err(|(_, error)| error)?;
        bar.set_length(count as u64);
        bar.set_position(0);
        let mut paths = Vec::with_capacity(count);
        for index in 0..count {
            let path = folder.join(format!("{index}.db"));
            std::fs::copy(&template, &path).context("cannot copy a vault")?;
            paths.push(path.canonicalize()?);
            bar.inc(1);
        }
        Ok(Self { paths: Arc::new(paths), runtime: Arc::clone(runtime) })
    }

    /// Returns the section that measures throughput, opening, memory and fairness.
    pub(super) fn section(&self) -> BenchSection<'static> {
        let active = ACTIVE_MAX.min(self.paths.len());
        let case = |name: String, run: fn(&Self, Duration) -> anyhow::Result<RoundSample>| {
            let vaults = self.clone();
            BenchCase::new(name, move |duration| run(&vaults, duration))
        };
        let count = self.paths.len();
        let vaults = counted(count, "encrypted vault", "encrypted vaults");
        BenchSection {
            name: "vaults".to_owned(),
            unit: super::accounts::UNIT,
            title: format!(
                "{vaults} (chacha20), {CALLERS} callers; latency per request, including finding or \
                 opening the vault"
            ),
            cases: vec![
                case("one vault".to_owned(), |vaults, duration| vaults.busy(1, CALLERS, duration)),
                case(format!("{active} active, power law"), |vaults, duration| {
                    vaults.busy(ACTIVE_MAX, CALLERS, duration)
                }),
                case(
                    format!("all {count} active, evenly, {OPENING_CALLERS} callers"),
                    |vaults, duration| vaults.busy(usize::MAX, OPENING_CALLERS, duration),
                ),
                case("opening closed vaults, one caller".to_owned(), Self::opening),
                case("a quiet vault alone".to_owned(), |vaults, duration| {
                    vaults.quiet(0, duration)
                }),
                case("a quiet vault next to a saturated one".to_owned(), |vaults, duration| {
                    vaults.quiet(CALLERS, duration)
                }),
            ],
        }
    }

    fn start(&self) -> anyhow::Result<Arc<Databases>> {
        let entered = self.runtime.enter();
        let databases = Databases::start(EngineLimits::default())?;
        drop(entered);
        Ok(Arc::new(databases))
    }

    fn open(&self, databases: &Databases, vault: usize) -> engine::Result<Arc<Database>> {
        let options =
            || DatabaseOptions { is_sole_writer: true, ..DatabaseOptions::new(encryption()) };
        databases.open(&self.paths[vault], options)
    }

    /// Lets all callers write to the first `active` vaults; evenly if all vaults are active.
    fn busy(
        &self,
        active: usize,
        callers: usize,
        duration: Duration,
    ) -> anyhow::Result<RoundSample> {
        let databases = self.start()?;
        let is_even = active > self.paths.len();
        let active = active.min(self.paths.len());
        let memory_before = resident_bytes();
        let draw = move |random: &mut SmallRng| {
            let uniform: f64 = random.random();
            let share = if is_even { uniform } else { uniform.powi(4) };
            #[expect(
                clippy::cast_precision_loss,
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "a share of a count of files"
            )]
            let vault = (active as f64 * share) as usize;
            vault.min(active - 1)
        };
        if !is_even {
            // Without this, the first request of each vault would open it.
            for vault in 0..active {
                self.open(&databases, vault)?;
            }
        }
        let mut sample = self.run(&databases, callers, duration, draw)?;
        #[expect(clippy::cast_precision_loss, reason = "bytes of memory and a count of files")]
        let per_vault = resident_bytes().saturating_sub(memory_before) as f64
            / databases.open_count().max(1) as f64;
        if active > 1 {
            sample.metrics.push(("memory per open vault, KB", per_vault / 1024.0));
        }
        Ok(sample)
    }

    fn run(
        &self,
        databases: &Arc<Databases>,
        callers: usize,
        duration: Duration,
        draw: impl Fn(&mut SmallRng) -> usize + Send + Sync + 'static,
    ) -> anyhow::Result<RoundSample> {
        let is_over = Arc::new(AtomicBool::new(false));
        // There are few recorders, so that they stay in the processor's cache, but more than there
        // are threads.
        let shards: Arc<[Mutex<LatencyRecorder>; 8]> =
            Arc::new(std::array::from_fn(|_| Mutex::new(LatencyRecorder::new())));
        let draw = Arc::new(draw);
        self.runtime.block_on(async {
            let start = now();
            let tasks: Vec<_> = (0..callers)
                .map(|caller| {
                    let (vaults, databases) = (self.clone(), Arc::clone(databases));
                    let (is_over, shards) = (Arc::clone(&is_over), Arc::clone(&shards));
                    let draw = Arc::clone(&draw);
                    tokio::spawn(async move {
                        let mut random = SmallRng::seed_from_u64(caller as u64);
                        while !is_over.load(Ordering::Relaxed) {
                            let vault = draw(&mut random);
                            let asked = now();
                            vaults.request(&databases, vault).await?;
                            lock(&shards[caller % shards.len()]).record(asked.elapsed());
                        }
                        Ok::<_, Error>(())
                    })
                })
                .collect();
            tokio::time::sleep(duration).await;
            let mut all = LatencyRecorder::new();
            shards.iter().for_each(|shard| all.merge(&lock(shard)));
            let mut sample = RoundSample::new(all.count(), start.elapsed());
            sample.latency = all.latency();
            is_over.store(true, Ordering::Relaxed);
            for task in tasks {
                task.await??;
            }
            Ok(sample)
        })
    }

    async fn request(&self, databases: &Databases, vault: usize) -> Result<(), Error> {
        let database = self.open(databases, vault)?;
        transfer(&database, Durability::Os, PAIR, false).await
    }

    /// Opens one vault after the other, each for the first time.
    fn opening(&self, duration: Duration) -> anyhow::Result<RoundSample> {
        let databases = self.start()?;
        let (mut latencies, start) = (LatencyRecorder::new(), now());
        let mut count = 0;
        // The loop starts with the last vaults, because the other cases keep the first ones in the
        // system's cache.
        for vault in (0..self.paths.len()).rev() {
            let asked = now();
            let database = self.open(&databases, vault)?;
            database
                .read::<_, Error>(|db| Ok(db.query_row(accounts::BALANCE_SQL, [1], |_| Ok(()))?))?;
            latencies.record(asked.elapsed());
            count += 1;
            if start.elapsed() > duration {
                break;
            }
        }
        let mut sample = RoundSample::new(count, start.elapsed());
        sample.latency = latencies.latency();
        Ok(sample)
    }

    /// Measures one caller of a separate vault, with pauses, while `others` callers saturate
    /// another vault.
    fn quiet(&self, others: usize, duration: Duration) -> anyhow::Result<RoundSample> {
        let databases = self.start()?;
        let quiet = self.paths.len() - 1;
        let (vaults, own) = (self.clone(), Arc::clone(&databases));
        // The caller has its own thread: in the runtime it would wait behind a thousand tasks, not
        // for the engine.
        let caller = thread::spawn(move || {
            let (mut latencies, start) = (LatencyRecorder::new(), now());
            while start.elapsed() < duration {
                wait(QUIET_PAUSE);
                let asked = now();
                let database = vaults.open(&own, quiet)?;
                transfer(&database, Durability::Os, PAIR, false).wait()?;
                latencies.record(asked.elapsed());
            }
            let mut sample = RoundSample::new(latencies.count(), start.elapsed());
            sample.latency = latencies.latency();
            Ok::<_, Error>(sample)
        });
        if others > 0 {
            self.run(&databases, others, duration, |_| 0)?;
        }
        Ok(caller.join().expect("it does not panic")?)
    }
}

fn lock(shard: &Mutex<LatencyRecorder>) -> MutexGuard<'_, LatencyRecorder> {
    shard.lock().expect("recording does not panic")
}

fn encryption() -> FileEncryption {
    FileEncryption::Key { key: DatabaseKey::from_bytes([7; 32]), cipher: None }
}

/// Returns this process's resident memory; 0 where the system does not report it.
fn resident_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes = line.and_then(|line| line.split_whitespace().next());
    kilobytes.and_then(|text| text.parse::<u64>().ok()).unwrap_or(0) * 1024
}
