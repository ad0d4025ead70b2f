//! Tests of accounts and devices.

use accounts::{Accounts, KdfCost, Login};
use engine::{Databases, EngineLimits};
use serde_json::json;
use server::Config;

use crate::{ADMIN, PASSWORD, RunningServer, at_once, push};

#[test]
fn an_account_is_made_once_whatever_the_case() {
    let server = RunningServer::new();
    let account = |login| json!({ "login": login, "password": PASSWORD });
    let answer = server.post("/v1/accounts", "", &account("Ada"));
    assert_eq!((answer.status, answer.json()), (201, json!({ "login": "ada" })));
    server.post("/v1/accounts", "", &account("ada")).refused("account_exists");
    server.register_device("ADA");
}

#[test]
fn where_registration_is_closed_only_the_operator_makes_accounts() {
    let server = RunningServer::with(|config| config.registration_open = false);
    let account = json!({ "login": "ada", "password": PASSWORD });
    for token in ["", "another secret", &ADMIN[1..]] {
        server.post("/v1/accounts", token, &account).refused("registration_closed");
    }
    assert_eq!(server.post("/v1/accounts", ADMIN, &account).status, 201);
    let server = RunningServer::with(|config: &mut Config| {
        config.registration_open = false;
        config.admin_token = None;
    });
    server.post("/v1/accounts", "", &account).refused("registration_closed");
    server.post("/v1/accounts", ADMIN, &account).refused("registration_closed");
}

#[test]
fn another_password_replaces_the_old_one_and_devices_stay() {
    let server = RunningServer::new();
    let token = server.account("ada");
    let change = |password: &str, new: &str| {
        let body = json!({ "login": "ada", "password": password, "new_password": new });
        server.json("PUT", "/v1/accounts/password", "", body.to_string().as_bytes())
    };
    change("not the password", "another password").refused("wrong_password");
    change("short", "another password").refused("wrong_password");
    change(PASSWORD, "short").refused("invalid_password");
    assert_eq!(change(PASSWORD, "another password").status, 204);
    change(PASSWORD, "a third password").refused("wrong_password");
    let client = json!({ "login": "ada", "password": "another password" });
    assert_eq!(server.post("/v1/devices", "", &client).status, 201);
    server.check_works(&token);
}

#[test]
fn devices_are_listed_with_what_is_known_of_them() {
    let server = RunningServer::new();
    let token = server.account("ada");
    server.post("/v1/sync/delta", &token, &push(&[(1, "a"), (2, "b")]));
    let (second, second_token) = server.register_device("ada");
    let list = server.get("/v1/devices", &second_token).json();
    let clients = list["devices"].as_array().unwrap();
    assert_eq!(clients.len(), 2);
    assert_eq!((&clients[0]["cursor"], &clients[0]["current"]), (&json!(2), &json!(false)));
    assert!(clients[0]["last_seen_ms"].as_u64().unwrap() > 0);
    assert_eq!(clients[1]["device_id"], second);
    assert_eq!((&clients[1]["name"], &clients[1]["current"]), (&json!("a device"), &json!(true)));
    assert_eq!((&clients[1]["cursor"], &clients[1]["last_seen_ms"]), (&json!(0), &json!(0)));
    server.get("/v1/sync/delta", &second_token);
    // The vault's writer works in order: when this request is answered, the pull has been recorded.
    server.post("/v1/sync/delta", &token, &push(&[]));
    let list = server.get("/v1/devices", &token).json();
    assert_eq!(list["devices"][1]["cursor"], 2);
}

#[test]
fn a_device_says_who_it_is_and_what_it_has_to_send() {
    let server = RunningServer::new();
    let token = server.account("ada");
    let (_, phone) = server.register_device("ada");
    let told = || {
        let list = server.get("/v1/devices", &token).json();
        let phone = &list["devices"][1];
        (
            phone["node_id"].clone(),
            phone["unsent_count"].clone(),
            phone["pending_download_count"].clone(),
        )
    };
    server.post("/v1/sync/delta", &token, &push(&[(1, "a"), (2, "b"), (3, "c")]));
    assert_eq!(told(), (json!(""), json!(0), json!(3)));
    let node = "00000000000000ab";
    server.get(&format!("/v1/sync/delta?limit=1&node_id={node}&unsent_count=5"), &phone);
    server.post("/v1/sync/delta", &token, &push(&[]));
    assert_eq!(told(), (json!(node), json!(5), json!(2)));
    server.post("/v1/sync/delta", &phone, &push(&[(4, "d")]));
    assert_eq!(told(), (json!(node), json!(4), json!(3)));
    server.post("/v1/sync/delta?unsent_count=0", &phone, &push(&[(4, "d")]));
    assert_eq!(told(), (json!(node), json!(0), json!(3)));
    let list = server.get("/v1/devices", &token).json();
    let state = server.post("/v1/sync/delta", &token, &push(&[])).json();
    assert_eq!((&list["cursor"], &list["fingerprint"]), (&json!(4), &state["fingerprint"]));
    assert!(list["server_time_ms"].as_u64().unwrap() > 1_700_000_000_000);
}

#[test]
fn a_revoked_device_takes_those_with_it_that_it_registered() {
    let server = RunningServer::new();
    let token = server.account("ada");
    let (phone, phone_token) = server.register_device("ada");
    let answer = server.post("/v1/devices", &phone_token, &json!({ "name": "its copy" }));
    assert_eq!(answer.status, 201);
    let (_, copy_token) = answer.device_credentials();
    server.check_works(&copy_token);
    assert_eq!(server.delete(&format!("/v1/devices/{phone}"), &token).status, 204);
    server.get("/v1/sync/delta", &phone_token).refused("invalid_token");
    server.get("/v1/sync/delta", &copy_token).refused("invalid_token");
    server.post("/v1/devices", &phone_token, &json!({})).refused("invalid_token");
    server.delete(&format!("/v1/devices/{phone}"), &token).refused("not_found");
    assert_eq!(server.get("/v1/devices", &token).json()["devices"].as_array().unwrap().len(), 1);
    server.check_works(&token);
}

