//! Tests that a file stays with its account, also if the server moves to another address.

use std::net::SocketAddr;

use socket2::{Domain, Socket, Type};

use crate::fixture::{SyncFixture, devices, sync, track_all};
use crate::processes::{json, sql, warren};

/// A data directory with a second account, and a tracked file with a row, which syncs with the
/// first one.
struct TwoAccounts {
    place: SyncFixture,
    file: String,
    eves: String,
}

impl TwoAccounts {
    fn new() -> Self {
        let place = SyncFixture::new();
        let eves = place.add_account("eve");
        let file = place.at("a.db");
        sql(&file, "CREATE TABLE t (id INTEGER PRIMARY KEY, x); INSERT INTO t VALUES (1, 'ada')");
        track_all(&file);
        Self { place, file, eves }
    }

    /// Returns the arguments that sync the file with eve's account.
    fn as_eve<'a>(&'a self, address: &'a str) -> Vec<&'a str> {
        let account = ["--server", address, "--login", "eve", "--password-file", &self.eves];
        [&["sync", &*self.file], &account[..], &["--json"]].concat()
    }

    /// Returns the number of messages in eve's vault.
    fn eves_messages_count(&self) -> u64 {
        let on_data = ["--data", &self.place.data, "--password-file", &self.eves];
        let vault = json(&[&["inspect", "--login", "eve"], &on_data[..]].concat());
        vault["messages_count"].as_u64().unwrap()
    }
}

#[test]
fn a_file_goes_to_another_account_only_after_it_was_untracked() {
    let accounts = TwoAccounts::new();
    let TwoAccounts { place, file, .. } = &accounts;
    let server = place.serve();
    place.sign_in("sync", file, &server.address);
    let as_eve = accounts.as_eve(&server.address);

    warren(&as_eve).refused("account_differs");
    warren(&[&as_eve[..], &["--watch"]].concat()).refused("account_differs");
    // Not even a recovery phrase is stored.
    let words = place.write("words.txt", &format!("{}art", "abandon ".repeat(23)));
    warren(&[&as_eve[..], &["--recovery-phrase-file", &words]].concat()).refused("account_differs");
    warren(&["recovery-phrase", file, "--json"]).refused("recovery_phrase_not_set");
    assert_eq!(accounts.eves_messages_count(), 0);
    assert_eq!(sync(file)["server_messages_count"], 2);
    // A script may name the account each time.
    let as_ada = [&["sync", file], &place.first_time(&server.address)[..]].concat();
    assert_eq!(json(&as_ada)["sent_count"], 0);
    assert_eq!(devices(file).len(), 1);

    json(&["untrack", file]);
    track_all(file);
    warren(&as_eve).succeeded();
    assert_eq!(accounts.eves_messages_count(), 2);
    warren(&[&as_ada[..], &["--json"]].concat()).refused("account_differs");
}

#[test]
fn a_file_follows_its_server_to_another_address() {
    let accounts = TwoAccounts::new();
    let TwoAccounts { place, file, .. } = &accounts;
    let first = place.serve();
    place.sign_in("sync", file, &first.address);
    // Another address of the same server.
    let second = first.address.replace("127.0.0.1", "localhost");
    // With the login, this could be another server with an account of the same name.
    let as_ada = [&["sync", file], &place.first_time(&second)[..], &["--json"]].concat();
    warren(&as_ada).refused("account_differs");

    sql(file, "INSERT INTO t VALUES (2, 'later')");
    let with_slash = format!("{second}/");
    let report = json(&["sync", file, "--server", &with_slash]);
    assert_eq!((&report["sent_count"], &report["in_sync"]), (&1.into(), &true.into()), "{report}");
    let status = json(&["status", file, "--offline"]);
    assert_eq!(status["remote"]["server"], second, "{status}");
    assert_eq!(sync(file)["sent_count"], 0);

    // Another server does not know the token. No recovery phrase is stored for it either.
    let other = SyncFixture::new();
    let stranger = other.serve();
    let words = place.write("words.txt", &format!("{}art", "abandon ".repeat(23)));
    let alone = ["sync", file, "--server", &stranger.address, "--json"];
    let with_words = [&alone[..], &["--recovery-phrase-file", &words]].concat();
    warren(&with_words).refused("invalid_token");
    warren(&["recovery-phrase", file, "--json"]).refused("recovery_phrase_not_set");
    assert_eq!(sync(file)["server_messages_count"], 3);
}

