//! Runs the callers: each device waits for its response before its next request (a closed loop),
//! or requests begin at a fixed rate whatever the responses do (an open loop).
//!
//! The generator uses one thread, persistent connections, and requests built from prepared pieces.
//! It shares its cores with the server, so the report states its processor time.
//!
//! # Invariants
//! - A latency starts when the request was meant to begin: in an open loop that is its scheduled
//!   time, however late its connection gets to it.
//! - A closed loop counts the requests that finish within the measured time, an open loop those
//!   that begin.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use engine::clock::now;
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use tokio::task::JoinSet;
use tokio::time::Instant as TokioInstant;

use super::actual;
use super::device::{LoadDevice, PullResult};
use super::load_stats::{LoadStats, TransferCounts};
use super::service_api::ServiceApi;
use crate::http::BenchConnection;
use crate::measure::{CPU_US, RoundSample};
use crate::message_generator::{FIRST_MS, MessageGenerator};
use crate::processes::ProcessUsage;
use crate::service::load_stats::{LoadOperation, ServiceLoad};

/// The most connections; devices beyond this number take turns on a connection, like behind a
/// proxy.
const CONNECTIONS_COUNT_MAX: usize = 64;
/// The warm-up as a fraction of the measured time, and its limit.
const WARMUP_SHARE: u32 = 4;
const WARMUP_MAX: Duration = Duration::from_millis(500);

struct LoadRound {
    api: ServiceApi,
    load: ServiceLoad,
    changes: Arc<MessageGenerator>,
    connections: usize,
    begin: Instant,
    start: Instant,
    end: Instant,
}

/// Runs the devices for `duration`. Also returns why the first failed request failed, if any did.
pub(crate) async fn run(
    (address, api, processes): (SocketAddr, ServiceApi, ProcessUsage),
    devices: Vec<LoadDevice>,
    changes: Arc<MessageGenerator>,
    (load, duration): (ServiceLoad, Duration),
) -> anyhow::Result<(RoundSample, Option<String>)> {
    let connections = devices.len().min(load.connections.unwrap_or(CONNECTIONS_COUNT_MAX));
    let callers = open(address, api, devices, connections).await?;
    let begin = now();
    let start = begin + warm_up(duration);
    let end = start + duration;
    let round = LoadRound { api, load, changes, connections, begin, start, end };
    let round = Arc::new(round);
    let mut calls = JoinSet::new();
    for (index, caller) in callers.into_iter().enumerate() {
        calls.spawn(Arc::clone(&round).call(index, caller));
    }
    let used = CpuUsage::between(start, end, processes);
    let mut all = LoadStats::new();
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
    sample.metrics.push((CPU_US, used.server * 1e6 / requests));
    sample.metrics.push(("generator CPU, cores", used.generator / duration.as_secs_f64()));
    Ok((sample, all.first_failure))
}

/// A connection, and the devices that take turns on it.
struct LoadClient {
    connection: BenchConnection,
    devices: Vec<LoadDevice>,
}

/// Opens the connections. Every device sends one request, so that the server has its files open
/// when the clock starts.
async fn open(
    address: SocketAddr,
    api: ServiceApi,
    devices: Vec<LoadDevice>,
    connections: usize,
) -> anyhow::Result<Vec<LoadClient>> {
    let mut shares: Vec<Vec<LoadDevice>> = (0..connections).map(|_| Vec::new()).collect();
    for (index, device) in devices.into_iter().enumerate() {
        shares[index % connections].push(device);
    }
    let mut opening = JoinSet::new();
    for devices in shares {
        opening.spawn(async move {
            let mut connection = BenchConnection::open(address).await?;
            for device in &devices {
                let request = api.pull(device, device.cursor, 1)?;
                api.pulled(connection.send(request).await?.success()?)?;
            }
            anyhow::Ok(LoadClient { connection, devices })
        });
    }
    let mut callers = Vec::with_capacity(connections);
    while let Some(caller) = opening.join_next().await {
        callers.push(caller??);
    }
    Ok(callers)
}

/// Returns the time of the warm-up before this measured time.
pub(crate) fn warm_up(duration: Duration) -> Duration {
    WARMUP_MAX.min(duration / WARMUP_SHARE)
}

/// The seconds of processor time within the measured time.
pub(crate) struct CpuUsage {
    pub(crate) server: f64,
    pub(crate) generator: f64,
}

