//! Tests of copied files, restored files, lost answers, wrong clocks: no row is lost or doubled.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use protocol::{
    EnableE2eeRequest, ErrorCode, PullResponse, PushRequest, PushResponse, ReconcileRequest,
    ReconcileResponse, RegisterDeviceRequest, RegisterDeviceResponse,
};
use replica::{
    Error, PageStream, PullParams, Replica, Result, SyncContext, SyncProgress, Transport,
};

use crate::support::{MORNING_MS, MemoryServer, TestDevice};

const SCHEMA: &str = "CREATE TABLE t (id INTEGER PRIMARY KEY, v TEXT)";

#[test]
fn a_copied_file_becomes_a_device_of_its_own_and_both_sides_edits_arrive() {
    let mut server = MemoryServer::default();
    let mut original = TestDevice::tracked(SCHEMA, &mut server);
    original.write("INSERT INTO t VALUES (1, 'a')").unwrap();
    original.sync(&mut server);
    let path = original.path.with_file_name("copy.db");
    std::fs::copy(&original.path, &path).unwrap();
    let mut copy = TestDevice::open(&path);
    original.write("INSERT INTO t VALUES (2, 'b')").unwrap();
    copy.write("INSERT INTO t VALUES (3, 'c')").unwrap();
    assert!(copy.sync(&mut server).registered_copy);
    assert!(!original.sync(&mut server).registered_copy);
    assert!(!copy.sync(&mut server).registered_copy, "once");
    let ids = |device: &TestDevice| device.replica().status().unwrap();
    assert_ne!(ids(&copy).node_id, ids(&original).node_id);
    assert_ne!(ids(&copy).remote.unwrap().device_id, ids(&original).remote.unwrap().device_id);
    for device in [&original, &copy] {
        assert_eq!(device.texts("SELECT id || v FROM t"), ["1a", "2b", "3c"]);
    }
}

#[test]
fn a_copy_that_hides_is_noticed_by_the_server_and_its_changes_are_named_anew() {
    let mut server = MemoryServer::default();
    let mut original = TestDevice::tracked(SCHEMA, &mut server);
    original.sync(&mut server);
    let path = original.path.with_file_name("copy.db");
    std::fs::copy(&original.path, &path).unwrap();
    let mut copy = TestDevice::open(&path);
    // The test adjusts the identity, so that each file takes itself for the one device.
    let identity = replica_identity(&path);
    copy.app
        .execute("UPDATE warren_meta SET value = ?1 WHERE key = 'identity'", [identity])
        .unwrap();
    original.write("INSERT INTO t VALUES (2, 'b')").unwrap();
    copy.write("INSERT INTO t VALUES (3, 'c')").unwrap();
    assert!(!original.sync(&mut server).registered_copy);
    let report = copy.sync(&mut server);
    assert!(report.registered_copy && report.in_sync, "{report:?}");
    original.sync(&mut server);
    for device in [&original, &copy] {
        assert_eq!(device.texts("SELECT id || v FROM t"), ["2b", "3c"]);
    }
}

fn replica_identity(path: &Path) -> String {
    let fresh = path.with_file_name("fresh.db");
    std::fs::copy(path, &fresh).unwrap();
    drop(Replica::open(&fresh).unwrap());
    let db = rusqlite::Connection::open(&fresh).unwrap();
    let sql = "SELECT value FROM warren_meta WHERE key = 'identity'";
    let of_fresh: String = db.query_row(sql, [], |row| row.get(0)).unwrap();
    let machine = of_fresh.rsplit_once(':').unwrap().0.to_owned();
    format!("{machine}:{}", std::fs::metadata(path).unwrap().ino())
}

#[test]
fn lost_answers_are_asked_for_again_and_nothing_is_stored_twice() {
    let mut server = MemoryServer::default();
    let mut device = TestDevice::tracked(SCHEMA, &mut server);
    device.write("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 25000) INSERT INTO t SELECT i, 'x' FROM n").unwrap();
    for lost in 1..=6 {
        server.lose_answer = Some(server.requests + lost);
        drop(device.try_sync(&mut server, false));
    }
    server.lose_answer = None;
    let report = device.sync(&mut server);
    assert!(report.in_sync && !report.reconciled);
    assert_eq!(server.messages.len(), 25_001);
    let mut other = TestDevice::tracked(SCHEMA, &mut server);
    other.sync(&mut server);
    assert_eq!(other.dump().len(), 25_000);
    other.write("DELETE FROM t WHERE id <= 24999").unwrap();
    other.sync(&mut server);
    device.sync(&mut server);
    assert_eq!(device.dump(), other.dump());
}

