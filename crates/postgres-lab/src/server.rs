//! Runs a PostgreSQL server of our own: the installed binaries, a fresh cluster, a free loopback
//! port.
//!
//! Unless a caller passes more settings, only these differ from PostgreSQL's defaults: the memory
//! for pages, for which its manual recommends a quarter of the machine's, and the size of the WAL,
//! so that a round is not spent on the checkpoints of a small one. All settings that keep data safe
//! are the defaults; `synchronous_commit` is set per connection.
//!
//! # Invariants
//! - No other user gets access: the server listens on loopback alone, and requires a random
//!   password.
//! - The server ends with its value, and also if we are killed or never drop it: see [`watchdog`].

use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::Context;
use tokio::runtime::Runtime;
use tokio_postgres::{Client, Config, NoTls};

use crate::ReservedPort;

/// Size of the WAL between two checkpoints: more than a round writes.
pub const MAX_WAL_BYTES: u64 = 4 << 30;
/// Folder in which Debian and Ubuntu have a folder for each major version.
const PACKAGED: &str = "/usr/lib/postgresql";
/// System user that the package creates, because PostgreSQL refuses to run as root.
const USER: &str = "postgres";
/// Divisor of the memory for `shared_buffers`. PostgreSQL's manual: "a reasonable starting value
/// for `shared_buffers` is 25% of the memory". The rest is the system's cache, which it uses as
/// well.
const MEMORY_SHARE: u64 = 4;
const SHARED_BUFFERS_MB_MAX: u64 = 4_096;
/// PostgreSQL's default, for systems that do not report their memory.
const SHARED_BUFFERS_MB_DEFAULT: u64 = 128;
/// Time limit of a start, far more than a fresh cluster takes.
const START_MAX: Duration = Duration::from_mins(1);
const START_POLL: Duration = Duration::from_millis(20);
/// Number of lines of the log in an error message.
const LOG_LINES: usize = 10;

/// A running PostgreSQL server; it ends when this value is dropped.
pub struct PostgresServer {
    child: Child,
    watchdog: Child,
    config: Config,
    /// Reservation that keeps the port from other processes while the server runs.
    _port: ReservedPort,
}

impl PostgresServer {
    /// Starts an empty server with its files in `folder/postgres`.
    pub fn start(folder: &Path, runtime: &Runtime) -> anyhow::Result<Self> {
        Self::start_with(folder, runtime, &[], false)
    }

    /// Starts an empty server for a test, with further settings (`name=value`). Its files are
    /// temporary: they are deleted when it ends, even if the process is killed. Must not be called
    /// from an async task.
    pub fn start_temporary(settings: &[&str]) -> anyhow::Result<Self> {
        let folder = tempfile::Builder::new().prefix("postgres-lab-").tempdir()?.keep();
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
        Self::start_with(&folder, &runtime, settings, true)
    }

    fn start_with(
        folder: &Path,
        runtime: &Runtime,
        settings: &[&str],
        temporary: bool,
    ) -> anyhow::Result<Self> {
        let host = ClusterHost::new(folder)?;
        let password = host.initialise()?;
        let port = ReservedPort::new()?;
        let mut config = Config::new();
        config
            .host("127.0.0.1")
            .port(port.number())
            .user(USER)
            .password(password)
            .dbname("postgres");
        config.connect_timeout(START_MAX);

        let log = folder.join("postgres.log");
        let file = File::create(&log).context("cannot create the server's log")?;
        let mut child = host.serve(port.number(), settings, file)?;
        let remove = temporary.then_some(folder);
        let watchdog = watchdog(&host, child.id(), remove).inspect_err(|_| {
            drop(child.kill());
            drop(child.wait());
        })?;
        let mut server = Self { child, watchdog, config, _port: port };
        runtime.block_on(server.wait_until_ready()).with_context(|| {
            let log = fs::read_to_string(&log).unwrap_or_default();
            let lines: Vec<&str> = log.lines().collect();
            let last = lines[lines.len().saturating_sub(LOG_LINES)..].join("\n");
            format!("cannot start PostgreSQL; the end of its log:\n{last}")
        })?;
        Ok(server)
    }

    /// Returns the configuration for connecting to the server as its superuser.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Returns the URL of one of the server's databases, for its superuser.
    pub fn url(&self, database: &str) -> String {
        let password = String::from_utf8_lossy(self.config.get_password().unwrap_or_default());
        let port = self.config.get_ports()[0];
        format!("postgres://{USER}:{password}@127.0.0.1:{port}/{database}")
    }

