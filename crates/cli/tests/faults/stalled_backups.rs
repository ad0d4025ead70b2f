//! These tests stop a backup in the middle of a file, as when its disk hangs: no process waits for
//! it for long, and once it continues it is as complete as any other backup.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;

use crate::fixture::{
    FaultedServer, PASSWORD, SendRecord, TIME_MAX, WARREN, now, send, wait, warren,
};
use crate::scenarios::{prepare_account, register};
use crate::shim::operation::WRITE;
use crate::shim::{FaultMode, ShimControl};

const POLL: Duration = Duration::from_millis(20);
/// The number of messages per push. They have some kilobytes each, so that a few pushes make a WAL
/// that is due for a checkpoint.
const PUSH_COUNT: u64 = 200;
const CONTENT_BYTES: usize = 2_000;
const PUSHES_PER_CHECKPOINT: usize = 20;

/// A server and a stopped backup. The backup is killed on drop.
struct StalledBackupFixture {
    folder: TempDir,
    server: Option<FaultedServer>,
    ledger: SendRecord,
    token: String,
    backup: Child,
    control: ShimControl,
}

impl StalledBackupFixture {
    /// Starts a backup that stops while it writes pages of the WAL into `stopped_at`, a file or
    /// folder of its own.
    fn new(stopped_at: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (server, token) = prepare_account(&folder.path().join("place"));
        let mut ledger = SendRecord::with_content_bytes(CONTENT_BYTES);
        assert!(ledger.push(&server, &token, PUSH_COUNT));
        let control = ShimControl::new(folder.path());
        control.arm(FaultMode::Stop, 1, WRITE, 0);
        let mut command = Command::new(WARREN);
        command.args(["backup", "copy", "--data", "place/data"]).current_dir(folder.path());
        command.envs(control.environment(&folder.path().join(stopped_at), None));
        let backup = command.stdin(Stdio::null()).spawn().unwrap();
        let world = Self { folder, server: Some(server), ledger, token, backup, control };
        wait_until(|| world.control.hit().is_some());
        world
    }

    fn server(&self) -> &FaultedServer {
        self.server.as_ref().unwrap()
    }

    fn push(&mut self, count: u64) -> bool {
        self.ledger.push(self.server.as_ref().unwrap(), &self.token, count)
    }

    /// Checks that the server serves devices: a push, a pull and a registration.
    fn check_service(&mut self) {
        assert!(self.push(1), "{:?}", self.ledger.codes);
        let server = self.server.as_ref().unwrap();
        assert_eq!(self.ledger.check_vault(server, &self.token), Vec::<String>::new());
        let device = register(&mut self.ledger, server, "", PASSWORD, "new");
        assert!(device.is_some(), "{:?}", self.ledger.codes);
        let ready = send("GET", &format!("{}/readyz", server.address), &[], &[]).unwrap();
        assert_eq!(ready.status, 200);
    }

    /// Runs a command and asserts that it succeeds.
    fn succeed(&self, arguments: &[&str]) {
        let (status, said) = warren(arguments, self.folder.path(), Vec::new());
        assert!(status.is_some_and(|status| status.success()), "{said}");
    }

    fn kill_and_start_server(&mut self) {
        self.server.take().unwrap().kill();
        let server = FaultedServer::start(&self.folder.path().join("place"), Vec::new());
        self.server = Some(server.map_err(|(_, said)| said).unwrap());
    }

    /// Lets the backup continue to its end, and checks that it has at least the first push.
    fn finish_backup(&mut self) {
        let resume = ["-CONT".to_owned(), self.backup.id().to_string()];
        assert!(Command::new("kill").args(resume).status().unwrap().success());
        assert!(wait(&mut self.backup, TIME_MAX).is_some_and(|status| status.success()));
        self.check_backup("copy", "restored");
    }

    fn check_backup(&self, copy: &str, restored: &str) {
        let place = self.folder.path().join(restored);
        std::fs::create_dir(&place).unwrap();
        self.succeed(&["restore", copy, "--data", &format!("{restored}/data")]);
        let server = FaultedServer::start(&place, Vec::new()).map_err(|(_, said)| said).unwrap();
        let ledger = SendRecord::from_acknowledged(PUSH_COUNT, CONTENT_BYTES);
        assert_eq!(ledger.check_vault(&server, &self.token), Vec::<String>::new());
        assert!(server.stop().unwrap().success());
    }

    fn heartbeats(&self) -> Vec<PathBuf> {
        let data = self.folder.path().join("place/data");
        let is_heartbeat = |path: &PathBuf| path.extension().is_some_and(|end| end == "copying");
        files_below(&data).into_iter().filter(is_heartbeat).collect()
    }
}

impl Drop for StalledBackupFixture {
    fn drop(&mut self) {
        drop(self.backup.kill());
        drop(self.backup.wait());
    }
}

fn files_below(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let below = |path: PathBuf| if path.is_dir() { files_below(&path) } else { vec![path] };
    entries.flat_map(below).collect()
}

fn wait_until(is_there: impl Fn() -> bool) {
    let until = now() + TIME_MAX;
    while !is_there() {
        assert!(now() < until, "it took too long");
        thread::park_timeout(POLL);
    }
}

#[test]
fn a_server_starts_and_works_while_a_backup_has_stopped() {
    for stopped_at in ["copy/vaults", "copy/accounts.sqlite"] {
        let mut world = StalledBackupFixture::new(stopped_at);
        world.check_service();
        world.succeed(&["backup", "second", "--data", "place/data"]);
        world.check_backup("second", "second-restored");
        world.kill_and_start_server();
        world.check_service();
        world.finish_backup();
        assert_eq!(world.heartbeats(), Vec::<PathBuf>::new());
    }
}

#[test]
fn a_backup_that_has_stopped_keeps_no_wal_from_being_moved_and_is_reported() {
    let mut world = StalledBackupFixture::new("copy/vaults");
    let [heartbeat] = &world.heartbeats()[..] else { panic!("{:?}", world.heartbeats()) };
    let database = heartbeat.with_extension("").display().to_string();
    let wal = File::open(format!("{database}-wal")).unwrap();
    let header = || {
        let mut header = [0; 32];
        wal.read_exact_at(&mut header, 0).unwrap();
        header
    };
    let before = header();
    for _ in 0..PUSHES_PER_CHECKPOINT {
        assert!(world.push(PUSH_COUNT));
    }
    assert_eq!(header(), before, "the backup may go on yet");
    wait_until(|| world.server().metric("warren_stalled_backups") == 1);
    let ready = send("GET", &format!("{}/readyz", world.server().address), &[], &[]).unwrap();
    assert_eq!((ready.status, &ready.value()["stalled_backups_count"]), (200, &Value::from(1)));
    let name = format!("warren backup, process {}", world.backup.id());
    assert!(world.server().log().contains(&name), "{}", world.server().log());

    let is_moved = (0..10 * PUSHES_PER_CHECKPOINT).any(|_| {
        assert!(world.push(PUSH_COUNT));
        header() != before
    });
    assert!(is_moved);
    world.finish_backup();
    wait_until(|| world.server().metric("warren_stalled_backups") == 0);
    world.check_service();
}
