//! Who is measured: a fresh service for each round of each case, with users, devices and seeded
//! messages.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fs;
use std::mem;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use crdt::Node;
use tempfile::TempDir;
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinSet;

use super::actual;
use super::dialect::{Device, Dialect};
use super::load::{self, Load};
use crate::changes::{Changes, Content, Pace};
use crate::http::{Connection, socket_address};
use crate::measure::Sample;
use crate::processes::{Part, Processes};
use crate::rivals::server::{Plan, Running, Service};
use crate::served::{Prepared, Served};

/// Connections that make the devices.
const ENROLLING_COUNT: usize = 16;
/// Of the seeded messages: no device that is measured.
const SEED: Node = Node(u64::MAX);

/// Facts about a service's memory.
pub(crate) const MEMORY_IDLE: &str = "server memory idle, MB";
pub(crate) const MEMORY_PEAK: &str = "server memory peak, MB";

/// Where and with what.
pub(crate) struct Bed<'a> {
    /// For files.
    pub(crate) folder: &'a Path,
    /// The shipped binary.
    pub(crate) program: &'a Path,
    pub(crate) content: Content,
    pub(crate) runtime: Runtime,
    templates: RefCell<Vec<Rc<Template>>>,
    /// Why requests failed.
    pub(crate) failures: RefCell<BTreeSet<String>>,
}

/// A service in a setting.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Peer<'a> {
    Warren(&'a Prepared),
    /// Warren where Actual's apps ask it.
    Gateway,
    Rival(&'a Service, Dialect, Setting),
}

/// Of a rival.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setting {
    pub(crate) workers: usize,
    pub(crate) journal_mode: Option<&'static str>,
    pub(crate) synchronous: Option<&'static str>,
}

pub(crate) const AS_IT_COMES: Setting =
    Setting { workers: 1, journal_mode: None, synchronous: None };

/// Who asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Crowd {
    pub(crate) users: usize,
    /// Of each user.
    pub(crate) devices: usize,
}

/// Whose files are the same in every setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Warren,
    Gateway,
    Rival(Dialect),
}

/// A service that was just started on a copy of what its users did before.
pub(crate) struct Fresh {
    pub(crate) started: Started,
    pub(crate) devices: Vec<Device>,
    pub(crate) idle_mb: f64,
    // After what runs in it.
    _folder: TempDir,
}

/// A running service; it ends with this value.
pub(crate) struct Started {
    pub(crate) address: SocketAddr,
    pub(crate) processes: Processes,
    running: Either,
}

enum Either {
    Warren(Served),
    Rival(Running),
}

/// A service's files with its users in them, and their devices.
struct Template {
    of: (Kind, Crowd, u64, Pace),
    folder: PathBuf,
    devices: Vec<Device>,
}

impl<'a> Bed<'a> {
    /// One thread: the other core is the service's.
    pub(crate) fn new(
        folder: &'a Path,
        program: &'a Path,
        content: Content,
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

    /// Starts the peer on a copy of what its users did before, and lets the crowd work.
    pub(crate) fn measure(
        &self,
        peer: Peer<'_>,
        crowd: Crowd,
        load: Load,
        duration: Duration,
    ) -> anyhow::Result<Sample> {
        let mut fresh = self.fresh(peer, crowd, (load.seeded, load.pace))?;
        let devices = mem::take(&mut fresh.devices);
        let mut sample = self.work(peer, &fresh.started, devices, (load, duration))?;
        sample.facts.extend(fresh.memory()?);
        Ok(sample)
    }

    /// Starts the peer on a copy of what its users did before.
    pub(crate) fn fresh(
        &self,
        peer: Peer<'_>,
        crowd: Crowd,
        before: (u64, Pace),
    ) -> anyhow::Result<Fresh> {
        let template = self.template(peer, crowd, before)?;
        let folder = tempfile::tempdir_in(self.folder)?;
        copy(&template.folder, folder.path())?;
        // Else the disk is busy with the copy while the service waits for it.
        rustix::fs::sync();
        let started = peer.start(self.program, folder.path())?;
        let idle_mb = started.processes.memory_mb();
        Ok(Fresh { started, devices: template.devices.clone(), idle_mb, _folder: folder })
    }

    /// Lets the devices work.
    pub(crate) fn work(
        &self,
        peer: Peer<'_>,
        started: &Started,
        devices: Vec<Device>,
        (load, duration): (Load, Duration),
    ) -> anyhow::Result<Sample> {
        let changes = Arc::new(Changes::of(self.content, load.seeded, load.pace));
        let service = (started.address, peer.dialect(), started.processes);
        let work = load::run(service, devices, changes, (load, duration));
        let (sample, failure) = self.runtime.block_on(work)?;
        if let Some(failure) = failure {
            let failure = format!("{:?} of {:?}: {failure}", load.operation, peer.dialect());
            self.failures.borrow_mut().insert(failure);
        }
        Ok(sample)
    }

    /// Made when it is first asked for.
    fn template(
        &self,
        peer: Peer<'_>,
        crowd: Crowd,
        (seeded, pace): (u64, Pace),
    ) -> anyhow::Result<Rc<Template>> {
        let of = (peer.kind(), crowd, seeded, pace);
        let mut templates = self.templates.borrow_mut();
        if let Some(template) = templates.iter().find(|template| template.of == of) {
            return Ok(Rc::clone(template));
        }
        let folder = self.folder.join(format!("template{}", templates.len()));
        fs::create_dir(&folder)?;
        if let Peer::Warren(prepared) = peer {
            prepared.copy_to(&folder)?;
        }
        let devices = self.runtime.block_on(async {
            let started = peer.start(self.program, &folder)?;
            let changes = Arc::new(Changes::of(self.content, seeded, pace));
            let devices = peer.enroll(started.address, crowd, seeded, &changes).await?;
            started.stop()?;
            anyhow::Ok(devices)
        })?;
        let template = Rc::new(Template { of, folder, devices });
        templates.push(Rc::clone(&template));
        Ok(template)
    }
}

impl Fresh {
    /// What the service had in memory before it was asked, has, and had at most.
    pub(crate) fn memory(&self) -> anyhow::Result<[(&'static str, f64); 3]> {
        let processes = self.started.processes;
        Ok([
            (MEMORY_IDLE, self.idle_mb),
            ("server memory, MB", processes.memory_mb()),
            (MEMORY_PEAK, processes.memory_peak_mb().context("/proc")?),
        ])
    }
}

impl Peer<'_> {
    fn kind(self) -> Kind {
        match self {
            Self::Warren(_) => Kind::Warren,
            Self::Gateway => Kind::Gateway,
            Self::Rival(_, dialect, _) => Kind::Rival(dialect),
        }
    }

