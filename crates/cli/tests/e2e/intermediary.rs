//! Proxies and others that answer in the server's place: what is too large for them goes in smaller
//! pages, and what is not Warren's answer is told as that.

use serde_json::json;

use crate::http_proxy::{HttpProxy, Rule};
use crate::live::{Watch, is_synced};
use crate::processes::{json, sql, warren};
use crate::support::{Place, sync, track_all};

/// nginx's own limit on bodies, unless it is told another.
const NGINX_BODY_BYTES_MAX: usize = 1 << 20;

/// A file that knows the account behind the proxy, with one row.
fn signed_in(place: &Place, proxy: &HttpProxy) -> String {
    let a = place.at("a.db");
    sql(&a, "CREATE TABLE t (id INTEGER PRIMARY KEY, x); INSERT INTO t VALUES (1, 'one')");
    track_all(&a);
    place.sign_in("sync", &a, &proxy.address);
    a
}

#[test]
fn a_push_that_a_proxy_finds_too_large_goes_in_smaller_pages() {
    let place = Place::new();
    let server = place.serve();
    let proxy = HttpProxy::to(&server.address, Rule::BodyBytesMax(NGINX_BODY_BYTES_MAX));
    let a = signed_in(&place, &proxy);
    sql(
        &a,
        "INSERT INTO t WITH RECURSIVE n(i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n WHERE i < 3000)
         SELECT i, hex(randomblob(500)) FROM n",
    );
    assert_eq!(sync(&a)["sent"], 2_999);
    // With the table itself.
    place.check_vault(3_001);

    sql(&a, "INSERT INTO t VALUES (7000, hex(randomblob(600000)))");
    let refused = warren(&["sync", &a, "--json"]);
    refused.refused("proxy_limit");
    let message = refused.value()["error"]["message"].as_str().unwrap().to_owned();
    for part in ["413", "client_max_body_size", "the row of t with key 7000"] {
        assert!(message.contains(part), "{part}: {message}");
    }
    assert_eq!(json(&["status", &a])["unsent"], 1);
    proxy.set(Rule::BodyBytesMax(16 << 20));
    assert_eq!(sync(&a)["sent"], 1);
}

#[test]
fn an_answer_that_is_not_the_server_s_is_told_with_its_status() {
    let place = Place::new();
    let server = place.serve();
    let proxy = HttpProxy::to(&server.address, Rule::Pass);
    let a = signed_in(&place, &proxy);
    sql(&a, "INSERT INTO t VALUES (2, 'two')");
    for status in [200, 403, 404, 413, 502, 504] {
        proxy.set(Rule::page(status));
        let refused = warren(&["sync", &a, "--json"]);
        refused.refused("intermediary");
        let message = refused.value()["error"]["message"].as_str().unwrap().to_owned();
        assert!(message.contains(&format!("with status {status}")), "{message}");
        assert!(!message.contains("cannot be reached"), "{message}");
    }
    assert_eq!(json(&["status", &a])["receipt_error"]["code"], "intermediary");
    proxy.set(Rule::Answer(401, "application/x-protobuf", Vec::new()));
    warren(&["sync", &a, "--json"]).refused("intermediary");

    // Whoever watches goes on when it is over.
    proxy.set(Rule::page(502));
    let watch = Watch::start(&a);
    assert_eq!(watch.until(|value| value["event"] == "waiting")["code"], json!("intermediary"));
    proxy.set(Rule::Pass);
    assert_eq!(watch.until(is_synced)["sent"], 1);
}