#[test]
fn a_device_may_revoke_itself() {
    let server = RunningServer::new();
    server.account("ada");
    let (id, token) = server.register_device("ada");
    assert_eq!(server.delete(&format!("/v1/devices/{id}"), &token).status, 204);
    server.get("/v1/devices", &token).refused("invalid_token");
}

#[test]
fn another_users_token_reaches_nothing() {
    let server = RunningServer::new();
    let (ada, bob) = (server.account("ada"), server.account("bob"));
    let (adas_phone, _) = server.register_device("ada");
    server.post("/v1/sync/delta", &ada, &push(&[(1, "ada's")]));
    server.delete(&format!("/v1/devices/{adas_phone}"), &bob).refused("not_found");
    assert_eq!(server.get("/v1/sync/delta", &bob).json()["messages"], json!([]));
    assert_eq!(server.get("/v1/devices", &bob).json()["devices"].as_array().unwrap().len(), 1);
    assert_eq!(server.get("/v1/devices", &ada).json()["devices"].as_array().unwrap().len(), 2);
}

#[test]
fn the_token_of_an_account_that_another_process_removed_is_refused() {
    let server = RunningServer::new();
    let (ada, bob) = (server.account("ada"), server.account("bob"));
    server.check_works(&ada);
    let databases = Databases::start(EngineLimits::default()).unwrap();
    let cost = KdfCost::insecure_for_tests(1);
    let accounts = Accounts::open(&databases, server.data.path(), cost).unwrap();
    accounts.remove(&Login::parse("ada").unwrap()).unwrap();
    server.get("/v1/sync/delta", &ada).refused("invalid_token");
    server.post("/v1/sync/delta", &ada, &push(&[(1, "a")])).refused("invalid_token");
    let client = json!({ "login": "ada", "password": PASSWORD });
    server.post("/v1/devices", "", &client).refused("wrong_password");
    server.check_works(&bob);
}

#[test]
fn a_login_without_an_account_looks_like_a_wrong_password() {
    let server = RunningServer::new();
    server.account("ada");
    let client = |login| json!({ "login": login, "password": "not the password" });
    let (known, unknown) = (
        server.post("/v1/devices", "", &client("ada")),
        server.post("/v1/devices", "", &client("eve")),
    );
    known.refused("wrong_password");
    assert_eq!((known.status, known.json()), (unknown.status, unknown.json()));
}

#[test]
fn failed_logins_are_slowed_down_and_devices_are_not() {
    let server = RunningServer::new();
    let token = server.account("ada");
    let guess = |login: &str, number| {
        let client = json!({ "login": login, "password": format!("not the password {number}") });
        server.post("/v1/devices", "", &client)
    };
    let answers = at_once(12, |number| guess("eve", number));
    let refused = answers.into_iter().find(|answer| answer.status == 429);
    let refused = refused.expect("12 attempts are too many");
    refused.refused("too_many_attempts");
    assert!(refused.header("retry-after").parse::<u64>().unwrap() > 0);
    server.check_works(&token);
    // Ada's network is known: her attempts wait for each other and are not refused because of
    // eve's.
    for number in 0..6 {
        guess("ada", number).refused("wrong_password");
    }
    server.register_device("ada");
}

#[test]
fn registrations_are_slowed_and_the_operator_s_are_not() {
    let server = RunningServer::new();
    let account = |name: &str| json!({ "login": name, "password": PASSWORD });
    let add =
        |token, number| server.post("/v1/accounts", token, &account(&format!("user{number}")));
    // A taken login counts, too; otherwise existing logins could be found out.
    let refused = (0..200).map(|number| add("", number / 2)).find(|answer| answer.status == 429);
    refused.expect("200 are too many").refused("too_many_attempts");
    assert_eq!(add(ADMIN, 1_000).status, 201);
    server.register_device("user1000");
}

#[test]
fn a_new_password_may_end_every_device_but_the_one_that_asks() {
    let server = RunningServer::new();
    let token = server.account("ada");
    let (_, other) = server.register_device("ada");
    let change = |token, password: &str, new: &str, revoke: bool| {
        let body = json!({
            "login": "ada", "password": password, "new_password": new, "revoke_others": revoke,
        });
        server.json("PUT", "/v1/accounts/password", token, body.to_string().as_bytes())
    };
    assert_eq!(change("", PASSWORD, "the second password", false).status, 204);
    server.check_works(&other);
    change("", PASSWORD, "the third password", true).refused("wrong_password");
    assert_eq!(change(&token, "the second password", "the third password", true).status, 204);
    server.get("/v1/sync/delta", &other).refused("invalid_token");
    server.check_works(&token);
    let clients = server.get("/v1/devices", &token).json();
    assert_eq!(clients["devices"].as_array().unwrap().len(), 1);
    // If the request has no device token, it revokes all devices.
    let bob = server.account("bob");
    change(&bob, "the third password", "the fourth password", true).refused("invalid_token");
    server.check_works(&token);
    assert_eq!(change("", "the third password", "the fourth password", true).status, 204);
    server.get("/v1/sync/delta", &token).refused("invalid_token");
    server.check_works(&bob);
}
