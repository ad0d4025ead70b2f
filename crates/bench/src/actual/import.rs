//! Imports: many messages at once, in one request or in pages, each into a budget of its own.
//!
//! # Invariants
//! - All servers did the same work: in the end they answer the same trie, byte by byte.
//! - The requests are built before the clock runs, and the clock runs only from a request to the end
//!   of its answer.

use std::cell::RefCell;
use std::time::Duration;

use anyhow::ensure;
use crdt::Node;

use super::Run;
use super::sections::IMPORT;
use crate::changes::{Changes, Content};
use crate::http::Connection;
use crate::measure::{CPU_US, Latencies, Sample, now};
use crate::service::actual::{self, Page};
use crate::service::dialect::Device;
use crate::service::peers::{Crowd, Peer};

/// Budgets of a server, one for the warm-up. Warren does not need them all in a second.
pub(super) const CROWD: Crowd = Crowd { users: 32, devices: 1 };
/// The server has seen a request before the clock starts.
const WARMUP_MESSAGES: usize = 1_000;

/// An import as it goes over the wire.
#[derive(Debug)]
pub(super) struct Import {
    pages: Vec<Page>,
    /// What the first server that got it answered in the end.
    trie: RefCell<Option<String>>,
}

impl Import {
    pub(super) fn new(messages: usize, page: usize) -> anyhow::Result<Self> {
        let messages = Changes::of(Content::Budget, 0, IMPORT).next(messages, Node(1))?;
        let pages = messages.chunks(page).map(Page::of).collect();
        Ok(Self { pages, trie: RefCell::default() })
    }

    /// Records what was waited for each answer, and returns what was waited for all, and the trie
    /// that came last.
    pub(super) async fn send(
        &self,
        connection: &mut Connection,
        device: &Device,
        waits: &mut Latencies,
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

/// At least one, more while there is time.
pub(super) fn measure(
    run: &Run<'_>,
    peer: Peer<'_>,
    import: &Import,
    duration: Duration,
) -> anyhow::Result<Sample> {
    let fresh = run.bed.fresh(peer, CROWD, (0, IMPORT))?;
    let (warmup, devices) = fresh.devices.split_first().expect("the crowd is not empty");
    let processes = fresh.started.processes;
    let mut sample = run.bed.runtime.block_on(async {
        let mut connection = Connection::open(fresh.started.address).await?;
        let first = Import::new(WARMUP_MESSAGES, WARMUP_MESSAGES)?;
        first.send(&mut connection, warmup, &mut Latencies::new()).await?;
        let cpu = processes.cpu_seconds();
        let (mut messages, mut elapsed, mut waits) = (0, Duration::ZERO, Latencies::new());
        for device in devices {
            let (took, trie) = import.send(&mut connection, device, &mut waits).await?;
            let mut known = import.trie.borrow_mut();
            let known = known.get_or_insert_with(|| trie.clone());
            ensure!(trie == *known, "after the same import two servers have different tries");
            messages += import.messages();
            elapsed += took;
            if elapsed >= duration {
                break;
            }
        }
        let cpu = processes.cpu_seconds() - cpu;
        let mut sample = Sample::new(messages, elapsed);
        sample.latency = waits.latency_and_mean();
        #[expect(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
        sample.facts.push((CPU_US, cpu * 1e6 / messages as f64));
        anyhow::Ok(sample)
    })?;
    sample.facts.extend(fresh.memory()?);
    Ok(sample)
}
