//! Plain or sealed: the account says which, once, and may turn from the one to the other.

use std::path::Path;

use accounts::{Accounts, KdfCost, Login, Password};
use engine::{Databases, Limits};
use serde_json::{Value, json};
use sync_store::{Files, Vaults};

use crate::{PASSWORD, Running, message, push};

const KEY: &str = "0102030405060708";

/// Messages that their device calls sealed with a key.
fn sealed(key: &str, messages: &[(u64, &str)]) -> Value {
    let mut request = push(messages);
    request["key_id"] = json!(key);
    request
}

fn form(key: &str) -> Value {
    json!({"key_id": key})
}

fn encrypt(key: &str, cursor: u64) -> Value {
    json!({"key_id": key, "cursor": cursor, "begin": true})
}

/// The form, the contents and the cursor that a device pulls.
fn pulled(server: &Running, token: &str) -> (Value, Vec<String>, u64) {
    let page = server.get("/v1/sync/delta", token).json();
    let messages = page["messages"].as_array().unwrap();
    let contents = messages.iter().map(|message| message["content"].as_str().unwrap().to_owned());
    (page["form"].clone(), contents.collect(), page["cursor"].as_u64().unwrap())
}

/// Another device; what it was told.
fn device(server: &Running, login: &str) -> Value {
    let request = json!({"login": login, "password": PASSWORD, "name": "another"});
    server.post("/v1/clients", "", &request).json()
}

fn token(registered: &Value) -> String {
    registered["token"].as_str().unwrap().to_owned()
}

/// Messages in the account's own vault.
fn plain_count(data: &Path) -> u64 {
    let databases = std::sync::Arc::new(Databases::start(Limits::default()).unwrap());
    let accounts = Accounts::open(&databases, data, KdfCost::insecure_for_tests(1)).unwrap();
    let password = Password::parse(PASSWORD.to_owned()).unwrap();
    let unlocked = accounts.unlock(&Login::parse("ada").unwrap(), &password).unwrap();
    let vaults = Vaults::Files(Files::new(databases, data.to_owned()));
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(vaults.open(&unlocked).unwrap().state()).unwrap().fingerprint.count
}

#[test]
fn the_first_push_says_the_form_and_pushes_of_another_are_refused() {
    let server = Running::new();
    for (login, first, others) in
        [("ada", "", vec![KEY, "ffffffffffffffff"]), ("bob", KEY, vec!["", "ffffffffffffffff"])]
    {
        let token = server.account(login);
        assert_eq!(pulled(&server, &token).0, Value::Null);
        // Nothing is said by sending nothing.
        server.post("/v1/sync/delta", &token, &sealed(others[0], &[])).json();
        assert_eq!(pulled(&server, &token).0, Value::Null);
        server.post("/v1/sync/delta", &token, &sealed(first, &[(1, "a")])).json();
        for other in others {
            let request = sealed(other, &[(2, "b")]);
            server.post("/v1/sync/delta", &token, &request).refused("form_mismatch");
        }
        server.post("/v1/sync/delta", &token, &sealed(first, &[(3, "c")])).json();
        let (said, contents, _) = pulled(&server, &token);
        assert_eq!((said, contents.len()), (form(first), 2));
        // A new device is told when it signs in.
        assert_eq!(device(&server, login)["form"], form(first));
    }
}

#[test]
fn a_key_id_of_another_length_is_malformed() {
    let server = Running::new();
    let token = server.account("ada");
    let request = sealed("0102", &[(1, "a")]);
    server.post("/v1/sync/delta", &token, &request).refused("malformed");
    server.post("/v1/sync/encrypt", &token, &encrypt("", 0)).refused("malformed");
}

#[test]
fn an_account_turns_to_encryption_and_its_plain_messages_go_with_the_last_reader() {
    let server = Running::new();
    let one = server.account("ada");
    let two = token(&device(&server, "ada"));
    let three = token(&device(&server, "ada"));
    server.post("/v1/sync/delta", &one, &push(&[(1, "a"), (2, "b")])).json();

    server.post("/v1/sync/encrypt", &one, &encrypt(KEY, 1)).refused("behind");
    let follow = json!({"key_id": KEY, "cursor": 2});
    server.post("/v1/sync/encrypt", &one, &follow).refused("form_mismatch");
    server.post("/v1/sync/encrypt", &one, &encrypt(KEY, 2)).done();
    server.post("/v1/sync/encrypt", &one, &encrypt(KEY, 2)).done();
    let other = encrypt("ffffffffffffffff", 2);
    server.post("/v1/sync/encrypt", &one, &other).refused("form_mismatch");
    server.post("/v1/sync/encrypt", &two, &other).refused("form_mismatch");
    // The sealed set is empty; who has not followed still reads the plain one, and adds nothing.
    assert_eq!(pulled(&server, &one), (form(KEY), vec![], 0));
    assert_eq!(pulled(&server, &two).1.len(), 2);
    for request in [push(&[(3, "c")]), sealed(KEY, &[(3, "c")])] {
        server.post("/v1/sync/delta", &two, &request).refused("form_mismatch");
    }
    server.post("/v1/sync/delta", &one, &sealed(KEY, &[(1, "A"), (2, "B")])).json();
    assert_eq!(pulled(&server, &two).0, form(KEY));
    let names = server.get("/v1/clients", &one).json();
    let behind = |place: usize| names["clients"][place]["behind"].as_u64().unwrap();
    assert_eq!((behind(0), behind(1), behind(2)), (0, 2, 2), "{names}");

    server.post("/v1/sync/encrypt", &two, &follow).done();
    assert_eq!(pulled(&server, &two).1.len(), 2);
    // A device that is new now begins with the sealed ones.
    let four = token(&device(&server, "ada"));
    assert_eq!(pulled(&server, &four).1.len(), 2);
    // The third reads the plain ones, until it is revoked.
    assert_eq!(pulled(&server, &three).2, 2);
    let names = server.get("/v1/clients", &three).json();
    let own = names["clients"].as_array().unwrap().iter().find(|one| one["current"] == true);
    let path = format!("/v1/clients/{}", own.unwrap()["client_id"].as_str().unwrap());
    server.delete(&path, &one).done();
    assert_eq!(pulled(&server, &one), pulled(&server, &two));
    assert_eq!(pulled(&server, &one).1.len(), 2);
    assert_eq!(server.get("/v1/clients", &two).json()["clients"].as_array().unwrap().len(), 3);
    let data = server.stop();
    assert_eq!(plain_count(data.path()), 0, "nobody reads the plain messages any more");
}

#[test]
fn an_account_without_messages_is_encrypted_from_the_beginning() {
    let server = Running::new();
    let (one, two) = (server.account("ada"), token(&device(&server, "ada")));
    server.post("/v1/sync/encrypt", &one, &encrypt(KEY, 0)).done();
    server.post("/v1/sync/delta", &two, &push(&[(1, "a")])).refused("form_mismatch");
    server.post("/v1/sync/delta", &two, &sealed(KEY, &[(1, "a")])).json();
    assert_eq!(pulled(&server, &one).1.len(), 1);
    assert_eq!(message(1, "a")["content"], pulled(&server, &one).1[0]);
}
