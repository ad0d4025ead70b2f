//! Starts the measured mail servers: a fresh one for each round of each case, on a copy of a data
//! directory in which every mailbox has one message.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use anyhow::{Context, ensure};
use tempfile::TempDir;
use tokio::runtime::{Builder, Runtime};

use super::bench_run::{MailBenchPlan, MailCompetitor};
use super::dovecot::{DovecotInstallation, DovecotServer, DovecotSettings};
use super::lmtp_connection::LmtpConnection;
use super::mail_corpus::MailCorpus;
use super::mailbox_address::{address_of, login_of};
use crate::processes::ProcessUsage;
use crate::server_process::{PASSWORD, PreparedDataDir, ServerProcess};

/// The size of the blocks that `st_blocks` counts (stat(2)).
const BLOCK_BYTES: u64 = 512;
/// The message that every mailbox has at the start.
const FIRST_MESSAGE: &str = "Subject: first\r\n\r\nfirst\r\n.\r\n";

/// A measured mail server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum MailSystem {
    Warren,
    Competitor(MailCompetitor),
}

/// The state that all sections share.
pub(super) struct MailBenchRun<'a> {
    pub(super) plan: &'a MailBenchPlan,
    folder: &'a Path,
    /// It has one thread, because the server needs the other core.
    pub(super) runtime: Runtime,
    pub(super) corpus: Arc<MailCorpus>,
    /// The installed Dovecot, if a competitor needs it.
    pub(super) dovecot: Option<DovecotInstallation>,
    /// The data directories that are copied.
    templates: RefCell<BTreeMap<MailSystem, PathBuf>>,
    /// The reasons of deliveries that failed.
    pub(super) failures: RefCell<BTreeSet<String>>,
}

/// A server that was just started on a copy of its template.
pub(super) struct FreshMailServer {
    pub(super) address: SocketAddr,
    pub(super) processes: ProcessUsage,
    running: MailServerHandle,
    bytes_before: u64,
    // The folder is dropped after the server that uses it.
    folder: TempDir,
}

enum MailServerHandle {
    Warren(ServerProcess),
    Dovecot(DovecotServer),
}

impl<'a> MailBenchRun<'a> {
    pub(super) fn new(
        plan: &'a MailBenchPlan,
        folder: &'a Path,
        dovecot: Option<DovecotInstallation>,
    ) -> anyhow::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build().context("tokio")?;
        let (templates, failures) = (RefCell::default(), RefCell::default());
        let corpus = Arc::new(MailCorpus::new());
        Ok(Self { plan, folder, runtime, corpus, dovecot, templates, failures })
    }

    /// Starts the system on a copy of its template, which is created on first use.
    pub(super) async fn fresh(
        &self,
        system: MailSystem,
        connections: usize,
    ) -> anyhow::Result<FreshMailServer> {
        let known = self.templates.borrow().get(&system).cloned();
        let template = if let Some(template) = known {
            template
        } else {
            let template = self.template(system).await?;
            self.templates.borrow_mut().insert(system, template.clone());
            template
        };
        let folder = tempfile::tempdir_in(self.folder)?;
        copy(&template.join("data"), &folder.path().join("data"))?;
        // Without this, the disk is busy with the copy while the server waits for it.
        rustix::fs::sync();
        let bytes_before = disk_bytes(folder.path())?;
        let running = self.start(system, folder.path(), connections).await?;
        let (address, processes) = running.address_and_processes()?;
        Ok(FreshMailServer { address, processes, running, bytes_before, folder })
    }

    async fn start(
        &self,
        system: MailSystem,
        folder: &Path,
        connections: usize,
    ) -> anyhow::Result<MailServerHandle> {
        let MailBenchPlan { program, mailboxes, .. } = self.plan;
        let MailSystem::Competitor(competitor) = system else {
            let data = folder.join("data");
            let served = ServerProcess::start(program, &data, &["--lmtp", "127.0.0.1:0"])?;
            return Ok(MailServerHandle::Warren(served));
        };
        let dovecot = self.dovecot.as_ref().context("Dovecot was not searched for")?;
        let settings = DovecotSettings { competitor, mailboxes: *mailboxes, connections };
        Ok(MailServerHandle::Dovecot(dovecot.start(folder, settings).await?))
    }

    /// Creates the data directory of a system.
    async fn template(&self, system: MailSystem) -> anyhow::Result<PathBuf> {
        let folder = self.folder.join(format!("template{}", self.templates.borrow().len()));
        fs::create_dir(&folder)?;
        let data = folder.join("data");
        match system {
            MailSystem::Warren => self.create_accounts(&folder, &data)?,
            MailSystem::Competitor(_) => fs::create_dir(data)?,
        }
        let running = self.start(system, &folder, 1).await?;
        if let (MailSystem::Competitor(MailCompetitor::DovecotMailCrypt), Some(dovecot)) =
            (system, &self.dovecot)
        {
            dovecot.create_keys(&folder, self.plan.mailboxes)?;
        }
        let (address, _) = running.address_and_processes()?;
        let mut connection = LmtpConnection::open(address).await?;
        for number in 0..self.plan.mailboxes {
            connection.deliver(&address_of(number), FIRST_MESSAGE).await?;
        }
        running.stop()?;
        Ok(folder)
    }

    /// Creates accounts with an address each. Their mail vaults stay locked.
    fn create_accounts(&self, folder: &Path, data: &Path) -> anyhow::Result<()> {
        PreparedDataDir::make(data.to_owned(), self.plan.mailboxes, 0)?;
        let password = folder.join("password");
        fs::write(&password, PASSWORD)?;
        for number in 0..self.plan.mailboxes {
            let mut command = Command::new(&self.plan.program);
            command.args(["mail", "address", "add", &address_of(number)]);
            command.args(["--login", &login_of(number)]).arg("--data").arg(data);
            let output = command.arg("--password-file").arg(&password).output()?;
            let said = String::from_utf8_lossy(&output.stderr);
            ensure!(output.status.success(), "warren mail address add: {}", said.trim());
        }
        Ok(())
    }
}

impl MailServerHandle {
    fn address_and_processes(&self) -> anyhow::Result<(SocketAddr, ProcessUsage)> {
        match self {
            Self::Warren(served) => {
                let address = served.lmtp.context("the server printed no address for LMTP")?;
                Ok((address, served.processes()))
            }
            Self::Dovecot(server) => Ok((server.address, server.processes())),
        }
    }

    /// Ends the server so that its files are complete.
    fn stop(self) -> anyhow::Result<()> {
        match self {
            Self::Warren(served) => served.stop(),
            Self::Dovecot(server) => {
                drop(server);
                Ok(())
            }
        }
    }
}

impl FreshMailServer {
    /// Ends the server, and returns the bytes that its files have gained on the disk.
    pub(super) fn stop(self) -> anyhow::Result<u64> {
        self.running.stop()?;
        Ok(disk_bytes(self.folder.path())?.saturating_sub(self.bytes_before))
    }
}

/// Copies a folder with the owners of its files.
fn copy(from: &Path, to: &Path) -> anyhow::Result<()> {
    let copied = Command::new("cp").arg("--archive").arg(from).arg(to).status().context("cp")?;
    ensure!(copied.success(), "cp: {copied}");
    Ok(())
}

/// Returns the size of a folder on the disk.
fn disk_bytes(folder: &Path) -> anyhow::Result<u64> {
    let mut bytes = 0;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        bytes += entry.metadata()?.blocks() * BLOCK_BYTES;
        if entry.file_type()?.is_dir() {
            bytes += disk_bytes(&entry.path())?;
        }
    }
    Ok(bytes)
}
