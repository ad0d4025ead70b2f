//! Compares the expected answer with the received one: both are split into places with a text
//! each.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::answer::as_error_page;
use crate::cases::RecordedResponse;
use crate::messages::SyncResponseCase;

/// A place where two answers differ; a side is `None` if it lacks the place.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ResponseDifference {
    pub(crate) place: String,
    pub(crate) expected: Option<String>,
    pub(crate) found: Option<String>,
}

/// Compares two answers. `carried` are the timestamps of the request's messages, which the answer
/// may leave out.
pub(crate) fn compare(
    expected: &RecordedResponse,
    found: &RecordedResponse,
    carried: &BTreeSet<String>,
) -> Vec<ResponseDifference> {
    // A page for people may have any other content.
    let found = if expected.error_page { &as_error_page(found) } else { found };
    let (mut expected, mut found) = (places(expected), places(found));
    let echoes = carried.iter().map(|timestamp| message_place(timestamp));
    for echo in echoes.filter(|echo| !found.contains_key(echo)).collect::<Vec<_>>() {
        expected.remove(&echo);
    }
    let places: BTreeSet<String> = expected.keys().chain(found.keys()).cloned().collect();
    let differences = places.into_iter().filter_map(|place| {
        let (expected, found) = (expected.remove(&place), found.remove(&place));
        (expected != found).then_some(ResponseDifference { place, expected, found })
    });
    differences.collect()
}

fn places(answer: &RecordedResponse) -> BTreeMap<String, String> {
    let mut places = BTreeMap::from([("status".to_owned(), answer.status.to_string())]);
    for (name, value) in &answer.headers {
        add_header(&mut places, name, value);
    }
    if let Some(json) = &answer.json {
        add_json(&mut places, "json", json);
    }
    if let Some(sync) = &answer.sync {
        add_sync(&mut places, sync);
    }
    let bodies = [("text", &answer.text), ("hex", &answer.hex), ("file", &answer.file)];
    for (kind, body) in bodies {
        places.extend(body.clone().map(|body| (kind.to_owned(), body)));
    }
    if answer.error_page {
        places.insert("error page".to_owned(), "for people".to_owned());
    }
    places
}

fn add_header(places: &mut BTreeMap<String, String>, name: &str, value: &str) {
    if name != "vary" {
        places.insert(format!("header {name}"), value.to_owned());
        return;
    }
    let varies = value.split(',').map(|field| field.trim().to_ascii_lowercase());
    // An answer that may be compressed names it here.
    for field in varies.filter(|field| field != "accept-encoding") {
        places.insert(format!("header vary: {field}"), "named".to_owned());
    }
}

/// Adds a place for each leaf, so the order of fields makes no difference.
fn add_json(places: &mut BTreeMap<String, String>, place: &str, json: &Value) {
    match json {
        Value::Object(fields) if !fields.is_empty() => {
            for (name, value) in fields {
                add_json(places, &format!("{place}/{name}"), value);
            }
        }
        Value::Array(values) if !values.is_empty() => {
            for (index, value) in values.iter().enumerate() {
                add_json(places, &format!("{place}/{index}"), value);
            }
        }
        _ => {
            places.insert(place.to_owned(), json.to_string());
        }
    }
}

fn add_sync(places: &mut BTreeMap<String, String>, sync: &SyncResponseCase) {
    places.insert("merkle".to_owned(), sync.merkle.clone());
    let mut last = String::new();
    for message in sync.messages() {
        let content = String::from_utf8_lossy(&message.content).into_owned();
        let encrypted = if message.is_encrypted { "encrypted " } else { "" };
        let place = message_place(&message.timestamp);
        if place < last {
            places.insert(format!("{place} comes after"), last);
        } else if place == last {
            places.insert(format!("{place} again"), content.clone());
        }
        places.insert(place.clone(), format!("{encrypted}{content:?}"));
        last = place;
    }
}

