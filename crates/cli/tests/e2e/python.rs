//! Tests with other projects' Python programs: an API tester, and the other
//! `SQLite3 Multiple Ciphers`.

use std::path::Path;
use std::process::Command;

use engine::{Cipher, DatabaseKey, FileEncryption, Profile, open_connection};
use serde_json::{Value, json};

use crate::fixture::{ADMIN, PASSWORD, SyncFixture, sync, token, track_all};
use crate::hex::hex;
use crate::processes::{CommandOutput, ServeProcess, python, with_input};
use crate::random::SplitMixRng;

const INTEROP: &str = include_str!("../../../../tests/apsw_interop.py");

/// Runs `tests/apsw_interop.py` on a file; the key is passed by standard input.
#[track_caller]
pub(crate) fn apsw(action: &str, file: &Path, cipher: Cipher, key: &DatabaseKey) -> CommandOutput {
    let hex = hex(key.as_bytes());
    let mut command = Command::new(python());
    command.args(["-c", INTEROP, action, file.to_str().unwrap(), cipher.name()]);
    with_input(&mut command, &hex)
}

#[test]
fn a_vault_opens_in_apsw_with_its_unwrapped_key() {
    let place = SyncFixture::new();
    let server = place.serve();
    let a = place.chinook("a.db");
    track_all(&a);
    place.sign_in("sync", &a, &server.address);
    // The server is killed, so that part of the vault is in its WAL.
    server.kill();
    let unlocked = place.unlock(PASSWORD);
    let vault = unlocked.vault.path(Path::new(&place.data));
    let read = apsw("read", &vault, Cipher::ChaCha20, &unlocked.key).succeeded().value();
    assert_eq!((&read["message"], &read["device"]), (&json!(15_618), &json!(1)), "{read}");
    assert_eq!(read["integrity_check"], "ok");

    let wrong = apsw("read", &vault, Cipher::ChaCha20, &DatabaseKey::generate());
    assert_eq!(wrong.value()["error"], "NotADBError", "{}", wrong.stderr);
    // None of that has damaged the vault.
    place.check_vault(15_618);
    let server = place.serve();
    assert_eq!(place.sign_in("clone", &place.at("b.db"), &server.address)["in_sync"], true);
}

/// Checks that a file that apsw creates opens here without the cipher's name, and then there
/// again.
fn check_interop(cipher: Cipher) {
    let folder = tempfile::tempdir().unwrap();
    let (theirs, ours) = (folder.path().join("theirs.db"), folder.path().join("ours.db"));
    let key = DatabaseKey::generate();
    let encryption = |key: &DatabaseKey| FileEncryption::Key { key: key.clone(), cipher: None };
    let open = |file, key| open_connection(file, &encryption(key), Profile::SERVER, false, false);

    apsw("make", &theirs, cipher, &key).succeeded();
    let (db, found) = open(&theirs, &key).unwrap();
    assert_eq!(found, Some(cipher));
    let sum = "SELECT count(*), sum(id), max(text) FROM entry";
    let row = db.query_row(sum, [], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?))).unwrap();
    assert_eq!(row, (1_000, 500_500, "entry 999".to_owned()));
    db.execute("INSERT INTO entry VALUES (1001, 'of ours')", []).unwrap();
    drop(db);
    let read = apsw("read", &theirs, cipher, &key).succeeded().value();
    assert_eq!((&read["entry"], &read["integrity_check"]), (&json!(1_001), &json!("ok")));
    assert!(matches!(open(&theirs, &DatabaseKey::generate()), Err(engine::Error::WrongKey { .. })));

    let named = FileEncryption::Key { key: key.clone(), cipher: Some(cipher) };
    let (db, _) = open_connection(&ours, &named, Profile::SERVER, false, true).unwrap();
    db.execute_batch("CREATE TABLE entry (x); INSERT INTO entry VALUES (1), (2)").unwrap();
    drop(db);
    assert_eq!(apsw("read", &ours, cipher, &key).succeeded().value()["entry"], 2);
}

#[test]
fn chacha20_files_go_both_ways_with_a_raw_key() {
    check_interop(Cipher::ChaCha20);
}

/// This cipher has no raw keys: in both programs, the bytes that begin with `raw:` are its
/// passphrase.
#[test]
fn aes256cbc_files_go_both_ways_with_the_same_bytes() {
    check_interop(Cipher::Aes256Cbc);
}

/// The number of test cases of one operation in each of its phases. `WARREN_SCHEMATHESIS=long`
/// runs almost three times as many, in some five minutes. (A time limit would run more: it repeats
/// phases until the time is over.)
const EXAMPLES_COUNT: &str = "15";
const LONG_EXAMPLES_COUNT: &str = "40";

/// The only checks that are left out. They would need facts that no schema contains: which of the
/// refusals in `docs/reference/formats/3-http-api.md` applies to which request (a `limit` past the
/// maximum is 413 here), and that a request may be refused for its content (an invalid date, a
/// login together with a token).
const NOT_CHECKED: &str = "negative_data_rejection,positive_data_acceptance";
/// The call that revokes devices, even the one that sends it: it gets a run and a device of its
/// own.
const REVOKE: &str = "DELETE /v1/devices/{id}";
/// The call whose answer never ends, so that the tester would wait for it.
/// `crates/server/tests/it/events.rs` tests it instead.
const LISTEN: &str = "GET /v1/sync/events";

