//! Tests of a server whose vaults are in PostgreSQL, and of vaults that move.

use std::path::Path;
use std::process::Command;
use std::sync::{Arc, OnceLock};

use accounts::{Accounts, KdfCost};
use crdt::{Message, NodeId, Timestamp};
use engine::{Databases, EngineLimits};
use serde_json::{Value, json};
use sync_store::{BlobChunkId, BlobId, MessageBatch, UpdateStateFn, VaultFiles, Vaults};

use crate::fixture::{ADMIN, PASSWORD, SyncFixture, check_equal, check_report, track_all};
use crate::processes::{ServeProcess, json, sql, warren, with_input};

/// Returns the tests' PostgreSQL server, which is started once and ends with the process.
fn lab() -> &'static postgres_lab::PostgresServer {
    static LAB: OnceLock<postgres_lab::PostgresServer> = OnceLock::new();
    LAB.get_or_init(|| postgres_lab::PostgresServer::start_temporary(&[]).unwrap())
}

/// A data directory whose vaults are in PostgreSQL, and two devices in sync.
struct PostgresPair {
    place: SyncFixture,
    /// The file with the database's URL.
    url: String,
    a: String,
    b: String,
}

impl PostgresPair {
    fn new() -> (Self, ServeProcess) {
        let place = SyncFixture::new();
        let url = place.write("url.txt", &lab().url("postgres"));
        let (a, b) = (place.at("a.db"), place.at("b.db"));
        let pair = Self { place, url, a, b };
        let server = pair.serve_postgres();
        sql(&pair.a, "CREATE TABLE todo (id INTEGER PRIMARY KEY, text TEXT);");
        edit(&pair.a, "one");
        track_all(&pair.a);
        pair.place.sign_in("sync", &pair.a, &server.address);
        pair.place.sign_in("clone", &pair.b, &server.address);
        check_equal(&pair.a, &pair.b);
        (pair, server)
    }

    fn serve_postgres(&self) -> ServeProcess {
        ServeProcess::start(&self.place.data, &["--postgres-file", &self.url])
    }

    /// Edits both devices, and checks that they get the same rows without a repair. The server's
    /// address is not the one that they remember.
    #[track_caller]
    fn sync_on(&self, server: &ServeProcess) {
        edit(&self.a, "of a");
        sql(&self.b, "UPDATE todo SET text = 'of b' WHERE id = 1");
        for file in [&self.a, &self.b, &self.a] {
            check_report(&json(&["sync", file, "--server", &server.address]));
        }
        check_equal(&self.a, &self.b);
    }

    /// Returns the count and the digest of the vault.
    #[track_caller]
    fn inspect(&self, in_postgres: bool) -> (Value, Value) {
        let mut command = vec!["inspect", "--login", "ada", "--verify"];
        if in_postgres {
            command.extend(["--postgres-file", &self.url]);
        }
        let mut vault = self.place.operator(&command);
        assert_eq!(vault["verified"], true, "{vault}");
        assert_eq!(vault["storage"]["postgres_address"].is_string(), in_postgres, "{vault}");
        (vault["messages_count"].take(), vault["digest"].take())
    }

    #[track_caller]
    fn carry(&self, to: &str, options: &[&str]) -> (Value, Value) {
        let carry = ["storage", "migrate", "ada", "--to", to, "--postgres-file", &self.url];
        let mut moved = self.place.operator(&[&carry, options].concat());
        (moved["messages_count"].take(), moved["digest"].take())
    }
}

fn edit(file: &str, text: &str) {
    sql(file, &format!("INSERT INTO todo (text) VALUES ('{text}')"));
}

#[test]
fn a_server_on_postgres_is_killed_and_goes_on_and_its_vaults_move() {
    let (pair, server) = PostgresPair::new();
    pair.sync_on(&server);
    server.kill();
    let server = pair.serve_postgres();
    pair.sync_on(&server);
    server.kill();
    let before = pair.inspect(true);

    assert_eq!(pair.carry("sqlite", &[]), before);
    assert_eq!(pair.inspect(false), before);
    let server = pair.place.serve();
    pair.sync_on(&server);
    server.stop();

    // The vault moves back to PostgreSQL, which still has the older copy, and continues it.
    let before = pair.inspect(false);
    assert_eq!(pair.carry("postgres", &["--remove-source"]), before);
    assert_eq!(pair.inspect(true), before);
    // Another move would remove the only copy.
    let again =
        ["storage", "migrate", "ada", "--to", "postgres", "--overwrite-destination", "--json"];
    let place = ["--data", &pair.place.data, "--password-file", &pair.place.password];
    warren(&[&again[..], &place, &["--postgres-file", &pair.url]].concat()).refused("not_found");
    assert_eq!(pair.inspect(true), before);
    let server = pair.serve_postgres();
    pair.sync_on(&server);
    let devices =
        pair.place.operator(&["device", "list", "--login", "ada", "--postgres-file", &pair.url]);
    assert_eq!(devices["devices"].as_array().unwrap().len(), 2, "{devices}");
    server.stop();
    assert_eq!(pair.inspect(false).0, 0, "the file was removed, and is made anew");

    let remove = ["account", "remove", "ada", "--yes", "--data", &pair.place.data];
    json(&[&remove[..], &["--postgres-file", &pair.url]].concat());
}

