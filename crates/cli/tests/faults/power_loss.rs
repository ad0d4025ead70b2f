//! Images of a power loss at any moment of a trace, each of which the shipped binary opens.
//!
//! A control leaves the flushes of some files out of the trace. If its images are not worse, the
//! images prove nothing.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use rusqlite::Connection;
use serde_json::json;

use crate::disk::{LogRecord, NamePersistence, SimulatedDisk, read_log};
use crate::fixture::{ADMIN, FaultedServer, SendRecord, copy_folder, warren};
use crate::random::SplitMixRng;
use crate::scenarios::{FaultScenario, UploadScenario, prepare_account, prepare_files};
use crate::shim::operation::SYNC;
use crate::shim::{FaultMode, ShimControl};

/// The number of images that are checked at the same time.
const IMAGES_AT_ONCE: usize = 4;

/// A folder's initial state, and the log of a program's operations on it.
struct OperationTrace {
    base: PathBuf,
    log: Vec<LogRecord>,
}

impl OperationTrace {
    /// Returns the labels that the test had written before the cut.
    fn acknowledged(&self, cut: usize) -> impl Iterator<Item = &str> {
        self.log[..cut].iter().filter(|record| record.kind == b'A').map(|record| &*record.path)
    }

    /// Picks a random cut: half of them lie right after a flush or a change of names, or just
    /// before one.
    fn cut(&self, random: &mut SplitMixRng) -> usize {
        let any = |random: &mut SplitMixRng, count: usize| {
            usize::try_from(random.below(count as u64)).unwrap()
        };
        if random.below(2) == 0 {
            return any(random, self.log.len() + 1);
        }
        let is_near = |record: &LogRecord| matches!(record.kind, b'S' | b'R' | b'U' | b'T' | b'C');
        let near: Vec<_> = (0..self.log.len()).filter(|at| is_near(&self.log[*at])).collect();
        near[any(random, near.len())] + any(random, 2)
    }

    fn image(&self, cut: usize, names: NamePersistence, to: &Path, random: &mut SplitMixRng) {
        let mut disk = SimulatedDisk::of(&self.base, names);
        self.log[..cut].iter().for_each(|record| disk.apply(record));
        disk.write_image(to, random);
    }

    /// Returns this trace without the flushes of files whose names end with `suffix`.
    fn without_flushes(&self, suffix: &str) -> Self {
        let is_kept = |record: &&LogRecord| record.kind != b'S' || !record.path.ends_with(suffix);
        Self { base: self.base.clone(), log: self.log.iter().filter(is_kept).cloned().collect() }
    }

    /// Builds images and has each one judged, until `wrong_max` faults are found. Returns the
    /// faults.
    fn check(
        &self,
        count: usize,
        seed: u64,
        wrong_max: usize,
        judge: impl Fn(&Path, usize) -> Vec<String> + Sync,
    ) -> Vec<String> {
        let next = AtomicUsize::new(0);
        let wrong: Mutex<Vec<String>> = Mutex::default();
        thread::scope(|scope| {
            for _ in 0..IMAGES_AT_ONCE {
                scope.spawn(|| {
                    loop {
                        let number = next.fetch_add(1, Ordering::Relaxed);
                        if number >= count || wrong.lock().unwrap().len() >= wrong_max {
                            break;
                        }
                        let mut random = SplitMixRng::of(seed.wrapping_add(number as u64));
                        let names = [NamePersistence::Strict, NamePersistence::Journal][number % 2];
                        let cut = self.cut(&mut random);
                        let folder = tempfile::tempdir().unwrap();
                        self.image(cut, names, folder.path(), &mut random);
                        let found = judge(folder.path(), cut);
                        let all = self.log.len();
                        wrong.lock().unwrap().extend(found.into_iter().map(|what| {
                            format!("image {number}, cut at {cut} of {all}, {names:?}: {what}")
                        }));
                    }
                });
            }
        });
        wrong.into_inner().unwrap()
    }
}