/// The operator's calls, which get a run of their own with the operator's token.
const ADMIN_CALLS: &str = "^/v1/admin";

/// The calls of a device and its user.
const CALLS: &[(&str, &str)] = &[
    ("POST", "/v1/accounts"),
    ("POST", "/v1/devices"),
    ("GET", "/v1/devices"),
    ("POST", "/v1/sync/delta"),
    ("GET", "/v1/sync/delta"),
    ("GET", "/v1/sync/full"),
];

/// A server with open registration that schemathesis tests, and a device that syncs with it.
struct TestedServer {
    place: SyncFixture,
    server: ServeProcess,
    device: String,
    seed: u64,
}

impl TestedServer {
    fn start() -> Self {
        let place = SyncFixture::new();
        let admin = place.write("admin.txt", ADMIN);
        let options = ["--open-registration", "--admin-token-file", &admin];
        let server = ServeProcess::start(&place.data, &options);
        let device = place.chinook("a.db");
        track_all(&device);
        place.sign_in("sync", &device, &server.address);
        Self { place, server, device, seed: SplitMixRng::new().below(1 << 32) }
    }

    /// Runs `schemathesis run` for the operations that `which` names, with this token. Returns its
    /// report.
    fn run(&self, which: &[&str], token: &str) -> Value {
        let report = self.place.at("schemathesis.json");
        let document = format!("{}/v1/openapi.json", self.server.address);
        let bearer = format!("Authorization: Bearer {token}");
        let mut command = Command::new(python().with_file_name("schemathesis"));
        command.current_dir(Path::new(&self.place.data).parent().unwrap());
        command.args(["run", &document, "--header", &bearer, "--seed", &self.seed.to_string()]);
        command.args(["--checks", "all", "--exclude-checks", NOT_CHECKED]);
        command.args(["--continue-on-failure", "--generation-database", "none", "--no-color"]);
        command.args(["--report-json-path", &report]).args(which);
        let form = std::env::var_os("WARREN_SCHEMATHESIS");
        let is_long = form.is_some_and(|form| form == "long");
        let count = if is_long { LONG_EXAMPLES_COUNT } else { EXAMPLES_COUNT };
        command.args(["--max-examples", count]);
        let ran = with_input(&mut command, "");
        assert!(ran.status.success(), "seed {}: {}{}", self.seed, ran.stdout, ran.stderr);
        serde_json::from_slice(&std::fs::read(report).unwrap()).unwrap()
    }
}

#[test]
fn schemathesis_finds_no_server_error_and_no_undocumented_answer() {
    let tested = TestedServer::start();
    let before = successes(&tested.server, CALLS);
    let except = ["--exclude-name", REVOKE, "--exclude-name", LISTEN];
    let except = [&except[..], &["--exclude-path-regex", ADMIN_CALLS]].concat();
    let report = tested.run(&except, &token(&tested.device));
    assert_eq!(report["operations"]["tested"], 14, "{report}");
    let generated = report["test_cases"]["generated"].as_u64().unwrap();
    assert!(generated > 300, "{generated}");
    // Every call has succeeded at least once, and the tester's device still syncs.
    let after = successes(&tested.server, CALLS);
    for (call, (before, after)) in CALLS.iter().zip(before.iter().zip(&after)) {
        assert!(after > before, "{call:?}: {before} and {after}, seed {}", tested.seed);
    }
    sync(&tested.device);
    tested.server.stop();
}

#[test]
fn schemathesis_revokes_no_device_of_somebody_else() {
    let tested = TestedServer::start();
    let revoked = tested.place.chinook("b.db");
    track_all(&revoked);
    tested.place.sign_in("sync", &revoked, &tested.server.address);
    let report = tested.run(&["--include-name", REVOKE], &token(&revoked));
    assert_eq!(report["operations"]["tested"], 1, "{report}");
    successes(&tested.server, &[]);
    sync(&tested.device);
    tested.server.stop();
}

#[test]
fn schemathesis_finds_no_error_in_what_operators_ask() {
    let tested = TestedServer::start();
    let report = tested.run(&["--include-path-regex", ADMIN_CALLS], ADMIN);
    assert_eq!(report["operations"]["tested"], 4, "{report}");
    for call in [("GET", "overview"), ("GET", "accounts"), ("POST", "maintenance")] {
        let (method, path) = (call.0, format!("/v1/admin/{}", call.1));
        let count = successes(&tested.server, &[(method, &path)])[0];
        assert!(count > 0, "{call:?}, seed {}", tested.seed);
    }
    sync(&tested.device);
    tested.server.stop();
}

/// Returns how many calls the server has answered with success, by method and route, from its own
/// counters.
fn successes(server: &ServeProcess, calls: &[(&str, &str)]) -> Vec<u64> {
    let metrics = server.get_as("/metrics", ADMIN);
    assert!(!metrics.contains("status=\"5"), "{metrics}");
    let count = |(method, route): &(&str, &str)| {
        let label =
            format!("warren_requests_total{{method=\"{method}\",route=\"{route}\",status=\"20");
        let counts =
            metrics.lines().filter_map(|line| line.strip_prefix(&label)?.rsplit(' ').next());
        counts.map(|count| count.parse::<u64>().unwrap()).sum()
    };
    calls.iter().map(count).collect()
}
