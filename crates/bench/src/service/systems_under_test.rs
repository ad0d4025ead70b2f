//! Starts the measured systems: a fresh service for each round of each case, with users, devices
//! and seeded messages.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use std::{fs, mem};

use anyhow::Context;
use crdt::NodeId;
use tempfile::TempDir;
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinSet;

use super::device::LoadDevice;
use super::load_stats::ServiceLoad;
use super::service_api::ServiceApi;
use super::{actual, load};
use crate::competitors::server::{CompetitorService, RunningService, ServicePlan};
use crate::http::{BenchConnection, socket_address};
use crate::measure::RoundSample;
use crate::message_generator::{ContentKind, MessageGenerator, MessageSchedule};
use crate::processes::{ProcessScope, ProcessUsage};
use crate::server_process::{PreparedDataDir, ServerProcess};

/// The number of connections that register the devices.
const ENROLLING_COUNT: usize = 16;
/// The node id of the seeded messages, which no measured device has.
const SEED: NodeId = NodeId(u64::MAX);

/// The metrics of a service's memory.
pub(crate) const MEMORY_IDLE: &str = "server memory idle, MB";
pub(crate) const MEMORY_PEAK: &str = "server memory peak, MB";

/// The folder, program and runtime with which services are measured.
pub(crate) struct ServiceFixture<'a> {
    /// The folder for files.
    pub(crate) folder: &'a Path,
    /// The path of the shipped binary.
    pub(crate) program: &'a Path,
    pub(crate) content: ContentKind,
    pub(crate) runtime: Runtime,
    templates: RefCell<Vec<Rc<ServiceTemplate>>>,
    /// The reasons of failed requests.
    pub(crate) failures: RefCell<BTreeSet<String>>,
}

/// A service with its setting.
#[derive(Clone, Copy, Debug)]
pub(crate) enum SystemUnderTest<'a> {
    Warren(&'a PreparedDataDir),
    /// Warren's gateway for Actual's apps.
    Gateway,
    Competitor(&'a CompetitorService, ServiceApi, CompetitorSetting),
}

/// The setting of a competitor.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CompetitorSetting {
    pub(crate) workers: usize,
    pub(crate) journal_mode: Option<&'static str>,
    pub(crate) synchronous: Option<&'static str>,
}

pub(crate) const AS_IT_COMES: CompetitorSetting =
    CompetitorSetting { workers: 1, journal_mode: None, synchronous: None };

/// The users and devices that send requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ClientPool {
    pub(crate) users: usize,
    /// Devices of each user.
    pub(crate) devices: usize,
}

/// A kind of system, whose files are the same in every setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SystemKind {
    Warren,
    Gateway,
    Competitor(ServiceApi),
}

/// A service that was just started on a copy of a template.
pub(crate) struct FreshService {
    pub(crate) started: StartedService,
    pub(crate) devices: Vec<LoadDevice>,
    pub(crate) idle_mb: f64,
    // The folder is dropped after the service that uses it.
    _folder: TempDir,
}

/// A running service, which ends when this value is dropped.
pub(crate) struct StartedService {
    pub(crate) address: SocketAddr,
    pub(crate) processes: ProcessUsage,
    running: ServiceHandle,
}

enum ServiceHandle {
    Warren(ServerProcess),
    Competitor(RunningService),
}

/// A service's files with its users in them, and their devices.
struct ServiceTemplate {
    of: (SystemKind, ClientPool, u64, MessageSchedule),
    folder: PathBuf,
    devices: Vec<LoadDevice>,
}

