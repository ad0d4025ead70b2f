//! Tests of the site: which paths have files, their encodings, their caching, and the exceptions.

use server::Asset;

use crate::{RunningServer, TestResponse};

const PAGE: &[u8] = b"<!doctype html><title>Plan</title>";
const SCRIPT: &[u8] = b"console.log('console.log console.log console.log')";
/// These bytes need not be Brotli: the server sends them as they are given.
const SCRIPT_BROTLI: &[u8] = b"in Brotli";

const SITE: &[Asset] = &[
    Asset {
        path: "/index.html",
        bytes: PAGE,
        brotli: None,
        content_type: "text/html; charset=utf-8",
        digest: "0a1b",
        is_immutable: false,
    },
    Asset {
        path: "/admin/index.html",
        bytes: b"<!doctype html><title>Admin</title>",
        brotli: None,
        content_type: "text/html; charset=utf-8",
        digest: "1a1b",
        is_immutable: false,
    },
    Asset {
        path: "/assets/main-0123ABCD.js",
        bytes: SCRIPT,
        brotli: Some(SCRIPT_BROTLI),
        content_type: "text/javascript; charset=utf-8",
        digest: "2a1b",
        is_immutable: true,
    },
    // A call of the API takes precedence over a file.
    Asset {
        path: "/healthz",
        bytes: b"a file",
        brotli: None,
        content_type: "text/plain",
        digest: "3a1b",
        is_immutable: false,
    },
];

const SCRIPT_PATH: &str = "/assets/main-0123ABCD.js";

fn server() -> RunningServer {
    RunningServer::with(|config| config.site = SITE)
}

fn with(server: &RunningServer, path: &str, name: &str, value: &str) -> TestResponse {
    server.ask("GET", path, &[(name, value)], ())
}

#[test]
fn files_answer_at_their_paths_and_folders_with_their_index() {
    let server = server();
    for path in ["/", "/index.html"] {
        let page = server.ask("GET", path, &[], ());
        assert_eq!((page.status, page.body.as_slice()), (200, PAGE), "{path}");
        assert_eq!(page.header("content-type"), "text/html; charset=utf-8");
        assert_eq!(page.header("cache-control"), "no-cache");
    }
    for path in ["/admin", "/admin/", "/admin/index.html"] {
        assert_eq!(server.ask("GET", path, &[], ()).body, SITE[1].bytes, "{path}");
    }
    let script = server.ask("GET", SCRIPT_PATH, &[], ());
    assert_eq!(script.body, SCRIPT);
    assert_eq!(script.header("cache-control"), "public, max-age=31536000, immutable");
}

#[test]
fn every_file_carries_the_policies() {
    let server = server();
    for path in ["/", "/admin", SCRIPT_PATH] {
        let answer = server.ask("GET", path, &[], ());
        let policy = answer.header("content-security-policy");
        let directives: Vec<_> = policy.split("; ").collect();
        for directive in [
            "default-src 'self'",
            "script-src 'self' 'wasm-unsafe-eval'",
            "style-src 'self'",
            "connect-src 'self'",
            "frame-ancestors 'none'",
            "object-src 'none'",
        ] {
            assert!(directives.contains(&directive), "{directive} in {policy}");
        }
        assert!(!policy.contains("unsafe-inline") && !policy.contains("'unsafe-eval'"), "{policy}");
        for (name, value) in [
            ("x-content-type-options", "nosniff"),
            ("referrer-policy", "no-referrer"),
            ("cross-origin-opener-policy", "same-origin"),
        ] {
            assert_eq!(answer.header(name), value, "{path}");
        }
        assert!(answer.header("permissions-policy").contains("camera=()"));
    }
}

#[test]
fn brotli_is_for_those_who_name_it() {
    let server = server();
    for (accepted, body) in [
        ("br", SCRIPT_BROTLI),
        ("gzip, deflate, br, zstd", SCRIPT_BROTLI),
        ("gzip;q=0.5, BR;q=0.1", SCRIPT_BROTLI),
        ("", SCRIPT),
        ("gzip", SCRIPT),
        ("*", SCRIPT),
        ("br;q=0", SCRIPT),
        ("br;q=0.000, gzip", SCRIPT),
        ("brotli", SCRIPT),
    ] {
        let answer = with(&server, SCRIPT_PATH, "accept-encoding", accepted);
        assert_eq!(answer.body, body, "{accepted}");
        let encoding = if body == SCRIPT { "" } else { "br" };
        assert_eq!(answer.header("content-encoding"), encoding, "{accepted}");
        assert_eq!(answer.header("vary"), "accept-encoding");
    }
    // This file has no Brotli form.
    let page = with(&server, "/", "accept-encoding", "br");
    assert_eq!((page.body.as_slice(), page.header("content-encoding")), (PAGE, ""));
}

#[test]
fn what_the_browser_has_is_not_sent_again() {
    let server = server();
    let plain = server.ask("GET", SCRIPT_PATH, &[], ()).header("etag").to_owned();
    let brotli = with(&server, SCRIPT_PATH, "accept-encoding", "br").header("etag").to_owned();
    assert_ne!(plain, brotli, "a strong tag names bytes");
    for (tags, status) in [
        (plain.clone(), 304),
        (format!("W/{plain}"), 304),
        (format!("\"other\", {plain}"), 304),
        ("*".to_owned(), 304),
        ("\"other\"".to_owned(), 200),
        (brotli.clone(), 200),
    ] {
        let answer = with(&server, SCRIPT_PATH, "if-none-match", &tags);
        assert_eq!((answer.status, answer.header("etag")), (status, plain.as_str()), "{tags}");
        assert_eq!(answer.body.is_empty(), status == 304);
        assert!(answer.header("cache-control").contains("immutable"));
    }
    let headers = [("accept-encoding", "br"), ("if-none-match", brotli.as_str())];
    assert_eq!(server.ask("GET", SCRIPT_PATH, &headers, ()).status, 304);
}

#[test]
fn a_head_is_the_answer_without_its_body() {
    let server = server();
    for path in ["/", SCRIPT_PATH] {
        let [get, head] = ["GET", "HEAD"].map(|method| server.ask(method, path, &[], ()));
        assert_eq!((head.status, head.body.len()), (200, 0));
        assert_eq!(head.header("content-length"), get.body.len().to_string(), "{path}");
        assert_eq!(head.header("etag"), get.header("etag"));
    }
}

#[test]
fn nothing_else_is_there_and_the_api_stays() {
    let server = server();
    for path in ["/nowhere", "/assets/", "/assets/main-0123ABCD.js/", "/v1/", "//", "/Admin"] {
        server.ask("GET", path, &[], ()).refused("not_found");
    }
    let answer = server.ask("POST", SCRIPT_PATH, &[], ());
    answer.refused("method_not_allowed");
    assert_eq!(answer.header("allow"), "GET,HEAD");
    server.ask("POST", "/nowhere", &[], ()).refused("not_found");
    assert_eq!(server.get("/healthz", "").json()["status"], "ok");
    server.get("/v1/sync/delta", "").refused("invalid_token");
}
