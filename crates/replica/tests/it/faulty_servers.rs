//! Tests of servers that misbehave: a sync with one ends, loses nothing, and reports what it can.

use crdt::{Fingerprint, Message, Timestamp};
use protocol::{
    EnableE2eeRequest, ErrorCode, PullResponse, PushRequest, PushResponse, ReconcileRequest,
    ReconcileResponse, RegisterDeviceRequest, RegisterDeviceResponse, WireRangeDiff,
};
use replica::{Error, PageStream, PullParams, Result, SetDiscrepancy, Transport};

use crate::support::{MemoryServer, TestDevice};

const SCHEMA: &str = "CREATE TABLE item (id INTEGER PRIMARY KEY, note TEXT)";
/// Limit that no sync of these few changes reaches.
const REQUESTS_COUNT_MAX: u64 = 100;

/// Ways in which a server misbehaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ServerMisbehavior {
    /// The cursor moves, but no messages arrive.
    EmptyPages,
    /// The server always sends the same page.
    SamePage,
    /// A message is counted, but never sent.
    Withholds,
    /// Pushed messages are acknowledged, but not kept.
    Forgets,
    /// Each page has one more message, whose timestamp is invalid.
    NoTimestamp,
    /// Each page has as many messages with invalid timestamps as fit.
    NoTimestamps,
    /// The fingerprint is wrong.
    Fingerprint,
    /// A comparison advances by one moment at a time.
    SmallSteps,
    /// Every message is new to the server, in every comparison.
    WantsAll,
}

struct MisbehavingServer {
    misbehavior: ServerMisbehavior,
    honest: MemoryServer,
    /// Timestamp of the message that the server withholds.
    hidden: Vec<u8>,
    requests: u64,
}

impl MisbehavingServer {
    fn count_request(&mut self) {
        self.requests += 1;
        assert!(self.requests < REQUESTS_COUNT_MAX, "{:?} is asked for ever", self.misbehavior);
    }

    fn fingerprint(&self) -> protocol::WireFingerprint {
        let mut all = self.honest.fingerprint();
        if self.misbehavior == ServerMisbehavior::Fingerprint {
            all.digest ^= 1;
        }
        all.into()
    }

    fn page(&self, mut page: PullResponse, cursor: u64) -> PullResponse {
        page.fingerprint = Some(self.fingerprint());
        match self.misbehavior {
            ServerMisbehavior::EmptyPages => {
                PullResponse { messages: Vec::new(), cursor: cursor + 1, more: true, ..page }
            }
            ServerMisbehavior::SamePage => {
                let messages = self.honest.messages.iter().cloned().map(Into::into).collect();
                PullResponse { messages, cursor: cursor + 1, more: true, ..page }
            }
            ServerMisbehavior::Withholds => {
                page.messages.retain(|message| message.timestamp != self.hidden);
                page
            }
            ServerMisbehavior::NoTimestamp => {
                page.messages.insert(0, no_message());
                page
            }
            ServerMisbehavior::NoTimestamps => {
                let messages = (0..400).map(|_| no_message()).collect();
                PullResponse { messages, cursor: cursor + 1, more: true, ..page }
            }
            _ => page,
        }
    }
}

/// Returns a message whose timestamp is after the year 9999, which is invalid.
fn no_message() -> protocol::WireMessage {
    let content = vec![1, 2, 3].into();
    protocol::WireMessage { timestamp: vec![0xff; Timestamp::BYTES].into(), content }
}

impl Transport for MisbehavingServer {
    fn register(
        &mut self,
        token: Option<&str>,
        request: &RegisterDeviceRequest,
    ) -> Result<RegisterDeviceResponse> {
        self.honest.register(token, request)
    }

    fn pull(&mut self, token: &str, pull: &PullParams) -> Result<PullResponse> {
        self.count_request();
        let page = self.honest.pull(token, pull)?;
        Ok(self.page(page, pull.cursor))
    }

    fn stream(&mut self, token: &str, cursor: u64) -> Result<PageStream> {
        self.count_request();
        let pages: Vec<_> = self.honest.stream(token, cursor)?.collect();
        let pages: Vec<_> =
            pages.into_iter().map(|page| page.map(|p| self.page(p, cursor))).collect();
        Ok(Box::new(pages.into_iter()))
    }

