//! Tests of end-to-end encryption: devices with one phrase converge, and a server that reads,
//! changes, moves or forges messages achieves nothing.

use bytes::Bytes;
use crdt::{CellWrite, Change, EncryptionMode, Message, NodeId, Timestamp, Value};
use protocol::{
    EnableE2eeRequest, ErrorCode, PullResponse, PushRequest, PushResponse, RegisterDeviceRequest,
    RegisterDeviceResponse,
};
use protocol::{ReconcileRequest, ReconcileResponse};
use replica::{
    Error, PageStream, PullParams, RecoveryPhrase, RejectedMessages, Replica, Result, Transport,
};

use crate::support::{MORNING_MS, MemoryServer, TestDevice};

const SCHEMA: &str = "CREATE TABLE marker_table (id INTEGER PRIMARY KEY, marker_column TEXT)";
const WRITE: &str = "INSERT INTO marker_table VALUES (1, 'marker_value')";
const MARKERS: [&str; 3] = ["marker_table", "marker_column", "marker_value"];

fn phrase() -> RecoveryPhrase {
    RecoveryPhrase::parse(&("abandon ".repeat(23) + "art")).unwrap()
}

/// Creates a device that encrypts end to end from the beginning.
fn sealed(phrase: &RecoveryPhrase, server: &mut MemoryServer) -> TestDevice {
    let device = TestDevice::new(SCHEMA);
    let replica = Replica::prepare(&device.path).unwrap();
    replica.set_recovery_phrase(phrase).unwrap();
    replica.confirm_new_account().unwrap();
    replica.track_all().unwrap();
    device.sign_in(server);
    device
}

/// Creates a device with a row, and a server that has it.
fn first() -> (TestDevice, MemoryServer) {
    let mut server = MemoryServer::default();
    let mut device = sealed(&phrase(), &mut server);
    device.write(WRITE).unwrap();
    device.sync(&mut server);
    (device, server)
}

/// Creates a file without tables, as `warren clone` does.
fn clone(phrase: Option<&RecoveryPhrase>, server: &mut MemoryServer) -> TestDevice {
    let device = TestDevice::new("");
    let replica = Replica::create(&device.path).unwrap();
    if let Some(phrase) = phrase {
        replica.set_recovery_phrase(phrase).unwrap();
    }
    device.sign_in(server);
    device
}

fn holds_markers(messages: &[Message]) -> bool {
    let holds = |content: &[u8], marker: &str| {
        content.windows(marker.len()).any(|window| window == marker.as_bytes())
    };
    messages.iter().any(|message| MARKERS.iter().any(|marker| holds(&message.content, marker)))
}

fn rows(device: &TestDevice) -> Vec<String> {
    device.texts("SELECT id || marker_column FROM marker_table ORDER BY id")
}

#[track_caller]
fn check_refused(device: &TestDevice, server: &mut MemoryServer, code: ErrorCode) {
    let count = server.messages.len();
    assert_eq!(device.try_sync(server, true).unwrap_err().code(), code);
    assert_eq!(server.messages.len(), count, "something was pushed");
}

#[test]
fn devices_with_one_phrase_converge_and_the_server_reads_nothing() {
    let (mut a, mut server) = first();
    let mut b = clone(Some(&phrase()), &mut server);
    b.sync(&mut server);
    b.write("INSERT INTO marker_table VALUES (2, 'marker_value')").unwrap();
    a.write("UPDATE marker_table SET marker_column = 'marker_value edited'").unwrap();
    for device in [&a, &b, &a] {
        let report = device.sync(&mut server);
        assert!(report.in_sync && report.rejected == RejectedMessages::default(), "{report:?}");
    }
    assert_eq!(rows(&a), ["1marker_value edited", "2marker_value"]);
    assert_eq!(a.dump(), b.dump());
    assert!(!holds_markers(&server.messages));

    let mut plain = MemoryServer::default();
    let mut device = TestDevice::tracked(SCHEMA, &mut plain);
    device.write(WRITE).unwrap();
    device.sync(&mut plain);
    assert!(holds_markers(&plain.messages), "the search finds nothing anywhere");
}