/// Creates sub-vaults of ada's, as a gateway does: messages, a blob in chunks, a gateway state.
fn fill_sub_vaults(place: &SyncFixture, names: &[&'static str]) {
    let databases = Arc::new(Databases::start(EngineLimits::default()).unwrap());
    let data = Path::new(&place.data);
    let accounts = Accounts::open(&databases, data, KdfCost::DEFAULT).unwrap();
    let ada = place.unlock(PASSWORD);
    let vaults = Vaults::Files(VaultFiles::new(Arc::clone(&databases), data.to_owned()));
    let runtime = tokio::runtime::Runtime::new().unwrap();
    for (name, millis) in names.iter().copied().zip(1..) {
        let id = ada.sub_vault_id(name);
        accounts.add_sub_vault(ada.account, &id).unwrap();
        let vault = vaults.open(&ada.sub_vault(&id)).unwrap();
        let blob = BlobId::generate();
        let message = |n| Message {
            timestamp: Timestamp::new(n, 0, NodeId(7)).unwrap(),
            content: name.into(),
        };
        let batch = MessageBatch::new_keeping_first((0..millis * 10).map(message).collect());
        let amend: UpdateStateFn = Arc::new(move |_, _| Ok([name.as_bytes(), b" record"].concat()));
        runtime.block_on(async {
            let piece = BlobChunkId { blob, number: 0 };
            vault.put_chunk(piece, name.repeat(1_000).into()).await.unwrap();
            vault.exchange(batch, amend).await.unwrap();
        });
    }
    // This sub-vault is recorded, but was never created.
    accounts.add_sub_vault(ada.account, &ada.sub_vault_id("nothing")).unwrap();
}

#[test]
fn the_vaults_that_belong_to_an_account_are_shown_and_move_with_its_own() {
    let place = SyncFixture::new();
    fill_sub_vaults(&place, &["budget", "other budget"]);
    let url = place.write("url.txt", &lab().url("postgres"));
    let inspect = |options: &[&str]| {
        let command = ["inspect", "--login", "ada", "--verify"];
        let mut sub_vaults = place.operator(&[&command, options].concat())["sub_vaults"].take();
        sub_vaults.as_array_mut().unwrap().sort_by_key(|vault| vault["messages_count"].as_u64());
        sub_vaults
    };
    let in_postgres = ["--postgres-file", &url];
    let check = |sub_vaults: &Value, is_file: bool| {
        let sub_vaults = sub_vaults.as_array().unwrap();
        let column = |name: &str| sub_vaults.iter().map(|v| v[name].clone()).collect::<Vec<_>>();
        assert_eq!(column("messages_count"), [0, 10, 20]);
        assert_eq!(column("content_bytes"), [0, 60, 240]);
        assert_eq!(column("blob_chunks_count"), [0, 1, 1]);
        assert_eq!(column("gateway_state_bytes"), [0, 13, 19]);
        assert!(sub_vaults.iter().all(|vault| vault["verified"] == true), "{sub_vaults:?}");
        assert!(sub_vaults.iter().all(|vault| vault["file_bytes"].is_u64() == is_file));
    };
    let carry = |to: &str, options: &[&str]| {
        let carry = ["storage", "migrate", "ada", "--to", to, "--postgres-file", &url];
        let moved = place.operator(&[&carry, options].concat());
        let sub_vaults = moved["sub_vaults"].as_array().unwrap().iter();
        let counts = sub_vaults.map(|vault| vault["messages_count"].as_u64());
        let mut counts: Vec<_> = counts.map(Option::unwrap).collect();
        counts.sort_unstable();
        counts
    };
    let before = inspect(&[]);
    check(&before, true);
    assert_eq!(carry("postgres", &["--remove-source"]), [10, 20]);
    let there = inspect(&in_postgres);
    check(&there, false);
    let digests = |sub_vaults: &Value| {
        let sub_vaults = sub_vaults.as_array().unwrap().iter();
        let digest = |vault: &Value| (vault["vault_id"].clone(), vault["digest"].clone());
        sub_vaults.map(digest).collect::<Vec<_>>()
    };
    assert_eq!(digests(&there), digests(&before));
    // A vault that was already moved stays unchanged, even with `--overwrite-destination`.
    assert_eq!(carry("postgres", &["--remove-source", "--overwrite-destination"]), [0; 0]);
    check(&inspect(&in_postgres), false);
    assert_eq!(carry("sqlite", &[]), [10, 20]);
    let back = inspect(&[]);
    check(&back, true);
    assert_eq!(digests(&back), digests(&before));
    let people = warren(&[
        "inspect",
        "--login",
        "ada",
        "--data",
        &place.data,
        "--password-file",
        &place.password,
    ]);
    let people = people.succeeded().stdout;
    assert_eq!(people.matches("sub-vault ").count(), 3, "{people}");
    let shown = json(&["account", "show", "ada", "--data", &place.data]);
    assert_eq!(shown["sub_vaults_count"], 3);

    let remove = ["account", "remove", "ada", "--yes", "--data", &place.data];
    let removed = json(&[&remove[..], &in_postgres].concat());
    assert_eq!(removed["sub_vault_ids"].as_array().unwrap().len(), 3);
}

#[test]
fn what_the_database_lost_and_what_was_changed_in_it_comes_back_from_the_devices() {
    let (pair, server) = PostgresPair::new();
    for text in ["two", "three", "four"] {
        edit(&pair.a, text);
    }
    json(&["sync", &pair.a, "--server", &server.address]);
    let accounts = json(&["account", "list", "--data", &pair.place.data]);
    let vault = format!("vault_id = '{}'", accounts[0]["vault_id"].as_str().unwrap());
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let by_hand = |sql: String| {
        runtime.block_on(async {
            lab().connect("postgres").await.unwrap().execute(&sql, &[]).await.unwrap()
        })
    };
    let nth = |n| {
        format!(
            "(SELECT timestamp FROM warren.message WHERE {vault} ORDER BY 1 OFFSET {n} LIMIT 1)"
        )
    };

    let lost =
        by_hand(format!("DELETE FROM warren.message WHERE {vault} AND timestamp > {}", nth(1)));
    assert!(lost > 0);
    let report = json(&["sync", &pair.a, "--server", &server.address]);
    assert_eq!(
        (&report["in_sync"], &report["reconciled"]),
        (&json!(true), &json!(true)),
        "{report}"
    );
    pair.sync_on(&server);

    // Without the key it is impossible to write a content that devices accept.
    let sql =
        "UPDATE warren.message SET content = set_byte(content, 60, 255 - get_byte(content, 60))";
    assert_eq!(by_hand(format!("{sql} WHERE {vault} AND timestamp = {}", nth(2))), 1);
    let (c, first_time) = (pair.place.at("c.db"), pair.place.first_time(&server.address));
    let clone = [&["clone", &c, "--json"], &first_time[..]].concat();
    warren(&clone).refused("internal");
    let inspect = ["inspect", "--login", "ada", "--verify", "--postgres-file", &pair.url];
    assert_eq!(pair.place.operator_finding_differences(&inspect)["verified"], false);
    let report = json(&["sync", &pair.b, "--server", &server.address]);
    assert_eq!(
        (&report["in_sync"], &report["reconciled"]),
        (&json!(true), &json!(true)),
        "{report}"
    );
    pair.sync_on(&server);
    assert_eq!(pair.place.operator(&inspect)["verified"], true);
}

#[test]
fn a_copy_that_is_none_is_refused_until_it_is_made_anew() {
    let (pair, server) = PostgresPair::new();
    server.stop();
    // The file gets messages that the rows do not have.
    let server = pair.place.serve();
    edit(&pair.a, "elsewhere");
    json(&["sync", &pair.a, "--server", &server.address]);
    server.stop();
    let server = pair.serve_postgres();
    edit(&pair.b, "here");
    json(&["sync", &pair.b, "--server", &server.address]);
    server.stop();
    let carry = ["storage", "migrate", "ada", "--to", "sqlite", "--postgres-file", &pair.url];
    let rest = ["--data", &pair.place.data, "--password-file", &pair.place.password, "--json"];
    warren(&[&carry[..], &rest].concat()).refused("not_in_sync");
    let moved = pair.carry("sqlite", &["--overwrite-destination"]);
    assert_eq!((&moved, &moved), (&pair.inspect(true), &pair.inspect(false)));
}

#[test]
fn a_database_that_is_not_there_is_said_without_the_password() {
    let place = SyncFixture::new();
    let url = "postgres://ada:SECRET@127.0.0.1:1/warren";
    let serve = ["serve", "--listen", "127.0.0.1:0", "--data", &place.data, "--json"];
    let ran = warren(&[&serve[..], &["--postgres", url]].concat());
    ran.refused("unavailable");
    assert!(!ran.stdout.contains("SECRET") && !ran.stderr.contains("SECRET"));
}

#[test]
fn tls_is_used_when_asked_for_and_only_with_a_server_that_proves_its_name() {
    let place = SyncFixture::new();
    let (key, certificate) = (place.at("key.pem"), place.at("certificate.pem"));
    let name = ["-subj", "/CN=warren", "-addext", "subjectAltName=IP:127.0.0.1"];
    let mut request = Command::new("openssl");
    request.args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"]);
    request.args(["-nodes", "-days", "2", "-addext", "basicConstraints=critical,CA:FALSE"]);
    request.args(["-keyout", &key, "-out", &certificate]).args(name);
    assert!(request.output().unwrap().status.success());
    // PostgreSQL rejects a key that others may read, and under root it runs as another user.
    let own = format!("chmod 600 {key}; [ $(id -u) != 0 ] || chown postgres {key}");
    assert!(Command::new("sh").args(["-c", &own]).status().unwrap().success());
    let files = [format!("ssl_cert_file={certificate}"), format!("ssl_key_file={key}")];
    let settings = ["ssl=on", &files[0], &files[1]];
    let lab = postgres_lab::PostgresServer::start_temporary(&settings).unwrap();

    let inspect = |authorities: &str, host: &str| {
        let url = lab.url("postgres").replace("127.0.0.1", host) + "?sslmode=verify-full";
        let mut command = Command::new(env!("CARGO_BIN_EXE_warren"));
        command.args(["inspect", "--login", "ada", "--data", &place.data, "--json"]);
        command.args(["--password-file", &place.password, "--postgres", &url]);
        with_input(command.env("SSL_CERT_FILE", authorities), "")
    };
    assert_eq!(inspect(&certificate, "127.0.0.1").succeeded().value()["messages_count"], 0);
    for refused in [
        inspect(&certificate, "localhost"),
        inspect("/etc/ssl/certs/ca-certificates.crt", "127.0.0.1"),
    ] {
        refused.refused("unavailable");
        assert!(refused.stdout.contains("certificate"), "{}", refused.stdout);
    }
}

#[test]
fn the_schema_is_printed_for_whoever_may_install_it() {
    let schema = warren(&["storage", "schema"]).succeeded().stdout;
    assert!(schema.starts_with("BEGIN;") && schema.trim_end().ends_with("COMMIT;"));
    let proxy = json(&["storage", "schema", "--plproxy"]);
    assert!(proxy["sql"].as_str().unwrap().contains("LANGUAGE plproxy"));
    assert_eq!(json(&["storage", "schema"])["sql"], json!(schema.trim_end().to_owned() + "\n"));
}

#[test]
fn the_operator_is_told_what_postgres_knows() {
    let (pair, server) = PostgresPair::new();
    server.stop();
    let token = pair.place.write("admin.txt", ADMIN);
    let options = ["--postgres-file", &pair.url, "--admin-token-file", &token];
    let server = ServeProcess::start(&pair.place.data, &options);
    let overview = server.admin("overview", ADMIN, None);
    assert_eq!((&overview["storage"], &overview["files"]), (&json!("postgres"), &Value::Null));
    let counts =
        json!([overview["accounts_count"], overview["devices_count"], overview["vaults_count"]]);
    assert_eq!(counts, json!([1, 2, 1]), "{overview}");
    assert_eq!(overview["open_vaults"]["count"], 0);
    json(&["sync", &pair.a, "--server", &server.address]);
    let after = server.admin("overview", ADMIN, None);
    assert!(after["syncs"]["count"].as_u64() > overview["syncs"]["count"].as_u64(), "{after}");

    let list = server.admin("accounts?sort=file_bytes", ADMIN, None);
    let ada = &list["accounts"][0];
    assert_eq!((&ada["login"], &ada["devices_count"]), (&json!("ada"), &json!(2)));
    for name in
        ["file_bytes", "wal_bytes", "fragmentation_ratio", "last_seen_ms", "last_changed_ms"]
    {
        assert_eq!(ada[name], Value::Null, "{name} in {ada}");
    }
    let report = server.admin("maintenance", ADMIN, Some(&json!({})));
    // The only file is the accounts' file.
    assert_eq!(
        (&report["files_count"], &report["closed_count"]),
        (&json!(1), &json!(0)),
        "{report}"
    );
    server.stop();
}
