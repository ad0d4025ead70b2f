//! Runs Dovecot: the installed binaries, with a configuration, users and a port of its own.
//!
//! The settings are those that a good operator would choose for deliveries: a process that stays
//! for each connection, users in memory, no log of successful deliveries, no filters. Everything
//! else is Dovecot's default, above all `mail_fsync = optimized`: before Dovecot answers, it
//! flushes the message's file, the mailbox's index log and its directory (seen with strace).
//!
//! # Invariants
//! - Dovecot never runs as root: if we do, it runs as the user [`USER`].
//! - All processes of Dovecot end with the value, and also if we are killed: see [`WATCHDOG`].

use std::fmt;
use std::fs::{self, File};
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use engine::clock::now;
use postgres_lab::ReservedPort;

use super::bench_run::MailCompetitor;
use super::lmtp_connection::LmtpConnection;
use super::mailbox_address::login_of;
use crate::processes::{ProcessScope, ProcessUsage};

/// The system user of all of Dovecot's processes, if we are root. The package creates it.
const USER: &str = "dovecot";
/// The master program, which need not be in the PATH of users.
const MASTER: &str = "/usr/sbin/dovecot";
/// The version that has the settings of [`DovecotInstallation::configuration`].
const VERSION: &str = "2.3.";
/// The time limit of a start, far more than a start takes.
const START_MAX: Duration = Duration::from_secs(20);
const START_POLL: Duration = Duration::from_millis(10);
/// Processes for connections in addition to those of the load.
const SPARE_PROCESSES_COUNT: usize = 4;
/// Lines of the log in an error message.
const LOG_LINES: usize = 5;

/// The elliptic curve of `mail_crypt`'s keys. Dovecot's documentation has no recommendation; its
/// example, secp521r1, takes longer.
pub(super) const CURVE: &str = "prime256v1";

/// The script that ends Dovecot when our end of its standard input closes, which the system does
/// if we are killed. The master ends its processes, which are its group; what does not end within
/// 10 seconds is killed.
const WATCHDOG: &str = r#"
read -r _
kill "$0"
for _ in $(seq 200); do kill -0 -- "-$0" || exit 0; sleep 0.05; done
kill -KILL -- "-$0""#;

/// Dovecot is not installed, or without its LMTP server.
#[derive(Clone, Debug)]
pub struct DovecotNotInstalled {
    missing: String,
}

impl fmt::Display for DovecotNotInstalled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "there is no {}: install the package `dovecot-lmtpd`", self.missing)
    }
}

impl std::error::Error for DovecotNotInstalled {}

/// The installed Dovecot, and the user that it runs as.
pub(super) struct DovecotInstallation {
    program: PathBuf,
    /// The version, such as `2.3.19.1 (9b53102964)`.
    pub(super) version: String,
    user: DovecotUser,
}

struct DovecotUser {
    name: String,
    group: String,
    uid: u32,
    gid: u32,
    /// Whether we are root, and have to become this user.
    is_other: bool,
}

/// The settings of a server, except for its folder.
#[derive(Clone, Copy)]
pub(super) struct DovecotSettings {
    pub(super) competitor: MailCompetitor,
    pub(super) mailboxes: usize,
    /// The connections that the server must handle at the same time.
    pub(super) connections: usize,
}

/// A running Dovecot, which ends when this value is dropped.
pub(super) struct DovecotServer {
    child: Child,
    watchdog: Child,
    pub(super) address: SocketAddr,
    _port: ReservedPort,
}

impl DovecotInstallation {
    /// Finds the installed programs. Returns [`DovecotNotInstalled`] if one is missing.
    pub(super) fn find() -> anyhow::Result<Self> {
        let missing = |missing: String| DovecotNotInstalled { missing };
        let found = Command::new("doveconf").args(["-d", "-h", "libexec_dir"]).output();
        if found.as_ref().is_err_and(|error| error.kind() == ErrorKind::NotFound) {
            bail!(missing("program `doveconf`".to_owned()));
        }
        let lmtp = Path::new(&text(&found.context("doveconf")?, "doveconf")?).join("lmtp");
        ensure!(lmtp.is_file(), missing(lmtp.display().to_string()));
        let master = Path::new(MASTER);
        let program = if master.is_file() { master } else { Path::new("dovecot") };
        let version = Command::new(program).arg("--version").output();
        let version = text(&version.context("cannot start dovecot")?, "dovecot")?;
        ensure!(
            version.starts_with(VERSION),
            "the benchmark has settings for Dovecot {VERSION}x, and this is {version}"
        );
        Ok(Self { program: program.to_owned(), version, user: DovecotUser::find()? })
    }