    fn push(&mut self, token: &str, request: &PushRequest, unsent: u64) -> Result<PushResponse> {
        self.count_request();
        let before = self.honest.messages.len();
        let mut answer = self.honest.push(token, request, unsent)?;
        if self.misbehavior == ServerMisbehavior::Forgets {
            self.honest.messages.truncate(before);
        }
        answer.fingerprint = Some(self.fingerprint());
        Ok(answer)
    }

    fn reconcile(&mut self, token: &str, request: &ReconcileRequest) -> Result<ReconcileResponse> {
        self.count_request();
        let mut answer = self.honest.reconcile(token, request)?;
        answer.fingerprint = Some(self.fingerprint());
        for (finding, claim) in answer.diffs.iter_mut().zip(&request.claims) {
            match self.misbehavior {
                ServerMisbehavior::SmallSteps => {
                    *finding = WireRangeDiff { examined_length: 1, ..WireRangeDiff::default() }
                }
                ServerMisbehavior::WantsAll => finding.wanted.clone_from(&claim.ids),
                ServerMisbehavior::Withholds => {
                    finding.messages.retain(|message| message.timestamp != self.hidden);
                }
                _ => {}
            }
        }
        Ok(answer)
    }

    fn encrypt(&mut self, token: &str, request: &EnableE2eeRequest) -> Result<()> {
        self.honest.encrypt(token, request)
    }
}

/// Creates a device that has synced and has an unsent change, and a server with changes for it.
fn device_and(misbehavior: ServerMisbehavior) -> (TestDevice, MisbehavingServer) {
    let mut honest = MemoryServer::default();
    let mut ada = TestDevice::tracked(SCHEMA, &mut honest);
    let mut ben = TestDevice::tracked(SCHEMA, &mut honest);
    ada.write("INSERT INTO item VALUES (1, 'a'), (2, 'b')").unwrap();
    ada.sync(&mut honest);
    ben.write("INSERT INTO item VALUES (3, 'c'); INSERT INTO item VALUES (4, 'd')").unwrap();
    ben.sync(&mut honest);
    ada.clock_ms += 5;
    ada.write("INSERT INTO item VALUES (5, 'e')").unwrap();
    let hidden = honest.messages.last().unwrap().timestamp.to_bytes().to_vec();
    (ada, MisbehavingServer { misbehavior, honest, hidden, requests: 0 })
}

/// Checks that the device has kept all rows, and that it gets in sync with an honest server.
fn check_afterwards(ada: &TestDevice, liar: MisbehavingServer) {
    let mut honest = liar.honest;
    assert!(ada.sync(&mut honest).in_sync, "{:?}", liar.misbehavior);
    assert_eq!(
        ada.texts("SELECT group_concat(note, '') FROM item"),
        ["abcde"],
        "{:?}",
        liar.misbehavior
    );
    assert_eq!(honest.fingerprint(), ada.replica().status().unwrap().fingerprint());
}

#[test]
fn a_server_that_never_arrives_is_not_followed() {
    for misbehavior in [
        ServerMisbehavior::EmptyPages,
        ServerMisbehavior::SamePage,
        ServerMisbehavior::NoTimestamps,
    ] {
        let (ada, mut liar) = device_and(misbehavior);
        let error = ada.try_sync_with(&mut liar, false).unwrap_err();
        assert!(matches!(error, Error::Unreachable(_)), "{misbehavior:?}: {error}");
        check_afterwards(&ada, liar);
    }
}

#[test]
fn what_a_server_withholds_loses_or_denies_is_said() {
    for (misbehavior, expected) in [
        (ServerMisbehavior::Withholds, Some(SetDiscrepancy::Withheld(1))),
        (ServerMisbehavior::Forgets, Some(SetDiscrepancy::Lost(1))),
        (ServerMisbehavior::Fingerprint, Some(SetDiscrepancy::Other)),
        (ServerMisbehavior::SmallSteps, None),
        (ServerMisbehavior::WantsAll, None),
    ] {
        let (ada, mut liar) = device_and(misbehavior);
        if misbehavior == ServerMisbehavior::SmallSteps
            || misbehavior == ServerMisbehavior::WantsAll
        {
            // The comparison needs a difference.
            liar.honest.messages.remove(0);
        }
        let report = ada.try_sync_with(&mut liar, false).unwrap();
        if expected.is_some() {
            assert_eq!(report.discrepancy, expected, "{misbehavior:?}");
        }
        assert_eq!(report.in_sync, report.discrepancy.is_none(), "{misbehavior:?}");
        check_afterwards(&ada, liar);
    }
}

