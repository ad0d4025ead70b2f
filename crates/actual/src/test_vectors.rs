//! What the published packages made, for the tests: `vectors/actual/published.json`.

use serde_json::Value;

/// A section, which is a list.
pub(crate) fn section(name: &str) -> Vec<Value> {
    let text = include_str!("../../../vectors/actual/published.json");
    let mut all: Value = serde_json::from_str(text).unwrap();
    let Value::Array(section) = all[name].take() else { panic!("no list of {name}") };
    assert!(!section.is_empty(), "{name} is empty");
    section
}

/// A member that is a text.
pub(crate) fn text<'a>(value: &'a Value, member: &str) -> &'a str {
    value[member].as_str().unwrap()
}

/// A list of texts.
pub(crate) fn texts(value: &Value) -> Vec<&str> {
    value.as_array().unwrap().iter().map(|text| text.as_str().unwrap()).collect()
}

/// A member in hexadecimal.
pub(crate) fn hex(value: &Value, member: &str) -> Vec<u8> {
    let digits = text(value, member).as_bytes().chunks(2);
    digits.map(|two| u8::from_str_radix(str::from_utf8(two).unwrap(), 16).unwrap()).collect()
}
