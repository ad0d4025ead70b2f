//! Tests of `warren sync --watch`: changes of one device's program appear in the other's file.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::cutting_proxy::CuttingProxy;
use crate::fixture::{SyncFixture, check_equal, devices, sync, track_all};
use crate::output_schema;
use crate::processes::{ServeProcess, json, sql, start_with};

/// The time limit of a wait, far more than it takes: a test that waits forever is worse than one
/// that fails.
pub(crate) const DEADLINE: Duration = Duration::from_secs(90);
/// The interval between queries of a file.
const LOOK: Duration = Duration::from_millis(50);

/// A running `warren sync FILE --watch --json`.
pub(crate) struct WatchProcess {
    child: Child,
    lines: Receiver<String>,
}

impl WatchProcess {
    pub(crate) fn start(file: &str) -> Self {
        Self::start_with(&[], file)
    }

    /// Starts it with these environment variables.
    pub(crate) fn start_with(variables: &[(&str, &str)], file: &str) -> Self {
        let watch = ["sync", file, "--watch", "--json"];
        let mut child = start_with(variables, Stdio::inherit(), &watch);
        let lines = lines(child.stdout.take().unwrap());
        Self { child, lines }
    }

    /// Waits for a line that fulfills a condition.
    #[track_caller]
    pub(crate) fn until(&self, is_it: impl Fn(&Value) -> bool) -> Value {
        let mut seen = Vec::new();
        loop {
            let line = self.lines.recv_timeout(DEADLINE);
            let line = line.unwrap_or_else(|error| panic!("{error} after {seen:?}"));
            let value = event(&line);
            if is_it(&value) {
                return value;
            }
            seen.push(value);
        }
    }

    /// Sends a signal, and waits for the end; returns the exit status.
    fn end(mut self, signal: &str) -> Option<i32> {
        let kill = format!("kill -{signal} {}", self.child.id());
        assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
        self.child.wait().unwrap().code()
    }

    /// Waits until it ends without a signal; returns the exit status, and the remaining output.
    fn ended(mut self) -> (Option<i32>, Vec<Value>) {
        let mut said = Vec::new();
        loop {
            match self.lines.recv_timeout(DEADLINE) {
                Ok(line) => said.push(event(&line)),
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => panic!("it goes on: {said:?}"),
            }
        }
        (self.child.wait().unwrap().code(), said)
    }
}

/// Returns a program's output, line by line.
pub(crate) fn lines(output: impl Read + Send + 'static) -> Receiver<String> {
    let (tell, lines) = sync_channel(1_000);
    std::thread::spawn(move || {
        for line in BufReader::new(output).lines() {
            // The test may have finished.
            drop(tell.send(line.unwrap()));
        }
    });
    lines
}

