//! Tests of encryption modes: the account fixes one, and can change from plain to end-to-end
//! encrypted.

use std::path::Path;

use accounts::{Accounts, KdfCost, Login, Password};
use engine::{Databases, EngineLimits};
use serde_json::{Value, json};
use sync_store::{VaultFiles, Vaults};

use crate::{PASSWORD, RunningServer, push, timestamp};

const KEY: &str = "0102030405060708";

/// Returns messages that their device declares sealed with a key, like their contents.
fn sealed(key: &str, messages: &[(u64, &str)]) -> Value {
    let head = (0..key.len() / 2).map(|place| &key[place * 2..place * 2 + 2]);
    let head: Vec<u8> = head.map(|digits| u8::from_str_radix(digits, 16).unwrap()).collect();
    let seal = |(millis, text): &(u64, &str)| {
        let mut content = text.as_bytes().to_vec();
        if !key.is_empty() {
            content = [&[2][..], &head, &content].concat();
        }
        let message = crdt::Message { timestamp: timestamp(*millis), content: content.into() };
        protocol::WireMessage::from(message)
    };
    json!({"messages": messages.iter().map(seal).collect::<Vec<_>>(), "key_id": key})
}

fn form(key: &str) -> Value {
    json!({"key_id": key})
}

/// Returns a request of a device that has all messages up to this page.
fn encrypt(key: &str, page: &Value) -> Value {
    json!({"key_id": key, "holds": page["fingerprint"], "start": true})
}

/// Returns the encryption mode, the contents and the cursor that a device pulls.
fn pulled(server: &RunningServer, token: &str) -> (Value, Vec<String>, u64) {
    let page = server.get("/v1/sync/delta", token).json();
    let messages = page["messages"].as_array().unwrap();
    let contents = messages.iter().map(|message| message["content"].as_str().unwrap().to_owned());
    (page["encryption"].clone(), contents.collect(), page["cursor"].as_u64().unwrap())
}

/// Registers another device and returns the response.
fn device(server: &RunningServer, login: &str) -> Value {
    let request = json!({"login": login, "password": PASSWORD, "name": "another"});
    server.post("/v1/devices", "", &request).json()
}

fn token(registered: &Value) -> String {
    registered["token"].as_str().unwrap().to_owned()
}

/// Counts the messages in the account's own vault.
fn plain_count(data: &Path) -> u64 {
    let databases = std::sync::Arc::new(Databases::start(EngineLimits::default()).unwrap());
    let accounts = Accounts::open(&databases, data, KdfCost::insecure_for_tests(1)).unwrap();
    let password = Password::parse(PASSWORD.to_owned()).unwrap();
    let unlocked = accounts.unlock(&Login::parse("ada").unwrap(), &password).unwrap();
    let vaults = Vaults::Files(VaultFiles::new(databases, data.to_owned()));
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(vaults.open(&unlocked).unwrap().summary()).unwrap().fingerprint.count
}

#[test]
fn the_first_push_says_the_form_and_pushes_of_another_are_refused() {
    let server = RunningServer::new();
    for (login, first, others) in
        [("ada", "", vec![KEY, "ffffffffffffffff"]), ("bob", KEY, vec!["", "ffffffffffffffff"])]
    {
        let token = server.account(login);
        assert_eq!(pulled(&server, &token).0, Value::Null);
        // An empty push fixes no encryption mode.
        server.post("/v1/sync/delta", &token, &sealed(others[0], &[])).json();
        assert_eq!(pulled(&server, &token).0, Value::Null);
        server.post("/v1/sync/delta", &token, &sealed(first, &[(1, "a")])).json();
        for other in others {
            let request = sealed(other, &[(2, "b")]);
            server.post("/v1/sync/delta", &token, &request).refused("encryption_mismatch");
        }
        server.post("/v1/sync/delta", &token, &sealed(first, &[(3, "c")])).json();
        let (said, contents, _) = pulled(&server, &token);
        assert_eq!((said, contents.len()), (form(first), 2));
        // A new device receives the mode when it registers.
        assert_eq!(device(&server, login)["encryption"], form(first));
    }
}

