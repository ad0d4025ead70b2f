//! A test on a disk that is really full: a small tmpfs, which only root can mount.

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::Duration;

use serde_json::Value;

use crate::fixture::{FaultedServer, SendRecord, now, send};
use crate::scenarios::{prepare_account, register};

/// The size of the disk: it has room for the reserve of 16 MiB and twice as much again.
const DISK_MB: u32 = 80;
/// The time limit of the recovery. The server checks for free space every two seconds.
const BACK_TIME_MAX: Duration = Duration::from_mins(2);

/// A tmpfs that is unmounted on drop.
struct SmallDisk(tempfile::TempDir);

impl SmallDisk {
    /// Mounts the disk. Returns `None` if that is not permitted here.
    fn mount() -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let size = format!("size={DISK_MB}m");
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &size, "tmpfs"]).arg(folder.path());
        mount.output().is_ok_and(|output| output.status.success()).then_some(Self(folder))
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    /// Leaves no byte free.
    fn fill(&self) {
        let mut ballast = File::options().create(true).append(true).open(self.ballast()).unwrap();
        while ballast.write_all(&[0; 4_096]).is_ok() {}
    }

    fn empty(&self) {
        fs::remove_file(self.ballast()).unwrap();
    }

    fn ballast(&self) -> std::path::PathBuf {
        self.path().join("ballast")
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        drop(Command::new("umount").arg("-l").arg(self.path()).status());
    }
}

fn readiness(server: &FaultedServer) -> (u16, Value) {
    let answer = send("GET", &format!("{}/readyz", server.address), &[], &[]).unwrap();
    (answer.status, answer.value())
}

#[test]
fn a_full_disk_refuses_what_is_new_and_is_over_when_there_is_room() {
    let Some(disk) = SmallDisk::mount() else { return };
    let (server, token) = prepare_account(disk.path());
    let mut ledger = SendRecord::with_content_bytes(2_000);
    assert!(ledger.push(&server, &token, 50));
    assert_eq!(readiness(&server).0, 200);
    disk.fill();
    // The rest of the WAL may have room for some messages.
    while ledger.push(&server, &token, 50) {
        disk.fill();
    }
    assert_eq!(ledger.codes.keys().collect::<Vec<_>>(), ["server_disk_full"]);
    let (status, readiness_then) = readiness(&server);
    assert_eq!((status, &readiness_then["disk_full"]), (503, &Value::Bool(true)));
    // The reserve is for requests that store no new data: here, the revocation of a device.
    let device = register(&mut ledger, &server, &token, "", "lost").unwrap();
    let revoke = format!("/v1/devices/{}", device.id);
    let revoked = ledger.call(&server, ("DELETE", &revoke), &token, &Value::Null).unwrap();
    assert_eq!(revoked.status, 204);
    assert!(!ledger.push(&server, &token, 50), "still full");
    assert_eq!(ledger.check_vault(&server, &token), Vec::<String>::new(), "pulls go on");

    disk.empty();
    let until = now() + BACK_TIME_MAX;
    while readiness(&server).0 != 200 {
        assert!(now() < until, "{:?}", readiness(&server));
        thread::park_timeout(Duration::from_millis(100));
    }
    assert!(ledger.push_again(&server, &token), "{:?}", ledger.codes);
    assert_eq!(ledger.check_vault(&server, &token), Vec::<String>::new());
    assert!(server.stop().unwrap().success());
}