impl<'a> ServiceFixture<'a> {
    /// Creates the fixture. Its runtime has one thread, because the service needs the other core.
    pub(crate) fn new(
        folder: &'a Path,
        program: &'a Path,
        content: ContentKind,
    ) -> anyhow::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build().context("tokio")?;
        Ok(Self {
            folder,
            program,
            content,
            runtime,
            templates: RefCell::default(),
            failures: RefCell::default(),
        })
    }

    /// Starts the service on a copy of its template, and runs the load of the devices.
    pub(crate) fn measure(
        &self,
        peer: SystemUnderTest<'_>,
        pool: ClientPool,
        load: ServiceLoad,
        duration: Duration,
    ) -> anyhow::Result<RoundSample> {
        let mut fresh = self.fresh(peer, pool, (load.seeded, load.pace))?;
        let devices = mem::take(&mut fresh.devices);
        let mut sample = self.work(peer, &fresh.started, devices, (load, duration))?;
        sample.metrics.extend(fresh.memory()?);
        Ok(sample)
    }

    /// Starts the service on a copy of its template.
    pub(crate) fn fresh(
        &self,
        peer: SystemUnderTest<'_>,
        pool: ClientPool,
        before: (u64, MessageSchedule),
    ) -> anyhow::Result<FreshService> {
        let template = self.template(peer, pool, before)?;
        let folder = tempfile::tempdir_in(self.folder)?;
        copy(&template.folder, folder.path())?;
        // Without this, the disk is busy with the copy while the service waits for it.
        rustix::fs::sync();
        let started = peer.start(self.program, folder.path())?;
        let idle_mb = started.processes.memory_mb();
        Ok(FreshService { started, devices: template.devices.clone(), idle_mb, _folder: folder })
    }

    /// Runs the load of the devices.
    pub(crate) fn work(
        &self,
        peer: SystemUnderTest<'_>,
        started: &StartedService,
        devices: Vec<LoadDevice>,
        (load, duration): (ServiceLoad, Duration),
    ) -> anyhow::Result<RoundSample> {
        let changes = Arc::new(MessageGenerator::of(self.content, load.seeded, load.pace));
        let service = (started.address, peer.dialect(), started.processes);
        let work = load::run(service, devices, changes, (load, duration));
        let (sample, failure) = self.runtime.block_on(work)?;
        if let Some(failure) = failure {
            let failure = format!("{:?} of {:?}: {failure}", load.operation, peer.dialect());
            self.failures.borrow_mut().insert(failure);
        }
        Ok(sample)
    }

    /// Returns the template, which is created on first use.
    fn template(
        &self,
        peer: SystemUnderTest<'_>,
        pool: ClientPool,
        (seeded, pace): (u64, MessageSchedule),
    ) -> anyhow::Result<Rc<ServiceTemplate>> {
        let of = (peer.kind(), pool, seeded, pace);
        let mut templates = self.templates.borrow_mut();
        if let Some(template) = templates.iter().find(|template| template.of == of) {
            return Ok(Rc::clone(template));
        }
        let folder = self.folder.join(format!("template{}", templates.len()));
        fs::create_dir(&folder)?;
        if let SystemUnderTest::Warren(prepared) = peer {
            prepared.copy_to(&folder)?;
        }
        let devices = self.runtime.block_on(async {
            let started = peer.start(self.program, &folder)?;
            let changes = Arc::new(MessageGenerator::of(self.content, seeded, pace));
            let devices = peer.register(started.address, pool, seeded, &changes).await?;
            started.stop()?;
            anyhow::Ok(devices)
        })?;
        let template = Rc::new(ServiceTemplate { of, folder, devices });
        templates.push(Rc::clone(&template));
        Ok(template)
    }
}

impl FreshService {
    /// Returns the service's memory before the first request, now, and at its peak.
    pub(crate) fn memory(&self) -> anyhow::Result<[(&'static str, f64); 3]> {
        let processes = self.started.processes;
        Ok([
            (MEMORY_IDLE, self.idle_mb),
            ("server memory, MB", processes.memory_mb()),
            (MEMORY_PEAK, processes.memory_peak_mb().context("/proc")?),
        ])
    }
}

impl SystemUnderTest<'_> {
    fn kind(self) -> SystemKind {
        match self {
            Self::Warren(_) => SystemKind::Warren,
            Self::Gateway => SystemKind::Gateway,
            Self::Competitor(_, api, _) => SystemKind::Competitor(api),
        }
    }

    fn dialect(self) -> ServiceApi {
        match self {
            Self::Warren(_) => ServiceApi::Warren,
            Self::Gateway => ServiceApi::Actual,
            Self::Competitor(_, api, _) => api,
        }
    }