#[test]
fn a_key_id_of_another_length_is_malformed() {
    let server = RunningServer::new();
    let token = server.account("ada");
    let request = sealed("0102", &[(1, "a")]);
    server.post("/v1/sync/delta", &token, &request).refused("malformed");
    let page = server.get("/v1/sync/delta", &token).json();
    server.post("/v1/sync/e2ee", &token, &encrypt("", &page)).refused("malformed");
}

/// Pushes of a faulty device, or of another program's, that declares messages sealed.
#[test]
fn a_sealed_set_takes_only_what_says_that_it_is_sealed_with_its_key() {
    let server = RunningServer::new();
    let token = server.account("ada");
    server.post("/v1/sync/delta", &token, &sealed(KEY, &[(1, "a")])).json();
    let mut mixed = sealed(KEY, &[(2, "b"), (3, "c")]);
    for other in [sealed("", &[(3, "c")]), sealed("ffffffffffffffff", &[(3, "c")])] {
        mixed["messages"][1] = other["messages"][0].clone();
        server.post("/v1/sync/delta", &token, &mixed).refused("encryption_mismatch");
    }
    let erasure = |content: &Value| {
        let timestamp = &sealed(KEY, &[(1, "a")])["messages"][0]["timestamp"];
        let hash = "00000000000000000000000000000000";
        let erasure = json!({"timestamp": timestamp, "content": content, "hash": hash});
        json!({"erasures": [erasure], "password": PASSWORD, "key_id": KEY})
    };
    let plain = erasure(&push(&[(1, "less")])["messages"][0]["content"]);
    server.post("/v1/sync/erase", &token, &plain).refused("encryption_mismatch");
    let less = erasure(&sealed(KEY, &[(1, "less")])["messages"][0]["content"]);
    server.post("/v1/sync/erase", &token, &less).refused("stale_cursor");
    assert_eq!(pulled(&server, &token).1.len(), 1);
}

#[test]
fn an_account_turns_to_encryption_and_its_plain_messages_go_with_the_last_reader() {
    let server = RunningServer::new();
    let one = server.account("ada");
    let two = token(&device(&server, "ada"));
    let three = token(&device(&server, "ada"));
    server.post("/v1/sync/delta", &one, &push(&[(1, "a")])).json();

    let before = server.get("/v1/sync/delta", &one).json();
    assert_eq!(before["in_plain"], false);
    server.post("/v1/sync/delta", &one, &push(&[(2, "b")])).json();
    let all = server.get("/v1/sync/delta", &one).json();
    for behind in [encrypt(KEY, &before), json!({"key_id": KEY, "start": true})] {
        server.post("/v1/sync/e2ee", &one, &behind).refused("stale_cursor");
    }
    let follow = json!({"key_id": KEY, "holds": all["fingerprint"]});
    server.post("/v1/sync/e2ee", &one, &follow).refused("encryption_mismatch");
    let begin = encrypt(KEY, &all);
    server.post("/v1/sync/e2ee", &one, &begin).done();
    server.post("/v1/sync/e2ee", &one, &begin).done();
    let other = encrypt("ffffffffffffffff", &all);
    server.post("/v1/sync/e2ee", &one, &other).refused("encryption_mismatch");
    server.post("/v1/sync/e2ee", &two, &other).refused("encryption_mismatch");
    // The e2ee set is empty. A device that has not joined still reads the plain set, but cannot
    // push to it.
    assert_eq!(pulled(&server, &one), (form(KEY), vec![], 0));
    assert_eq!(pulled(&server, &two).1.len(), 2);
    let page = |token: &str| server.get("/v1/sync/delta", token).json();
    assert_eq!((&page(&one)["in_plain"], &page(&two)["in_plain"]), (&json!(false), &json!(true)));
    assert_eq!(page(&two)["set_id"], all["set_id"]);
    assert_ne!(page(&one)["set_id"], all["set_id"]);
    for request in [push(&[(3, "c")]), sealed(KEY, &[(3, "c")])] {
        server.post("/v1/sync/delta", &two, &request).refused("encryption_mismatch");
    }
    server.post("/v1/sync/delta", &one, &sealed(KEY, &[(1, "A"), (2, "B")])).json();
    assert_eq!(pulled(&server, &two).0, form(KEY));
    let names = server.get("/v1/devices", &one).json();
    let behind = |place: usize| names["devices"][place]["pending_download_count"].as_u64().unwrap();
    assert_eq!((behind(0), behind(1), behind(2)), (0, 2, 2), "{names}");

    let behind = json!({"key_id": KEY, "holds": before["fingerprint"]});
    server.post("/v1/sync/e2ee", &two, &behind).refused("stale_cursor");
    server.post("/v1/sync/e2ee", &two, &follow).done();
    assert_eq!(pulled(&server, &two).1.len(), 2);
    // A new device begins with the e2ee set.
    let four = token(&device(&server, "ada"));
    assert_eq!(pulled(&server, &four).1.len(), 2);
    // The third device reads the plain messages until it is revoked.
    assert_eq!(pulled(&server, &three).2, 2);
    let names = server.get("/v1/devices", &three).json();
    let own = names["devices"].as_array().unwrap().iter().find(|one| one["current"] == true);
    let path = format!("/v1/devices/{}", own.unwrap()["device_id"].as_str().unwrap());
    server.delete(&path, &one).done();
    assert_eq!(pulled(&server, &one), pulled(&server, &two));
    assert_eq!(pulled(&server, &one).1.len(), 2);
    assert_eq!(server.get("/v1/devices", &two).json()["devices"].as_array().unwrap().len(), 3);
    let data = server.stop();
    assert_eq!(plain_count(data.path()), 0, "nobody reads the plain messages any more");
}

