//! Tests that kill the server with `kill -9` at random moments: after a restart it has everything
//! that it acknowledged.

use std::collections::BTreeMap;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread;

use bytes::Bytes;
use crdt::{CellWrite, Change, Message, NodeId, Timestamp, Value};
use protocol::{
    PullResponse, PushRequest, PushResponse, RegisterDeviceRequest, RegisterDeviceResponse,
};
use replica::{Error, HttpTransport};
use serde_json::Value as Json;

use crate::cutting_proxy::{CutAction, CuttingProxy, ProxyEvent};
use crate::fixture::{
    PASSWORD, SyncFixture, check_all_sent, check_equal, check_report, entries, sync, track_all,
};
use crate::processes::{ServeProcess, json, sql, start, warren};
use crate::random::SplitMixRng;

const ROUNDS: u32 = 50;
const PUSHERS: u64 = 4;
/// The maximum number of acknowledged pages of one round.
const PAGES_COUNT_MAX: u64 = 12;
/// The maximum number of messages of one page.
const PAGE_COUNT_MAX: u64 = 120;
/// 2024-01-01T00:00:00Z, which every clock has passed.
const START_MS: u64 = 1_704_067_200_000;

/// A device that pushes without pause, and the ledger of its acknowledged messages.
struct PushClient {
    node: NodeId,
    token: String,
    random: SplitMixRng,
    last_ms: u64,
    acknowledged: BTreeMap<Timestamp, Bytes>,
    /// Messages that were sent, but not answered: all of them are stored, or none.
    unanswered: Vec<Message>,
}

impl PushClient {
    fn new(number: u64, server: &ServeProcess, seed: u64) -> Self {
        let name = format!("pusher {number}");
        let request =
            RegisterDeviceRequest { login: "ada".into(), password: PASSWORD.into(), name };
        let http = HttpTransport::new(&server.address);
        let registered: RegisterDeviceResponse = http.post("/v1/devices", None, &request).unwrap();
        Self {
            node: NodeId(number + 1),
            token: registered.token,
            random: SplitMixRng::of(seed ^ (number + 1)),
            last_ms: START_MS,
            acknowledged: BTreeMap::new(),
            unanswered: Vec::new(),
        }
    }

    fn page(&mut self) -> Vec<Message> {
        let count = 1 + self.random.below(PAGE_COUNT_MAX);
        (0..count).map(|_| self.message()).collect()
    }

    fn message(&mut self) -> Message {
        self.last_ms += 1 + self.random.below(1_000_000);
        let text = "x".repeat(usize::try_from(self.random.below(200)).unwrap());
        let key = vec![Value::Integer(self.random.next().cast_signed())];
        let (table, cells) = ("ledger".to_owned(), vec![CellWrite::new("text", Value::Text(text))]);
        let content = Change::Write { table, key, cells, replaced_tombstone: None }.encode();
        Message { timestamp: Timestamp::new(self.last_ms, 0, self.node).unwrap(), content }
    }

    /// Pushes until the server is gone.
    fn push_until_killed(&mut self, address: &str, tell: &SyncSender<()>) {
        let http = HttpTransport::new(address);
        loop {
            let again = !self.unanswered.is_empty();
            if !again {
                self.unanswered = self.page();
            }
            let messages = self.unanswered.iter().cloned().map(Into::into).collect();
            let request = PushRequest { messages, ..PushRequest::default() };
            let answer = http.post::<PushResponse>("/v1/sync/delta", Some(&self.token), &request);
            match answer {
                Ok(answer) => self.take_answer(&answer, again),
                Err(Error::Unreachable(_)) => return,
                Err(error) => panic!("{error}, seed {}", self.random.seed),
            }
            // Once the test has counted enough, it does not receive any more.
            tell.try_send(()).unwrap_or_default();
        }
    }

    fn take_answer(&mut self, answer: &PushResponse, again: bool) {
        let page = std::mem::take(&mut self.unanswered);
        let count = page.len() as u64;
        let (stored, known) = (answer.stored_count, answer.known_count);
        let whole = (stored, known) == (count, 0) || again && (stored, known) == (0, count);
        assert!(whole, "{stored} stored and {known} known of {count}");
        self.acknowledged.extend(page.into_iter().map(|m| (m.timestamp, m.content)));
    }
}

/// Pulls all messages of the server page by page, and the fingerprint that it reports.
fn pull_all(address: &str, token: &str) -> (BTreeMap<Timestamp, Bytes>, crdt::Fingerprint) {
    let (http, mut all, mut cursor) = (HttpTransport::new(address), BTreeMap::new(), 0);
    loop {
        let path = format!("/v1/sync/delta?cursor={cursor}&limit=10000");
        let answer: PullResponse = http.get(&path, token).unwrap();
        for message in answer.messages {
            let message = Message::try_from(message).unwrap();
            cursor += 1;
            assert!(all.insert(message.timestamp, message.content).is_none(), "twice in the set");
        }
        assert_eq!(answer.cursor, cursor, "sequence numbers have no gaps");
        if !answer.more {
            return (all, answer.fingerprint.unwrap().to_crdt().unwrap());
        }
    }
}