    /// Starts the service with its files in `folder`.
    pub(crate) fn start(self, program: &Path, folder: &Path) -> anyhow::Result<StartedService> {
        match self {
            Self::Warren(_) => {
                let served = ServerProcess::start(program, folder, &[])?;
                let (address, processes) = (served.address, served.processes());
                Ok(StartedService { address, processes, running: ServiceHandle::Warren(served) })
            }
            Self::Gateway => {
                let served = ServerProcess::start(
                    program,
                    folder,
                    &["--actual-budget", "127.0.0.1:0", "--actual-budget-open-registration"],
                )?;
                let address = served.actual.context("the server printed no gateway address")?;
                let processes = served.processes();
                Ok(StartedService { address, processes, running: ServiceHandle::Warren(served) })
            }
            Self::Competitor(service, _, setting) => {
                let CompetitorSetting { workers, journal_mode, synchronous } = setting;
                let running =
                    service.start(&ServicePlan { folder, workers, journal_mode, synchronous })?;
                let address = socket_address(&running.address)?;
                let processes = ProcessUsage { root: running.pid(), part: ProcessScope::Children };
                Ok(StartedService {
                    address,
                    processes,
                    running: ServiceHandle::Competitor(running),
                })
            }
        }
    }

    /// Registers the devices of a fresh service, each with the seeded messages of its user.
    pub(crate) async fn register(
        self,
        address: SocketAddr,
        pool: ClientPool,
        seeded: u64,
        changes: &Arc<MessageGenerator>,
    ) -> anyhow::Result<Vec<LoadDevice>> {
        let api = self.dialect();
        let secrets = match self {
            Self::Warren(prepared) => prepared.tokens.clone(),
            Self::Gateway | Self::Competitor(_, ServiceApi::Actual, _) => {
                vec![actual::bootstrap(&mut BenchConnection::open(address).await?).await?]
            }
            Self::Competitor(..) => vec![String::new()],
        };
        let secrets = Arc::new(secrets);
        // Competitors get one connection: during a long push others would fail, because their lock
        // waits only five seconds.
        let count = if api == ServiceApi::Warren { ENROLLING_COUNT } else { 1 };
        let mut registering = JoinSet::new();
        for first in 0..count {
            let (secrets, changes) = (Arc::clone(&secrets), Arc::clone(changes));
            registering.spawn(async move {
                let mut connection = BenchConnection::open(address).await?;
                let mut registered = Vec::new();
                for user in (first..pool.users).step_by(count) {
                    let secret = &secrets[user.min(secrets.len() - 1)];
                    let connection = &mut connection;
                    let register = api.register(connection, secret, user, pool.devices);
                    let mut devices = register.await?;
                    seed(connection, api, &mut devices, seeded, &changes).await?;
                    registered.extend(devices);
                }
                anyhow::Ok(registered)
            });
        }
        let mut devices = Vec::new();
        while let Some(registered) = registering.join_next().await {
            devices.extend(registered??);
        }
        Ok(devices)
    }
}

impl StartedService {
    /// Ends the service so that its files are complete.
    fn stop(self) -> anyhow::Result<()> {
        match self.running {
            ServiceHandle::Warren(served) => served.stop(),
            ServiceHandle::Competitor(running) => {
                drop(running);
                Ok(())
            }
        }
    }
}

fn copy(from: &Path, to: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let to = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &to)?;
        } else {
            fs::copy(entry.path(), to)?;
        }
    }
    Ok(())
}

/// Pushes the user's seeded messages in one request.
async fn seed(
    connection: &mut BenchConnection,
    api: ServiceApi,
    devices: &mut [LoadDevice],
    seeded: u64,
    changes: &MessageGenerator,
) -> anyhow::Result<()> {
    let Some(device) = devices.first().filter(|_| seeded > 0) else { return Ok(()) };
    let messages = (0..seeded).map(|index| changes.at(index, SEED)).collect::<Result<_, _>>()?;
    let request = api.push(device, messages)?;
    let newest = api.pushed(connection.send(request).await?.success()?)?;
    for device in devices {
        device.base = newest.saturating_sub(seeded);
        device.cursor = api.cursor_after(device.base, changes, seeded);
    }
    Ok(())
}