    fn dialect(self) -> Dialect {
        match self {
            Self::Warren(_) => Dialect::Warren,
            Self::Gateway => Dialect::Actual,
            Self::Rival(_, dialect, _) => dialect,
        }
    }

    /// With its files in `folder`.
    pub(crate) fn start(self, program: &Path, folder: &Path) -> anyhow::Result<Started> {
        match self {
            Self::Warren(_) => {
                let served = Served::start(program, folder, &[])?;
                let (address, processes) = (served.address, served.processes());
                Ok(Started { address, processes, running: Either::Warren(served) })
            }
            Self::Gateway => {
                let served = Served::start(program, folder, &["--actual", "127.0.0.1:0"])?;
                let address = served.actual.context("it does not say where the gateway listens")?;
                let processes = served.processes();
                Ok(Started { address, processes, running: Either::Warren(served) })
            }
            Self::Rival(service, _, setting) => {
                let Setting { workers, journal_mode, synchronous } = setting;
                let running =
                    service.start(&Plan { folder, workers, journal_mode, synchronous })?;
                let address = socket_address(&running.address)?;
                let processes = Processes { root: running.pid(), part: Part::Children };
                Ok(Started { address, processes, running: Either::Rival(running) })
            }
        }
    }

    /// Makes the devices of a fresh service, each knowing the seeded messages of its user.
    pub(crate) async fn enroll(
        self,
        address: SocketAddr,
        crowd: Crowd,
        seeded: u64,
        changes: &Arc<Changes>,
    ) -> anyhow::Result<Vec<Device>> {
        let dialect = self.dialect();
        let secrets = match self {
            Self::Warren(prepared) => prepared.tokens.clone(),
            Self::Gateway | Self::Rival(_, Dialect::Actual, _) => {
                vec![actual::bootstrap(&mut Connection::open(address).await?).await?]
            }
            Self::Rival(..) => vec![String::new()],
        };
        let secrets = Arc::new(secrets);
        // One for rivals: a long push would make others fail, whose lock waits five seconds.
        let count = if dialect == Dialect::Warren { ENROLLING_COUNT } else { 1 };
        let mut enrolling = JoinSet::new();
        for first in 0..count {
            let (secrets, changes) = (Arc::clone(&secrets), Arc::clone(changes));
            enrolling.spawn(async move {
                let mut connection = Connection::open(address).await?;
                let mut enrolled = Vec::new();
                for user in (first..crowd.users).step_by(count) {
                    let secret = &secrets[user.min(secrets.len() - 1)];
                    let connection = &mut connection;
                    let enroll = dialect.enroll(connection, secret, user, crowd.devices);
                    let mut devices = enroll.await?;
                    seed(connection, dialect, &mut devices, seeded, &changes).await?;
                    enrolled.extend(devices);
                }
                anyhow::Ok(enrolled)
            });
        }
        let mut devices = Vec::new();
        while let Some(enrolled) = enrolling.join_next().await {
            devices.extend(enrolled??);
        }
        Ok(devices)
    }
}

impl Started {
    /// Ends it so that all is in its files.
    fn stop(self) -> anyhow::Result<()> {
        match self.running {
            Either::Warren(served) => served.stop(),
            Either::Rival(running) => {
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

/// One push of what the user did before.
async fn seed(
    connection: &mut Connection,
    dialect: Dialect,
    devices: &mut [Device],
    seeded: u64,
    changes: &Changes,
) -> anyhow::Result<()> {
    let Some(device) = devices.first().filter(|_| seeded > 0) else { return Ok(()) };
    let messages = (0..seeded).map(|index| changes.at(index, SEED)).collect::<Result<_, _>>()?;
    let request = dialect.push(device, messages)?;
    let newest = dialect.pushed(connection.send(request).await?.success()?)?;
    for device in devices {
        device.base = newest.saturating_sub(seeded);
        device.cursor = dialect.cursor_after(device.base, changes, seeded);
    }
    Ok(())
}
