//! The table of the server's memory: few accounts, very many, and a client that sends the largest
//! bodies as fast as it can.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context;
use crdt::Node;
use http_body_util::BodyExt;
use hyper::body::Bytes;
use tokio::task::JoinSet;

use super::Run;
use super::sections::UNIT;
use crate::changes::Changes;
use crate::http::Connection;
use crate::measure::{Latencies, Sample, now};
use crate::served::Prepared;
use crate::service::dialect::{self, Device, Dialect};
use crate::service::load::Operation;
use crate::service::peers::{Crowd, Peer};
use crate::suite::{Case, Section};

/// Accounts for each user who syncs.
pub(super) const ACCOUNTS_PER_USER: usize = 100;
/// Clients that send large bodies.
const FLOODING_COUNT: usize = 8;
/// Of a large body. With 41 bytes around each content it stays just below the limit.
const FLOOD_MESSAGES: usize = 20_000;
const MESSAGE_OVERHEAD_BYTES: usize = 41;

pub(super) fn section<'a>(run: &'a Run<'_>, few: &'a Prepared, many: &'a Prepared) -> Section<'a> {
    let upload = |name: String, prepared, users| {
        let load = run.load(Operation::Upload);
        let crowd = Crowd { users, devices: 1 };
        Case::new(name, move |duration| {
            run.bed.measure(Peer::Warren(prepared), crowd, load, duration)
        })
    };
    let accounts = run.plan.crowd * ACCOUNTS_PER_USER;
    let flood = format!("{FLOODING_COUNT} clients sending bodies of 16 MiB");
    Section {
        name: "memory".to_owned(),
        unit: UNIT,
        title: "the server's memory after pushes, and the most that it ever had".to_owned(),
        cases: vec![
            upload(format!("{} accounts, one active", run.plan.users), few, 1),
            upload(format!("{accounts} accounts, {} active", run.plan.crowd), many, run.plan.crowd),
            Case::new(flood, |duration| flood_with(run, few, duration)),
        ],
    }
}

/// The same body again and again: what is stored is stored once, and everything else is done each
/// time.
fn flood_with(run: &Run<'_>, prepared: &Prepared, duration: Duration) -> anyhow::Result<Sample> {
    let folder = tempfile::tempdir_in(run.bed.folder)?;
    run.bed.runtime.block_on(async {
        prepared.copy_to(folder.path())?;
        let peer = Peer::Warren(prepared);
        let started = peer.start(run.bed.program, folder.path())?;
        let idle_mb = started.processes.memory_mb();
        let content_bytes = protocol::BODY_BYTES_MAX / FLOOD_MESSAGES - MESSAGE_OVERHEAD_BYTES;
        let changes = Arc::new(Changes::new(content_bytes, 0));
        let crowd = Crowd { users: 1, devices: FLOODING_COUNT };
        let devices = peer.enroll(started.address, crowd, 0, &changes).await?;
        let messages = changes.next(FLOOD_MESSAGES, Node(1))?;
        let body = Dialect::Warren.push(&devices[0], messages)?.into_body();
        let body = body.collect().await?.to_bytes();
        let end = now() + duration;
        let mut clients = JoinSet::new();
        for device in devices {
            clients.spawn(send(started.address, device, body.clone(), end));
        }
        let mut waits = Latencies::new();
        while let Some(client) = clients.join_next().await {
            waits.merge(&client??);
        }
        let elapsed = duration + now().saturating_duration_since(end);
        let mut sample = Sample::new(waits.count(), elapsed);
        sample.latency = waits.latency_and_mean();
        let peak = started.processes.memory_peak_mb().context("/proc")?;
        sample.facts.push(("server memory idle, MB", idle_mb));
        sample.facts.push(("server memory, MB", started.processes.memory_mb()));
        sample.facts.push(("server memory peak, MB", peak));
        Ok(sample)
    })
}

/// At least once.
async fn send(
    address: std::net::SocketAddr,
    device: Device,
    body: Bytes,
    end: Instant,
) -> anyhow::Result<Latencies> {
    let mut connection = Connection::open(address).await?;
    let mut waits = Latencies::new();
    loop {
        let start = now();
        let post = dialect::request("POST", "/v1/sync/delta", &device.headers, body.clone())?;
        connection.send(post).await?.success()?;
        waits.record(start.elapsed());
        if now() >= end {
            return Ok(waits);
        }
    }
}
