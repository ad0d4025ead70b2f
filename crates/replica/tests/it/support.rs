//! A device with its file and the program that writes to it, and a server in memory.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crdt::{Fingerprint, Message};
use protocol::{
    Claim, ClientRequest, ClientResponse, ErrorCode, Finding, Item, Part, PullResponse,
    PushRequest, PushResponse, ReconcileRequest, ReconcileResponse,
};
use replica::{Error, PageStream, Pull, Replica, Report, Result, SyncOptions, Transport};
use rusqlite::Connection;
use tempfile::TempDir;

/// What the real server promises, in a page: arrival order, first content wins, all or nothing.
#[derive(Default)]
pub(crate) struct MemoryServer {
    pub(crate) messages: Vec<Message>,
    pub(crate) clients: u64,
    pub(crate) now_ms: Cell<u64>,
    pub(crate) requests: u64,
    /// Messages that a request or an answer may carry; 0 is no limit.
    pub(crate) messages_count_max: usize,
    /// The answer to this request (counted from 1) is lost on the way.
    pub(crate) lose_answer: Option<u64>,
}

impl MemoryServer {
    pub(crate) fn fingerprint(&self) -> Fingerprint {
        let mut total = Fingerprint::default();
        for message in &self.messages {
            total += Fingerprint::of(message.timestamp, &message.content);
        }
        total
    }

    /// `all` is the fingerprint of the whole set.
    fn page(&mut self, cursor: u64, limit: usize, all: Fingerprint) -> Result<PullResponse> {
        self.check_count(limit)?;
        let start = usize::try_from(cursor).unwrap().min(self.messages.len());
        let end = (start + limit).min(self.messages.len());
        let answer = PullResponse {
            messages: self.messages[start..end].iter().cloned().map(Into::into).collect(),
            cursor: end as u64,
            more: end < self.messages.len(),
            fingerprint: Some(all.into()),
            now_ms: self.now_ms.get(),
        };
        self.answer(answer)
    }

    fn check_count(&self, count: usize) -> Result<()> {
        if self.messages_count_max == 0 || count <= self.messages_count_max {
            return Ok(());
        }
        Err(Error::Refused { code: ErrorCode::TooLarge, message: "too many messages".into() })
    }

    fn answer<T>(&mut self, answer: T) -> Result<T> {
        self.requests += 1;
        if self.lose_answer == Some(self.requests) {
            return Err(Error::Unreachable("the answer was lost".into()));
        }
        Ok(answer)
    }
}

impl Transport for MemoryServer {
    fn register(&mut self, _: Option<&str>, _: &ClientRequest) -> Result<ClientResponse> {
        self.clients += 1;
        let client_id = format!("{:016x}", self.clients);
        self.answer(ClientResponse { client_id, token: format!("token {}", self.clients) })
    }

    fn pull(&mut self, _: &str, pull: &Pull) -> Result<PullResponse> {
        self.page(pull.cursor, pull.limit, self.fingerprint())
    }

    fn stream(&mut self, _: &str, cursor: u64) -> Result<PageStream> {
        let limit = if self.messages_count_max == 0 { 5 } else { self.messages_count_max };
        let (mut pages, mut cursor) = (Vec::new(), cursor);
        let all = self.fingerprint();
        loop {
            let page = self.page(cursor, limit, all);
            cursor = page.as_ref().map_or(cursor, |page| page.cursor);
            let more = page.as_ref().is_ok_and(|page| page.more);
            pages.push(page);
            if !more {
                return Ok(Box::new(pages.into_iter()));
            }
        }
    }

    fn push(&mut self, _: &str, request: &PushRequest, _: u64) -> Result<PushResponse> {
        self.check_count(request.messages.len())?;
        let known: BTreeMap<_, _> =
            self.messages.iter().map(|m| (m.timestamp, m.content.clone())).collect();
        let mut new = Vec::new();
        let count = request.messages.len();
        for message in &request.messages {
            let message = Message::try_from(message.clone()).unwrap();
            match known.get(&message.timestamp) {
                Some(content) if *content != message.content => {
                    let code = ErrorCode::TimestampConflict;
                    return Err(Error::Refused { code, message: String::new() });
                }
                Some(_) => {}
                None => new.push(message),
            }
        }
        let stored = new.len() as u64;
        self.messages.extend(new);
        let answer = PushResponse {
            stored,
            known: count as u64 - stored,
            cursor: self.messages.len() as u64,
            fingerprint: Some(self.fingerprint().into()),
            now_ms: self.now_ms.get(),
        };
        self.answer(answer)
    }