#[test]
fn what_was_tracked_in_plain_is_sealed_before_it_is_sent() {
    let mut server = MemoryServer::default();
    let mut device = TestDevice::new(SCHEMA);
    device.app.execute_batch("INSERT INTO marker_table VALUES (7, 'marker_value')").unwrap();
    Replica::prepare(&device.path).unwrap().track_all().unwrap();
    device.write(WRITE).unwrap();
    // Untracking turns the pending changes into messages, so these are in the log in plain, too.
    device.replica().untrack(&["marker_table".into()], device.clock_ms).unwrap();
    device.replica().track_all().unwrap();
    device.replica().set_recovery_phrase(&phrase()).unwrap();
    device.replica().confirm_new_account().unwrap();
    device.sign_in(&mut server);
    assert!(device.sync(&mut server).in_sync);
    assert!(!server.messages.is_empty() && !holds_markers(&server.messages));
    let other = clone(Some(&phrase()), &mut server);
    other.sync(&mut server);
    assert_eq!(rows(&other), ["1marker_value", "7marker_value"]);
}

#[test]
fn a_device_without_the_phrase_waits_for_it() {
    let (_, mut server) = first();
    let mut device = TestDevice::tracked(SCHEMA, &mut server);
    device.write("INSERT INTO marker_table VALUES (2, 'marker_value')").unwrap();
    check_refused(&device, &mut server, ErrorCode::RecoveryPhraseRequired);
    check_refused(&device, &mut server, ErrorCode::RecoveryPhraseRequired);
    assert_eq!(rows(&device), ["2marker_value"]);
    device.replica().set_recovery_phrase(&phrase()).unwrap();
    let report = device.sync(&mut server);
    assert!(report.in_sync && report.rejected.count() == 0, "{report:?}");
    assert_eq!(rows(&device), ["1marker_value", "2marker_value"]);
    assert!(!holds_markers(&server.messages));
}

#[test]
fn a_wrong_phrase_is_told_apart_and_can_be_replaced() {
    let (mut a, mut server) = first();
    let mut device = sealed(&RecoveryPhrase::generate(), &mut server);
    device.write("INSERT INTO marker_table VALUES (2, 'b')").unwrap();
    check_refused(&device, &mut server, ErrorCode::WrongRecoveryPhrase);
    assert_eq!(rows(&device), ["2b"]);
    device.replica().set_recovery_phrase(&phrase()).unwrap();
    assert!(device.sync(&mut server).in_sync);
    assert_eq!(rows(&device), ["1marker_value", "2b"]);
    a.write("DELETE FROM marker_table WHERE id = 1").unwrap();
    a.sync(&mut server);
    assert_eq!(rows(&a), ["2b"]);
    let error = device.replica().set_recovery_phrase(&RecoveryPhrase::generate()).unwrap_err();
    assert_eq!(error.code(), ErrorCode::RecoveryPhraseInUse);
}

#[test]
fn of_two_first_devices_with_phrases_of_their_own_the_second_is_told() {
    let mut server = MemoryServer::default();
    let mut a = sealed(&phrase(), &mut server);
    a.write(WRITE).unwrap();
    a.sync(&mut server);
    let mut hidden = std::mem::take(&mut server);
    let mut b = sealed(&RecoveryPhrase::generate(), &mut server);
    b.write("INSERT INTO marker_table VALUES (2, 'b')").unwrap();
    b.sync(&mut server);
    check_refused(&b, &mut hidden, ErrorCode::WrongRecoveryPhrase);
    // Messages that `b` sent under its own phrase do not belong to this account, and stop no
    // device.
    hidden.messages.append(&mut server.messages);
    let report = a.sync(&mut hidden);
    assert!(report.in_sync && report.rejected.by_reason.wrong_key > 0, "{report:?}");
    assert_eq!(rows(&a), ["1marker_value"]);
}

#[test]
fn a_plain_account_takes_no_phrase_of_another() {
    let mut server = MemoryServer::default();
    let mut device = TestDevice::tracked(SCHEMA, &mut server);
    // The answer was lost, so the device does not know whether the server got the messages.
    device.write(WRITE).unwrap();
    server.lose_answer = Some(server.requests + 2);
    device.try_sync(&mut server, false).unwrap_err();
    assert!(holds_markers(&server.messages));
    let error = device.replica().set_recovery_phrase(&phrase()).unwrap_err();
    assert_eq!(error.code(), ErrorCode::AccountNotEncrypted);
    device.sync(&mut server);
    // The account may have become end-to-end encrypted since, so the next sync asks the server.
    device.replica().set_recovery_phrase(&phrase()).unwrap();
    check_refused(&device, &mut server, ErrorCode::AccountNotEncrypted);
    assert!(device.replica().recovery_phrase().unwrap().is_none());
    assert!(device.sync(&mut server).in_sync);
}