#[test]
fn nothing_is_lost_if_a_new_server_takes_the_place_of_a_lost_one() {
    let accounts = TwoAccounts::new();
    let TwoAccounts { place, file, .. } = &accounts;
    let lost = place.serve();
    place.sign_in("sync", file, &lost.address);
    sql(file, "UPDATE t SET x = 'edited'; INSERT INTO t VALUES (2, 'later')");
    sync(file);
    lost.stop();

    let new_place = SyncFixture::new();
    let new = new_place.serve();
    let as_ada = [&["sync", file], &new_place.first_time(&new.address)[..], &["--json"]].concat();
    warren(&as_ada).refused("account_differs");
    let report = warren(&[&as_ada[..], &["--server-moved"]].concat()).succeeded().value();
    assert_eq!(report["in_sync"], true, "{report}");
    let copy = new_place.at("b.db");
    new_place.sign_in("clone", &copy, &new.address);
    assert_eq!(sql(&copy, "SELECT x FROM t ORDER BY id"), "edited\nlater");
    // Another login is refused even then.
    let eve = [&accounts.as_eve(&new.address)[..], &["--server-moved"]].concat();
    warren(&eve).refused("account_differs");
}

#[test]
fn an_interrupted_clone_goes_on_with_its_account_only() {
    let accounts = TwoAccounts::new();
    let TwoAccounts { place, file, eves, .. } = &accounts;
    let server = place.serve();
    place.sign_in("sync", file, &server.address);
    json(&["track", file, "--all", "--e2ee"]);
    sync(file);
    let copy = place.at("b.db");
    let clone = |login: &str, password: &str| {
        let account = ["--server", &server.address, "--login", login, "--password-file", password];
        warren(&[&["clone", &copy], &account[..], &["--json"]].concat())
    };
    // It waits for the recovery phrase.
    clone("ada", &place.password).refused("recovery_phrase_required");
    clone("eve", eves).refused("account_differs");
    clone("ada", &place.password).refused("recovery_phrase_required");
}

#[test]
fn a_server_that_cannot_be_reached_is_named() {
    let place = SyncFixture::new();
    let file = place.at("a.db");
    sql(&file, "CREATE TABLE t (id INTEGER PRIMARY KEY)");
    track_all(&file);
    let server = place.serve();
    let failed = |address: &str, code: &str| {
        let sync = ["sync", &file, "--server", address, "--login", "ada", "--json"];
        let failed = warren(&[&sync[..], &["--password-file", &place.password]].concat());
        failed.refused(code);
        failed.value()["error"]["message"].as_str().unwrap().to_owned()
    };
    for address in ["127.0.0.1:4777", "ftp://127.0.0.1", "localhost"] {
        let message = failed(address, "invalid_argument");
        assert!(message.contains("a server's URL begins with http:// or https://"), "{message}");
    }
    let check_unreachable = |address: &str, reason: &str| {
        let expected = format!("cannot reach the server: {reason}");
        assert_eq!(failed(address, "unreachable"), expected);
    };
    let unknown = "http://no.such.host.invalid";
    check_unreachable(unknown, &format!("the host name in {unknown} cannot be resolved"));
    let plain = server.address.replace("http://", "https://");
    check_unreachable(&plain, &format!("{plain} does not use TLS"));
    // A port that is taken, but on which no program listens.
    let taken = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    taken.bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into()).unwrap();
    let port = taken.local_addr().unwrap().as_socket().unwrap().port();
    let closed = format!("http://127.0.0.1:{port}");
    check_unreachable(&closed, &format!("{closed} refused the connection"));
}
