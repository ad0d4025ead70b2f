//! Fuzz targets for a device that gets messages from untrusted devices, and one whose server is
//! untrusted.

use std::sync::OnceLock;

use bytes::Bytes;
use crdt::{EncryptionMode, Message};
use prost::Message as _;
use protocol::{
    EnableE2eeRequest, PullResponse, PushRequest, PushResponse, ReconcileRequest,
    ReconcileResponse, RegisterDeviceRequest, RegisterDeviceResponse,
};
use replica::{
    AccountCheck, Error, PageStream, PullParams, Replica, Result, SyncContext, Transport,
};
use rusqlite::{Connection, MAIN_DB};
use tempfile::TempDir;

use crate::memory_server::MemoryServer;
use crate::stored_formats::{self, MORNING_MS};
use crate::wire_formats;

/// Schema with every kind of constraint that SQLite has.
const SCHEMA: &str = "
    CREATE TABLE room (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, floor INTEGER DEFAULT 1);
    CREATE TABLE booking (
        id TEXT NOT NULL COLLATE NOCASE PRIMARY KEY,
        room INTEGER REFERENCES room,
        days INTEGER NOT NULL CHECK (days BETWEEN 1 AND 3),
        who TEXT,
        active INTEGER NOT NULL DEFAULT 1,
        UNIQUE (room, days) ON CONFLICT REPLACE
    ) WITHOUT ROWID;
    CREATE UNIQUE INDEX one_active ON booking (who) WHERE active;
    CREATE TABLE mark (a REAL, b INTEGER, note TEXT, PRIMARY KEY (a, b)) STRICT;
    INSERT INTO room VALUES (1, 'hall', 0), (2, 'attic', 3);
    INSERT INTO booking VALUES ('a', 1, 2, 'ada', 1);
    INSERT INTO mark VALUES (1.0, 2, 'x');
";
/// Number of requests after which a sync that has not ended never will.
const REQUESTS_MAX: u32 = 3_000;

/// Sends messages with any contents to two devices, in two orders: every sync succeeds, and both
/// devices show the same rows, before and after an edit of their own.
///
/// A message is one byte for its time and node, two for its length, and a content.
pub(crate) fn messages(bytes: &[u8]) {
    let form = Some(EncryptionMode::Plain);
    let messages = read_messages(bytes);
    let mut server = MemoryServer { messages, form, ..MemoryServer::default() };
    server.now_ms.set(MORNING_MS);
    let (one, two) = (FuzzDevice::new(1), FuzzDevice::new(2));
    one.sync(&mut server).expect("no message ends a sync");
    let received = server.messages.clone();
    server.messages.rotate_left(received.len() / 2);
    two.sync(&mut server).expect("no message ends a sync");
    one.edit();
    for device in [&one, &two, &one] {
        device.start_again();
        device.sync(&mut server).expect("no message ends a sync");
    }
    assert_eq!(one.dump(), two.dump());
    let check: String =
        one.0.connection().query_row("PRAGMA integrity_check", [], |row| row.get(0)).expect("sql");
    assert_eq!(check, "ok");
}

fn read_messages(mut bytes: &[u8]) -> Vec<Message> {
    let mut messages: Vec<Message> = Vec::new();
    while let [when, low, high, rest @ ..] = bytes {
        let length = usize::from(u16::from_le_bytes([*low, *high])).min(rest.len());
        let (content, rest) = rest.split_at(length);
        let timestamp =
            stored_formats::timestamp(1_000 + u64::from(when % 32), 7 + u64::from(when / 32));
        // A server keeps the first content of a timestamp.
        if messages.iter().all(|known| known.timestamp != timestamp) {
            messages.push(Message { timestamp, content: Bytes::copy_from_slice(content) });
        }
        bytes = rest;
    }
    messages
}

/// Answers a device's requests with any bytes, one after the other: the sync ends, and the file is
/// undamaged.
///
/// An answer is two bytes for its length, and protobuf; after the last one the server is silent.
pub(crate) fn answers(bytes: &[u8]) {
    let device = FuzzDevice::new(1);
    device.edit();
    let mut stranger = UntrustedServer { answers: bytes, requests: 0 };
    for _ in 0..3 {
        // An error is as good a result as success.
        drop(device.sync(&mut stranger));
    }
    let form = Some(EncryptionMode::Plain);
    let mut honest = MemoryServer { form, ..MemoryServer::default() };
    honest.now_ms.set(MORNING_MS);
    device.start_again();
    device.sync(&mut honest).expect("a device continues with an honest server");
    let check: String = device
        .0
        .connection()
        .query_row("PRAGMA integrity_check", [], |row| row.get(0))
        .expect("the file can be read");
    assert_eq!(check, "ok");
}

struct FuzzDevice(Replica);

impl FuzzDevice {
    /// Creates a device that is tracked and signed in, with the rows of [`SCHEMA`], which are not
    /// yet sent.
    fn new(number: i64) -> Self {
        static MADE: OnceLock<Vec<u8>> = OnceLock::new();
        let image = MADE.get_or_init(|| {
            let folder = TempDir::new().expect("a folder");
            let path = folder.path().join("a.db");
            let db = Connection::open(&path).expect("a file");
            db.execute_batch(SCHEMA).expect("the schema is right");
            let replica =
                Replica::on_shared_connection(db, "device", "template").expect("a new device");
            replica.track_all().expect("the tables can be tracked");
            let request = RegisterDeviceRequest::default();
            let mut server = MemoryServer::default();
            replica
                .sign_in(&mut server, "http://server", &request, AccountCheck::ServerAndLogin)
                .expect("signed in");
            std::fs::read(&path).expect("the file")
        });
        let mut db = Connection::open_in_memory().expect("memory");
        let length = image.len();
        db.deserialize_read_exact(MAIN_DB, &image[..], length, false).expect("an SQLite file");
        let replica =
            Replica::on_shared_connection(db, "device", "template").expect("the device again");
        let set = "UPDATE warren_meta SET value = ?1 WHERE key = 'node_id'";
        assert_eq!(replica.connection().execute(set, [number]), Ok(1));
        Self(replica)
    }