fn message_place(timestamp: &str) -> String {
    format!("message {timestamp}")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn answer(value: Value) -> RecordedResponse {
        serde_json::from_value(value).unwrap()
    }

    /// Compares two answers, and checks the differences as a line each.
    fn check(expected: Value, found: Value, differences: &[&str]) {
        let carried = BTreeSet::from(["2025".to_owned()]);
        let shown = |text: Option<String>| text.unwrap_or_else(|| "–".to_owned());
        let found = compare(&answer(expected), &answer(found), &carried).into_iter();
        let found = found.map(|ResponseDifference { place, expected, found }| {
            format!("{place}: {} | {}", shown(expected), shown(found))
        });
        assert_eq!(found.collect::<Vec<_>>(), differences);
    }

    #[test]
    fn an_altered_status_header_or_value_is_found() {
        let right = json!({
            "status": 200,
            "headers": {"content-type": "application/json", "vary": "Origin"},
            "json": {"status": "ok", "data": {"token": "{{token}}", "list": [1, {}]}},
        });
        let same = json!({
            "status": 200,
            "headers": {"content-type": "application/json", "vary": "accept-encoding, origin"},
            "json": {"data": {"list": [1, {}], "token": "{{token}}"}, "status": "ok"},
        });
        check(right.clone(), same, &[]);
        check(
            right.clone(),
            json!({"status": 400, "json": {"status": "ok", "data": {"list": []}}}),
            &[
                "header content-type: application/json | –",
                "header vary: origin: named | –",
                "json/data/list: – | []",
                "json/data/list/0: 1 | –",
                "json/data/list/1: {} | –",
                "json/data/token: \"{{token}}\" | –",
                "status: 200 | 400",
            ],
        );
        let mut altered = right.clone();
        altered["headers"]["content-type"] = json!("application/json; charset=utf-8");
        altered["headers"]["allow"] = json!("GET");
        altered["json"]["data"]["token"] = json!("{{other}}");
        altered["json"]["data"]["list"][0] = json!("1");
        check(
            right,
            altered,
            &[
                "header allow: – | GET",
                "header content-type: application/json | application/json; charset=utf-8",
                "json/data/list/0: 1 | \"1\"",
                "json/data/token: \"{{token}}\" | \"{{other}}\"",
            ],
        );
    }

    #[test]
    fn other_bodies_are_found() {
        let body = |kind: &str, body: Value| json!({"status": 400, kind: body});
        check(body("text", json!("a")), body("text", json!("b")), &["text: a | b"]);
        check(
            body("text", json!("a")),
            body("json", json!("a")),
            &["json: – | \"a\"", "text: a | –"],
        );
        check(body("hex", json!("00")), body("hex", json!("")), &["hex: 00 | "]);
        check(body("file", json!("a")), json!({"status": 400}), &["file: a | –"]);
        check(
            json!({"status": 400}),
            body("error_page", json!(true)),
            &["error page: – | for people"],
        );
    }

    #[test]
    fn in_place_of_an_error_page_the_status_and_who_may_read_it_matter() {
        let origin = json!({"access-control-allow-origin": "*"});
        let page = json!({"status": 500, "headers": origin, "error_page": true});
        let json = json!({
            "status": 500,
            "headers": {"access-control-allow-origin": "*", "content-type": "application/json"},
            "json": {"status": "error"},
        });
        check(page.clone(), json.clone(), &[]);
        check(
            page,
            json!({"status": 400, "text": "no"}),
            &["header access-control-allow-origin: * | –", "status: 500 | 400"],
        );
        let unexpected = json!({"status": 500, "headers": origin, "error_page": true});
        check(
            json,
            unexpected,
            &[
                "error page: – | for people",
                "header content-type: application/json | –",
                "json/status: \"error\" | –",
            ],
        );
    }

    #[test]
    fn another_trie_and_missing_or_altered_messages_are_found() {
        let sync = |messages: Value, merkle: &str| json!({"status": 200, "sync": {"messages": messages, "merkle": merkle}});
        let full = |encrypted| json!({"timestamp": "2026", "encrypted": encrypted, "hex": "62"});
        let right = sync(json!([["2024", "a"], ["2025", "e"], full(true)]), r#"{"hash":1}"#);
        check(right.clone(), right.clone(), &[]);
        // The request had the message of 2025.
        check(right.clone(), sync(json!([["2024", "a"], full(true)]), r#"{"hash":1}"#), &[]);
        check(
            right.clone(),
            sync(json!([["2024", "b"], ["2025", "f"], full(false), ["2027", ""]]), r#"{"hash":2}"#),
            &[
                r#"merkle: {"hash":1} | {"hash":2}"#,
                r#"message 2024: "a" | "b""#,
                r#"message 2025: "e" | "f""#,
                r#"message 2026: encrypted "b" | "b""#,
                r#"message 2027: – | """#,
            ],
        );
        check(
            right.clone(),
            sync(json!([full(true), ["2024", "a"], ["2024", "a"]]), r#"{ "hash":1}"#),
            &[
                r#"merkle: {"hash":1} | { "hash":1}"#,
                "message 2024 again: – | a",
                "message 2024 comes after: – | message 2026",
            ],
        );
        check(
            right,
            sync(json!([["2025", "e"]]), r#"{"hash":1}"#),
            &[r#"message 2024: "a" | –"#, r#"message 2026: encrypted "b" | –"#],
        );
    }
}
