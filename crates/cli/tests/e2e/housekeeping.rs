//! Tests how operators and users handle accounts that grow and devices that are gone.

use serde_json::{Value, json};

use crate::fixture::{SyncFixture, check_equal, devices, sync, track_all};
use crate::processes::{ServeProcess, json, sql, warren};

const SCHEMA: &str = "CREATE TABLE t (id INTEGER PRIMARY KEY, x)";

fn limit(place: &SyncFixture, limits: &[&str]) -> Value {
    let command = [&["account", "quota", "ada", "--data", &place.data], limits].concat();
    json(&command)["limits"].clone()
}

#[test]
fn a_full_account_takes_nothing_more_until_it_is_given_more() {
    let place = SyncFixture::new();
    let server = ServeProcess::start(&place.data, &["--account-messages-max", "3"]);
    let (a, b) = (place.at("a.db"), place.at("b.db"));
    sql(&a, SCHEMA);
    track_all(&a);
    place.sign_in("sync", &a, &server.address);
    place.sign_in("clone", &b, &server.address);
    sql(&a, "INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, 'c')");
    let refused = warren(&["sync", &a, "--json"]);
    refused.refused("quota_exceeded");
    let message = refused.value()["error"]["message"].as_str().unwrap().to_owned();
    assert!(message.contains("3 changes cannot be sent"), "{message}");
    assert!(message.contains("limit for messages is 3"), "{message}");
    assert_eq!(json(&["status", &a])["unsent_count"], 3);

    // The server still accepts changes that fit, and delivers those of others.
    sql(&b, "INSERT INTO t VALUES (9, 'of b')");
    assert_eq!(sync(&b)["sent_count"], 1);
    warren(&["sync", &a, "--json"]).refused("quota_exceeded");
    assert_eq!(sql(&a, "SELECT x FROM t WHERE id = 9"), "of b");
    assert_eq!(sql(&b, "SELECT count(*) FROM t"), "1");

    // The new limits apply to a running server at once.
    assert_eq!(limit(&place, &["--messages", "5", "--bytes", "1000000"])["messages_max"], 5);
    assert_eq!(sync(&a)["sent_count"], 3);
    sync(&b);
    check_equal(&a, &b);
    place.check_vault(5);
    limit(&place, &["--messages", "default"]);
    sql(&a, "DELETE FROM t WHERE id = 9");
    warren(&["sync", &a, "--json"]).refused("quota_exceeded");
    let options = "--messages 100 --bytes default --devices 2 --mail-bytes 9";
    let own = limit(&place, &options.split(' ').collect::<Vec<_>>());
    let expected =
        json!({"messages_max": 100, "bytes_max": null, "devices_max": 2, "mail_bytes_max": 9});
    assert_eq!(own, expected);
    assert_eq!(limit(&place, &[]), expected, "without a limit it shows them");
    sync(&a);
    let clone = [&["clone", &place.at("c.db"), "--json"], &place.first_time(&server.address)[..]];
    warren(&clone.concat()).refused("quota_exceeded");
    for wrong in [["--devices", "901"], ["--messages", "-1"], ["--bytes", "many"]] {
        let ran =
            warren(&[&["account", "quota", "ada", "--data", &place.data], &wrong[..]].concat());
        assert_eq!(ran.status.code(), Some(2), "{wrong:?}");
    }
}

#[test]
fn an_account_is_shown_from_outside_and_with_its_password_from_inside() {
    let place = SyncFixture::new();
    let server = place.serve();
    let a = place.at("a.db");
    sql(&a, SCHEMA);
    track_all(&a);
    json(
        &[&["sync", &a, "--device-name", "laptop"], &place.first_time(&server.address)[..]]
            .concat(),
    );
    limit(&place, &["--devices", "7"]);
    let outside = json(&["account", "show", "ada", "--data", &place.data]);
    assert_eq!(
        (&outside["devices_count"], &outside["vault"]),
        (&json!(1), &Value::Null),
        "{outside}"
    );
    assert_eq!(outside["limits"]["devices_max"], 7);
    assert!(outside["file_bytes"].as_u64().unwrap() > 4_096, "{outside}");
    let inside = place.operator(&["account", "show", "ada"])["vault"].clone();
    assert_eq!((&inside["messages_count"], &inside["cursor"]), (&json!(1), &json!(1)), "{inside}");
    let device = &inside["devices"][0];
    assert_eq!(
        (&device["name"], &device["pending_download_count"]),
        (&json!("laptop"), &json!(0)),
        "{device}"
    );
    let show = ["account", "show", "ada", "--data", &place.data, "--password-file"];
    let people = warren(&[&show[..], &[&place.password]].concat()).succeeded().stdout;
    let expected =
        ["devices 7", "1 device; the vault's file has ", "1 message, ", "0 unsent, 0 to receive"];
    for part in expected {
        assert!(people.contains(part), "no {part} in {people}");
    }
    let nobody = ["account", "show", "eve", "--data", &place.data, "--json"];
    warren(&nobody).refused("not_found");
}