    /// Connects to one of the server's databases; the first is `postgres`.
    pub async fn connect(&self, database: &str) -> anyhow::Result<Client> {
        let mut config = self.config.clone();
        config.dbname(database);
        let (client, connection) =
            config.connect(NoTls).await.context("cannot connect to PostgreSQL")?;
        // The task ends with the client, whose calls report its errors.
        tokio::spawn(connection);
        Ok(client)
    }

    /// Waits until the server accepts connections.
    async fn wait_until_ready(&mut self) -> anyhow::Result<()> {
        let mut refused = None;
        let answered = async {
            loop {
                if let Some(status) = self.child.try_wait()? {
                    anyhow::bail!("PostgreSQL exited: {status}");
                }
                match self.connect(USER).await {
                    Ok(_) => return Ok(()),
                    Err(error) => refused = Some(error),
                }
                tokio::time::sleep(START_POLL).await;
            }
        };
        match tokio::time::timeout(START_MAX, answered).await {
            Ok(answered) => answered,
            Err(elapsed) => {
                let refused = refused.unwrap_or_else(|| elapsed.into());
                Err(refused.context(format!("no response within {START_MAX:?}")))
            }
        }
    }

    /// Returns the id of the server's process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for PostgresServer {
    fn drop(&mut self) {
        drop(self.watchdog.stdin.take());
        let signalled = self.watchdog.wait().is_ok_and(|status| status.success());
        if !signalled {
            // The server may have ended already; then there is nothing to end.
            drop(self.child.kill());
        }
        drop(self.child.wait());
    }
}

/// Script that ends the server. QUIT is PostgreSQL's immediate shutdown: the files are of no
/// further use. Its processes notice within moments; removing the files under them is harmless, but
/// leaves files that they still create.
const WATCHDOG: &str = r#"
read -r _
kill -QUIT "$0"; status=$?
if [ -n "$1" ]; then
    for _ in 1 2 3 4 5 6 7 8 9; do rm -rf -- "$1" 2>/dev/null && break; done
fi
exit $status"#;

/// Starts the process that ends the server when our end of its standard input closes, which the
/// system does if we are killed. It reads nothing, so it waits only for that.
///
/// The server and its watchdog have process groups of their own: a terminal's Ctrl-C ends us, and
/// that ends them.
fn watchdog(host: &ClusterHost, server: u32, remove: Option<&Path>) -> anyhow::Result<Child> {
    let mut command = match remove {
        // The watchdog removes the folder as the user who created it.
        Some(_) => Command::new("sh"),
        None => host.command(Path::new("sh")),
    };
    command.args(["-c", WATCHDOG, &server.to_string()]).args(remove);
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
    command.spawn().context("cannot start the server's watchdog")
}

/// The cluster's directories, and the user who runs it.
struct ClusterHost {
    binaries: PathBuf,
    data: PathBuf,
    /// Uid and gid, unless we may run the cluster ourselves.
    user: Option<(u32, u32)>,
}

impl ClusterHost {
    fn new(folder: &Path) -> anyhow::Result<Self> {
        let binaries = binaries()?;
        let folder = folder.canonicalize().with_context(|| folder.display().to_string())?;
        let data = folder.join("postgres");
        fs::create_dir_all(&data).with_context(|| data.display().to_string())?;
        // A folder that we create belongs to our own user.
        let user = if fs::metadata(&data)?.uid() == 0 { Some(system_user()?) } else { None };
        let host = Self { binaries, data, user };
        host.own(&host.data)?;
        host.check_reachable()?;
        Ok(host)
    }