    fn sync(&self, transport: &mut dyn Transport) -> Result<()> {
        let now_ms = || MORNING_MS + 10_000;
        let options = SyncContext { create_missing: true, now_ms: &now_ms, progress: &mut |_| {} };
        self.0.sync(transport, options).map(drop)
    }

    fn edit(&self) {
        let edit = "UPDATE room SET floor = 7 WHERE id = 1;
                    INSERT OR IGNORE INTO mark VALUES (9.0, 9, 'mine')";
        self.0.connection().execute_batch(edit).expect("a program's own statements work");
        // The triggers use the system's clock, so the times are set here.
        let set = "UPDATE warren_outbox SET at_ms = ?1";
        self.0.connection().execute(set, [MORNING_MS.cast_signed()]).expect("notes can be written");
    }

    /// Makes the next sync request everything again.
    fn start_again(&self) {
        let set = "DELETE FROM warren_meta WHERE key = 'cursor'";
        self.0.connection().execute_batch(set).expect("the file can be written");
    }

    /// Returns the user's rows.
    fn dump(&self) -> Vec<String> {
        let db = self.0.connection();
        let sql = r"SELECT name FROM sqlite_schema WHERE type = 'table' AND sql NOT LIKE '%VIRTUAL%'
                    AND name NOT LIKE 'warren\_%' ESCAPE '\' AND name NOT LIKE 'sqlite\_%' ESCAPE '\'";
        let mut names = db.prepare(sql).expect("the schema can be read");
        let names = names.query_map([], |row| row.get::<_, String>(0)).expect("sql");
        let mut lines = Vec::new();
        for name in names.map(|name| name.expect("names are texts")) {
            let quoted = name.replace('"', "\"\"");
            let mut rows = db.prepare(&format!("SELECT * FROM \"{quoted}\"")).expect("sql");
            let count = rows.column_count();
            let mut rows = rows.query([]).expect("sql");
            while let Some(row) = rows.next().expect("sql") {
                let values = (0..count).map(|place| format!("{:?}", row.get_ref(place)));
                lines.push(format!("{name}: {}", values.collect::<Vec<_>>().join(", ")));
            }
        }
        lines.sort();
        lines
    }
}

/// Server that sends any answers.
struct UntrustedServer<'a> {
    answers: &'a [u8],
    requests: u32,
}

impl UntrustedServer<'_> {
    fn answer<M: prost::Message + Default>(&mut self) -> Result<M> {
        self.requests += 1;
        assert!(self.requests < REQUESTS_MAX, "a sync does not end");
        let silent = || Error::Unreachable("it is silent".into());
        let (length, rest) = self.answers.split_first_chunk().ok_or_else(silent)?;
        let length = usize::from(u16::from_le_bytes(*length)).min(rest.len());
        let (answer, rest) = rest.split_at(length);
        self.answers = rest;
        M::decode(answer).map_err(|why| Error::Unreachable(why.to_string()))
    }
}

impl Transport for UntrustedServer<'_> {
    fn register(
        &mut self,
        _: Option<&str>,
        _: &RegisterDeviceRequest,
    ) -> Result<RegisterDeviceResponse> {
        self.answer()
    }

    fn pull(&mut self, _: &str, _: &PullParams) -> Result<PullResponse> {
        self.answer()
    }

    fn stream(&mut self, _: &str, _: u64) -> Result<PageStream> {
        let pages: Vec<_> = (0..3).map(|_| self.answer()).collect();
        Ok(Box::new(pages.into_iter()))
    }

    fn push(&mut self, _: &str, _: &PushRequest, _: u64) -> Result<PushResponse> {
        self.answer()
    }

    fn reconcile(&mut self, _: &str, _: &ReconcileRequest) -> Result<ReconcileResponse> {
        self.answer()
    }

    fn encrypt(&mut self, _: &str, _: &EnableE2eeRequest) -> Result<()> {
        self.answer()
    }
}

/// Prepends the length of `bytes`, in two bytes.
fn prefixed(bytes: &[u8]) -> Vec<u8> {
    let length = u16::try_from(bytes.len()).expect("a seed is small");
    [&length.to_le_bytes(), bytes].concat()
}

pub(crate) fn message_seeds() -> Vec<Vec<u8>> {
    let changes: Vec<_> = stored_formats::changes().iter().map(crdt::Change::encode).collect();
    let when = (0_u8..).map(|place| place * 33 % 251);
    let all = when.zip(&changes).map(|(when, content)| [&[when], &prefixed(content)[..]].concat());
    let all: Vec<Vec<u8>> = all.collect();
    all.iter().cloned().chain([all.concat()]).collect()
}

pub(crate) fn answer_seeds() -> Vec<Vec<u8>> {
    let page = prefixed(&wire_formats::pull_response().encode_to_vec());
    let pushed = prefixed(&wire_formats::push_response().encode_to_vec());
    let compared = prefixed(&wire_formats::reconcile_response().encode_to_vec());
    let kinds = [page, pushed, compared];
    let mut seeds = kinds.to_vec();
    seeds.push(kinds.concat());
    seeds.push([&kinds[0][..], &kinds[1], &kinds[0], &kinds[2], &kinds[2], &kinds[0]].concat());
    seeds
}
