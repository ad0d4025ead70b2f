//! Tests of operation: health, metrics, the front page, stopping and restarting.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};

use serde_json::json;

use crate::{ADMIN, RunningServer, push};

#[test]
fn it_says_that_it_is_well_and_what_it_is() {
    let server = RunningServer::new();
    assert_eq!(server.get("/healthz", "").json(), json!({ "status": "ok" }));
    let page = server.get("/", "");
    assert!(page.header("content-type").starts_with("text/html"));
    assert!(String::from_utf8(page.body).unwrap().contains("/v1/openapi.json"));
}

#[test]
fn it_counts_requests_and_messages() {
    let server = RunningServer::new();
    let token = server.account("ada");
    server.post("/v1/sync/delta", &token, &push(&[(1, "a"), (2, "b")]));
    server.post("/v1/sync/delta", &token, &push(&[(1, "a")]));
    server.get("/v1/nowhere", "").refused("not_found");
    let metrics = String::from_utf8(server.get("/metrics", ADMIN).body).unwrap();
    for line in [
        r#"warren_requests_total{method="POST",route="/v1/sync/delta",status="200"} 2"#,
        r#"warren_requests_total{method="GET",route="none",status="404"} 1"#,
        "warren_messages_stored_total 2",
        "warren_messages_known_total 1",
        "warren_open_databases 2",
        "warren_failed_transactions_total 0",
    ] {
        assert!(metrics.lines().any(|found| found == line), "no {line} in\n{metrics}");
    }
    for name in [
        "warren_request_duration_seconds_bucket{",
        "warren_connections ",
        "warren_page_cache_bytes ",
    ] {
        assert!(metrics.lines().any(|line| line.starts_with(name)), "no {name} in\n{metrics}");
    }
}

#[test]
fn without_an_operator_metrics_are_for_this_machine_and_not_for_its_proxys_clients() {
    let server = RunningServer::with(|config| config.admin_token = None);
    assert_eq!(server.get("/metrics", "").status, 200);
    for header in ["x-forwarded-for", "Forwarded", "Via", "X-Real-IP", "X-Forwarded-Proto"] {
        let answer = server.send("GET", "/metrics", &[(header, "127.0.0.1")], ());
        answer.refused("admin_disabled");
    }
    let named = RunningServer::with(|config| {
        config.admin_token = None;
        config.trusted_proxies = vec!["127.0.0.1".parse().unwrap()];
    });
    assert_eq!(named.get("/metrics", "").status, 200, "a proxy that is named adds the header");
    let answer = named.send("GET", "/metrics", &[("x-forwarded-for", "127.0.0.1")], ());
    answer.refused("admin_disabled");
}

#[test]
fn it_shows_how_the_open_vaults_files_are() {
    let server = RunningServer::new();
    let token = server.account("ada");
    server.post("/v1/sync/delta", &token, &push(&[(1, "a"), (2, "b")]));
    let vault = files_below(&server.data.path().join("vaults"));
    let vault = vault.iter().find(|file| file.extension().unwrap() == "sqlite").unwrap();
    let id = vault.file_stem().unwrap().to_str().unwrap();
    let metrics = String::from_utf8(server.get("/metrics", ADMIN).body).unwrap();
    let value = |name: &str| -> f64 {
        let line = metrics.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.unwrap_or_else(|| panic!("no {name} in\n{metrics}")).parse().unwrap()
    };
    let wal = value(&format!("warren_vault_wal_bytes{{vault_id=\"{id}\"}}"));
    assert!(wal > 4_096.0);
    assert!((value("warren_vaults_wal_bytes") - wal).abs() < 0.5);
    assert!(value("warren_vaults_file_bytes") > 4_096.0);
    for name in ["fragmentation_ratio", "longest_read_seconds"] {
        let of_vault = value(&format!("warren_vault_{name}{{vault_id=\"{id}\"}}"));
        assert!((0.0..1.0).contains(&of_vault));
        assert!((value(&format!("warren_vaults_{name}_max")) - of_vault).abs() < 1e-9);
    }
    assert!(value("warren_maintenance_runs_total") < 0.5, "it was not idle for long");
    let named = |line: &&str| line.starts_with("warren_vault_wal_bytes{");
    assert_eq!(metrics.lines().filter(named).count(), 1, "the accounts' file is no vault");
}

