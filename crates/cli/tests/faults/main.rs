//! These tests make file operations of the shipped binary fail and cut its power: no acknowledged
//! change is lost, and no process stays down.
//!
//! A library loaded before the C library (`faultio.c`) breaks the n-th operation below a folder,
//! or logs all of them, so that images of a power loss can be built. `WARREN_FAULTS=long` breaks
//! hundreds of operations in each way and builds some thousand images; `WARREN_FAULTS=N` breaks N
//! operations in each way. Without it a few of each are enough to see that everything holds.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod backups;
mod damage;
mod disk;
mod fixture;
mod full_disk;
mod injection;
mod lost_answer;
mod power_loss;
#[path = "../e2e/random.rs"]
#[expect(dead_code, reason = "these tests do not use all of it")]
mod random;
mod restores;
mod scenarios;
mod shim;
mod spoil;
mod stalled_backups;

use crate::power_loss::{DeviceTrace, ServerTrace, lose_power_after_a_failed_flush};
use crate::random::SplitMixRng;
use crate::scenarios::{
    AccountsScenario, DeviceScenario, FaultScenario, SyncScenario, UploadScenario,
};

/// The number of injections of each kind in the long form, spread evenly over a scenario's
/// operations.
const LONG_COUNT: usize = 300;

fn is_long() -> bool {
    std::env::var_os("WARREN_FAULTS").is_some_and(|form| form == "long")
}

/// Returns the number of injections of each kind; `short` is the number in the short form.
fn count(short: usize) -> usize {
    let asked = std::env::var_os("WARREN_FAULTS");
    let asked = asked.and_then(|count| count.to_str()?.parse().ok());
    asked.unwrap_or(if is_long() { LONG_COUNT } else { short })
}

/// Checks a scenario with `short` injections of each kind in the short form.
fn check<S: FaultScenario>(short: usize) {
    injection::check::<S>(count(short));
}

/// Asserts that no image is wrong, and that at least one image of the control is wrong. The
/// control stops at its first wrong image.
#[expect(clippy::print_stdout, reason = "the counts are what a long run is for")]
fn check_images(
    name: &str,
    (short, long): (usize, usize),
    check: impl Fn(usize, u64) -> Vec<String>,
    check_control: impl Fn(usize, u64) -> Vec<String>,
) {
    let count = if is_long() { long } else { short };
    let seed = SplitMixRng::new().next();
    let wrong = check(count, seed);
    println!("{name}: {count} images, wrong: {}", wrong.len());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let control_count = count.div_ceil(10).max(CONTROL_COUNT_MIN);
    let wrong = check_control(control_count, seed);
    println!("{name}, flushes left out: {}", wrong.first().map_or("none is wrong", String::as_str));
    assert!(!wrong.is_empty(), "the images prove nothing");
}

/// The minimum number of control images: among 20, some are wrong with near certainty.
const CONTROL_COUNT_MIN: usize = 20;

#[test]
fn accounts_survive_every_fault() {
    check::<AccountsScenario>(4);
}

#[test]
fn syncs_survive_every_fault() {
    check::<SyncScenario>(5);
}

#[test]
fn uploads_and_compaction_survive_every_fault() {
    check::<UploadScenario>(4);
}

#[test]
fn a_device_with_a_wal_survives_every_fault() {
    check::<DeviceScenario<true>>(3);
}

#[test]
fn a_device_with_a_rollback_journal_survives_every_fault() {
    check::<DeviceScenario<false>>(3);
}

#[test]
fn a_server_survives_a_power_loss_at_any_moment() {
    let trace = ServerTrace::record();
    check_images(
        "server",
        (24, 1_500),
        |count, seed| trace.check(count, seed),
        |count, seed| trace.check_control(count, seed),
    );
}

#[test]
fn a_device_with_a_wal_survives_a_power_loss_at_any_moment() {
    let trace = DeviceTrace::record(true);
    check_images(
        "device, WAL",
        (12, 500),
        |count, seed| trace.check(count, seed),
        |count, seed| trace.check_control(count, seed),
    );
}

#[test]
fn a_device_with_a_rollback_journal_survives_a_power_loss_at_any_moment() {
    let trace = DeviceTrace::record(false);
    check_images(
        "device, rollback journal",
        (12, 500),
        |count, seed| trace.check(count, seed),
        |count, seed| trace.check_control(count, seed),
    );
}

#[test]
fn a_flush_that_failed_is_not_built_upon_after_a_restart() {
    for is_killed in [false, true] {
        let wrong = lose_power_after_a_failed_flush(is_killed);
        assert!(wrong.is_empty(), "killed: {is_killed}: {wrong:?}");
    }
}
