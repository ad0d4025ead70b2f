//! Tests of the operator's calls.

use std::time::Duration;

use serde_json::{Value, json};

use crate::{ADMIN, PASSWORD, RunningServer, at_once, push};

const CALLS: &[&str] = &["/v1/admin/overview", "/v1/admin/accounts"];
const MAINTAIN: &str = "/v1/admin/maintenance";

fn overview(server: &RunningServer) -> Value {
    let answer = server.get("/v1/admin/overview", ADMIN);
    assert_eq!(answer.status, 200, "{}", answer.json());
    answer.json()
}

fn accounts(server: &RunningServer, query: &str) -> Value {
    let answer = server.get(&format!("/v1/admin/accounts{query}"), ADMIN);
    assert_eq!(answer.status, 200, "{}", answer.json());
    answer.json()
}

fn logins(list: &Value) -> Vec<&str> {
    let accounts = list["accounts"].as_array().unwrap();
    accounts.iter().map(|account| account["login"].as_str().unwrap()).collect()
}

#[test]
fn only_the_operator_is_let_in() {
    let server = RunningServer::new();
    assert_eq!(server.get("/v1/admin", "").json(), json!({ "enabled": true }));
    let device = server.account("ada");
    for token in ["", "another secret", &ADMIN[1..], &device] {
        for call in CALLS {
            server.get(call, token).refused("invalid_token");
        }
        server.post(MAINTAIN, token, &json!({})).refused("invalid_token");
    }
    for call in CALLS {
        assert_eq!(server.get(call, ADMIN).status, 200);
    }
    assert_eq!(server.post(MAINTAIN, ADMIN, &json!({})).status, 200);
}

#[test]
fn where_there_is_no_operator_s_token_nobody_is_let_in() {
    let server = RunningServer::with(|config| config.admin_token = None);
    assert_eq!(server.get("/v1/admin", "").json(), json!({ "enabled": false }));
    for token in ["", ADMIN] {
        for call in CALLS {
            server.get(call, token).refused("admin_disabled");
        }
        server.post(MAINTAIN, token, &json!({})).refused("admin_disabled");
    }
}

#[test]
fn guesses_at_the_operator_s_token_are_slowed_and_logins_are_not() {
    let server = RunningServer::new();
    let account = json!({ "login": "ada", "password": PASSWORD });
    assert_eq!(server.post("/v1/accounts", "", &account).status, 201);
    // A missing token is not counted as a login attempt.
    for _ in 0..50 {
        server.get(CALLS[0], "").refused("invalid_token");
    }
    let guess = |number| match number % 2 {
        0 => server.get(CALLS[0], "a guess"),
        _ => server.post("/v1/accounts", "a guess", &account),
    };
    for number in 0..20 {
        assert_ne!(guess(number).status, 429);
    }
    let refused = at_once(6, guess).into_iter().find(|answer| answer.status == 429);
    let refused = refused.expect("26 guesses are too many");
    refused.refused("too_many_attempts");
    assert!(refused.header("retry-after").parse::<u64>().unwrap() > 0);
    server.register_device("ada");
    // The right token waits, too; otherwise guessing would cost no time.
    let right = (0..30).map(|_| server.get(CALLS[0], ADMIN)).find(|answer| answer.status != 429);
    assert_eq!(right.unwrap().status, 200);
}