/// Appends marks for acknowledged work to the log.
struct LogMarks(PathBuf);

impl LogMarks {
    fn note(&self, what: &str) {
        let mut log = File::options().append(true).open(&self.0).unwrap();
        log.write_all(&LogRecord::acknowledged(what)).unwrap();
    }
}

/// A trace of pushes that restart WALs, of uploads, and of maintenance that replaces files.
pub(crate) struct ServerTrace {
    trace: OperationTrace,
    token: String,
    uploads: UploadScenario,
    _folder: tempfile::TempDir,
}

/// The number of pushes of the trace: some 5,000 pages in all, so that the WAL restarts in
/// between.
const PUSHES: u64 = 60;
const PUSH_COUNT: u64 = 150;
const CONTENT_BYTES: usize = 2_000;

impl ServerTrace {
    pub(crate) fn record() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let base = folder.path().join("place");
        let uploads = UploadScenario::prepare(&base);
        let token = UploadScenario::register_device(&base);
        let (work, log) = (folder.path().join("base"), folder.path().join("log"));
        copy_folder(&base, &work);
        let control = ShimControl::new(folder.path());
        let server =
            FaultedServer::start(&base, control.environment(&base.join("data"), Some(&log)))
                .unwrap();
        let marks = LogMarks(log.clone());
        let mut ledger = SendRecord::with_content_bytes(CONTENT_BYTES);
        for number in 1..=PUSHES {
            assert!(ledger.push(&server, &token, PUSH_COUNT));
            marks.note(&format!("messages {}", number * PUSH_COUNT));
            if number % 12 == 0 {
                let upload = u8::try_from(number / 12).unwrap();
                marks.note(&format!("begun {upload}"));
                assert!(uploads.upload(&server, upload).is_some());
                marks.note(&format!("upload {upload}"));
            }
            if number % 24 == 0 {
                let call = ("POST", "/v1/admin/maintenance");
                assert_eq!(ledger.call(&server, call, ADMIN, &json!({})).unwrap().status, 200);
            }
        }
        assert!(server.stop().unwrap().success());
        // The log names the server's folder; the base is a copy from before.
        let trace =
            OperationTrace { base: work.join("data"), log: moved(read_log(&log), &base, &work) };
        Self { trace, token, uploads, _folder: folder }
    }

    pub(crate) fn check(&self, count: usize, seed: u64) -> Vec<String> {
        self.trace.check(count, seed, usize::MAX, |image, cut| self.judge(&self.trace, image, cut))
    }

    /// Checks the same trace without the flushes of WALs, until one image is wrong.
    pub(crate) fn check_control(&self, count: usize, seed: u64) -> Vec<String> {
        let control = self.trace.without_flushes("-wal");
        control.check(count, seed, 1, |image, cut| self.judge(&control, image, cut))
    }

    fn judge(&self, trace: &OperationTrace, image: &Path, cut: usize) -> Vec<String> {
        let place = tempfile::tempdir().unwrap();
        fs::rename(image, place.path().join("data")).unwrap();
        fs::create_dir(image).unwrap();
        let server = match FaultedServer::start(place.path(), Vec::new()) {
            Ok(server) => server,
            Err((status, said)) => return vec![format!("START: {status}: {said}")],
        };
        let (mut messages, mut file, mut begun) = (0, 0, 0);
        for label in trace.acknowledged(cut) {
            let (what, number) = label.split_once(' ').unwrap();
            match what {
                "messages" => messages = number.parse().unwrap(),
                "begun" => begun = number.parse().unwrap(),
                _ => file = number.parse().unwrap(),
            }
        }
        let mut ledger = SendRecord::from_acknowledged(messages, CONTENT_BYTES);
        let mut wrong = ledger.check_vault(&server, &self.token);
        match self.uploads.download(&server) {
            Ok(found) if found == file || found == begun => {}
            Ok(found) => wrong.push(format!("LOST: the file is {found}, not {file} or {begun}")),
            Err(error) => wrong.push(format!("LOST: {error}")),
        }
        if !ledger.push(&server, &self.token, 1) {
            wrong.push(format!("WRITES are refused: {:?}", ledger.codes));
        }
        if !server.stop().is_some_and(|status| status.success()) {
            wrong.push("STOP: no clean end".to_owned());
        }
        wrong
    }
}

