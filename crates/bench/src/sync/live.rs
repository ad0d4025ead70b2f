//! Measures live devices: how long a message takes from one device to another that subscribes to
//! changes, and the cost of idle subscribers for the server.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use crdt::NodeId;
use engine::clock::now;
use hyper::body::Bytes;
use hyper::header::AUTHORIZATION;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

use super::bench_run::SyncBenchRun;
use crate::http::BenchConnection;
use crate::measure::{LatencyRecorder, RoundSample};
use crate::message_generator::{MessageGenerator, MessageSchedule};
use crate::server_process::PreparedDataDir;
use crate::service::device::LoadDevice;
use crate::service::service_api::ServiceApi;
use crate::service::systems_under_test::{ClientPool, SystemUnderTest};
use crate::service::{device, warren};
use crate::suite::{BenchCase, BenchSection};

/// The number of subscribers that the server allows per account.
const LISTENERS_PER_USER: usize = 500;
/// The number of devices: one sends, the other subscribes and pulls.
const DEVICES: usize = 2;

pub(super) fn section<'a>(run: &'a SyncBenchRun<'_>, few: &'a PreparedDataDir) -> BenchSection<'a> {
    let case = |name: String, others: usize| {
        BenchCase::new(name, move |duration| measure(run, few, others, duration))
    };
    let others = (few.tokens.len() - 1) * LISTENERS_PER_USER;
    let mut cases = vec![case("no other subscribers".to_owned(), 0)];
    if others > 0 {
        cases.push(case(format!("{others} other subscribers"), others));
    }
    BenchSection {
        name: "live".to_owned(),
        unit: "messages",
        title:
            "time from a device's push until another device, notified by the server, has pulled \
             the message; one message at a time"
                .to_owned(),
        cases,
    }
}

fn measure(
    run: &SyncBenchRun<'_>,
    prepared: &PreparedDataDir,
    others: usize,
    duration: Duration,
) -> anyhow::Result<RoundSample> {
    let folder = tempfile::tempdir_in(run.fixture.folder)?;
    run.fixture.runtime.block_on(async {
        prepared.copy_to(folder.path())?;
        let peer = SystemUnderTest::Warren(prepared);
        let started = peer.start(run.fixture.program, folder.path())?;
        let changes =
            Arc::new(MessageGenerator::of(run.fixture.content, 0, MessageSchedule::even(1)));
        let pool = ClientPool { users: 1, devices: DEVICES };
        let devices = peer.register(started.address, pool, 0, &changes).await?;
        let tokens = &prepared.tokens[1..];
        // The first subscriber of an account opens the vault, whose pages must not count as a
        // subscriber's memory.
        for token in tokens {
            LiveListener::open(started.address, &format!("Bearer {token}")).await?;
        }
        let before_mb = started.processes.memory_mb();
        let mut idle = Vec::with_capacity(others);
        for token in tokens.iter().cycle().take(others) {
            idle.push(LiveListener::open(started.address, &format!("Bearer {token}")).await?);
        }
        let after_mb = started.processes.memory_mb();
        let mut sample = deliver(started.address, &devices, &changes, duration).await?;
        let peak = started.processes.memory_peak_mb().context("/proc")?;
        sample.metrics.push(("server memory, MB", after_mb));
        sample.metrics.push(("server memory peak, MB", peak));
        #[expect(clippy::cast_precision_loss, reason = "thousands")]
        let listeners = idle.len().max(1) as f64;
        sample.metrics.push(("KB a listener", (after_mb - before_mb) * 1_000.0 / listeners));
        Ok(sample)
    })
}

/// Measures deliveries: each message is sent after the previous one has arrived.
async fn deliver(
    address: SocketAddr,
    devices: &[LoadDevice],
    changes: &MessageGenerator,
    duration: Duration,
) -> anyhow::Result<RoundSample> {
    let [sender, receiver] = devices else { anyhow::bail!("{DEVICES} devices") };
    let (mut push, mut pull) =
        (BenchConnection::open(address).await?, BenchConnection::open(address).await?);
    let bearer = receiver.headers.get(AUTHORIZATION).context("a device has a token")?;
    let mut listener = LiveListener::open(address, bearer.to_str()?).await?;
    let (mut waits, mut cursor) = (LatencyRecorder::new(), 0);
    let begin = now();
    while begin.elapsed() < duration {
        let post = ServiceApi::Warren.push(sender, changes.next(1, NodeId(1))?)?;
        let start = now();
        let (pushed, told) = tokio::join!(push.send(post), listener.event());
        told?;
        let path = format!("/v1/sync/delta?cursor={cursor}");
        let get = device::request("GET", &path, &receiver.headers, Bytes::new())?;
        let pulled = warren::pulled(pull.send(get).await?.success()?)?;
        waits.record(start.elapsed());
        anyhow::ensure!(pulled.messages == 1, "{} messages arrived instead of 1", pulled.messages);
        cursor = pulled.cursor;
        pushed?.success()?;
    }
    let mut sample = RoundSample::new(waits.count(), begin.elapsed());
    sample.latency = waits.latency_and_mean();
    Ok(sample)
}

/// A connection that subscribes to the changes of a vault.
struct LiveListener(BufReader<TcpStream>);

impl LiveListener {
    /// Subscribes, and reads the event with the vault's current state.
    async fn open(address: SocketAddr, bearer: &str) -> anyhow::Result<Self> {
        let mut stream = TcpStream::connect(address).await.context("cannot connect")?;
        let request = format!(
            "GET /v1/sync/events HTTP/1.1\r\nhost: {address}\r\nauthorization: {bearer}\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).await?;
        // Lines are short, and the memory of thousands of buffers is this process's, not the
        // server's.
        let mut listener = Self(BufReader::with_capacity(256, stream));
        listener.event().await?;
        Ok(listener)
    }

    async fn event(&mut self) -> anyhow::Result<()> {
        let mut line = String::new();
        while !line.starts_with("data:") {
            line.clear();
            let length = self.0.read_line(&mut line).await?;
            anyhow::ensure!(length > 0, "the event stream ended");
        }
        Ok(())
    }
}
