//! Measures the server's memory: with few accounts, with very many, and with clients that send the
//! largest bodies as fast as they can.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context;
use crdt::NodeId;
use engine::clock::now;
use http_body_util::BodyExt;
use hyper::body::Bytes;
use tokio::task::JoinSet;

use super::bench_run::{SyncBenchRun, UNIT};
use crate::http::BenchConnection;
use crate::measure::{LatencyRecorder, RoundSample};
use crate::message_generator::MessageGenerator;
use crate::server_process::PreparedDataDir;
use crate::service::device::{self, LoadDevice};
use crate::service::load_stats::LoadOperation;
use crate::service::service_api::ServiceApi;
use crate::service::systems_under_test::{ClientPool, SystemUnderTest};
use crate::suite::{BenchCase, BenchSection};

/// The number of accounts for each user who syncs.
pub(super) const ACCOUNTS_PER_USER: usize = 100;
/// The number of clients that send large bodies.
const FLOODING_COUNT: usize = 8;
/// Messages of a large body. With 41 bytes around each content it stays just below the limit.
const FLOOD_MESSAGES: usize = 20_000;
const MESSAGE_OVERHEAD_BYTES: usize = 41;

pub(super) fn section<'a>(
    run: &'a SyncBenchRun<'_>,
    few: &'a PreparedDataDir,
    many: &'a PreparedDataDir,
) -> BenchSection<'a> {
    let upload = |name: String, prepared, users| {
        let load = run.load(LoadOperation::Upload);
        let pool = ClientPool { users, devices: 1 };
        BenchCase::new(name, move |duration| {
            run.fixture.measure(SystemUnderTest::Warren(prepared), pool, load, duration)
        })
    };
    let accounts = run.plan.pool * ACCOUNTS_PER_USER;
    let flood = format!("{FLOODING_COUNT} clients sending bodies of 16 MiB");
    BenchSection {
        name: "memory".to_owned(),
        unit: UNIT,
        title: "server memory after pushes, and its peak".to_owned(),
        cases: vec![
            upload(format!("{} accounts, one active", run.plan.users), few, 1),
            upload(format!("{accounts} accounts, {} active", run.plan.pool), many, run.plan.pool),
            BenchCase::new(flood, |duration| flood_with(run, few, duration)),
        ],
    }
}

/// Sends the same body repeatedly: its messages are stored only once, and all other work is done
/// each time.
fn flood_with(
    run: &SyncBenchRun<'_>,
    prepared: &PreparedDataDir,
    duration: Duration,
) -> anyhow::Result<RoundSample> {
    let folder = tempfile::tempdir_in(run.fixture.folder)?;
    run.fixture.runtime.block_on(async {
        prepared.copy_to(folder.path())?;
        let peer = SystemUnderTest::Warren(prepared);
        let started = peer.start(run.fixture.program, folder.path())?;
        let idle_mb = started.processes.memory_mb();
        let content_bytes = protocol::BODY_BYTES_MAX / FLOOD_MESSAGES - MESSAGE_OVERHEAD_BYTES;
        let changes = Arc::new(MessageGenerator::new(content_bytes, 0));
        let pool = ClientPool { users: 1, devices: FLOODING_COUNT };
        let devices = peer.register(started.address, pool, 0, &changes).await?;
        let messages = changes.next(FLOOD_MESSAGES, NodeId(1))?;
        let body = ServiceApi::Warren.push(&devices[0], messages)?.into_body();
        let body = body.collect().await?.to_bytes();
        let end = now() + duration;
        let mut clients = JoinSet::new();
        for device in devices {
            clients.spawn(send(started.address, device, body.clone(), end));
        }
        let mut waits = LatencyRecorder::new();
        while let Some(client) = clients.join_next().await {
            waits.merge(&client??);
        }
        let elapsed = duration + now().saturating_duration_since(end);
        let mut sample = RoundSample::new(waits.count(), elapsed);
        sample.latency = waits.latency_and_mean();
        let peak = started.processes.memory_peak_mb().context("/proc")?;
        sample.metrics.push(("server memory idle, MB", idle_mb));
        sample.metrics.push(("server memory, MB", started.processes.memory_mb()));
        sample.metrics.push(("server memory peak, MB", peak));
        Ok(sample)
    })
}

/// Sends the body until `end`, and at least once.
async fn send(
    address: std::net::SocketAddr,
    device: LoadDevice,
    body: Bytes,
    end: Instant,
) -> anyhow::Result<LatencyRecorder> {
    let mut connection = BenchConnection::open(address).await?;
    let mut waits = LatencyRecorder::new();
    loop {
        let start = now();
        let post = device::request("POST", "/v1/sync/delta", &device.headers, body.clone())?;
        connection.send(post).await?.success()?;
        waits.record(start.elapsed());
        if now() >= end {
            return Ok(waits);
        }
    }
}