    /// Returns a command that runs as the user who owns the cluster.
    fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        if let Some((uid, gid)) = self.user {
            command.uid(uid).gid(gid);
        }
        // PostgreSQL's programs complain about a current folder that they may not enter.
        command.current_dir(&self.data).stdin(Stdio::null());
        command
    }

    fn own(&self, path: &Path) -> anyhow::Result<()> {
        let Some((uid, gid)) = self.user else { return Ok(()) };
        chown(path, Some(uid), Some(gid)).with_context(|| format!("chown {}", path.display()))
    }

    /// Returns an error that names the outermost folder that the cluster's user cannot enter.
    fn check_reachable(&self) -> anyhow::Result<()> {
        let Some((uid, gid)) = self.user else { return Ok(()) };
        let mut closed = None;
        for folder in self.data.ancestors() {
            let mut test = Command::new("test");
            test.arg("-x").arg(folder).uid(uid).gid(gid);
            if !test.status().context("test -x")?.success() {
                closed = Some(folder);
            }
        }
        if let Some(folder) = closed {
            anyhow::bail!(
                "the system user `{USER}` cannot access {}, and PostgreSQL does not run as root: \
                 choose another directory for its files",
                folder.display()
            );
        }
        Ok(())
    }

    /// Creates the cluster, and returns the password of its user.
    fn initialise(&self) -> anyhow::Result<String> {
        let mut secret = [0; 16];
        getrandom::fill(&mut secret).context("cannot generate random numbers")?;
        let password = format!("{:032x}", u128::from_be_bytes(secret));
        let file = self.data.with_extension("password");
        File::options()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&file)
            .and_then(|mut file| file.write_all(password.as_bytes()))
            .with_context(|| file.display().to_string())?;
        self.own(&file)?;

        let mut initdb = self.command(&self.binaries.join("initdb"));
        initdb.args(["--no-sync", "--auth=scram-sha-256", "--encoding=UTF8", "--locale=C"]);
        initdb.args(["--username", USER, "--pwfile"]).arg(&file).arg("--pgdata").arg(&self.data);
        let output = initdb.output().context("cannot start initdb")?;
        fs::remove_file(&file)?;
        let said = String::from_utf8_lossy(&output.stderr);
        anyhow::ensure!(output.status.success(), "initdb: {}", said.trim());
        Ok(password)
    }

    fn serve(&self, port: u16, more: &[&str], log: File) -> anyhow::Result<Child> {
        let settings = [
            "listen_addresses=127.0.0.1".to_owned(),
            format!("port={port}"),
            // The sockets' paths have a limit that a folder for benchmarks may exceed.
            "unix_socket_directories=".to_owned(),
            format!("shared_buffers={}MB", shared_buffers_mb()?),
            format!("max_wal_size={}MB", MAX_WAL_BYTES >> 20),
        ];
        let mut command = self.command(&self.binaries.join("postgres"));
        command.arg("-D").arg(&self.data);
        for setting in settings.iter().map(String::as_str).chain(more.iter().copied()) {
            command.arg("-c").arg(setting);
        }
        command.stdout(log.try_clone()?).stderr(log).process_group(0);
        command.spawn().context("cannot start postgres")
    }
}

/// Returns the folder of `initdb` and `postgres`: that of the newest package, else `pg_config`'s
/// answer, else an empty path, which leaves it to `PATH`.
fn binaries() -> anyhow::Result<PathBuf> {
    let versions = match fs::read_dir(PACKAGED) {
        Ok(entries) => entries.collect::<Result<Vec<_>, _>>().context(PACKAGED)?,
        Err(error) if error.kind() == ErrorKind::NotFound => Vec::new(),
        Err(error) => return Err(error).context(PACKAGED),
    };
    let versions = versions.iter().filter_map(|entry| {
        let version: f64 = entry.file_name().to_str()?.parse().ok()?;
        let folder = entry.path().join("bin");
        folder.join("initdb").is_file().then_some((version, folder))
    });
    if let Some((_, folder)) = versions.max_by(|(a, _), (b, _)| a.total_cmp(b)) {
        return Ok(folder);
    }
    if let Ok(output) = Command::new("pg_config").arg("--bindir").output() {
        let folder = PathBuf::from(String::from_utf8_lossy(&output.stdout).trim());
        if folder.join("initdb").is_file() {
            return Ok(folder);
        }
    }
    let in_path = Command::new("initdb").arg("--version").output();
    in_path.context("PostgreSQL server not found: install the package `postgresql`")?;
    Ok(PathBuf::new())
}

/// Returns the uid and gid of the user that the package creates.
fn system_user() -> anyhow::Result<(u32, u32)> {
    let users = fs::read_to_string("/etc/passwd").context("/etc/passwd")?;
    let ids = users.lines().find_map(|line| {
        let mut fields = line.split(':');
        let (name, mut ids) = (fields.next()?, fields.skip(1));
        let ids = (ids.next()?.parse().ok()?, ids.next()?.parse().ok()?);
        (name == USER).then_some(ids)
    });
    ids.with_context(|| {
        format!("PostgreSQL does not run as root, and the system user `{USER}` does not exist")
    })
}

fn shared_buffers_mb() -> anyhow::Result<u64> {
    let memory = match fs::read_to_string("/proc/meminfo") {
        Ok(memory) => memory,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(SHARED_BUFFERS_MB_DEFAULT),
        Err(error) => return Err(error).context("/proc/meminfo"),
    };
    let total = memory.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    let total = total.and_then(|total| total.trim().strip_suffix(" kB")).context("MemTotal")?;
    let total_mb = total.trim().parse::<u64>().context("MemTotal")? >> 10;
    Ok((total_mb / MEMORY_SHARE).clamp(SHARED_BUFFERS_MB_DEFAULT, SHARED_BUFFERS_MB_MAX))
}