#[test]
fn sealed_messages_stop_no_device_of_a_plain_account() {
    let (_, sealed_server) = first();
    let mut server = MemoryServer::default();
    let mut device = TestDevice::tracked(SCHEMA, &mut server);
    device.write("INSERT INTO marker_table VALUES (2, 'mine')").unwrap();
    device.sync(&mut server);
    server.messages.extend(sealed_server.messages);
    let mut clone = clone(None, &mut server);
    for device in [&mut device, &mut clone] {
        let report = device.sync(&mut server);
        assert!(report.in_sync && report.rejected.count() > 0, "{report:?}");
        assert_eq!(report.rejected_count, report.rejected.count());
        assert_eq!(rows(device), ["2mine"]);
    }
    clone.write("INSERT INTO marker_table VALUES (3, 'goes on')").unwrap();
    let report = clone.sync(&mut server);
    // Messages that earlier syncs rejected stay rejected.
    assert!(report.rejected.count() == 0 && report.rejected_count > 0, "{report:?}");
    assert_eq!(clone.replica().status().unwrap().rejected_count, report.rejected_count);
    device.sync(&mut server);
    assert_eq!(rows(&device), ["2mine", "3goes on"]);
}

#[test]
fn a_server_that_calls_a_sealed_account_plain_gets_nothing() {
    let (mut a, mut server) = first();
    server.form = Some(EncryptionMode::Plain);
    a.write("INSERT INTO marker_table VALUES (2, 'b')").unwrap();
    check_refused(&a, &mut server, ErrorCode::AccountNotEncrypted);
    // A new device whose user has entered the phrase sends nothing in plain, either.
    let mut server = MemoryServer { form: Some(EncryptionMode::Plain), ..MemoryServer::default() };
    let mut b = TestDevice::new(SCHEMA);
    let replica = Replica::prepare(&b.path).unwrap();
    replica.set_recovery_phrase(&phrase()).unwrap();
    replica.track_all().unwrap();
    b.sign_in(&mut server);
    b.write(WRITE).unwrap();
    check_refused(&b, &mut server, ErrorCode::AccountNotEncrypted);
}

#[test]
fn a_phrase_that_was_typed_in_sends_nothing_before_something_has_opened() {
    let mut empty = MemoryServer::default();
    let mut device = TestDevice::new(SCHEMA);
    let replica = Replica::prepare(&device.path).unwrap();
    replica.set_recovery_phrase(&phrase()).unwrap();
    replica.track_all().unwrap();
    device.sign_in(&mut empty);
    device.write(WRITE).unwrap();
    check_refused(&device, &mut empty, ErrorCode::RecoveryPhraseUnverified);
    check_refused(&device, &mut empty, ErrorCode::RecoveryPhraseUnverified);
    // The user confirms that the account is new.
    device.replica().confirm_new_account().unwrap();
    assert!(device.sync(&mut empty).in_sync);
    assert_eq!(empty.messages.len(), 2);
    // A message opens, so the device may send in the same sync.
    let mut other = TestDevice::new(SCHEMA);
    let replica = Replica::prepare(&other.path).unwrap();
    replica.set_recovery_phrase(&phrase()).unwrap();
    replica.track_all().unwrap();
    other.sign_in(&mut empty);
    other.write("INSERT INTO marker_table VALUES (2, 'b')").unwrap();
    assert!(other.sync(&mut empty).in_sync);
    assert_eq!(rows(&other), ["1marker_value", "2b"]);
}

#[test]
fn a_device_that_is_to_ask_sends_nothing_before_somebody_has_answered() {
    let mut server = MemoryServer::default();
    let mut device = TestDevice::tracked(SCHEMA, &mut server);
    device.replica().require_account_confirmation().unwrap();
    device.write(WRITE).unwrap();
    check_refused(&device, &mut server, ErrorCode::EncryptionUndecided);
    device.replica().confirm_new_account().unwrap();
    assert!(device.sync(&mut server).in_sync);
    // An account whose encryption mode is known needs no confirmation.
    let mut other = TestDevice::tracked(SCHEMA, &mut server);
    other.replica().require_account_confirmation().unwrap();
    other.write("INSERT INTO marker_table VALUES (2, 'b')").unwrap();
    assert!(other.sync(&mut server).in_sync);
}

/// Transport that alters each message of node `victim`, as an attacker might.
struct TamperingTransport {
    server: MemoryServer,
    change: fn(&mut Message, &Message),
    victim: NodeId,
}