impl CpuUsage {
    /// Waits from `start` to `end`, and returns what both used in that time.
    pub(crate) async fn between(start: Instant, end: Instant, server: ProcessUsage) -> Self {
        let both =
            || Self { server: server.cpu_seconds(), generator: ProcessUsage::own().cpu_seconds() };
        tokio::time::sleep_until(TokioInstant::from_std(start)).await;
        let before = both();
        tokio::time::sleep_until(TokioInstant::from_std(end)).await;
        let after = both();
        let server = after.server - before.server;
        Self { server, generator: after.generator - before.generator }
    }
}

impl LoadRound {
    /// Runs one connection, whose devices take turns.
    async fn call(self: Arc<Self>, index: usize, caller: LoadClient) -> anyhow::Result<LoadStats> {
        let LoadClient { mut connection, mut devices } = caller;
        let mut stats = LoadStats::new();
        let mut random = SmallRng::seed_from_u64(index as u64);
        let count = devices.len();
        for turn in 0.. {
            let Some(begun) = self.wait_for_turn(index, turn, &mut stats).await else { break };
            let device = &mut devices[turn % count];
            let is_push = match self.load.operation {
                LoadOperation::Upload | LoadOperation::Sync => true,
                LoadOperation::Download | LoadOperation::Whole => false,
                // Half of the devices that share a connection push while the others pull.
                LoadOperation::Cross => (turn / count + turn % count).is_multiple_of(2),
            };
            let moved = if self.load.operation == LoadOperation::Sync {
                self.sync(&mut connection, device).await
            } else if is_push {
                self.push(&mut connection, device).await
            } else {
                self.pull(&mut connection, device, &mut random).await
            };
            let finished = now();
            // In a closed loop, a slow request may begin before the measured time: counting only
            // requests that begin within it would omit the longest waits, and with them requests.
            let counts = match self.load.rate {
                None => self.start <= finished && finished < self.end,
                Some(_) => self.start <= begun,
            };
            if counts {
                stats.record(is_push, finished - begun, moved);
            }
        }
        Ok(stats)
    }

    /// Waits until this request begins, and returns that time; `None` at the end.
    async fn wait_for_turn(
        &self,
        index: usize,
        turn: usize,
        stats: &mut LoadStats,
    ) -> Option<Instant> {
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
            // This request is late, and so are all those after it.
            let late = (turn..).take_while(|turn| self.begin + at(*turn) < self.end);
            stats.not_begun += late.count() as u64;
            return None;
        }
        Some(begins)
    }

    async fn push(
        &self,
        connection: &mut BenchConnection,
        device: &LoadDevice,
    ) -> anyhow::Result<TransferCounts> {
        let messages = self.changes.next(self.load.messages, device.node)?;
        let request = self.api.push(device, messages)?;
        let answer = connection.send(request).await?.success()?;
        let bytes = answer.len() as u64;
        self.api.pushed(answer)?;
        Ok(TransferCounts { messages: self.load.messages as u64, bytes })
    }

    /// Syncs the messages of a user with one device.
    async fn sync(
        &self,
        connection: &mut BenchConnection,
        device: &mut LoadDevice,
    ) -> anyhow::Result<TransferCounts> {
        let messages = self.changes.next(self.load.messages, device.node)?;
        let newest = messages.last().map(|message| message.timestamp.millis() + 1 - FIRST_MS);
        let request = actual::sync(device, &messages, device.cursor)?;
        let answer = connection.send(request).await?.success()?;
        let bytes = answer.len() as u64;
        let others = self.api.pulled(answer)?.messages;
        anyhow::ensure!(others == 0, "received {others} messages that no other device sent");
        device.cursor = newest.unwrap_or(device.cursor);
        Ok(TransferCounts { messages: messages.len() as u64, bytes })
    }

    async fn pull(
        &self,
        connection: &mut BenchConnection,
        device: &mut LoadDevice,
        random: &mut SmallRng,
    ) -> anyhow::Result<TransferCounts> {
        let ServiceLoad { operation, limit, seeded, .. } = self.load;
        let last = seeded.saturating_sub(limit as u64);
        let cursor = match operation {
            LoadOperation::Cross => device.cursor,
            LoadOperation::Whole => device.base,
            // Without a limit, the service would send all messages after the cursor.
            _ if !self.api.has_limit() => device.base + last,
            _ => device.base + random.random_range(0..=last),
        };
        let request = self.api.pull(device, cursor, limit)?;
        let answer = connection.send(request).await?.success()?;
        let bytes = answer.len() as u64;
        let PullResult { messages, cursor } = self.api.pulled(answer)?;
        if operation == LoadOperation::Whole {
            anyhow::ensure!(messages == seeded, "received {messages} of {seeded} messages");
        }
        device.cursor = device.cursor.max(cursor);
        Ok(TransferCounts { messages, bytes })
    }
}
