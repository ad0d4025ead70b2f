//! Who is measured: a fresh service for each round of each case, with users, devices and seeded
//! messages.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use crdt::Node;
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinSet;

use super::actual;
use super::dialect::{Device, Dialect};
use super::load::{self, Load};
use crate::changes::Changes;
use crate::http::{Connection, socket_address};
use crate::measure::Sample;
use crate::processes::{Part, Processes};
use crate::rivals::server::{Plan, Running, Service};
use crate::served::{Prepared, Served};

/// Connections that make the devices.
const ENROLLING_COUNT: usize = 16;
/// Of the seeded messages: no device that is measured.
const SEED: Node = Node(u64::MAX);

/// Where and with what.
pub(super) struct Bed<'a> {
    /// For files.
    pub(super) folder: &'a Path,
    /// The shipped binary.
    pub(super) program: &'a Path,
    pub(super) content_bytes: usize,
    pub(super) runtime: Runtime,
    templates: RefCell<Vec<Rc<Template>>>,
    /// Why requests failed.
    pub(super) failures: RefCell<BTreeSet<String>>,
}

/// A service in a setting.
#[derive(Clone, Copy, Debug)]
pub(super) enum Peer<'a> {
    Warren(&'a Prepared),
    Rival(&'a Service, Dialect, Setting),
}

/// Of a rival.
#[derive(Clone, Copy, Debug)]
pub(super) struct Setting {
    pub(super) workers: usize,
    pub(super) journal_mode: Option<&'static str>,
    pub(super) synchronous: Option<&'static str>,
}

/// Who asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Crowd {
    pub(super) users: usize,
    /// Of each user.
    pub(super) devices: usize,
}

/// A running service; it ends with this value.
pub(super) struct Started {
    pub(super) address: SocketAddr,
    pub(super) processes: Processes,
    running: Either,
}

enum Either {
    Warren(Served),
    Rival(Running),
}

/// A service's files with its users in them, and their devices.
struct Template {
    of: (Dialect, Crowd, u64),
    folder: PathBuf,
    devices: Vec<Device>,
}

impl<'a> Bed<'a> {
    /// One thread: the other core is the service's.
    pub(super) fn new(folder: &'a Path, program: &'a Path, content: usize) -> anyhow::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build().context("tokio")?;
        Ok(Self {
            folder,
            program,
            content_bytes: content,
            runtime,
            templates: RefCell::default(),
            failures: RefCell::default(),
        })
    }

    /// Starts the peer on a copy of what its users did before, and lets the crowd work.
    pub(super) fn measure(
        &self,
        peer: Peer<'_>,
        crowd: Crowd,
        load: Load,
        duration: Duration,
    ) -> anyhow::Result<Sample> {
        let template = self.template(peer, crowd, load.seeded)?;
        let folder = tempfile::tempdir_in(self.folder)?;
        copy(&template.folder, folder.path())?;
        // Else the disk is busy with the copy while the service waits for it.
        rustix::fs::sync();
        self.runtime.block_on(async {
            let started = peer.start(self.program, folder.path())?;
            let idle_mb = started.processes.memory_mb();
            let changes = Arc::new(Changes::new(self.content_bytes, load.seeded));
            let devices = template.devices.clone();
            let service = (started.address, peer.dialect(), started.processes);
            let (mut sample, failure) =
                load::run(service, devices, changes, (load, duration)).await?;
            if let Some(failure) = failure {
                let failure = format!("{:?} of {:?}: {failure}", load.operation, peer.dialect());
                self.failures.borrow_mut().insert(failure);
            }
            sample.facts.push(("server memory idle, MB", idle_mb));
            sample.facts.push(("server memory, MB", started.processes.memory_mb()));
            if matches!(peer, Peer::Warren(_)) {
                let peak = started.processes.memory_peak_mb().context("/proc")?;
                sample.facts.push(("server memory peak, MB", peak));
            }
            Ok(sample)
        })
    }

    /// Made when it is first asked for.
    fn template(&self, peer: Peer<'_>, crowd: Crowd, seeded: u64) -> anyhow::Result<Rc<Template>> {
        let of = (peer.dialect(), crowd, seeded);
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
            let changes = Arc::new(Changes::new(self.content_bytes, seeded));
            let devices = peer.enroll(started.address, crowd, seeded, &changes).await?;
            started.stop()?;
            anyhow::Ok(devices)
        })?;
        let template = Rc::new(Template { of, folder, devices });
        templates.push(Rc::clone(&template));
        Ok(template)
    }
}

impl Peer<'_> {
    fn dialect(self) -> Dialect {
        match self {
            Self::Warren(_) => Dialect::Warren,
            Self::Rival(_, dialect, _) => dialect,
        }
    }

    /// With its files in `folder`.
    pub(super) fn start(self, program: &Path, folder: &Path) -> anyhow::Result<Started> {
        match self {
            Self::Warren(_) => {
                let served = Served::start(program, folder, &[])?;
                let (address, processes) = (served.address, served.processes());
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
    pub(super) async fn enroll(
        self,
        address: SocketAddr,
        crowd: Crowd,
        seeded: u64,
        changes: &Arc<Changes>,
    ) -> anyhow::Result<Vec<Device>> {
        let dialect = self.dialect();
        let secrets = match self {
            Self::Warren(prepared) => prepared.tokens.clone(),
            Self::Rival(_, Dialect::Actual, _) => {
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
        device.cursor = device.base + seeded;
    }
    Ok(())
}