/// Returns the records with the folder `from` replaced by `to`.
fn moved(log: Vec<LogRecord>, from: &Path, to: &Path) -> Vec<LogRecord> {
    let (from, to) = (from.to_str().unwrap(), to.to_str().unwrap());
    log.into_iter().map(|record| record.moved(from, to)).collect()
}

/// A trace of edits of a file by another program, and of syncs.
pub(crate) struct DeviceTrace {
    trace: OperationTrace,
    /// The folder of a server that has everything that was synced.
    server: PathBuf,
    _folder: tempfile::TempDir,
}

impl DeviceTrace {
    pub(crate) fn record(is_wal: bool) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("place");
        let (server, _) = prepare_account(&place);
        prepare_files(&place, &server);
        let file = place.join("a.db");
        if is_wal {
            let db = Connection::open(&file).unwrap();
            db.pragma_update(None, "journal_mode", "WAL").unwrap();
        }
        // The device's folder holds only its file.
        let [device, base, log] = ["device", "base", "log"].map(|name| folder.path().join(name));
        fs::create_dir(&device).unwrap();
        fs::rename(&file, device.join("a.db")).unwrap();
        copy_folder(&device, &base);
        let control = ShimControl::new(folder.path());
        let environment = || control.environment(&device, Some(&log));
        let marks = LogMarks(log.clone());
        File::create(&log).unwrap();
        for number in 1..=12 {
            let sql = format!(
                ".timeout 30000\nPRAGMA synchronous = EXTRA;\nINSERT OR REPLACE INTO item
                 SELECT 'edit {number} ' || value, 'text', value FROM generate_series(1, 40);\n"
            );
            let mut shell = Command::new("sqlite3");
            shell.args(["-batch", "-bail", "a.db"]).current_dir(&device).envs(environment());
            let mut child = shell.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
            child.stdin.take().unwrap().write_all(sql.as_bytes()).unwrap();
            assert!(child.wait().unwrap().success());
            marks.note(&format!("edit {number}"));
            if number % 2 == 0 {
                let command = ["sync", "a.db", "--server", &server.address];
                let (status, said) = warren(&command, &device, environment());
                assert!(status.unwrap().success(), "{said}");
            }
        }
        assert!(server.stop().unwrap().success());
        let trace =
            OperationTrace { base: base.clone(), log: moved(read_log(&log), &device, &base) };
        Self { trace, server: place, _folder: folder }
    }

    pub(crate) fn check(&self, count: usize, seed: u64) -> Vec<String> {
        self.trace.check(count, seed, usize::MAX, |image, cut| self.judge(&self.trace, image, cut))
    }

    /// Checks the same trace without the flushes of the file, until one image is wrong.
    pub(crate) fn check_control(&self, count: usize, seed: u64) -> Vec<String> {
        // This covers the file in either journal mode, and the files next to it.
        let control = self.trace.without_flushes("").without_flushes("-wal");
        control.check(count, seed, 1, |image, cut| self.judge(&control, image, cut))
    }

    /// Checks that after a sync the file has every edit that its program had committed, that it
    /// equals a clone, and that nothing is malformed.
    fn judge(&self, trace: &OperationTrace, image: &Path, cut: usize) -> Vec<String> {
        let place = tempfile::tempdir().unwrap();
        copy_folder(&self.server, place.path());
        let server = FaultedServer::start(place.path(), Vec::new()).unwrap();
        let mut wrong = Vec::new();
        let sync = ["sync", "a.db", "--server", &server.address];
        let password = place.path().join("password.txt");
        let password = password.to_str().unwrap();
        let clone = [
            &["clone", "c.db", "--server", &server.address, "--login", "ada"][..],
            &["--password-file", password],
        ]
        .concat();
        for command in [&sync[..], &clone] {
            let (status, said) = warren(command, image, Vec::new());
            if !status.is_some_and(|status| status.success()) {
                wrong.push(format!("{}: {said}", command[0].to_uppercase()));
                return wrong;
            }
        }
        let mut rows = [Vec::new(), Vec::new()];
        for (file, rows) in ["a.db", "c.db"].into_iter().zip(&mut rows) {
            match read_items(&image.join(file)) {
                Ok(items) => *rows = items,
                Err(error) => {
                    wrong.push(format!("CORRUPT: {file}: {error}"));
                    return wrong;
                }
            }
        }
        if rows[0] != rows[1] {
            wrong.push(format!("DIVERGED: {} and {} rows", rows[0].len(), rows[1].len()));
        }
        for label in trace.acknowledged(cut) {
            let found = rows[0].iter().filter(|id| id.starts_with(&format!("{label} "))).count();
            if found != 40 {
                wrong.push(format!("LOST: {found} of 40 rows of {label}"));
            }
        }
        wrong
    }
}