impl Transport for TamperingTransport {
    fn register(
        &mut self,
        token: Option<&str>,
        request: &RegisterDeviceRequest,
    ) -> Result<RegisterDeviceResponse> {
        self.server.register(token, request)
    }

    fn pull(&mut self, token: &str, pull: &PullParams) -> Result<PullResponse> {
        let answer = self.server.pull(token, pull)?;
        Ok(self.changed(answer))
    }

    fn stream(&mut self, token: &str, cursor: u64) -> Result<PageStream> {
        let pages: Vec<_> = self.server.stream(token, cursor)?.collect();
        let pages: Vec<_> = pages.into_iter().map(|page| Ok(self.changed(page?))).collect();
        Ok(Box::new(pages.into_iter()))
    }

    fn push(&mut self, token: &str, request: &PushRequest, unsent: u64) -> Result<PushResponse> {
        self.server.push(token, request, unsent)
    }

    fn reconcile(&mut self, token: &str, request: &ReconcileRequest) -> Result<ReconcileResponse> {
        let mut answer = self.server.reconcile(token, request)?;
        for finding in &mut answer.diffs {
            self.change(&mut finding.messages);
        }
        Ok(answer)
    }

    fn encrypt(&mut self, token: &str, request: &EnableE2eeRequest) -> Result<()> {
        self.server.encrypt(token, request)
    }
}

impl TamperingTransport {
    fn changed(&self, mut answer: PullResponse) -> PullResponse {
        self.change(&mut answer.messages);
        answer
    }

    fn change(&self, messages: &mut [protocol::WireMessage]) {
        for message in messages {
            let mut changed = Message::try_from(message.clone()).unwrap();
            if changed.timestamp.node_id() == self.victim {
                (self.change)(&mut changed, &self.server.messages[0]);
                *message = changed.into();
            }
        }
    }
}

/// Checks the report of a device that has the phrase and a good message when other messages are
/// altered.
fn check_evil(change: fn(&mut Message, &Message), reason: &str) {
    let (_, mut server) = first();
    let mut writer = clone(Some(&phrase()), &mut server);
    writer.sync(&mut server);
    writer.write("INSERT INTO marker_table VALUES (2, 'changed on the way')").unwrap();
    writer.sync(&mut server);
    let victim = writer.replica().status().unwrap().node_id;
    let mut reader = clone(Some(&phrase()), &mut server);
    let mut evil = TamperingTransport { server, change, victim };
    let report = reader.try_sync_with(&mut evil, false).unwrap();
    assert!(!report.in_sync);
    let by_reason = serde_json::to_value(report.rejected.by_reason).unwrap();
    assert!(by_reason[reason].as_u64().unwrap() > 0, "{report:?}");
    assert_eq!(report.rejected.timestamps[0].node_id(), victim);
    assert_eq!(rows(&reader), ["1marker_value"]);
    assert!(reader.replica().status().unwrap().rejected_count > 0);
    // A true message replaces its altered form as soon as it arrives.
    let mut server = evil.server;
    let node = reader.replica().status().unwrap().node_id;
    reader.write("INSERT INTO marker_table VALUES (3, 'goes on')").unwrap();
    let report = reader.try_sync(&mut server, false).unwrap();
    assert!(report.in_sync && report.rejected.count() == 0, "{report:?}");
    assert_eq!(rows(&reader), ["1marker_value", "2changed on the way", "3goes on"]);
    assert_eq!(reader.replica().status().unwrap().node_id, node, "it took another name");
    writer.sync(&mut server);
    assert_eq!(rows(&writer), ["1marker_value", "2changed on the way", "3goes on"]);
}

fn change_content(message: &mut Message, change: impl FnOnce(&mut Vec<u8>)) {
    let mut content = message.content.to_vec();
    change(&mut content);
    message.content = content.into();
}

#[test]
fn a_changed_message_is_not_applied() {
    check_evil(|message, _| change_content(message, |c| *c.last_mut().unwrap() ^= 1), "tampered");
}

#[test]
fn a_cut_message_is_not_applied() {
    check_evil(|message, _| change_content(message, |c| c.truncate(c.len() - 1)), "truncated");
}

#[test]
fn a_message_under_another_timestamp_is_not_applied() {
    check_evil(|message, first| message.content = first.content.clone(), "replayed");
}

