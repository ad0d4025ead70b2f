//! Tests of a device's reports to the server, its stored list of devices, and a full account.

use crdt::NodeId;
use protocol::{DeviceInfo, DeviceList};
use protocol::{
    EnableE2eeRequest, ErrorCode, PullResponse, PushRequest, PushResponse, RegisterDeviceRequest,
    RegisterDeviceResponse,
};
use protocol::{ReconcileRequest, ReconcileResponse};
use replica::{Error, PageStream, PullParams, Result, Transport};

use crate::support::{MemoryServer, TestDevice};

const SCHEMA: &str = "CREATE TABLE t (id INTEGER PRIMARY KEY, x)";

/// Transport that records the device's reports, and rejects pushes while the account is full.
struct RecordingTransport<'a> {
    server: &'a mut MemoryServer,
    is_full: bool,
    node: Option<NodeId>,
    /// Counts of unsent messages that the device reported with each pull and each push.
    unsent: Vec<u64>,
}

impl<'a> RecordingTransport<'a> {
    fn new(server: &'a mut MemoryServer) -> Self {
        server.now_ms.set(crate::support::MORNING_MS);
        Self { server, is_full: false, node: None, unsent: Vec::new() }
    }
}

impl Transport for RecordingTransport<'_> {
    fn register(
        &mut self,
        token: Option<&str>,
        request: &RegisterDeviceRequest,
    ) -> Result<RegisterDeviceResponse> {
        self.server.register(token, request)
    }

    fn pull(&mut self, token: &str, pull: &PullParams) -> Result<PullResponse> {
        self.node = Some(pull.node_id);
        self.unsent.push(pull.unsent_count);
        self.server.pull(token, pull)
    }

    fn push(&mut self, token: &str, request: &PushRequest, unsent: u64) -> Result<PushResponse> {
        if self.is_full {
            let message = "the account may hold 0 messages".into();
            return Err(Error::RejectedByServer { code: ErrorCode::QuotaExceeded, message });
        }
        self.unsent.push(unsent);
        self.server.push(token, request, unsent)
    }

    fn stream(&mut self, token: &str, cursor: u64) -> Result<PageStream> {
        self.server.stream(token, cursor)
    }

    fn reconcile(&mut self, token: &str, request: &ReconcileRequest) -> Result<ReconcileResponse> {
        self.server.reconcile(token, request)
    }

    fn encrypt(&mut self, token: &str, request: &EnableE2eeRequest) -> Result<()> {
        self.server.encrypt(token, request)
    }
}

#[test]
fn a_device_tells_what_it_has_to_send_and_that_it_has_sent_it() {
    let mut server = MemoryServer::default();
    let mut device = TestDevice::tracked(SCHEMA, &mut server);
    device.sync(&mut server);
    // Three pending changes of one row become one message.
    device.write("INSERT INTO t VALUES (1, 'a')").unwrap();
    device.write("UPDATE t SET x = 'b'; UPDATE t SET x = 'c'").unwrap();
    assert_eq!(device.replica().pending_upload_count().unwrap(), 3);
    let mut telling = RecordingTransport::new(&mut server);
    device.try_sync_with(&mut telling, false).unwrap();
    assert_eq!(telling.unsent.first(), Some(&3));
    assert_eq!(telling.unsent.last(), Some(&0));
    assert_eq!(telling.node, Some(device.replica().status().unwrap().node_id));
    assert_eq!(device.replica().pending_upload_count().unwrap(), 0);
}

#[test]
fn a_full_account_still_gives_and_takes_again_when_there_is_room() {
    let mut server = MemoryServer::default();
    let mut devices = [0, 1].map(|_| TestDevice::tracked(SCHEMA, &mut server));
    for device in &devices {
        device.sync(&mut server);
    }
    devices[0].write("INSERT INTO t VALUES (1, 'of another device')").unwrap();
    devices[0].sync(&mut server);
    devices[1].write("INSERT INTO t VALUES (2, 'not sent yet')").unwrap();
    let count = server.messages.len();

    let mut full = RecordingTransport { is_full: true, ..RecordingTransport::new(&mut server) };
    let refused = devices[1].try_sync_with(&mut full, false).unwrap_err();
    assert_eq!(refused.code(), ErrorCode::QuotaExceeded);
    assert_eq!(devices[1].dump().len(), 2, "what others sent is shown");
    assert_eq!(devices[1].replica().pending_upload_count().unwrap(), 1);
    let remote = devices[1].replica().remote().unwrap().unwrap();
    assert_eq!((remote.server_messages_count, remote.in_sync), (count as u64, false));
    assert_eq!(server.messages.len(), count);

    let report = devices[1].sync(&mut server);
    assert_eq!((report.sent_count, report.in_sync, report.reconciled), (1, true, false));
    devices[0].sync(&mut server);
    assert_eq!(devices[0].dump(), devices[1].dump());
}

#[test]
fn the_names_of_devices_are_remembered() {
    let mut server = MemoryServer::default();
    let device = TestDevice::tracked(SCHEMA, &mut server);
    let names = |names: &[(u64, &str)]| {
        let client = |(node, name): &(u64, &str)| DeviceInfo {
            node_id: NodeId(*node).to_string(),
            name: (*name).to_owned(),
            ..DeviceInfo::default()
        };
        DeviceList { devices: names.iter().map(client).collect(), ..DeviceList::default() }
    };
    let replica = device.replica();
    let version = device.replica().data_version().unwrap();
    assert_eq!(replica.data_version().unwrap(), version);
    replica.store_device_names(&names(&[(1, "phone"), (u64::MAX, "laptop")])).unwrap();
    replica.store_device_names(&names(&[(1, "old phone"), (2, "tablet")])).unwrap();
    // Names that are already stored need no lock.
    device.app.execute_batch("BEGIN IMMEDIATE").unwrap();
    replica.store_device_names(&names(&[(1, "old phone"), (2, "tablet")])).unwrap();
    device.app.execute_batch("COMMIT").unwrap();
    let known = device.texts("SELECT node_id || ' ' || name FROM warren_device ORDER BY node_id");
    assert_eq!(known, ["-1 laptop", "1 old phone", "2 tablet"]);
}

#[test]
fn a_file_tells_when_another_program_has_written_to_it() {
    let mut server = MemoryServer::default();
    let mut device = TestDevice::tracked(SCHEMA, &mut server);
    let replica = device.replica();
    let before = replica.data_version().unwrap();
    assert_eq!(replica.data_version().unwrap(), before);
    device.write("INSERT INTO t VALUES (1, 'a')").unwrap();
    assert_ne!(replica.data_version().unwrap(), before);
}
