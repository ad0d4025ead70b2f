//! Lays out case files: values that fit are on one line, and the fields of a step come in the
//! order in which people read them.

use std::fmt::Write as _;

use serde_json::{Map, Value};

/// The maximum length of a line with its indentation, in bytes.
const LINE_BYTES_MAX: usize = 120;
/// The order of fields. Others come after them, in alphabetical order.
const FIELDS: &[&str] = &[
    "about",
    "scenarios",
    "name",
    "continues",
    "hurries",
    "steps",
    "why",
    "request",
    "status",
    "headers",
    "timestamp",
    "json",
    "text",
    "hex",
    "fill",
    "sync",
    "file",
    "names",
    "expected",
    "warren",
];
/// The fields that never share a line with others.
const OPEN: &[&str] = &["scenarios", "steps", "request"];

/// Returns JSON that a person can read, with a newline at its end.
pub(crate) fn layout(value: &Value) -> String {
    let mut text = String::new();
    add(&mut text, value, 0, 0);
    text.push('\n');
    text
}

/// Adds a value; `after` bytes of the line precede it.
fn add(text: &mut String, value: &Value, indent: usize, after: usize) {
    let line = on_one_line(value);
    if !is_open(value) && indent + after + line.len() < LINE_BYTES_MAX {
        return text.push_str(&line);
    }
    let inner = " ".repeat(indent + 2);
    let mut separator = "";
    match value {
        Value::Object(fields) => {
            text.push('{');
            for (name, value) in in_order(fields) {
                let name = format!("{}: ", Value::from(name.as_str()));
                write!(text, "{separator}\n{inner}{name}").unwrap();
                add(text, value, indent + 2, name.len());
                separator = ",";
            }
            write!(text, "\n{}}}", &inner[2..]).unwrap();
        }
        Value::Array(values) => {
            text.push('[');
            for value in values {
                write!(text, "{separator}\n{inner}").unwrap();
                add(text, value, indent + 2, 0);
                separator = ",";
            }
            write!(text, "\n{}]", &inner[2..]).unwrap();
        }
        _ => text.push_str(&line),
    }
}

fn is_open(value: &Value) -> bool {
    value.as_object().is_some_and(|fields| OPEN.iter().any(|name| fields.contains_key(*name)))
}

fn on_one_line(value: &Value) -> String {
    match value {
        Value::Object(fields) => {
            let fields = in_order(fields).into_iter();
            let fields = fields.map(|(name, value)| {
                format!("{}: {}", Value::from(name.as_str()), on_one_line(value))
            });
            format!("{{{}}}", fields.collect::<Vec<_>>().join(", "))
        }
        Value::Array(values) => {
            format!("[{}]", values.iter().map(on_one_line).collect::<Vec<_>>().join(", "))
        }
        _ => value.to_string(),
    }
}

fn in_order(fields: &Map<String, Value>) -> Vec<(&String, &Value)> {
    let mut fields: Vec<_> = fields.iter().collect();
    let place = |name: &str| FIELDS.iter().position(|field| *field == name).unwrap_or(FIELDS.len());
    fields.sort_by_key(|(name, _)| (place(name), *name));
    fields
}

#[test]
fn what_fits_is_on_one_line_and_fields_are_in_order() {
    let long = "x".repeat(LINE_BYTES_MAX);
    let value = serde_json::json!({
        "b": 1, "a": [true, null, {"z": 1, "status": 2}],
        "name": "n", "steps": [{"request": "r", "name": long}],
    });
    let expected = format!(
        "{{\n  \"name\": \"n\",\n  \"steps\": [\n    {{\n      \"name\": \"{long}\",\n      \
         \"request\": \"r\"\n    }}\n  ],\n  \"a\": [true, null, {{\"status\": 2, \"z\": 1}}],\n  \
         \"b\": 1\n}}\n"
    );
    assert_eq!(layout(&value), expected);
    assert_eq!(serde_json::from_str::<serde_json::Value>(&layout(&value)).unwrap(), value);
}