    fn reconcile(&mut self, _: &str, request: &ReconcileRequest) -> Result<ReconcileResponse> {
        let (mut end, mut findings) = (0, Vec::new());
        for claim in &request.claims {
            let start = end + claim.gap;
            end = start + claim.length;
            findings.push(self.find(claim, &(start..end)));
        }
        let answer = ReconcileResponse {
            findings,
            cursor: self.messages.len() as u64,
            fingerprint: Some(self.fingerprint().into()),
            now_ms: self.now_ms.get(),
        };
        self.answer(answer)
    }
}

impl MemoryServer {
    fn within(&self, moments: &Range<u64>) -> Vec<(&Message, u64)> {
        let mut all: Vec<_> = self
            .messages
            .iter()
            .filter(|message| moments.contains(&message.timestamp.moment()))
            .map(|message| (message, Item::of(message.timestamp, &message.content).id))
            .collect();
        all.sort_by_key(|(message, _)| message.timestamp);
        all
    }

    /// A range whose sums differ is one part; a claim of ids is answered at once.
    fn find(&self, claim: &Claim, moments: &Range<u64>) -> Finding {
        let here = self.within(moments);
        let digest = here.iter().fold(0u64, |sum, (_, id)| sum.wrapping_add(*id));
        let count = here.len() as u64;
        if claim.ids.is_empty() && claim.count > 0 {
            let equal = (count, digest) == (claim.count, claim.digest);
            let part = Part { length: claim.length, count, digest };
            let parts = if equal || count == 0 { vec![] } else { vec![part] };
            return Finding { equal, parts, ..Finding::default() };
        }
        let missing = here.iter().filter(|(_, id)| !claim.ids.contains(id));
        let is_wanted = |id: &u64| !here.iter().any(|(_, known)| known == id);
        Finding {
            messages: missing.map(|(message, _)| (*message).clone().into()).collect(),
            wanted: claim.ids.iter().copied().filter(is_wanted).collect(),
            ..Finding::default()
        }
    }
}

/// A device: the file, and any program's connection to it.
pub(crate) struct Device {
    pub(crate) path: PathBuf,
    pub(crate) app: Connection,
    pub(crate) clock_ms: u64,
    /// Deleted with the device that made it.
    folder: Option<TempDir>,
}

/// 2026-11-21T08:00:00Z
pub(crate) const MORNING_MS: u64 = 1_795_248_000_000;

impl Device {
    pub(crate) fn new(schema: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("app.db");
        let mut device = Self::open(&path);
        device.folder = Some(folder);
        device.app.execute_batch(schema).unwrap();
        device
    }

    /// With a folder that goes when it does.
    pub(crate) fn in_folder(path: &Path, folder: TempDir) -> Self {
        Self { folder: Some(folder), ..Self::open(path) }
    }

    pub(crate) fn open(path: &Path) -> Self {
        let app = Connection::open(path).unwrap();
        app.pragma_update(None, "foreign_keys", true).unwrap();
        app.busy_timeout(Duration::from_secs(10)).unwrap();
        Self { path: path.to_owned(), app, clock_ms: MORNING_MS, folder: None }
    }

    pub(crate) fn tracked(schema: &str, server: &mut MemoryServer) -> Self {
        let device = Self::new(schema);
        let replica = Replica::prepare(&device.path).unwrap();
        replica.track_all().unwrap();
        device.sign_in(server);
        device
    }

    pub(crate) fn sign_in(&self, server: &mut MemoryServer) {
        let name = "test".to_owned();
        let request = ClientRequest { login: "ada".into(), password: "sesame".into(), name };
        self.replica().sign_in(server, "http://server", &request).unwrap();
    }

    pub(crate) fn replica(&self) -> Replica {
        Replica::open(&self.path).unwrap()
    }