#[test]
fn the_numbers_move_with_what_happens() {
    let server = RunningServer::new();
    let token = server.account("ada");
    let before = overview(&server);
    assert_eq!(before["storage"], "sqlite");
    assert_eq!(before["version"], env!("CARGO_PKG_VERSION"));
    let counts = json!([before["accounts_count"], before["devices_count"], before["vaults_count"]]);
    assert_eq!(counts, json!([1, 1, 1]));
    assert_eq!(
        (&before["files"]["count"], &before["open_vaults"]["count"]),
        (&json!(1), &json!(1))
    );

    server.account("bob");
    server.post("/v1/sync/delta", &token, &push(&[(1, "a"), (2, "b")]));
    server.post("/v1/sync/delta", &token, &push(&[(1, "a")]));
    server.get("/v1/sync/delta", &token);
    server.post("/v1/nowhere", "", &json!({})).refused("not_found");
    let after = overview(&server);
    let moved = |pointer: &str| {
        let number = |overview: &Value| overview.pointer(pointer).unwrap().as_u64().unwrap();
        number(&after) - number(&before)
    };
    assert_eq!(
        (moved("/accounts_count"), moved("/devices_count"), moved("/files/count")),
        (1, 1, 1)
    );
    assert_eq!((moved("/messages/stored_count"), moved("/messages/known_count")), (2, 1));
    assert_eq!((moved("/messages/sent_count"), moved("/syncs/count")), (2, 3));
    // The seven requests include the account, its device and the overview itself.
    assert_eq!((moved("/requests_count"), moved("/failed_requests_count")), (7, 0));
    assert!(
        moved("/transactions/committed_count") >= 5 && moved("/transactions/flushes_count") >= 4
    );
    assert_eq!(moved("/transactions/failed_count") + moved("/transactions/rejected_count"), 0);
    assert!(after["connections_count"].as_u64().unwrap() >= 1);
    assert!(
        moved("/files/file_bytes") >= 4_096
            && after["open_vaults"]["wal_bytes"].as_u64().unwrap() > 4_096
    );
    assert_eq!(after["files"]["wal_bytes"], after["open_vaults"]["wal_bytes"]);
    let counts = after["syncs"]["counts"].as_array().unwrap().iter();
    assert_eq!(counts.map(|count| count.as_u64().unwrap()).sum::<u64>(), 3);
    assert_eq!(after["syncs"]["bounds_ms"].as_array().unwrap().len(), 15);
}

#[test]
fn accounts_come_in_parts_in_any_order() {
    let server = RunningServer::new();
    for login in ["cyd", "ada", "dan", "bob"] {
        server.account(login);
    }
    server.register_device("dan");
    let token = server.register_device("bob").1;
    let long = "x".repeat(300_000);
    server.post("/v1/sync/delta", &token, &push(&[(1, &long)]));
    // The written data stays in the WAL until this call.
    server.post(MAINTAIN, ADMIN, &json!({ "login": "bob" }));

    assert_eq!(logins(&accounts(&server, "")), ["ada", "bob", "cyd", "dan"]);
    assert_eq!(logins(&accounts(&server, "?descending=true")), ["dan", "cyd", "bob", "ada"]);
    assert_eq!(logins(&accounts(&server, "?sort=created")), ["cyd", "ada", "dan", "bob"]);
    let most = |sort| accounts(&server, &format!("?sort={sort}&descending=true&limit=2"));
    assert_eq!(logins(&most("devices")), ["bob", "dan"]);
    assert_eq!(logins(&most("file_bytes"))[0], "bob");
    let found = accounts(&server, "?search=D");
    assert_eq!((logins(&found), &found["total_count"]), (vec!["ada", "cyd", "dan"], &json!(3)));

    let first = accounts(&server, "?limit=3");
    assert_eq!((&first["total_count"], &first["more"]), (&json!(4), &json!(true)));
    let next = accounts(&server, &format!("?limit=3&cursor={}", first["cursor"]));
    assert_eq!((logins(&next), &next["more"]), (vec!["dan"], &json!(false)));
    assert_eq!(logins(&accounts(&server, "?cursor=99")), [""; 0]);

    for query in ["?limit=0", "?limit=x", "?sort=size", "?cursor=-1", "?page=2"] {
        server.get(&format!("/v1/admin/accounts{query}"), ADMIN).refused("malformed");
    }
    server.get("/v1/admin/accounts?limit=201", ADMIN).refused("too_large");
}

