//! Measures the server's memory: all operations of apps, in one server, one after the other.
//!
//! # Invariants
//! - All servers do the same work, however long it takes: more work would take more memory.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::ensure;
use engine::clock::now;
use tokio::task::JoinSet;

use super::bench_run::ActualBenchRun;
use super::import::{CROWD, ImportWorkload};
use super::sizes::{IMPORT, SMALL};
use crate::http::BenchConnection;
use crate::measure::{CPU_US, LatencyRecorder, RoundSample};
use crate::message_generator::{ContentKind, MessageGenerator};
use crate::service::actual::{self, ActualMessagePage};
use crate::service::device::LoadDevice;
use crate::service::systems_under_test::SystemUnderTest;

/// The pause after which the server has released the memory that starting took.
const SETTLE: Duration = Duration::from_secs(2);
/// The number of users that make small syncs at the same time.
pub(super) const USERS: usize = 8;
pub(super) const SYNCS_PER_USER: usize = 20;
pub(super) const MESSAGES_PER_SYNC: usize = 10;

/// Measures an import in one request, small syncs of other users, and a download of the import.
pub(super) fn measure(
    run: &ActualBenchRun<'_>,
    peer: SystemUnderTest<'_>,
    import: &ImportWorkload,
) -> anyhow::Result<RoundSample> {
    let mut fresh = run.fixture.fresh(peer, CROWD, (0, IMPORT))?;
    let (address, processes) = (fresh.started.address, fresh.started.processes);
    let (importer, others) = fresh.devices.split_first().expect("the crowd is not empty");
    let mut sample = run.fixture.runtime.block_on(async {
        tokio::time::sleep(SETTLE).await;
        fresh.idle_mb = processes.memory_mb();
        let (start, cpu) = (now(), processes.cpu_seconds());
        let mut connection = BenchConnection::open(address).await?;
        import.send(&mut connection, importer, &mut LatencyRecorder::new()).await?;
        let mut users = JoinSet::new();
        for device in &others[..USERS] {
            users.spawn(sync(address, device.clone()));
        }
        while let Some(user) = users.join_next().await {
            user??;
        }
        let imported = import.messages();
        let pulled = actual::pulled(connection.send(actual::pull(importer, 0)?).await?.success()?)?;
        ensure!(
            pulled.messages == imported,
            "downloaded {} of {imported} messages",
            pulled.messages
        );
        let moved = 2 * imported + (USERS * SYNCS_PER_USER * MESSAGES_PER_SYNC) as u64;
        let mut sample = RoundSample::new(moved, start.elapsed());
        #[expect(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
        sample.metrics.push((CPU_US, (processes.cpu_seconds() - cpu) * 1e6 / moved as f64));
        anyhow::Ok(sample)
    })?;
    sample.metrics.extend(fresh.memory()?);
    Ok(sample)
}

/// Makes all small syncs of one user.
async fn sync(address: SocketAddr, device: LoadDevice) -> anyhow::Result<()> {
    let mut connection = BenchConnection::open(address).await?;
    let changes = MessageGenerator::of(ContentKind::Budget, 0, SMALL);
    for _ in 0..SYNCS_PER_USER {
        let page = ActualMessagePage::of(&changes.next(MESSAGES_PER_SYNC, device.node)?);
        let post = page.post(&device, page.cursor)?;
        actual::trie(connection.send(post).await?.success()?)?;
    }
    Ok(())
}