    /// Starts a server with its files in `folder`, and the mail in its folder `data`, which must
    /// exist. Returns once it answers.
    pub(super) async fn start(
        &self,
        folder: &Path,
        settings: DovecotSettings,
    ) -> anyhow::Result<DovecotServer> {
        self.user.check_reachable(folder)?;
        let port = ReservedPort::new()?;
        let address = SocketAddr::from(([127, 0, 0, 1], port.number()));
        let file = folder.join("dovecot.conf");
        fs::write(&file, self.configuration(folder, settings, port.number()))?;
        fs::write(folder.join("users"), self.users(folder, settings.mailboxes))?;
        for path in [folder, &file, &folder.join("users"), &folder.join("data")] {
            self.user.own(path)?;
        }
        let log = folder.join("dovecot.log");
        let output = File::create(&log)?;
        let mut command = self.user.command(&self.program, folder);
        command.arg("-F").arg("-c").arg(&file).process_group(0);
        command.stdout(output.try_clone()?).stderr(output);
        let mut child = command.spawn().context("cannot start dovecot")?;
        let watchdog = self.watchdog(folder, child.id()).inspect_err(|_| {
            drop(child.kill());
            drop(child.wait());
        })?;
        let mut server = DovecotServer { child, watchdog, address, _port: port };
        server.wait_until_ready().await.with_context(|| {
            let log = fs::read_to_string(&log).unwrap_or_default();
            let lines: Vec<&str> = log.lines().collect();
            let last = lines[lines.len().saturating_sub(LOG_LINES)..].join("\n");
            format!("cannot start Dovecot; the end of its log:\n{last}")
        })?;
        Ok(server)
    }

    /// Creates the key pair of each user, whose private key is encrypted with a password that the
    /// server does not have. The server must run with its files in `folder`.
    pub(super) fn create_keys(&self, folder: &Path, mailboxes: usize) -> anyhow::Result<()> {
        for number in 0..mailboxes {
            let mut command = self.user.command(Path::new("doveadm"), folder);
            command.arg("-c").arg(folder.join("dovecot.conf")).arg("-o");
            command.arg(format!("plugin/mail_crypt_private_password=secret {number}"));
            command.args(["mailbox", "cryptokey", "generate", "-U", "-u", &login_of(number)]);
            text(&command.output().context("doveadm")?, "doveadm")?;
        }
        Ok(())
    }

    fn watchdog(&self, folder: &Path, server: u32) -> anyhow::Result<Child> {
        let mut command = self.user.command(Path::new("sh"), folder);
        command.args(["-c", WATCHDOG, &server.to_string()]).process_group(0);
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        command.spawn().context("cannot start the watchdog of dovecot")
    }

    fn configuration(&self, folder: &Path, settings: DovecotSettings, port: u16) -> String {
        let DovecotSettings { competitor, connections, .. } = settings;
        let DovecotUser { name, group, .. } = &self.user;
        let folder = folder.display();
        let processes = connections + SPARE_PROCESSES_COUNT;
        let plugins = match competitor {
            MailCompetitor::Dovecot => String::new(),
            MailCompetitor::DovecotMailCrypt => format!(
                "mail_plugins = mail_crypt\n\
                 mail_attribute_dict = file:%h/dovecot-attributes\n\
                 plugin {{\n mail_crypt_curve = {CURVE}\n mail_crypt_save_version = 2\n \
                 mail_crypt_require_encrypted_user_key = yes\n}}\n"
            ),
        };
        format!(
            "protocols = lmtp\n\
             ssl = no\n\
             base_dir = {folder}/run\n\
             state_dir = {folder}/run\n\
             log_path = /dev/stderr\n\
             info_log_path = /dev/null\n\
             default_internal_user = {name}\n\
             default_internal_group = {group}\n\
             default_login_user = {name}\n\
             first_valid_uid = 1\n\
             auth_username_format = %Ln\n\
             mail_location = sdbox:~/sdbox\n\
             mail_fsync = optimized\n\
             namespace inbox {{\n inbox = yes\n}}\n\
             passdb {{\n driver = passwd-file\n args = {folder}/users\n}}\n\
             userdb {{\n driver = passwd-file\n args = {folder}/users\n}}\n\
             service anvil {{\n chroot =\n}}\n\
             service lmtp {{\n client_limit = 1\n service_count = 0\n \
             process_min_avail = {connections}\n process_limit = {processes}\n \
             inet_listener lmtp {{\n address = 127.0.0.1\n port = {port}\n }}\n}}\n\
             {plugins}"
        )
    }

