//! Tests of pages of other origins: the browser's preflight, and the responses that pages may read.

use serde_json::json;

use crate::{RunningServer, TestResponse};

const OURS: &str = "https://app.example";
const OTHER: &str = "https://other.example";

fn allowing(origins: &[&str]) -> RunningServer {
    RunningServer::with(|config| {
        config.origins = origins.iter().map(|origin| origin.parse().unwrap()).collect();
    })
}

/// Sends the preflight of a browser that will push with a token.
fn preflight(server: &RunningServer, path: &str, origin: &str) -> TestResponse {
    let headers = [
        ("origin", origin),
        ("access-control-request-method", "POST"),
        ("access-control-request-headers", "authorization,content-type"),
    ];
    server.ask("OPTIONS", path, &headers, ())
}

fn from(server: &RunningServer, path: &str, origin: &str) -> TestResponse {
    server.ask("GET", path, &[("origin", origin)], ())
}

#[test]
fn a_preflight_lets_the_named_origins_call() {
    let server = allowing(&["https://another.example", OURS]);
    let answer = preflight(&server, "/v1/sync/delta", OURS);
    assert_eq!(answer.status, 200);
    assert_eq!(answer.header("access-control-allow-origin"), OURS);
    let allowed = answer.header("access-control-allow-headers").to_lowercase();
    for header in ["authorization", "content-type"] {
        assert!(allowed.split(',').any(|name| name.trim() == header), "{header} in {allowed}");
    }
    for method in ["DELETE", "GET", "POST", "PUT"] {
        let methods = answer.header("access-control-allow-methods");
        assert!(methods.split(',').any(|name| name == method), "{method} in {methods}");
    }
    assert_eq!(answer.header("access-control-max-age"), "7200");
    assert_eq!(answer.header("access-control-allow-credentials"), "");
    let answer = preflight(&server, "/v1/sync/delta", OTHER);
    assert_eq!(answer.header("access-control-allow-origin"), "");
}

#[test]
fn answers_and_refusals_can_be_read_with_their_retry_after() {
    let server = allowing(&[OURS]);
    let token = server.account("ada");
    let bearer = format!("Bearer {token}");
    let headers = [("authorization", bearer.as_str()), ("origin", OURS)];
    let answer = server.send("GET", "/v1/sync/delta", &headers, ());
    assert_eq!((answer.status, answer.header("access-control-allow-origin")), (200, OURS));
    assert_eq!(answer.header("access-control-expose-headers"), "retry-after");
    assert_eq!(answer.header("vary"), "origin");
    let answer = from(&server, "/v1/sync/delta", OURS);
    answer.refused("invalid_token");
    assert_eq!(answer.header("access-control-allow-origin"), OURS);
    let answer = from(&server, "/v1/sync/delta", OTHER);
    assert_eq!(answer.header("access-control-allow-origin"), "");
}

#[test]
fn any_origin_may_be_allowed() {
    let server = allowing(&["*", OURS]);
    for origin in [OURS, OTHER, "null"] {
        let answer = preflight(&server, "/v1/devices", origin);
        assert_eq!((answer.status, answer.header("access-control-allow-origin")), (200, "*"));
    }
}

#[test]
fn nobody_is_allowed_unless_named_and_nothing_but_the_api() {
    let server = RunningServer::new();
    preflight(&server, "/v1/sync/delta", OURS).refused("method_not_allowed");
    assert_eq!(from(&server, "/v1/openapi.json", OURS).header("access-control-allow-origin"), "");
    let server = allowing(&["*"]);
    for path in ["/", "/healthz"] {
        let answer = from(&server, path, OURS);
        assert_eq!((answer.status, answer.header("access-control-allow-origin")), (200, ""));
        preflight(&server, path, OURS).refused("method_not_allowed");
    }
    assert_eq!(server.get("/healthz", "").json(), json!({ "status": "ok" }));
}