/// Returns the ids of a file's items, or an error if the file is malformed.
fn read_items(file: &Path) -> Result<Vec<String>, String> {
    let db = Connection::open(file).map_err(|error| error.to_string())?;
    let read = || -> rusqlite::Result<(String, Vec<String>)> {
        let check = db.query_row("PRAGMA integrity_check", [], |row| row.get(0))?;
        let mut statement = db.prepare("SELECT id FROM item ORDER BY id")?;
        let ids = statement.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?;
        Ok((check, ids))
    };
    match read() {
        Ok((check, ids)) if check == "ok" => Ok(ids),
        Ok((check, _)) => Err(check),
        Err(error) => Err(error.to_string()),
    }
}

/// Makes one flush of a vault's WAL fail, and then stops or kills the server and restarts it.
///
/// The refused page is pushed again and acknowledged, and then another page. After that the power
/// is lost, and everything that was not flushed is gone.
pub(crate) fn lose_power_after_a_failed_flush(is_killed: bool) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("place");
    let (server, token) = prepare_account(&place);
    assert!(server.stop().unwrap().success());
    let (base, log) = (folder.path().join("base"), folder.path().join("log"));
    copy_folder(&place, &base);
    let control = ShimControl::new(folder.path());
    let environment = || control.environment(&place.join("data"), Some(&log));
    let (marks, mut ledger) = (LogMarks(log.clone()), SendRecord::default());
    let server = FaultedServer::start(&place, environment()).unwrap();
    assert!(ledger.push(&server, &token, 20));
    control.arm(FaultMode::Once, 1, SYNC, 5);
    assert!(!ledger.push(&server, &token, 20), "its flush fails");
    control.disarm();
    if is_killed {
        server.kill();
    } else {
        assert!(server.stop().unwrap().success());
    }
    let server = FaultedServer::start(&place, environment()).unwrap();
    assert!(ledger.push_again(&server, &token), "the same page");
    assert!(ledger.push(&server, &token, 20));
    marks.note("all");
    server.kill();
    let log = moved(read_log(&log), &place, &base);
    let end = log.iter().position(|record| record.kind == b'A').unwrap();
    let trace = OperationTrace { base: base.join("data"), log };
    let mut wrong = Vec::new();
    for names in [NamePersistence::Strict, NamePersistence::Journal] {
        let image = tempfile::tempdir().unwrap();
        let mut disk = SimulatedDisk::of(&trace.base, names);
        trace.log[..end].iter().for_each(|record| disk.apply(record));
        disk.write_certain_image(&image.path().join("data"));
        match FaultedServer::start(image.path(), Vec::new()) {
            Ok(server) => wrong.extend(ledger.check_vault(&server, &token)),
            Err((status, said)) => wrong.push(format!("START: {status}: {said}")),
        }
    }
    wrong
}