#[test]
fn a_server_that_takes_less_gets_smaller_pages() {
    let mut server = MemoryServer { messages_count_max: 7, ..MemoryServer::default() };
    let mut device = TestDevice::tracked(SCHEMA, &mut server);
    device
        .write("INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, 'c'), (4, 'd'), (5, 'e'), (6, 'f'), (7, 'g'), (8, 'h')")
        .unwrap();
    assert!(device.sync(&mut server).in_sync);
    let other = TestDevice::tracked(SCHEMA, &mut server);
    other.sync(&mut server);
    assert_eq!(other.dump(), device.dump());
    server.messages_count_max = 0;
    device.write("INSERT INTO t VALUES (9, 'i')").unwrap();
    let refused = RejectLargePushes(server);
    let error = device.try_sync_with(&mut { refused }, false).unwrap_err();
    assert!(error.to_string().contains("the row of t with key 9"), "{error}");
}

/// Transport that rejects every push as too large.
struct RejectLargePushes(MemoryServer);

impl Transport for RejectLargePushes {
    fn register(
        &mut self,
        token: Option<&str>,
        request: &RegisterDeviceRequest,
    ) -> Result<RegisterDeviceResponse> {
        self.0.register(token, request)
    }

    fn pull(&mut self, token: &str, pull: &PullParams) -> Result<PullResponse> {
        self.0.pull(token, pull)
    }

    fn stream(&mut self, token: &str, cursor: u64) -> Result<PageStream> {
        self.0.stream(token, cursor)
    }

    fn push(&mut self, _: &str, _: &PushRequest, _: u64) -> Result<PushResponse> {
        Err(Error::RejectedByServer { code: ErrorCode::TooLarge, message: "too large".into() })
    }

    fn reconcile(&mut self, token: &str, request: &ReconcileRequest) -> Result<ReconcileResponse> {
        self.0.reconcile(token, request)
    }

    fn encrypt(&mut self, token: &str, request: &EnableE2eeRequest) -> Result<()> {
        self.0.encrypt(token, request)
    }
}

#[test]
fn a_clock_that_is_hours_off_is_corrected_when_two_syncs_have_found_it_so() {
    for off_ms in [-3_600_000i64, 3_600_000] {
        let mut server = MemoryServer::default();
        server.now_ms.set(MORNING_MS + 50_000);
        let mut wrong = TestDevice::tracked(SCHEMA, &mut server);
        let mut right = TestDevice::tracked(SCHEMA, &mut server);
        wrong.clock_ms = (MORNING_MS + 50_000).saturating_add_signed(off_ms);
        assert_eq!(wrong.sync(&mut server).clock_offset_ms, 0, "once may be the server's mistake");
        server.now_ms.set(MORNING_MS + 60_000);
        right.clock_ms = MORNING_MS + 59_000;
        right.write("INSERT INTO t VALUES (1, 'later')").unwrap();
        wrong.clock_ms = (MORNING_MS + 58_000).saturating_add_signed(off_ms);
        wrong.write("INSERT INTO t VALUES (1, 'earlier')").unwrap();
        wrong.clock_ms = (MORNING_MS + 60_000).saturating_add_signed(off_ms);
        let report = wrong.sync(&mut server);
        assert!((report.clock_offset_ms + off_ms).abs() < 10, "{report:?}");
        right.sync(&mut server);
        wrong.sync(&mut server);
        for device in [&right, &wrong] {
            assert_eq!(device.texts("SELECT v FROM t"), ["later"], "off by {off_ms}");
        }
        let ahead = server.messages.iter().map(|m| m.timestamp.millis()).max().unwrap();
        assert!(ahead <= MORNING_MS + 61_000);
    }
}

#[test]
fn how_far_a_first_sync_is_is_told_within_a_page_too() {
    let mut server = MemoryServer::default();
    let mut original = TestDevice::tracked(SCHEMA, &mut server);
    let many = "WITH RECURSIVE n(id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM n WHERE id < 4500)
                INSERT INTO t SELECT id, 'a' FROM n";
    original.write(many).unwrap();
    original.sync(&mut server);
    let copy = TestDevice::tracked(SCHEMA, &mut server);
    let mut told = Vec::new();
    let options = SyncContext {
        create_missing: false,
        now_ms: &|| MORNING_MS + 10,
        progress: &mut |progress| told.push(progress),
    };
    copy.replica().sync(&mut server, options).unwrap();
    let received = |done| SyncProgress::Received(done, 4_501);
    let first: Vec<_> = (1..=4).map(|thousands| received(thousands * 1_000)).collect();
    assert!(told.starts_with(&first), "{told:?}");
    assert!(told.contains(&received(4_501)), "{told:?}");
}
