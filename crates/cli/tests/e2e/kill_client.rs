//! Tests that kill `warren sync` with `kill -9` at any byte: the next sync continues, and no
//! message is lost or stored twice.

use std::process::Child;

use crate::cutting_proxy::{CutAction, CuttingProxy, ProxyEvent};
use crate::fixture::{
    SyncFixture, check_all_sent, check_equal, check_report, devices, entries, sync, track_all,
};
use crate::processes::{json, sql, start, warren};
use crate::random::SplitMixRng;

const ROWS: u64 = 60_000;
/// The bytes of about a page of 10,000 messages and half of the next one.
const BYTES_MAX: u64 = 900_000;
/// The maximum number of kills, after which a device must get through.
const KILLS_COUNT_MAX: u64 = 40;

/// Kills the command repeatedly until it runs to its end; returns the number of kills.
fn kill_until_done(arguments: &[&str], proxy: &CuttingProxy, random: &mut SplitMixRng) -> u64 {
    for kills in 0..KILLS_COUNT_MAX {
        let mut process = start(arguments);
        if !kill_within(&mut process, random.below(BYTES_MAX), proxy, random) {
            return kills;
        }
    }
    KILLS_COUNT_MAX
}

/// Kills a process at this byte of its traffic, or a little later; returns false if it ended
/// before.
fn kill_within(
    process: &mut Child,
    bytes: u64,
    proxy: &CuttingProxy,
    random: &mut SplitMixRng,
) -> bool {
    let then = if random.flip() { CutAction::Hold } else { CutAction::Flow };
    let watch = proxy.watch(bytes, then, process);
    let killed = match watch.next() {
        ProxyEvent::Ended(output) => {
            check_report(&serde_json::from_str(&output).unwrap());
            false
        }
        ProxyEvent::Passed => {
            random.spin(2_000_000);
            process.kill().unwrap();
            true
        }
    };
    let status = process.wait().unwrap();
    // A process that has just ended cannot be killed any more.
    let killed = killed && status.code().is_none();
    assert!(killed || status.success(), "{status}, seed {}", random.seed);
    killed
}

#[test]
fn a_killed_sync_is_completed_by_the_next_one() {
    let mut random = SplitMixRng::new();
    let seed = random.seed;
    let place = SyncFixture::new();
    let server = place.serve();
    let proxy = CuttingProxy::to(&server.address);
    let (a, b) = (place.at("a.db"), place.at("b.db"));
    sql(&a, "CREATE TABLE entry (id INTEGER PRIMARY KEY, text TEXT NOT NULL, amount REAL)");
    track_all(&a);
    place.sign_in("sync", &a, &proxy.address);
    entries(&a, 0..ROWS);

    let kills = kill_until_done(&["sync", &a, "--json"], &proxy, &mut random);
    assert!(kills > 2, "{kills} kills: they came too late, seed {seed}");
    sync(&a);
    check_all_sent(&a);
    // The vault has one message for each row, and one for the table.
    place.check_vault(ROWS + 1);

    receive(&place, &proxy, &b, &mut random);
    assert_eq!(check_equal(&a, &b).len() as u64, ROWS, "seed {seed}");
    edit_both(&a, &b, &proxy, &mut random);
    place.check_vault(ROWS + 1 + 2 * 10_000);
}

/// Clones into a new device whose first syncs are all killed.
fn receive(place: &SyncFixture, proxy: &CuttingProxy, b: &str, random: &mut SplitMixRng) {
    let mut clone =
        start(&[&["clone", b, "--json"], &place.first_time(&proxy.address)[..]].concat());
    // The kill comes after the answer to the registration, and before the end of the first page.
    assert!(kill_within(&mut clone, 2_000 + random.below(100_000), proxy, random));
    let clone = [&["clone", b, "--json"], &place.first_time(&proxy.address)[..]].concat();
    let kills = kill_until_done(&clone, proxy, random);
    assert!(kills > 0, "it came through at once, seed {}", random.seed);
    check_report(&json(&["sync", b]));
    // The file is now complete, so `clone` no longer resumes it.
    assert!(!warren(&clone).status.success());
    let devices = devices(b).len();
    assert_eq!(devices, 2, "a clone that goes on is the device that it was, seed {}", random.seed);
    sync(b);
}

/// Both devices edit the same rows, and both are killed while they sync.
fn edit_both(a: &str, b: &str, proxy: &CuttingProxy, random: &mut SplitMixRng) {
    sql(a, "UPDATE entry SET text = 'from a ' || id WHERE id BETWEEN 1 AND 10000");
    sql(b, "UPDATE entry SET amount = -id WHERE id BETWEEN 1 AND 10000");
    for file in [a, b] {
        kill_until_done(&["sync", file, "--json"], proxy, random);
        sync(file);
    }
    sync(a);
    check_equal(a, b);
    let both = "SELECT count(*) FROM entry WHERE text = 'from a ' || id AND amount = -id";
    assert_eq!(sql(b, both), "10000", "seed {}", random.seed);
}
