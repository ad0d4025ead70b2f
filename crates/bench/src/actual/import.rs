//! Measures imports: many messages at once, in one request or in pages, each into its own budget.
//!
//! # Invariants
//! - All servers did the same work: in the end they return the same trie, byte for byte.
//! - The requests are built before the clock runs, and the clock runs only from a request to the end
//!   of its response.

use std::cell::RefCell;
use std::time::Duration;

use anyhow::ensure;
use crdt::NodeId;
use engine::clock::now;

use super::bench_run::ActualBenchRun;
use super::sizes::IMPORT;
use crate::http::BenchConnection;
use crate::measure::{CPU_US, LatencyRecorder, RoundSample};
use crate::message_generator::{ContentKind, MessageGenerator};
use crate::service::actual::{self, ActualMessagePage};
use crate::service::device::LoadDevice;
use crate::service::systems_under_test::{ClientPool, SystemUnderTest};

/// A server's budgets, one of them for the warm-up. Warren does not need all of them in a second.
pub(super) const CROWD: ClientPool = ClientPool { users: 32, devices: 1 };
/// The warm-up sends these messages, so that the server has seen a request before the clock
/// starts.
const WARMUP_MESSAGES: usize = 1_000;

/// An import as it is sent over the wire.
#[derive(Debug)]
pub(super) struct ImportWorkload {
    pages: Vec<ActualMessagePage>,
    /// The last trie that the first server returned for this import.
    trie: RefCell<Option<String>>,
}

impl ImportWorkload {
    pub(super) fn new(messages: usize, page: usize) -> anyhow::Result<Self> {
        let messages =
            MessageGenerator::of(ContentKind::Budget, 0, IMPORT).next(messages, NodeId(1))?;
        let pages = messages.chunks(page).map(ActualMessagePage::of).collect();
        Ok(Self { pages, trie: RefCell::default() })
    }

    /// Sends all pages. Records the wait for each response, and returns the total wait and the
    /// last trie.
    pub(super) async fn send(
        &self,
        connection: &mut BenchConnection,
        device: &LoadDevice,
        waits: &mut LatencyRecorder,
    ) -> anyhow::Result<(Duration, String)> {
        let (mut elapsed, mut trie) = (Duration::ZERO, String::new());
        for page in &self.pages {
            let post = page.post(device, page.cursor)?;
            let start = now();
            let answer = connection.send(post).await?.success()?;
            let wait = start.elapsed();
            waits.record(wait);
            elapsed += wait;
            trie = actual::trie(answer)?;
        }
        Ok((elapsed, trie))
    }

    pub(super) fn messages(&self) -> u64 {
        self.pages.iter().map(|page| page.count).sum()
    }
}

/// Measures at least one import, and more while there is time.
pub(super) fn measure(
    run: &ActualBenchRun<'_>,
    peer: SystemUnderTest<'_>,
    import: &ImportWorkload,
    duration: Duration,
) -> anyhow::Result<RoundSample> {
    let fresh = run.fixture.fresh(peer, CROWD, (0, IMPORT))?;
    let (warmup, devices) = fresh.devices.split_first().expect("the crowd is not empty");
    let processes = fresh.started.processes;
    let mut sample = run.fixture.runtime.block_on(async {
        let mut connection = BenchConnection::open(fresh.started.address).await?;
        let first = ImportWorkload::new(WARMUP_MESSAGES, WARMUP_MESSAGES)?;
        first.send(&mut connection, warmup, &mut LatencyRecorder::new()).await?;
        let cpu = processes.cpu_seconds();
        let (mut messages, mut elapsed, mut waits) = (0, Duration::ZERO, LatencyRecorder::new());
        for device in devices {
            let (took, trie) = import.send(&mut connection, device, &mut waits).await?;
            let mut known = import.trie.borrow_mut();
            let known = known.get_or_insert_with(|| trie.clone());
            ensure!(trie == *known, "the servers have different tries after the same import");
            messages += import.messages();
            elapsed += took;
            if elapsed >= duration {
                break;
            }
        }
        let cpu = processes.cpu_seconds() - cpu;
        let mut sample = RoundSample::new(messages, elapsed);
        sample.latency = waits.latency_and_mean();
        #[expect(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
        sample.metrics.push((CPU_US, cpu * 1e6 / messages as f64));
        anyhow::Ok(sample)
    })?;
    sample.metrics.extend(fresh.memory()?);
    Ok(sample)
}