#[test]
fn an_idle_vault_is_maintained() {
    let server = RunningServer::with(|config| {
        config.databases.idle_time = std::time::Duration::from_millis(1);
    });
    let token = server.account("ada");
    server.post("/v1/sync/delta", &token, &push(&[(1, "a")]));
    loop {
        let metrics = String::from_utf8(server.get("/metrics", ADMIN).body).unwrap();
        let count = |name: &str| -> u64 {
            metrics.lines().find_map(|line| line.strip_prefix(name)).unwrap().parse().unwrap()
        };
        let truncated = count("warren_maintenance_truncated_wals_total ");
        if truncated > 0 && count("warren_vaults_wal_bytes ") == 0 {
            assert!(count("warren_maintenance_runs_total ") >= truncated);
            break;
        }
    }
    assert_eq!(server.get("/v1/sync/delta", &token).json()["cursor"], 1);
}

#[test]
fn several_servers_count_apart() {
    let (one, two) = (RunningServer::new(), RunningServer::new());
    let token = one.account("ada");
    one.post("/v1/sync/delta", &token, &push(&[(1, "a")]));
    let metrics = String::from_utf8(two.get("/metrics", ADMIN).body).unwrap();
    assert!(metrics.contains("warren_messages_stored_total 0\n"), "{metrics}");
}

#[test]
fn a_restarted_server_has_what_was_acknowledged() {
    let server = RunningServer::new();
    let token = server.account("ada");
    let before = server.post("/v1/sync/delta", &token, &push(&[(1, "a"), (2, "b")])).json();
    let server = RunningServer::on(server.stop(), |_| {});
    let page = server.get("/v1/sync/delta", &token).json();
    assert_eq!(page["messages"], push(&[(1, "a"), (2, "b")])["messages"]);
    assert_eq!(page["fingerprint"], before["fingerprint"]);
}

#[test]
fn a_stopping_server_answers_the_push_that_it_has_taken() {
    let server = RunningServer::new();
    let token = server.account("ada");
    let body = push(&[(1, "a")]).to_string();
    let stream = TcpStream::connect(server.address).unwrap();
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut stream = stream;
    write!(
        stream,
        "POST /v1/sync/delta HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {token}\r\n\
         content-type: application/json\r\ncontent-length: {}\r\nexpect: 100-continue\r\n\r\n",
        body.len()
    )
    .unwrap();
    let mut line = String::new();
    reader.read_line(&mut line).unwrap();
    // The handler is reading the body by then.
    assert_eq!(line, "HTTP/1.1 100 Continue\r\n");
    server.stop.send(()).unwrap();
    // The listening socket closes once the server has received the signal.
    while TcpStream::connect(server.address).is_ok() {
        std::thread::yield_now();
    }
    stream.write_all(body.as_bytes()).unwrap();
    let mut answer = String::new();
    reader.read_to_string(&mut answer).unwrap();
    assert!(
        answer.contains("HTTP/1.1 200 OK") && answer.contains(r#""stored_count":1"#),
        "{answer}"
    );
    server.thread.join().unwrap();
    let server = RunningServer::on(server.data, |_| {});
    assert_eq!(server.get("/v1/sync/delta", &token).json()["cursor"], 1);
}

#[test]
fn a_damaged_vault_is_told_to_nobody_else_and_in_no_detail() {
    let server = RunningServer::new();
    let ada = server.account("ada");
    let vaults = server.data.path().join("vaults");
    let adas: Vec<_> = files_below(&vaults);
    let bob = server.account("bob");
    let data = server.stop();
    assert_eq!(adas.iter().filter(|file| file.extension().unwrap() == "sqlite").count(), 1);
    let spoil = || {
        for file in adas.iter().filter(|file| file.exists()) {
            std::fs::write(file, [7; 8_192]).unwrap();
        }
    };
    spoil();
    let server = RunningServer::on(data, |_| {});
    // The first time, the damaged file is quarantined.
    assert_eq!(server.get("/v1/sync/delta", &ada).json()["cursor"], 0);
    let data = server.stop();
    spoil();
    let server = RunningServer::on(data, |_| {});
    let answer = server.get("/v1/sync/delta", &ada);
    answer.refused("server_damaged");
    let told = String::from_utf8(answer.body).unwrap();
    assert!(!told.contains("vaults") && !told.contains("key"), "{told}");
    server.check_works(&bob);
}

fn files_below(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files_below(&path) } else { vec![path] }).collect()
}

#[test]
fn an_address_in_use_is_told() {
    let server = RunningServer::new();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let config = server::Config { listen: server.address, ..server::Config::default() };
    let error = runtime.block_on(server::SyncServer::bind(config)).err().unwrap();
    assert!(matches!(error, server::Error::Listen { .. }), "{error}");
}