    /// Runs statements as any program would; the triggers' clock shows this device's time.
    pub(crate) fn write(&mut self, sql: &str) -> rusqlite::Result<()> {
        self.clock_ms += 1;
        let newest = "SELECT coalesce(max(seq), 0) FROM warren_outbox";
        let before: i64 = self.app.query_row(newest, [], |row| row.get(0))?;
        let result = self.app.execute_batch(sql);
        let values = (self.clock_ms.cast_signed(), before);
        self.app.execute("UPDATE warren_outbox SET at = ?1 WHERE seq > ?2", values)?;
        result
    }

    pub(crate) fn sync(&self, server: &mut MemoryServer) -> Report {
        self.try_sync(server, false).unwrap()
    }

    pub(crate) fn try_sync(&self, server: &mut MemoryServer, adopt: bool) -> Result<Report> {
        if server.now_ms.get() == 0 {
            server.now_ms.set(MORNING_MS + 10_000);
        }
        self.try_sync_with(server, adopt)
    }

    pub(crate) fn try_sync_with(&self, server: &mut dyn Transport, adopt: bool) -> Result<Report> {
        let now_ms = self.clock_ms + 1;
        let options = SyncOptions { adopt, now_ms: &|| now_ms, progress: &mut |_| {} };
        self.replica().sync(server, options)
    }

    /// Every row of every user table, sorted, with storage classes.
    pub(crate) fn dump(&self) -> Vec<String> {
        dump(&self.app)
    }

    pub(crate) fn violations(&self) -> usize {
        let mut statement = self.app.prepare("PRAGMA foreign_key_check").unwrap();
        statement.query_map([], |_| Ok(())).unwrap().count()
    }

    pub(crate) fn texts(&self, sql: &str) -> Vec<String> {
        let mut statement = self.app.prepare(sql).unwrap();
        let rows = statement.query_map([], |row| row.get(0)).unwrap();
        rows.map(Result::unwrap).collect::<Vec<String>>()
    }
}

/// What SQLite tells of the user's tables, whatever their statements are spelled like.
pub(crate) fn shape(db: &Connection) -> Vec<String> {
    let sql = "SELECT name FROM sqlite_schema WHERE type = 'table'
               AND name NOT LIKE 'warren%' AND name NOT LIKE 'sqlite%' ORDER BY name";
    let mut statement = db.prepare(sql).unwrap();
    let tables = statement.query_map([], |row| row.get::<_, String>(0)).unwrap();
    let mut lines = Vec::new();
    for table in tables.map(Result::unwrap) {
        for sql in [
            "SELECT name, type, \"notnull\", dflt_value, pk FROM pragma_table_info(?1)",
            "SELECT i.\"unique\", i.origin, i.partial, x.name, x.coll
             FROM pragma_index_list(?1) i, pragma_index_xinfo(i.name) x ORDER BY 2, 4, 1, 5",
            "SELECT \"table\", \"from\", on_delete, on_update FROM pragma_foreign_key_list(?1)",
            "SELECT strict, wr FROM pragma_table_list(?1)",
        ] {
            let mut statement = db.prepare(sql).unwrap();
            let count = statement.column_count();
            let mut rows = statement.query([&table]).unwrap();
            while let Some(row) = rows.next().unwrap() {
                let values = (0..count).map(|place| format!("{:?}", row.get_ref(place).unwrap()));
                lines.push(format!("{table}: {}", values.collect::<Vec<_>>().join(", ")));
            }
        }
    }
    lines
}

pub(crate) fn dump(db: &Connection) -> Vec<String> {
    let sql = "SELECT name FROM sqlite_schema WHERE type = 'table'
               AND name NOT LIKE 'warren%' AND name NOT LIKE 'sqlite%' ORDER BY name";
    let mut statement = db.prepare(sql).unwrap();
    let tables = statement.query_map([], |row| row.get::<_, String>(0)).unwrap();
    let mut lines = Vec::new();
    for table in tables.map(Result::unwrap) {
        let mut rows = db.prepare(&format!("SELECT * FROM \"{table}\"")).unwrap();
        let count = rows.column_count();
        let mut rows = rows.query([]).unwrap();
        while let Some(row) = rows.next().unwrap() {
            let values: Vec<_> =
                (0..count).map(|i| format!("{:?}", row.get_ref(i).unwrap())).collect();
            lines.push(format!("{table}: {}", values.join(", ")));
        }
    }
    lines.sort();
    lines
}