#[test]
fn of_an_account_is_told_what_needs_no_key() {
    let server = RunningServer::new();
    let token = server.account("ada");
    let account = || accounts(&server, "")["accounts"][0].clone();
    let quiet = account();
    assert_eq!((&quiet["devices_count"], &quiet["last_seen_ms"]), (&json!(1), &Value::Null));
    server.post("/v1/sync/delta", &token, &push(&[(1, "SECRET content")]));
    let open = account();
    let is_recent = |value: &Value| value.as_u64().unwrap() > 1_700_000_000_000;
    for name in ["created_ms", "last_seen_ms", "last_changed_ms"] {
        assert!(is_recent(&open[name]), "{name} in {open}");
    }
    assert_eq!((&open["vaults_count"], &open["open_vaults_count"]), (&json!(1), &json!(1)));
    assert!(open["wal_bytes"].as_u64().unwrap() > 4_096, "{open}");
    assert!((0.0..1.0).contains(&open["fragmentation_ratio"].as_f64().unwrap()), "{open}");
    let unlimited = json!({
        "messages_max": null, "bytes_max": null, "devices_max": null, "mail_bytes_max": null
    });
    assert_eq!(open["limits"], unlimited);

    // After a restart the vault is closed.
    let server = RunningServer::on(server.stop(), |_| {});
    let list = accounts(&server, "");
    let closed = &list["accounts"][0];
    assert_eq!(closed["open_vaults_count"], 0);
    assert_eq!(
        (&closed["fragmentation_ratio"], &closed["last_seen_ms"]),
        (&Value::Null, &Value::Null)
    );
    assert!(
        closed["file_bytes"].as_u64().unwrap() > 4_096 && is_recent(&closed["last_changed_ms"])
    );
    assert_eq!(overview(&server)["open_vaults"]["count"], 0, "and it is not opened to be told");
    let told = list.to_string() + &overview(&server).to_string() + &open.to_string();
    assert!(!told.contains("a device") && !told.contains("SECRET"), "{told}");
}

#[test]
fn maintenance_is_done_now_to_what_is_open() {
    // No maintenance runs automatically.
    let server = RunningServer::with(|config| config.databases.idle_time = Duration::MAX);
    let [ada, bob] = ["ada", "bob"].map(|login| server.account(login));
    for token in [&ada, &bob] {
        server.post("/v1/sync/delta", token, &push(&[(1, "a")]));
    }
    let wal_bytes = || {
        let list = accounts(&server, "");
        [0, 1].map(|place| list["accounts"][place]["wal_bytes"].as_u64().unwrap())
    };
    assert!(wal_bytes().iter().all(|&bytes| bytes > 0));
    let report = server.post(MAINTAIN, ADMIN, &json!({ "login": "ADA" })).json();
    let counts =
        json!([report["files_count"], report["truncated_wals_count"], report["closed_count"]]);
    assert_eq!(counts, json!([1, 1, 0]), "{report}");
    assert!(report["after_bytes"].as_u64() < report["before_bytes"].as_u64(), "{report}");
    assert_eq!((wal_bytes()[0], wal_bytes()[1] > 0), (0, true));

    // This includes the accounts file.
    let report = server.post(MAINTAIN, ADMIN, &json!({})).json();
    let counts =
        json!([report["files_count"], report["truncated_wals_count"], report["failed_count"]]);
    assert_eq!(counts, json!([3, 2, 0]), "{report}");
    assert_eq!(wal_bytes(), [0, 0]);
    assert_eq!(overview(&server)["maintenance"]["runs_count"], 4);
    server.check_works(&ada);

    let server = RunningServer::on(server.stop(), |_| {});
    let report = server.post(MAINTAIN, ADMIN, &json!({ "login": "ada" })).json();
    assert_eq!((&report["files_count"], &report["closed_count"]), (&json!(0), &json!(1)));
    let report = server.post(MAINTAIN, ADMIN, &json!({ "login": null })).json();
    assert_eq!((&report["files_count"], &report["closed_count"]), (&json!(1), &json!(2)));
}

#[test]
fn maintenance_of_nobody_is_refused() {
    let server = RunningServer::new();
    server.post(MAINTAIN, ADMIN, &json!({ "login": "eve" })).refused("not_found");
    server.post(MAINTAIN, ADMIN, &json!({ "login": "../x" })).refused("invalid_login");
    server.post(MAINTAIN, ADMIN, &json!({ "user": "ada" })).refused("malformed");
    let answer = server.protobuf(MAINTAIN, ADMIN, b"");
    let refused: protocol::ErrorResponse = answer.protobuf();
    assert_eq!(refused.code(), Some(protocol::ErrorCode::UnsupportedMediaType));
}
