//! A test that a device's memory does not grow with the size of the account.

use std::fs;
use std::thread;
use std::time::Duration;

use crate::fixture::{SyncFixture, track_all};
use crate::processes::{sql, start};

/// The number of rows, of a MiB each: more than a device may have in memory.
const ROWS_COUNT: usize = 300;
const MEMORY_MIB_MAX: u64 = 200;

/// Runs `warren` to its end; returns the peak of its memory, in MiB.
fn memory_mib_of(arguments: &[&str]) -> u64 {
    let mut child = start(arguments);
    let status = format!("/proc/{}/status", child.id());
    let mut high = 0;
    loop {
        // The file disappears when the process ends.
        let status = fs::read_to_string(&status).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kib = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok());
        high = high.max(kib.unwrap_or_default() >> 10);
        if let Some(ended) = child.try_wait().unwrap() {
            assert!(ended.success(), "{ended}");
            return high;
        }
        thread::park_timeout(Duration::from_millis(5));
    }
}

#[test]
fn a_first_sync_takes_no_more_memory_than_a_few_pages() {
    let place = SyncFixture::new();
    let server = place.serve();
    let original = place.at("original.db");
    sql(&original, "CREATE TABLE photo (id INTEGER PRIMARY KEY, bytes BLOB)");
    let rows = format!(
        "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {ROWS_COUNT})
         INSERT INTO photo SELECT i, randomblob(1048576) FROM n"
    );
    sql(&original, &rows);
    track_all(&original);
    let account = place.first_time(&server.address);
    let pushed = memory_mib_of(&[&["sync", &original][..], &account].concat());
    let clone = place.at("clone.db");
    let cloned = memory_mib_of(&[&["clone", &clone][..], &account].concat());
    for (what, high) in [("sync", pushed), ("clone", cloned)] {
        assert!((1..MEMORY_MIB_MAX).contains(&high), "{what}: {high} MiB");
    }
    let sum = "SELECT count(*) || ' ' || sum(length(bytes)) FROM photo";
    assert_eq!(sql(&original, sum), sql(&clone, sum));
}
