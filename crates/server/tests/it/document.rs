//! Compares `docs/reference/formats/3-http-api.md` with the server's own document.

use std::collections::{BTreeSet, HashSet};

use serde_json::Value;

use crate::RunningServer;
use crate::openapi::documented;

const DOCUMENT: &str = include_str!("../../../../docs/reference/formats/3-http-api.md");

/// Returns each `## METHOD /path` with the text below it.
fn sections() -> impl Iterator<Item = ((String, &'static str), &'static str)> {
    DOCUMENT.split("\n## ").skip(1).filter_map(|section| {
        let (heading, text) = section.split_once('\n').unwrap();
        let (method, path) = heading.strip_prefix('`')?.strip_suffix('`')?.split_once(' ')?;
        Some(((method.to_owned(), path), text))
    })
}

/// Returns the words in backticks that are error codes.
fn codes(text: &str) -> HashSet<protocol::ErrorCode> {
    text.split('`').filter_map(|word| word.parse().ok()).collect()
}

#[test]
fn every_call_is_described() {
    let server = RunningServer::new();
    let described: BTreeSet<_> = sections().map(|(call, _)| call).collect();
    assert_eq!(described, documented(&server.openapi));
}

#[test]
fn every_call_s_errors_are_those_of_the_openapi_document() {
    let server = RunningServer::new();
    for ((method, path), text) in sections() {
        let responses = &server.openapi["paths"][path][method.to_lowercase()]["responses"];
        let responses = responses.as_object().unwrap().values();
        let descriptions: Vec<_> = responses.map(|r| r["description"].as_str().unwrap()).collect();
        let mut expected = codes(&descriptions.join("\n"));
        // The page lists the codes of all calls only once.
        expected.retain(|code| !ALWAYS.contains(code));
        let errors = text.lines().find(|line| line.starts_with("Errors: ")).unwrap_or_default();
        assert_eq!(codes(errors), expected, "{method} {path}");
    }
}

const ALWAYS: &[protocol::ErrorCode] = &[
    protocol::ErrorCode::Internal,
    protocol::ErrorCode::Malformed,
    protocol::ErrorCode::ServerDamaged,
    protocol::ErrorCode::ServerDiskFull,
    protocol::ErrorCode::Unavailable,
    protocol::ErrorCode::HostNotAllowed,
];

#[test]
fn the_limits_are_those_of_the_openapi_document() {
    let server = RunningServer::new();
    let limit: &Value = &server.openapi["components"]["schemas"]["PushRequest"]["properties"]["messages"]
        ["maxItems"];
    assert_eq!(limit, 40_000);
    assert!(DOCUMENT.contains("40,000 messages") && DOCUMENT.contains("16 MiB"));
}
