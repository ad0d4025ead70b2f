//! Reads a server's answer, and keeps the parts of it that are compared.

use std::collections::BTreeMap;
use std::fs;

use serde_json::Value;
use ureq::http::HeaderMap;
use ureq::http::response::Parts;

use crate::actual_server::installed;
use crate::cases::RecordedResponse;
use crate::hex::hex;
use crate::messages::SyncResponseCase;
use crate::placeholders::Placeholders;

/// The headers that clients use, besides those that begin with one of `PREFIXES`.
const HEADERS: &[&str] = &[
    "accept-ranges",
    "allow",
    "cache-control",
    "content-disposition",
    "content-range",
    "content-security-policy",
    "content-type",
    "etag",
    "last-modified",
    "location",
    "retry-after",
    "vary",
    "x-actual-sync-method",
];
const PREFIXES: &[&str] = &["access-control-", "cross-origin-"];
/// Headers of which only the presence is compared: their values differ from run to run.
const PRESENT: &[&str] = &["etag", "last-modified", "retry-after"];
const SYNC: &str = "application/actual-sync";

/// Reads an answer; `path` is the path of the request.
pub(crate) fn read(
    parts: &Parts,
    body: &[u8],
    path: &str,
    given: &BTreeMap<String, String>,
    names: &mut Placeholders,
) -> RecordedResponse {
    let mut answer = RecordedResponse {
        status: parts.status.as_u16(),
        headers: headers(&parts.headers),
        ..RecordedResponse::default()
    };
    let content_type = answer.headers.get("content-type").cloned().unwrap_or_default();
    let essence = content_type.split(';').next().unwrap_or_default();
    let text = str::from_utf8(body);
    if body.is_empty() {
    } else if let Some(file) = file_of_web_app(path, body) {
        answer.file = Some(file);
    } else if essence == "application/json"
        && let Ok(json) = serde_json::from_slice::<Value>(body)
    {
        names.give(given, Some(&json));
        answer.json = Some(names.put(&json));
    } else if essence == SYNC
        && let Some(sync) = SyncResponseCase::decode(body)
    {
        answer.sync = Some(sync);
    } else if let Ok(text) = text
        && essence.starts_with("text/")
    {
        if answer.status >= 400 && text.starts_with("<!DOCTYPE html>") {
            answer = as_error_page(&answer);
        } else {
            answer.text = Some(text.to_owned());
        }
    } else {
        answer.hex = Some(hex(body));
    }
    answer
}

/// Returns the parts of a page for people that a program can use.
pub(crate) fn as_error_page(answer: &RecordedResponse) -> RecordedResponse {
    let mut headers = answer.headers.clone();
    headers.retain(|name, _| name == "access-control-allow-origin");
    RecordedResponse {
        status: answer.status,
        headers,
        error_page: true,
        ..RecordedResponse::default()
    }
}

fn headers(all: &HeaderMap) -> BTreeMap<String, String> {
    let mut headers = BTreeMap::new();
    for name in all.keys().map(ureq::http::HeaderName::as_str) {
        let is_compared =
            HEADERS.contains(&name) || PREFIXES.iter().any(|prefix| name.starts_with(prefix));
        // The framework marks every answer with the hash of its body; a file's ETag is different.
        let is_hash = name == "etag" && !all.contains_key("last-modified");
        if is_compared && !is_hash {
            let values = all.get_all(name).iter();
            let values = values.map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned());
            let value = values.collect::<Vec<_>>().join(", ");
            let value = if PRESENT.contains(&name) { "*".to_owned() } else { value };
            headers.insert(name.to_owned(), value);
        }
    }
    headers
}

/// Returns the name of the web app's file with these bytes: the one that the path names, or the
/// one for every path.
fn file_of_web_app(path: &str, body: &[u8]) -> Option<String> {
    let of_path = path.split('?').next().unwrap_or_default().trim_start_matches('/');
    let folder = installed("@actual-app/web/build");
    let is_it = |name: &&str| fs::read(folder.join(name)).is_ok_and(|file| file == body);
    [of_path, "index.html"].into_iter().find(is_it).map(str::to_owned)
}