#[test]
fn what_has_no_timestamp_is_counted_and_stops_nothing() {
    let (ada, mut liar) = device_and(ServerMisbehavior::NoTimestamp);
    let report = ada.try_sync_with(&mut liar, false).unwrap();
    assert!(report.in_sync && report.rejected.by_reason.undecodable > 0, "{report:?}");
    check_afterwards(&ada, liar);
}

/// A server had a message from the year 1970, which this one does not accept; or this one rejects a
/// message of a device.
#[test]
fn what_a_server_calls_an_invalid_timestamp_is_set_aside_and_holds_up_nothing() {
    let mut first = MemoryServer::default();
    let mut ada = TestDevice::tracked(SCHEMA, &mut first);
    for id in 1..=40 {
        ada.write(&format!("INSERT INTO item VALUES ({id}, 'a')")).unwrap();
    }
    ada.sync(&mut first);
    let invalid = [first.messages[7].timestamp, first.messages[31].timestamp];
    let zero = Message { timestamp: Timestamp::ZERO, content: first.messages[0].content.clone() };
    first.messages.push(zero);
    ada.sync(&mut first);

    let mut second = MemoryServer { invalid: invalid.into(), ..MemoryServer::default() };
    let mut ben = TestDevice::tracked(SCHEMA, &mut second);
    let report = ada.sync(&mut second);
    assert!(report.in_sync && report.set_aside_count == 2, "{report:?}");
    assert_eq!(second.messages.len(), 39);
    ada.clock_ms += 5;
    ada.write("INSERT INTO item VALUES (50, 'later')").unwrap();
    ben.write("INSERT INTO item VALUES (51, 'theirs')").unwrap();
    ben.sync(&mut second);
    let requests = second.requests;
    let report = ada.sync(&mut second);
    assert!(report.in_sync && !report.reconciled && report.set_aside_count == 2, "{report:?}");
    assert_eq!(second.requests - requests, 2, "a pull and a push: nothing is tried again");
    assert_eq!(
        ada.texts("SELECT count(*) || ' rows' FROM item"),
        ["42 rows"],
        "what is set aside is shown here"
    );
    assert_eq!(ada.replica().status().unwrap().set_aside_count, 2);

    // The server now accepts one message, or has stored it from another device: it is like any
    // other.
    second.invalid.clear();
    second
        .messages
        .push(first.messages.iter().find(|m| m.timestamp == invalid[0]).unwrap().clone());
    let report = ada.sync(&mut second);
    assert!(report.in_sync && report.set_aside_count == 1, "{report:?}");
    // The device tries again with another server.
    let mut third = MemoryServer { number: 3, ..MemoryServer::default() };
    let report = ada.sync(&mut third);
    assert!(report.in_sync && report.set_aside_count == 0, "{report:?}");
    assert_eq!(third.messages.len(), second.messages.len() + 1);
}

#[test]
fn a_server_that_takes_no_timestamp_at_all_is_what_is_wrong() {
    let mut server = MemoryServer::default();
    let mut ada = TestDevice::tracked(SCHEMA, &mut server);
    ada.write(
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1100)
         INSERT INTO item SELECT i, 'a' FROM n",
    )
    .unwrap();
    ada.sync(&mut server);
    server.invalid = server.messages.iter().map(|message| message.timestamp).collect();
    let mut other = MemoryServer { number: 2, invalid: server.invalid, ..MemoryServer::default() };
    let error = ada.try_sync(&mut other, false).unwrap_err();
    assert_eq!(error.code(), ErrorCode::InvalidTimestamp);
    assert_eq!(ada.replica().status().unwrap().set_aside_count, 1_000);
    let mut third = MemoryServer { number: 3, ..MemoryServer::default() };
    assert!(ada.sync(&mut third).in_sync);
    assert_eq!(third.messages.len(), server.messages.len());
}

#[test]
fn an_honest_server_leaves_no_discrepancy() {
    let (ada, liar) = device_and(ServerMisbehavior::Forgets);
    let mut honest = liar.honest;
    let report = ada.sync(&mut honest);
    assert_eq!((report.in_sync, report.discrepancy), (true, None));
    assert_ne!(honest.fingerprint(), Fingerprint::default());
}
