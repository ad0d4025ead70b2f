//! Measures deliveries by LMTP: several connections deliver messages for random mailboxes, and each
//! waits for its answer before its next message (a closed loop).
//!
//! # Invariants
//! - Every answer is checked. A message counts when it was accepted within the measured time.
//! - Each connection chooses the same mailboxes and messages in every round and for every system.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use engine::clock::now;
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use tokio::task::JoinSet;

use super::lmtp_connection::LmtpConnection;
use super::mail_corpus::MailCorpus;
use super::mail_service::{MailBenchRun, MailSystem};
use super::mailbox_address::address_of;
use crate::format::counted;
use crate::measure::{CPU_US, LatencyRecorder, RoundSample};
use crate::service::load::{CpuUsage, warm_up};
use crate::suite::{BenchCase, BenchSection};

/// The deliveries of a connection in one round.
struct DeliveryLoad {
    address: SocketAddr,
    mailboxes: usize,
    corpus: Arc<MailCorpus>,
    start: Instant,
    end: Instant,
}

/// The results of deliveries.
struct DeliveryStats {
    /// The waits for the answers to the messages that count.
    waits: LatencyRecorder,
    /// All messages that were accepted, those of the warm-up included.
    accepted: u64,
    bytes: u64,
    failures: u64,
    first_failure: Option<String>,
}

/// Returns the table of a number of connections.
pub(super) fn section<'a>(
    run: &'a MailBenchRun<'_>,
    systems: &[MailSystem],
    connections: usize,
) -> BenchSection<'a> {
    let case = |&system: &MailSystem| {
        BenchCase::new(system.name(), move |duration| measure(run, system, connections, duration))
    };
    BenchSection {
        name: format!("delivery-{connections}"),
        unit: "messages",
        title: format!(
            "messages delivered by LMTP on {} to {}",
            counted(connections as u64, "connection", "connections"),
            counted(run.plan.mailboxes as u64, "locked mailbox", "locked mailboxes")
        ),
        cases: systems.iter().map(case).collect(),
    }
}

fn measure(
    run: &MailBenchRun<'_>,
    system: MailSystem,
    connections: usize,
    duration: Duration,
) -> anyhow::Result<RoundSample> {
    let (stats, used, bytes) = run.runtime.block_on(async {
        let fresh = run.fresh(system, connections).await?;
        let mut sessions = Vec::with_capacity(connections);
        for _ in 0..connections {
            sessions.push(LmtpConnection::open(fresh.address).await?);
        }
        let start = now() + warm_up(duration);
        let load = Arc::new(DeliveryLoad {
            address: fresh.address,
            mailboxes: run.plan.mailboxes,
            corpus: Arc::clone(&run.corpus),
            start,
            end: start + duration,
        });
        let mut delivering = JoinSet::new();
        for (index, session) in sessions.into_iter().enumerate() {
            delivering.spawn(Arc::clone(&load).deliver(index, session));
        }
        let used = CpuUsage::between(start, load.end, fresh.processes);
        let delivered = async {
            let mut all = DeliveryStats::new();
            while let Some(stats) = delivering.join_next().await {
                all.merge(stats??);
            }
            anyhow::Ok(all)
        };
        let (used, stats) = tokio::join!(used, delivered);
        anyhow::Ok((stats?, used, fresh.stop()?))
    })?;
    if let Some(failure) = &stats.first_failure {
        run.failures.borrow_mut().insert(format!("{}: {failure}", system.name()));
    }
    stats.sample(&used, bytes, duration)
}

impl DeliveryLoad {
    /// Delivers on one connection until the end. A connection on which a delivery failed is
    /// replaced.
    async fn deliver(
        self: Arc<Self>,
        index: usize,
        mut session: LmtpConnection,
    ) -> anyhow::Result<DeliveryStats> {
        let mut stats = DeliveryStats::new();
        let mut random = SmallRng::seed_from_u64(index as u64);
        loop {
            let begun = now();
            if begun >= self.end {
                return Ok(stats);
            }
            let recipient = address_of(random.random_range(0..self.mailboxes));
            let message = self.corpus.pick(&mut random);
            let delivered = session.deliver(&recipient, message).await;
            let finished = now();
            let counts = self.start <= finished && finished < self.end;
            match delivered {
                Ok(()) => {
                    stats.accepted += 1;
                    if counts {
                        stats.waits.record(finished - begun);
                        stats.bytes += message.len() as u64;
                    }
                }
                Err(error) => {
                    stats.failures += 1;
                    stats.first_failure.get_or_insert_with(|| format!("{error:#}"));
                    session = LmtpConnection::open(self.address).await?;
                }
            }
        }
    }
}

impl DeliveryStats {
    fn new() -> Self {
        let waits = LatencyRecorder::new();
        Self { waits, accepted: 0, bytes: 0, failures: 0, first_failure: None }
    }

    fn merge(&mut self, other: Self) {
        self.waits.merge(&other.waits);
        self.accepted += other.accepted;
        self.bytes += other.bytes;
        self.failures += other.failures;
        self.first_failure = self.first_failure.take().or(other.first_failure);
    }

    /// Returns the sample; `disk_bytes` is what the server's files have gained. Fails if nothing
    /// was delivered because deliveries failed.
    fn sample(
        &self,
        used: &CpuUsage,
        disk_bytes: u64,
        duration: Duration,
    ) -> anyhow::Result<RoundSample> {
        let count = self.waits.count();
        if let (0, Some(why)) = (self.accepted, &self.first_failure) {
            anyhow::bail!("no message was delivered: {why}");
        }
        let mut sample = RoundSample::new(count, duration);
        sample.latency = self.waits.latency_and_mean();
        #[expect(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
        let [counted, accepted, bytes, disk_bytes, failures] =
            [count, self.accepted, self.bytes, disk_bytes, self.failures].map(|n| n as f64);
        sample.metrics = vec![
            (CPU_US, used.server * 1e6 / counted),
            ("generator CPU, cores", used.generator / duration.as_secs_f64()),
            ("server CPU, cores", used.server / duration.as_secs_f64()),
            ("MB/s", bytes / 1e6 / duration.as_secs_f64()),
            ("kB on the disk each", disk_bytes / 1e3 / accepted),
            ("failures", failures),
        ];
        Ok(sample)
    }
}
