//! Callers: each device waits for its answer before it asks again (a closed loop), or requests
//! begin at a fixed rate whatever the answers do (an open loop).
//!
//! One thread, kept-open connections, requests put together from prepared pieces: the generator
//! shares its cores with the server, so the report says what it used.
//!
//! # Invariants
//! - A latency starts when the request was meant to begin: in an open loop that is its place in
//!   the schedule, however late its connection came to it.
//! - A closed loop counts what finishes within the measured time, an open one what begins.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use tokio::task::JoinSet;
use tokio::time::Instant as TokioInstant;

use super::dialect::{Device, Dialect};
use crate::changes::Changes;
use crate::http::Connection;
use crate::measure::{Latencies, Sample, now};
use crate::processes::Processes;

/// Devices beyond this take turns on a connection, as behind a proxy.
const CONNECTIONS_COUNT_MAX: usize = 64;
/// Of the measured time, and at most so long.
const WARMUP_SHARE: u32 = 4;
const WARMUP_MAX: Duration = Duration::from_millis(500);

const PUSH_FACTS: [&str; 6] = [
    "pushes/s",
    "push average, ms",
    "push P50, ms",
    "push P95, ms",
    "push P99, ms",
    "push max, ms",
];
const PULL_FACTS: [&str; 6] =
    ["pulls/s", "pull average, ms", "pull P50, ms", "pull P95, ms", "pull P99, ms", "pull max, ms"];

/// What devices do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operation {
    /// Push pages of new messages.
    Upload,
    /// Pull from random cursors over the seeded messages.
    Download,
    /// Push, then pull what the others pushed, and so on.
    Cross,
}

/// How they do it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Load {
    pub(super) operation: Operation,
    /// Of a push.
    pub(super) messages: usize,
    /// Of a pull.
    pub(super) limit: usize,
    /// Requests a second of an open loop; `None` for a closed one.
    pub(super) rate: Option<f64>,
    /// Connections on which the devices take turns; `None` for one each, within reason.
    pub(super) connections: Option<usize>,
    /// Messages that each user has before.
    pub(super) seeded: u64,
}

/// What one endpoint did.
#[derive(Debug)]
struct Endpoint {
    latencies: Latencies,
    messages: u64,
}

/// What all callers saw.
#[derive(Debug)]
struct Tally {
    push: Endpoint,
    pull: Endpoint,
    failures: u64,
    first_failure: Option<String>,
    /// Of an open loop: requests for which the time ended before their connection was free.
    not_begun: u64,
}

struct Round {
    dialect: Dialect,
    load: Load,
    changes: Arc<Changes>,
    connections: usize,
    begin: Instant,
    start: Instant,
    end: Instant,
}

/// Lets the devices work for `duration`. Returns also why the first request failed, if one did.
pub(super) async fn run(
    (address, dialect, processes): (SocketAddr, Dialect, Processes),
    devices: Vec<Device>,
    changes: Arc<Changes>,
    (load, duration): (Load, Duration),
) -> anyhow::Result<(Sample, Option<String>)> {
    let connections = devices.len().min(load.connections.unwrap_or(CONNECTIONS_COUNT_MAX));
    let callers = open(address, dialect, devices, connections).await?;
    let begin = now();
    let start = begin + WARMUP_MAX.min(duration / WARMUP_SHARE);
    let end = start + duration;
    let round = Round { dialect, load, changes, connections, begin, start, end };
    let round = Arc::new(round);
    let mut calls = JoinSet::new();
    for (index, caller) in callers.into_iter().enumerate() {
        calls.spawn(Arc::clone(&round).call(index, caller));
    }
    let used = Used::between(start, end, processes);
    let mut all = Tally::new();
    let called = async {
        while let Some(call) = calls.join_next().await {
            all.merge(call??);
        }
        anyhow::Ok(())
    };
    let (used, called) = tokio::join!(used, called);
    called?;
    let mut sample = all.sample(load, duration)?;
    #[expect(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
    let requests = (all.requests() + all.failures) as f64;
    sample.facts.push(("server CPU, ms a request", used.server * 1_000.0 / requests));
    sample.facts.push(("generator CPU, cores", used.generator / duration.as_secs_f64()));
    Ok((sample, all.first_failure))
}