#[test]
fn a_message_of_somebody_elses_phrase_is_not_applied() {
    check_evil(|message, _| change_content(message, |content| content[1] ^= 1), "wrong_key");
}

#[test]
fn a_message_that_the_server_made_itself_is_not_applied() {
    let forge = |message: &mut Message, _: &Message| {
        let cells = vec![CellWrite::new("marker_column", Value::Text("forged".into()))];
        let (table, key) = ("marker_table".into(), vec![Value::Integer(1)]);
        message.content = Change::Write { table, key, cells, replaced_tombstone: None }.encode();
    };
    check_evil(forge, "not_encrypted");
    check_evil(|message, _| message.content = Bytes::from_static(&[9, 9, 9]), "undecodable");
    check_evil(|message, _| message.content = Bytes::new(), "not_encrypted");
}

#[test]
fn what_does_not_open_is_not_passed_on() {
    let (a, mut server) = first();
    let victim = a.replica().status().unwrap().node_id;
    let reader = clone(Some(&phrase()), &mut server);
    let count = server.messages.len();
    // The messages get timestamps that no device assigned: after reconciling, the server would lack
    // them.
    let change = |message: &mut Message, _: &Message| {
        let (millis, counter) = (message.timestamp.millis() + 1_000, message.timestamp.counter());
        message.timestamp = Timestamp::new(millis, counter, message.timestamp.node_id()).unwrap();
    };
    let mut evil = TamperingTransport { server, change, victim };
    let report = reader.try_sync_with(&mut evil, false).unwrap();
    assert!(report.reconciled && report.rejected.by_reason.replayed > 0, "{report:?}");
    // An honest server has never had these messages, and does not get them; the device forgets
    // them.
    let mut server = evil.server;
    let report = reader.try_sync(&mut server, false).unwrap();
    assert!(report.reconciled && report.in_sync && report.rejected.count() == 0, "{report:?}");
    assert_eq!(server.messages.len(), count);
    assert_eq!(rows(&reader), ["1marker_value"]);
}

#[test]
fn a_message_that_is_changed_later_leaves_the_device_as_it_is() {
    let (a, mut server) = first();
    let before = a.replica().status().unwrap();
    change_content(&mut server.messages[0], |content| *content.last_mut().unwrap() ^= 1);
    let report = a.try_sync(&mut server, false).unwrap();
    assert!(
        !report.in_sync && !report.registered_copy && report.rejected.by_reason.tampered > 0,
        "{report:?}"
    );
    let after = a.replica().status().unwrap();
    assert_eq!((after.node_id, after.fingerprint()), (before.node_id, before.fingerprint()));
    assert_eq!(rows(&a), ["1marker_value"]);
}

#[test]
fn a_copy_seals_its_changes_anew_under_its_new_name() {
    let (mut original, mut server) = first();
    let path = original.path.with_file_name("copy.db");
    std::fs::copy(&original.path, &path).unwrap();
    let mut copy = TestDevice::open(&path);
    // The copy takes the original's node id: both create timestamps with it, at the same moments.
    let read = "SELECT value FROM warren_meta WHERE key = 'node_id'";
    let node: i64 = original.app.query_row(read, [], |row| row.get(0)).unwrap();
    drop(copy.replica());
    copy.app.execute("UPDATE warren_meta SET value = ?1 WHERE key = 'node_id'", [node]).unwrap();
    original.write("INSERT INTO marker_table VALUES (2, 'o')").unwrap();
    copy.clock_ms = original.clock_ms - 1;
    copy.write("INSERT INTO marker_table VALUES (3, 'c')").unwrap();
    original.sync(&mut server);
    assert!(copy.sync(&mut server).registered_copy);
    let third = clone(Some(&phrase()), &mut server);
    for device in [&original, &copy, &third] {
        let report = device.sync(&mut server);
        assert!(report.in_sync && report.rejected.count() == 0, "{report:?}");
        assert_eq!(rows(device), ["1marker_value", "2o", "3c"]);
    }
    assert!(server.messages.iter().all(|m| m.timestamp.millis() <= MORNING_MS + 20_000));
    assert!(!holds_markers(&server.messages));
}

#[test]
fn an_unreachable_server_says_nothing_about_the_phrase() {
    let (a, mut server) = first();
    server.lose_answer = Some(server.requests + 1);
    assert!(matches!(a.try_sync(&mut server, false), Err(Error::Unreachable(_))));
    assert_eq!(*a.replica().recovery_phrase().unwrap().unwrap().words(), *phrase().words());
}
