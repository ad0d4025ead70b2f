//! Tests the information that the devices of an account have about each other.

use serde_json::{Value, json};

use crate::cutting_proxy::{CutAction, CuttingProxy, ProxyEvent};
use crate::fixture::{SyncFixture, devices, sync, track_all};
use crate::processes::{json, sql, start, warren};

/// The limit of the cuts in bytes: more than a sync of one change takes.
const BYTES_MAX: u64 = 4_000;
/// The step of the cuts in bytes: less than any request of a sync.
const STEP_BYTES: u64 = 60;

/// Returns the device that runs the command, and the other one.
#[track_caller]
fn listed(file: &str) -> (Value, Value) {
    let (mine, other): (Vec<Value>, Vec<Value>) =
        devices(file).into_iter().partition(|device| device["current"] == true);
    assert_eq!((mine.len(), other.len()), (1, 1));
    (mine[0].clone(), other[0].clone())
}

/// Cuts syncs of a file a little later each time, until another device sees the result.
fn cut_until(file: &str, proxy: &CuttingProxy, is_seen: impl Fn() -> bool) {
    let mut bytes = STEP_BYTES;
    while !is_seen() {
        assert!(bytes < BYTES_MAX, "it was never seen");
        let mut process = start(&["sync", file, "--json"]);
        let watch = proxy.watch(bytes, CutAction::Hold, &mut process);
        match watch.next() {
            ProxyEvent::Passed => process.kill().unwrap(),
            ProxyEvent::Ended(text) => panic!("it came through: {text}"),
        }
        process.wait().unwrap();
        bytes += STEP_BYTES;
    }
}

#[test]
fn what_a_device_could_not_send_is_seen_by_the_others() {
    let place = SyncFixture::new();
    let server = place.serve();
    let proxy = CuttingProxy::to(&server.address);
    let (a, b) = (place.at("a.db"), place.at("b.db"));
    sql(&a, "CREATE TABLE t (id INTEGER PRIMARY KEY, x); INSERT INTO t VALUES (1, 'one')");
    track_all(&a);
    place.sign_in("sync", &a, &server.address);
    json(
        &[&["clone", &b, "--device-name", "phone"], &place.first_time(&proxy.address)[..]].concat(),
    );
    let (_, other) = listed(&a);
    assert_eq!(
        (&other["unsent_count"], &other["pending_download_count"]),
        (&json!(0), &json!(0)),
        "{other}"
    );
    let node = json(&["status", &b, "--offline"])["node_id"].clone();
    assert_eq!(other["node_id"], node);

    sql(&b, "INSERT INTO t VALUES (2, 'two')");
    cut_until(&b, &proxy, || listed(&a).1["unsent_count"] == 1);
    let status = json(&["status", &a]);
    assert_eq!(status["sync_status"]["in_sync"], true, "nothing of it has come through: {status}");
    let text = warren(&["status", &a]).succeeded().stdout;
    let sync_status = text.lines().find(|line| line.starts_with("in sync: ")).unwrap();
    assert!(
        sync_status.starts_with("in sync: the server has 2 of 2 changes; phone: seen "),
        "{sync_status}"
    );
    assert!(sync_status.ends_with(", 1 unsent"), "{sync_status}");

    // The other side shows the same, until it has sent its change.
    sql(&a, "INSERT INTO t VALUES (3, 'three')");
    assert_eq!(sync(&a)["sent_count"], 1);
    let sync_status = json(&["status", &b])["sync_status"].clone();
    assert_eq!(
        (&sync_status["pending_upload_count"], &sync_status["pending_download_count"]),
        (&json!(1), &json!(1)),
        "{sync_status}"
    );
    assert_eq!(listed(&a).1["pending_download_count"], 1);
    sync(&b);
    let (_, other) = listed(&a);
    assert_eq!(
        (&other["unsent_count"], &other["pending_download_count"]),
        (&json!(0), &json!(0)),
        "{other}"
    );
    sync(&a);
    let name = "SELECT name FROM warren_device WHERE printf('%016x', node_id) = '";
    assert_eq!(sql(&a, &format!("{name}{}'", node.as_str().unwrap())), "phone");
}

#[test]
fn without_a_server_status_says_what_the_last_sync_saw() {
    let place = SyncFixture::new();
    let server = place.serve();
    let a = place.at("a.db");
    sql(&a, "CREATE TABLE t (id INTEGER PRIMARY KEY)");
    track_all(&a);
    assert_eq!(json(&["status", &a])["sync_status"], Value::Null);
    place.sign_in("sync", &a, &server.address);
    assert_eq!(json(&["status", &a, "--offline"])["sync_status"], Value::Null);
    assert_eq!(json(&["status", &a])["sync_status"]["server_messages_count"], 1);
    let id = listed_one(&a);
    json(&["device", "revoke", &id, &a]);
    assert_eq!(json(&["status", &a])["sync_status_error"]["code"], "invalid_token");
    server.kill();
    let status = json(&["status", &a]);
    assert_eq!(status["sync_status_error"]["code"], "unreachable");
    assert_eq!(status["remote"]["server_messages_count"], 1);
}

fn listed_one(file: &str) -> String {
    devices(file)[0]["device_id"].as_str().unwrap().to_owned()
}