    /// Returns the file of users: each is an address with a folder.
    fn users(&self, folder: &Path, mailboxes: usize) -> String {
        let DovecotUser { uid, gid, .. } = self.user;
        let line = |number| {
            let (login, folder) = (login_of(number), folder.display());
            format!("{login}:{{PLAIN}}secret:{uid}:{gid}::{folder}/data/{login}::\n")
        };
        (0..mailboxes).map(line).collect()
    }
}

impl DovecotUser {
    fn find() -> anyhow::Result<Self> {
        let is_root = id(&["-u"])? == "0";
        let of = if is_root { Some(USER) } else { None };
        let ask = |option: &'static str| {
            id(&[Some(option), of].into_iter().flatten().collect::<Vec<_>>())
        };
        Ok(Self {
            name: ask("-un")?,
            group: ask("-gn")?,
            uid: ask("-u")?.parse()?,
            gid: ask("-g")?.parse()?,
            is_other: is_root,
        })
    }

    /// Returns a command that runs as this user.
    fn command(&self, program: &Path, folder: &Path) -> Command {
        let mut command = Command::new(program);
        if self.is_other {
            command.uid(self.uid).gid(self.gid);
        }
        command.current_dir(folder).stdin(Stdio::null());
        command
    }

    fn own(&self, path: &Path) -> anyhow::Result<()> {
        if self.is_other {
            chown(path, Some(self.uid), Some(self.gid))
                .with_context(|| format!("chown {}", path.display()))?;
        }
        Ok(())
    }

    /// Returns an error that names the outermost folder above `folder` that the user cannot enter.
    fn check_reachable(&self, folder: &Path) -> anyhow::Result<()> {
        let mut closed = None;
        for above in folder.ancestors().skip(1) {
            let mut test = self.command(Path::new("test"), Path::new("/"));
            if !test.arg("-x").arg(above).status().context("test -x")?.success() {
                closed = Some(above);
            }
        }
        let Some(closed) = closed else { return Ok(()) };
        bail!(
            "the system user `{}` cannot access {}, and the benchmark does not run Dovecot as \
             root: choose another directory for its files",
            self.name,
            closed.display()
        )
    }
}

impl DovecotServer {
    pub(super) fn processes(&self) -> ProcessUsage {
        // The master only starts the others.
        ProcessUsage { root: self.child.id(), part: ProcessScope::Children }
    }

    async fn wait_until_ready(&mut self) -> anyhow::Result<()> {
        let start = now();
        loop {
            if let Some(status) = self.child.try_wait()? {
                bail!("dovecot exited: {status}");
            }
            match LmtpConnection::open(self.address).await {
                Ok(_) => return Ok(()),
                Err(error) if start.elapsed() > START_MAX => return Err(error),
                Err(_) => tokio::time::sleep(START_POLL).await,
            }
        }
    }
}

impl Drop for DovecotServer {
    fn drop(&mut self) {
        drop(self.watchdog.stdin.take());
        // The group is empty, and the watchdog ends, once we know that the master has ended.
        drop(self.child.wait());
        drop(self.watchdog.wait());
    }
}

/// Returns what a program printed, without the last end of line.
fn text(output: &Output, program: &str) -> anyhow::Result<String> {
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{program}: {}: {}", output.status, said.trim());
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

fn id(arguments: &[&str]) -> anyhow::Result<String> {
    text(&Command::new("id").args(arguments).output().context("id")?, "id")
}
