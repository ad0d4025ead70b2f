//! Test device: a replica file, and the program that writes to it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use protocol::RegisterDeviceRequest;
use replica::{AccountCheck, Replica, Result, SyncContext, SyncReport, Transport};
use rusqlite::Connection;
use tempfile::TempDir;

pub(crate) use crate::memory_server::MemoryServer;

/// Device of a test: the file, and any program's connection to it.
pub(crate) struct TestDevice {
    pub(crate) path: PathBuf,
    pub(crate) app: Connection,
    pub(crate) clock_ms: u64,
    /// Folder that is deleted with the device that created it.
    folder: Option<TempDir>,
}

/// 2026-11-21T08:00:00Z, the time at which each device's clock starts.
pub(crate) const MORNING_MS: u64 = 1_795_248_000_000;

impl TestDevice {
    pub(crate) fn new(schema: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("app.db");
        let mut device = Self::open(&path);
        device.folder = Some(folder);
        device.app.execute_batch(schema).unwrap();
        device
    }

    /// Opens the device of a file in `folder`, which is deleted with the device.
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
        let request =
            RegisterDeviceRequest { login: "ada".into(), password: "sesame".into(), name };
        self.replica()
            .sign_in(server, "http://server", &request, AccountCheck::ServerAndLogin)
            .unwrap();
    }

    pub(crate) fn replica(&self) -> Replica {
        Replica::open(&self.path).unwrap()
    }

    /// Runs statements as any program would, and sets the times of the pending changes to this
    /// device's clock.
    pub(crate) fn write(&mut self, sql: &str) -> rusqlite::Result<()> {
        self.clock_ms += 1;
        let newest = "SELECT coalesce(max(seq), 0) FROM warren_outbox";
        let before: i64 = self.app.query_row(newest, [], |row| row.get(0))?;
        let result = self.app.execute_batch(sql);
        let values = (self.clock_ms.cast_signed(), before);
        self.app.execute("UPDATE warren_outbox SET at_ms = ?1 WHERE seq > ?2", values)?;
        result
    }

    pub(crate) fn sync(&self, server: &mut MemoryServer) -> SyncReport {
        self.try_sync(server, false).unwrap()
    }

    pub(crate) fn try_sync(&self, server: &mut MemoryServer, adopt: bool) -> Result<SyncReport> {
        if server.now_ms.get() == 0 {
            server.now_ms.set(MORNING_MS + 10_000);
        }
        self.try_sync_with(server, adopt)
    }

    pub(crate) fn try_sync_with(
        &self,
        server: &mut dyn Transport,
        adopt: bool,
    ) -> Result<SyncReport> {
        let now_ms = self.clock_ms + 1;
        let options =
            SyncContext { create_missing: adopt, now_ms: &|| now_ms, progress: &mut |_| {} };
        self.replica().sync(server, options)
    }

    /// Returns every row of every user table, sorted, with storage classes.
    pub(crate) fn dump(&self) -> Vec<String> {
        dump(&self.app)
    }

    pub(crate) fn violations(&self) -> usize {
        let mut statement = self.app.prepare("PRAGMA foreign_key_check").unwrap();
        statement.query_map([], |_| Ok(())).unwrap().count()
    }

    pub(crate) fn texts(&self, sql: &str) -> Vec<String> {
        let mut statement = self.app.prepare(sql).unwrap();
        // Other devices may have written TEXT of any bytes.
        let text = |row: &rusqlite::Row<'_>| {
            Ok(String::from_utf8_lossy(row.get_ref(0)?.as_bytes()?).into_owned())
        };
        let rows = statement.query_map([], text).unwrap();
        rows.map(Result::unwrap).collect()
    }
}

/// Syncs all devices until each has the changes of the others.
pub(crate) fn meet(devices: &[TestDevice], server: &mut MemoryServer) {
    for device in devices.iter().chain(devices).chain(devices) {
        assert!(device.sync(server).in_sync);
    }
}

/// Returns what SQLite reports of the user's tables, which does not depend on the spelling of their
/// statements.
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