#[test]
fn an_account_without_messages_is_encrypted_from_the_beginning() {
    let server = RunningServer::new();
    let (one, two) = (server.account("ada"), token(&device(&server, "ada")));
    let page = server.get("/v1/sync/delta", &one).json();
    server.post("/v1/sync/e2ee", &one, &encrypt(KEY, &page)).done();
    server.post("/v1/sync/delta", &two, &push(&[(1, "a")])).refused("encryption_mismatch");
    server.post("/v1/sync/delta", &two, &sealed(KEY, &[(1, "a")])).json();
    assert_eq!(pulled(&server, &one).1.len(), 1);
    let sent = sealed(KEY, &[(1, "a")]);
    assert_eq!(sent["messages"][0]["content"], pulled(&server, &one).1[0]);
}

/// A file that was sealed before its server was restored from a backup has left the plain set and
/// need not have all of it.
#[test]
fn a_device_that_has_left_the_plain_set_follows_without_it() {
    let server = RunningServer::new();
    let one = server.account("ada");
    let two = token(&device(&server, "ada"));
    server.post("/v1/sync/delta", &one, &push(&[(1, "a")])).json();
    let left = json!({"key_id": KEY});
    server.post("/v1/sync/e2ee", &two, &left).refused("encryption_mismatch");
    let page = server.get("/v1/sync/delta", &one).json();
    server.post("/v1/sync/e2ee", &one, &encrypt(KEY, &page)).done();
    server.post("/v1/sync/e2ee", &two, &left).done();
    assert_eq!(pulled(&server, &two), (form(KEY), vec![], 0));
}

/// A push after a cursor must go to the set that the cursor belongs to.
#[test]
fn a_cursor_of_another_set_is_behind() {
    let server = RunningServer::new();
    let one = server.account("ada");
    let page = server.get("/v1/sync/delta", &one).json();
    let mut request = push(&[(1, "a")]);
    request["expected_cursor"] = json!(0);
    server.post("/v1/sync/delta", &one, &request).refused("stale_cursor");
    request["set_id"] = json!("0000000000000001");
    server.post("/v1/sync/delta", &one, &request).refused("stale_cursor");
    request["set_id"] = page["set_id"].clone();
    let stored = server.post("/v1/sync/delta", &one, &request).json();
    assert_eq!((&stored["stored_count"], &stored["set_id"]), (&json!(1), &page["set_id"]));
}