#[test]
fn devices_that_were_not_seen_for_long_are_revoked_together_but_never_the_one_that_asks() {
    let place = SyncFixture::new();
    let server = place.serve();
    let (a, b, c) = (place.at("a.db"), place.at("b.db"), place.at("c.db"));
    sql(&a, SCHEMA);
    track_all(&a);
    place.sign_in("sync", &a, &server.address);
    for file in [&b, &c] {
        place.sign_in("clone", file, &server.address);
    }
    let unseen =
        |span: &str| json(&["device", "list", &a, "--inactive-for", span])["devices"].clone();
    assert_eq!(unseen("90d"), json!([]));
    assert_eq!(unseen("0s").as_array().unwrap().len(), 3);
    let revoke = ["device", "revoke", "--inactive-for", "0s", &a, "--json"];
    warren(&revoke).refused("confirmation_required");
    assert_eq!(devices(&a).len(), 3, "without --yes nothing happens");
    let long = json(&["device", "revoke", "--inactive-for", "1w", &a, "--yes"]);
    assert_eq!(long, json!({"revoked_device_ids": []}));
    let revoked = warren(&[&revoke[..], &["--yes"]].concat()).succeeded().value();
    assert_eq!(revoked["revoked_device_ids"].as_array().unwrap().len(), 2);
    sync(&a);
    for file in [&b, &c] {
        warren(&["sync", file, "--json"]).refused("invalid_token");
    }
    // The operator is not a device: all may be revoked.
    let operator = ["device", "revoke", "--inactive-for", "0s", "--yes", "--login", "ada"];
    let revoked = place.operator(&operator);
    assert_eq!(revoked["revoked_device_ids"].as_array().unwrap().len(), 1);
    warren(&["sync", &a, "--json"]).refused("invalid_token");
    let wrong = warren(&["device", "list", &a, "--inactive-for", "90"]);
    assert_eq!(wrong.status.code(), Some(2), "{}", wrong.stdout);
}

#[test]
fn a_data_directory_has_one_server_and_no_vault_is_moved_beside_it() {
    let place = SyncFixture::new();
    let server = place.serve();
    let second = ["serve", "--listen", "127.0.0.1:0", "--data", &place.data, "--json"];
    let url = place.write("url.txt", "postgres://nobody@127.0.0.1:1/none");
    let vault_move = [
        &["storage", "migrate", "ada", "--to", "postgres", "--postgres-file", &url, "--json"][..],
        &["--data", &place.data, "--password-file", &place.password],
    ]
    .concat();
    for command in [&second[..], &vault_move] {
        let refused = warren(command);
        refused.refused("data_directory_in_use");
        let message = refused.value()["error"]["message"].as_str().unwrap().to_owned();
        let holder = format!("warren serve, process {}", server.process());
        assert!(message.contains(&holder), "{message}");
    }
    // Commands that work while a server runs continue to do so.
    assert_eq!(place.operator(&["account", "add", "bob"])["login"], "bob");
    place.check_vault(0);
    server.stop();
    drop(place.serve());
}

#[test]
fn a_server_and_an_account_may_be_made_in_a_fresh_directory_at_once() {
    for _ in 0..20 {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
        let (data, password) = (at("data"), at("password.txt"));
        std::fs::write(&password, "a pass-phrase of ada's\n").unwrap();
        let server = std::thread::scope(|scope| {
            let server = scope.spawn(|| ServeProcess::start(&data, &[]));
            let add = ["account", "add", "ada", "--data", &data, "--password-file", &password];
            warren(&add).succeeded();
            server.join().unwrap()
        });
        server.stop();
    }
}