/// A connection, and the devices that take turns on it.
struct Caller {
    connection: Connection,
    devices: Vec<Device>,
}

/// Every device asks once, so that the clock does not start on closed files.
async fn open(
    address: SocketAddr,
    dialect: Dialect,
    devices: Vec<Device>,
    connections: usize,
) -> anyhow::Result<Vec<Caller>> {
    let mut shares: Vec<Vec<Device>> = (0..connections).map(|_| Vec::new()).collect();
    for (index, device) in devices.into_iter().enumerate() {
        shares[index % connections].push(device);
    }
    let mut opening = JoinSet::new();
    for devices in shares {
        opening.spawn(async move {
            let mut connection = Connection::open(address).await?;
            for device in &devices {
                let request = dialect.pull(device, device.cursor, 1)?;
                dialect.pulled(connection.send(request).await?.success()?)?;
            }
            anyhow::Ok(Caller { connection, devices })
        });
    }
    let mut callers = Vec::with_capacity(connections);
    while let Some(caller) = opening.join_next().await {
        callers.push(caller??);
    }
    Ok(callers)
}

/// Seconds of processor time within the measured time.
struct Used {
    server: f64,
    generator: f64,
}

impl Used {
    async fn between(start: Instant, end: Instant, server: Processes) -> Self {
        let both =
            || Self { server: server.cpu_seconds(), generator: Processes::own().cpu_seconds() };
        tokio::time::sleep_until(TokioInstant::from_std(start)).await;
        let before = both();
        tokio::time::sleep_until(TokioInstant::from_std(end)).await;
        let after = both();
        let server = after.server - before.server;
        Self { server, generator: after.generator - before.generator }
    }
}

impl Round {
    /// One connection, whose devices take turns.
    async fn call(self: Arc<Self>, index: usize, caller: Caller) -> anyhow::Result<Tally> {
        let Caller { mut connection, mut devices } = caller;
        let mut tally = Tally::new();
        let mut random = SmallRng::seed_from_u64(index as u64);
        let count = devices.len();
        for turn in 0.. {
            let Some(begun) = self.wait_for_turn(index, turn, &mut tally).await else { break };
            let device = &mut devices[turn % count];
            let is_push = match self.load.operation {
                Operation::Upload => true,
                Operation::Download => false,
                // Half of those who share a connection push while the others pull.
                Operation::Cross => (turn / count + turn % count).is_multiple_of(2),
            };
            let moved = if is_push {
                self.push(&mut connection, device).await
            } else {
                self.pull(&mut connection, device, &mut random).await
            };
            let finished = now();
            // Who is slow has begun before: counting only what begins within would leave out the
            // longest waits, and with them requests.
            let counts = match self.load.rate {
                None => self.start <= finished && finished < self.end,
                Some(_) => self.start <= begun,
            };
            if counts {
                tally.record(is_push, finished - begun, moved);
            }
        }
        Ok(tally)
    }

    /// When this request begins; `None` at the end.
    async fn wait_for_turn(&self, index: usize, turn: usize, tally: &mut Tally) -> Option<Instant> {
        let Some(rate) = self.load.rate else {
            let begun = now();
            return (begun < self.end).then_some(begun);
        };
        #[expect(clippy::cast_precision_loss, reason = "counts of requests are far below 2^52")]
        let at =
            |turn: usize| Duration::from_secs_f64((index + turn * self.connections) as f64 / rate);
        let begins = self.begin + at(turn);
        if begins >= self.end {
            return None;
        }
        tokio::time::sleep_until(TokioInstant::from_std(begins)).await;
        if now() >= self.end {
            // It is late; so are those after it.
            let late = (turn..).take_while(|turn| self.begin + at(*turn) < self.end);
            tally.not_begun += late.count() as u64;
            return None;
        }
        Some(begins)
    }

    async fn push(&self, connection: &mut Connection, device: &Device) -> anyhow::Result<u64> {
        let messages = self.changes.next(self.load.messages, device.node)?;
        let request = self.dialect.push(device, messages)?;
        self.dialect.pushed(connection.send(request).await?.success()?)?;
        Ok(self.load.messages as u64)
    }

