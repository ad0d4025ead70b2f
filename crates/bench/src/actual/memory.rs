//! The table of the server's memory: all that apps do, in one server, one after the other.

use std::time::Duration;

use super::Run;
use super::import::{CROWD, Import};
use super::sections::{IMPORT, SMALL, load};
use crate::http::Connection;
use crate::measure::{CPU_US, Latencies, Sample, now};
use crate::service::load::Operation;
use crate::service::peers::Peer;

/// What starting took in memory is given back by then.
const SETTLE: Duration = Duration::from_secs(2);
/// Those who sync a little.
const USERS: usize = 8;
const SMALL_MESSAGES: usize = 10;

/// An import in one request, small syncs of other users, and a download of what was imported.
pub(super) fn measure(
    run: &Run<'_>,
    peer: Peer<'_>,
    (messages, import): (usize, &Import),
    duration: Duration,
) -> anyhow::Result<Sample> {
    let mut fresh = run.bed.fresh(peer, CROWD, (0, IMPORT))?;
    let processes = fresh.started.processes;
    run.bed.runtime.block_on(async { tokio::time::sleep(SETTLE).await });
    fresh.idle_mb = processes.memory_mb();
    let (importer, others) = fresh.devices.split_first().expect("the crowd is not empty");
    let (start, cpu) = (now(), processes.cpu_seconds());
    run.bed.runtime.block_on(async {
        let mut connection = Connection::open(fresh.started.address).await?;
        import.send(&mut connection, importer, &mut Latencies::new()).await
    })?;
    let small = load(Operation::Sync, SMALL_MESSAGES, 0, SMALL);
    let small = run.bed.work(peer, &fresh.started, others[..USERS].to_vec(), (small, duration))?;
    let whole = load(Operation::Whole, 0, messages, IMPORT);
    let whole = run.bed.work(peer, &fresh.started, vec![importer.clone()], (whole, duration))?;
    let moved = messages as u64
        + small.transactions * SMALL_MESSAGES as u64
        + whole.transactions * messages as u64;
    let mut sample = Sample::new(moved, start.elapsed());
    #[expect(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
    sample.facts.push((CPU_US, (processes.cpu_seconds() - cpu) * 1e6 / moved as f64));
    sample.facts.extend(fresh.memory()?);
    Ok(sample)
}