impl Drop for WatchProcess {
    fn drop(&mut self) {
        // The process may have ended already.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Waits until a query of a file has this answer.
#[track_caller]
#[expect(clippy::disallowed_methods, reason = "a deadline for what another process does")]
fn until(file: &str, query: &str, expected: &str) {
    let end = Instant::now() + DEADLINE;
    loop {
        let found = sql(file, query);
        if found == expected {
            return;
        }
        assert!(Instant::now() < end, "{found} for {query}, not {expected}");
        std::thread::park_timeout(LOOK);
    }
}

/// Parses and checks a line of `warren sync --watch --json`.
#[track_caller]
fn event(line: &str) -> Value {
    output_schema::check(&["sync", "--json"], line);
    serde_json::from_str(line).unwrap()
}

/// Prepares two devices with one row, reached through a proxy.
fn pair() -> (SyncFixture, ServeProcess, CuttingProxy, String, String) {
    let place = SyncFixture::new();
    let server = place.serve();
    let proxy = CuttingProxy::to(&server.address);
    let (a, b) = (place.at("a.db"), place.at("b.db"));
    sql(&a, "CREATE TABLE t (id INTEGER PRIMARY KEY, x); INSERT INTO t VALUES (1, 'one')");
    track_all(&a);
    place.sign_in("sync", &a, &proxy.address);
    place.sign_in("clone", &b, &proxy.address);
    (place, server, proxy, a, b)
}

pub(crate) fn is_synced(value: &Value) -> bool {
    value["event"] == "synced" && value["in_sync"] == true
}

#[test]
fn what_is_written_to_one_file_appears_in_the_other_and_outlives_the_server() {
    let (place, server, proxy, a, b) = pair();
    let watches = [&a, &b].map(|file| WatchProcess::start(file));
    for watch in &watches {
        watch.until(is_synced);
    }
    sql(&a, "INSERT INTO t VALUES (2, 'two')");
    until(&b, "SELECT x FROM t WHERE id = 2", "two");
    sql(&b, "UPDATE t SET x = 'zwei' WHERE id = 2");
    until(&a, "SELECT x FROM t WHERE id = 2", "zwei");

    server.kill();
    for watch in &watches {
        assert_eq!(watch.until(|value| value["event"] == "waiting")["code"], "unreachable");
    }
    sql(&a, "INSERT INTO t VALUES (3, 'of a, offline')");
    sql(&b, "INSERT INTO t VALUES (4, 'of b, offline')");
    let server = place.serve();
    proxy.turn_to(&server.address);
    until(&a, "SELECT count(*) FROM t", "4");
    until(&b, "SELECT count(*) FROM t", "4");
    sql(&a, "DELETE FROM t WHERE id = 1");
    until(&b, "SELECT count(*) FROM t", "3");

    let [of_a, of_b] = watches;
    assert_eq!((of_a.end("INT"), of_b.end("TERM")), (Some(0), Some(0)));
    sync(&a);
    sync(&b);
    check_equal(&a, &b);
}

#[test]
fn a_table_that_is_rebuilt_and_a_column_that_is_added_are_watched_too() {
    let (_place, _server, _proxy, a, b) = pair();
    let watch = WatchProcess::start(&a);
    watch.until(is_synced);
    sql(
        &a,
        "BEGIN; CREATE TABLE n (id INTEGER PRIMARY KEY, x, y); INSERT INTO n SELECT id, x, 0 FROM t;
         DROP TABLE t; ALTER TABLE n RENAME TO t; UPDATE t SET x = 'uno' WHERE id = 1; COMMIT",
    );
    watch.until(is_synced);
    sync(&b);
    assert_eq!(sql(&b, "SELECT x FROM t"), "uno");
    // The triggers have not changed: they do not include the column.
    sql(&a, "ALTER TABLE t ADD COLUMN z; UPDATE t SET z = 'tre'");
    watch.until(|value| is_synced(value) && value["sent_count"] != 0);
    assert_eq!(watch.end("INT"), Some(0));
    json(&["sync", &b, "--create-missing"]);
    assert_eq!(sql(&b, "SELECT x, y, z FROM t"), "uno|0|tre");
}

#[test]
fn a_revoked_device_is_told_so() {
    let (_place, _server, _proxy, a, b) = pair();
    let watch = WatchProcess::start(&b);
    watch.until(is_synced);
    let listed = devices(&a);
    let other = listed.iter().find(|client| client["current"] == false).unwrap();
    json(&["device", "revoke", other["device_id"].as_str().unwrap(), &a]);
    let (status, said) = watch.ended();
    assert_eq!(status, Some(77), "{said:?}");
    assert_eq!(said.last().unwrap()["error"]["code"], "invalid_token", "{said:?}");
}

#[test]
fn a_watch_without_anything_to_do_does_next_to_nothing() {
    let (_place, _server, _proxy, a, _b) = pair();
    let watch = WatchProcess::start(&a);
    watch.until(is_synced);
    sql(&a, "INSERT INTO t VALUES (2, 'two')");
    watch.until(|value| value["sent_count"] == 1);
    // The process also gets the event of its own push, which causes no work. Processor time is
    // counted per process, so other load on this machine does not matter.
    let before = processor_ticks(&watch.child);
    let said = watch.lines.recv_timeout(Duration::from_secs(3));
    assert_eq!(said, Err(RecvTimeoutError::Timeout));
    let ticks = processor_ticks(&watch.child) - before;
    // Linux counts a hundred ticks a second.
    assert!(ticks <= 15, "{ticks} ticks in 3 seconds");
    assert_eq!(watch.end("INT"), Some(0));
}

/// Returns user and system time, as Linux counts them.
fn processor_ticks(child: &Child) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap();
    let fields = stat.rsplit_once(')').unwrap().1.split_whitespace();
    // These are fields 14 and 15 of proc_pid_stat(5); the third is the first after the name.
    fields.skip(11).take(2).map(|ticks| ticks.parse::<u64>().unwrap()).sum()
}