/// Asserts that the server has what it acknowledged, each unanswered page whole or not at all, and
/// no other messages.
fn check_ledger(pushers: &[PushClient], address: &str, round: &str) -> usize {
    let (mut all, fingerprint) = pull_all(address, &pushers[0].token);
    let mut total = crdt::Fingerprint::default();
    for (timestamp, content) in &all {
        total += crdt::Fingerprint::from_message(*timestamp, content);
    }
    assert_eq!(total, fingerprint, "{round}");
    let count = all.len();
    for pusher in pushers {
        for (timestamp, content) in &pusher.acknowledged {
            let found = all.remove(timestamp);
            assert_eq!(found.as_ref(), Some(content), "{timestamp} was acknowledged, {round}");
        }
        let page = &pusher.unanswered;
        let found = page.iter().filter(|m| all.remove(&m.timestamp).is_some()).count();
        assert!(found == 0 || found == page.len(), "{found} of a page of {}, {round}", page.len());
    }
    assert!(all.is_empty(), "{} messages that nobody sent, {round}", all.len());
    count
}

#[test]
fn fifty_killed_servers_keep_what_they_acknowledged() {
    let mut random = SplitMixRng::new();
    let place = SyncFixture::new();
    let mut server = place.serve();
    let mut pushers: Vec<PushClient> =
        (0..PUSHERS).map(|number| PushClient::new(number, &server, random.seed)).collect();
    let mut interrupted = 0;
    for round in 1..=ROUNDS {
        push_and_kill(&mut pushers, server, &mut random);
        interrupted += pushers.iter().filter(|pusher| !pusher.unanswered.is_empty()).count();
        server = place.serve();
        let what = format!("round {round}, seed {}", random.seed);
        let count = check_ledger(&pushers, &server.address, &what);
        if round % 10 == 0 {
            place.check_vault(count as u64);
        }
    }
    // A kill that interrupts no request proves nothing.
    assert!(interrupted > ROUNDS as usize, "{interrupted} requests interrupted");
    server.stop();
    let server = place.serve();
    let count = check_ledger(&pushers, &server.address, "after a stop");
    server.stop();
    place.check_vault(count as u64);
}

/// Lets all of them push, and kills the server after a random number of answers and a bit.
fn push_and_kill(pushers: &mut [PushClient], server: ServeProcess, random: &mut SplitMixRng) {
    let address = server.address.clone();
    thread::scope(|scope| {
        let (tell, told) = sync_channel(1_000);
        for pusher in pushers {
            let (tell, address) = (tell.clone(), &address);
            scope.spawn(move || pusher.push_until_killed(address, &tell));
        }
        for _ in 0..random.below(PAGES_COUNT_MAX) {
            told.recv().unwrap();
        }
        random.spin(1_000_000);
        server.kill();
    });
}

#[test]
fn a_sync_that_loses_its_server_at_any_byte_is_completed_later() {
    let mut random = SplitMixRng::new();
    let place = SyncFixture::new();
    let mut server = place.serve();
    let proxy = CuttingProxy::to(&server.address);
    let files = [place.at("a.db"), place.at("b.db")];
    for file in &files {
        sql(file, "CREATE TABLE entry (id INTEGER PRIMARY KEY, text TEXT NOT NULL, amount REAL)");
        track_all(file);
        place.sign_in("sync", file, &proxy.address);
    }
    let mut failed = 0;
    for round in 0..16_u64 {
        let file = &files[usize::try_from(round % 2).unwrap()];
        entries(file, round * 1_000..(round + 1) * 1_000);
        let mut process = start(&["sync", file, "--json"]);
        // A thousand rows are some 70,000 bytes, in either direction: those of this file, and
        // perhaps those of the other.
        let (then, bytes) = if round / 2 % 2 == 0 {
            (CutAction::Hold, random.below(50_000))
        } else {
            (CutAction::Flow, random.below(150_000))
        };
        let watch = proxy.watch(bytes, then, &mut process);
        let event = watch.next();
        random.spin(100_000);
        server.kill();
        server = place.serve();
        proxy.turn_to(&server.address);
        let output = match event {
            ProxyEvent::Passed => watch.output(),
            ProxyEvent::Ended(output) => output,
        };
        let said: Json = serde_json::from_str(&output).unwrap();
        if process.wait().unwrap().success() {
            check_report(&said);
        } else {
            assert_eq!(said["error"]["code"], "unreachable", "{said}, seed {}", random.seed);
            failed += 1;
        }
    }
    assert!(failed >= 8, "{failed} syncs interrupted, seed {}", random.seed);
    for file in [&files[0], &files[1], &files[0]] {
        sync(file);
        check_all_sent(file);
    }
    assert_eq!(check_equal(&files[0], &files[1]).len(), 16_000, "seed {}", random.seed);
    // The vault has each row once, and each device's declaration of the table.
    place.check_vault(16_000 + 2);
    let of_both = files.map(|file| json(&["status", &file])["messages_count"].clone());
    assert_eq!(of_both, [16_002, 16_002]);

    server.kill();
    check_unreachable(&place, &proxy);
}

/// Checks the errors that a person sees while the server is down.
fn check_unreachable(place: &SyncFixture, proxy: &CuttingProxy) {
    warren(&["sync", &place.at("a.db"), "--json"]).refused("unreachable");
    let clone = [&["clone", &place.at("c.db"), "--json"], &place.first_time(&proxy.address)[..]];
    warren(&clone.concat()).refused("unreachable");
    assert!(!std::fs::exists(place.at("c.db")).unwrap(), "a clone that never began leaves no file");
}