    async fn pull(
        &self,
        connection: &mut Connection,
        device: &mut Device,
        random: &mut SmallRng,
    ) -> anyhow::Result<u64> {
        let Load { operation, limit, seeded, .. } = self.load;
        let cursor = if operation == Operation::Cross {
            device.cursor
        } else {
            let last = seeded.saturating_sub(limit as u64);
            // Without a limit of its own it would send everything after the cursor.
            let place = if self.dialect.has_limit() { random.random_range(0..=last) } else { last };
            device.base + place
        };
        let request = self.dialect.pull(device, cursor, limit)?;
        let pulled = self.dialect.pulled(connection.send(request).await?.success()?)?;
        device.cursor = device.cursor.max(pulled.cursor);
        Ok(pulled.messages)
    }
}

impl Endpoint {
    fn new() -> Self {
        Self { latencies: Latencies::new(), messages: 0 }
    }

    /// Where two endpoints share a row.
    fn facts(
        &self,
        names: [&'static str; 6],
        duration: Duration,
    ) -> impl Iterator<Item = (&'static str, f64)> {
        let values = self.latencies.latency_and_mean().map(|latency| {
            let waits = [latency.mean_us?, latency.p50_us, latency.p95_us, latency.p99_us];
            let [mean, p50, p95, p99] = waits.map(|us| us / 1_000.0);
            #[expect(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
            let rate = self.latencies.count() as f64 / duration.as_secs_f64();
            Some([rate, mean, p50, p95, p99, latency.max_us / 1_000.0])
        });
        names.into_iter().zip(values.flatten().into_iter().flatten())
    }

    fn merge(&mut self, other: &Self) {
        self.latencies.merge(&other.latencies);
        self.messages += other.messages;
    }
}

impl Tally {
    fn new() -> Self {
        let (push, pull) = (Endpoint::new(), Endpoint::new());
        Self { push, pull, failures: 0, first_failure: None, not_begun: 0 }
    }

    fn record(&mut self, is_push: bool, wait: Duration, moved: anyhow::Result<u64>) {
        let endpoint = if is_push { &mut self.push } else { &mut self.pull };
        match moved {
            Ok(messages) => {
                endpoint.latencies.record(wait);
                endpoint.messages += messages;
            }
            Err(error) => {
                self.failures += 1;
                self.first_failure.get_or_insert_with(|| format!("{error:#}"));
            }
        }
    }

    fn merge(&mut self, other: Self) {
        self.push.merge(&other.push);
        self.pull.merge(&other.pull);
        self.failures += other.failures;
        self.not_begun += other.not_begun;
        self.first_failure = self.first_failure.take().or(other.first_failure);
    }

    /// Requests that succeeded.
    fn requests(&self) -> u64 {
        self.push.latencies.count() + self.pull.latencies.count()
    }

    /// In requests. It fails if there was none: then nothing was measured.
    fn sample(&self, load: Load, duration: Duration) -> anyhow::Result<Sample> {
        if self.requests() == 0 {
            let why = self.first_failure.as_deref().unwrap_or("none in time");
            anyhow::bail!("no request succeeded: {why}");
        }
        #[expect(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
        let count = |count: u64| count as f64;
        let mut all = self.push.latencies.clone();
        all.merge(&self.pull.latencies);
        let mut sample = Sample::new(self.requests(), duration);
        sample.latency = all.latency_and_mean();
        let messages = count(self.push.messages + self.pull.messages);
        sample.facts.push(("messages/s", messages / duration.as_secs_f64()));
        sample.facts.push(("requests", count(self.requests())));
        sample.facts.push(("failures", count(self.failures)));
        if load.rate.is_some() {
            sample.facts.push(("not begun", count(self.not_begun)));
        }
        if load.operation == Operation::Cross {
            sample.facts.extend(self.push.facts(PUSH_FACTS, duration));
            sample.facts.extend(self.pull.facts(PULL_FACTS, duration));
        }
        Ok(sample)
    }
}
