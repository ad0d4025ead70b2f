//! Tests of proxies and others that answer in the server's place: an answer that is not Warren's
//! is reported as such.
//!
//! # Not here
//! - Bodies that are too large for a proxy → `operating/proxies.rs`.

use serde_json::json;

use crate::fixture::{SyncFixture, track_all};
use crate::http_proxy::{HttpProxy, ProxyRule};
use crate::live::{WatchProcess, is_synced};
use crate::processes::{json, sql, warren};

/// Returns a file with one row that is registered behind the proxy.
fn signed_in(place: &SyncFixture, proxy: &HttpProxy) -> String {
    let a = place.at("a.db");
    sql(&a, "CREATE TABLE t (id INTEGER PRIMARY KEY, x); INSERT INTO t VALUES (1, 'one')");
    track_all(&a);
    place.sign_in("sync", &a, &proxy.address);
    a
}

#[test]
fn an_answer_that_is_not_the_server_s_is_told_with_its_status() {
    let place = SyncFixture::new();
    let server = place.serve();
    let proxy = HttpProxy::to(&server.address, ProxyRule::Pass);
    let a = signed_in(&place, &proxy);
    sql(&a, "INSERT INTO t VALUES (2, 'two')");
    for status in [200, 403, 404, 413, 502, 504] {
        proxy.set(ProxyRule::page(status));
        let refused = warren(&["sync", &a, "--json"]);
        refused.refused("unexpected_response");
        let message = refused.value()["error"]["message"].as_str().unwrap().to_owned();
        assert!(message.contains(&format!("(HTTP {status})")), "{message}");
        assert!(!message.contains("cannot reach the server:"), "{message}");
    }
    assert_eq!(json(&["status", &a])["sync_status_error"]["code"], "unexpected_response");
    proxy.set(ProxyRule::Answer(401, "application/x-protobuf", Vec::new()));
    warren(&["sync", &a, "--json"]).refused("unexpected_response");

    // A watching device continues when the outage is over.
    proxy.set(ProxyRule::page(502));
    let watch = WatchProcess::start(&a);
    assert_eq!(
        watch.until(|value| value["event"] == "waiting")["code"],
        json!("unexpected_response")
    );
    proxy.set(ProxyRule::Pass);
    assert_eq!(watch.until(is_synced)["sent_count"], 1);
}
