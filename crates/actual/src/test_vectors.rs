//! Reads the test vectors that the published packages created: `vectors/actual/published.json`.

use serde_json::Value;

/// Returns a section of the file, which is a list.
pub(crate) fn section(name: &str) -> Vec<Value> {
    let text = include_str!("../../../vectors/actual/published.json");
    let mut all: Value = serde_json::from_str(text).unwrap();
    let Value::Array(section) = all[name].take() else { panic!("no list of {name}") };
    assert!(!section.is_empty(), "{name} is empty");
    section
}

/// Returns a member that is a text.
pub(crate) fn text<'a>(value: &'a Value, member: &str) -> &'a str {
    value[member].as_str().unwrap()
}

/// Returns a list of texts.
pub(crate) fn texts(value: &Value) -> Vec<&str> {
    value.as_array().unwrap().iter().map(|text| text.as_str().unwrap()).collect()
}

/// Decodes a member in hexadecimal.
pub(crate) fn hex(value: &Value, member: &str) -> Vec<u8> {
    let digits = text(value, member).as_bytes().chunks(2);
    digits.map(|two| u8::from_str_radix(str::from_utf8(two).unwrap(), 16).unwrap()).collect()
}
