//! Placeholders for values that differ from run to run: an answer names them, later requests use
//! them, and in answers their names are compared.

use std::collections::BTreeMap;

use serde_json::Value;

/// The names of one scenario on one server.
#[derive(Default)]
pub(crate) struct Placeholders {
    /// The names and values in the order of their definition; a value's first name replaces it.
    values: Vec<(String, String)>,
}

impl Placeholders {
    /// Names an answer's values. Only UUIDs get a name; others will be reported as a difference.
    pub(crate) fn give(&mut self, names: &BTreeMap<String, String>, json: Option<&Value>) {
        for (name, pointer) in names {
            let value = json.and_then(|json| json.pointer(pointer)).and_then(Value::as_str);
            if let Some(value) = value.filter(|value| is_uuid(value)) {
                self.values.push((name.clone(), value.to_owned()));
            }
        }
    }

    /// Replaces names in a request by their values. Unknown names stay.
    pub(crate) fn fill(&self, text: &str) -> String {
        self.values.iter().fold(text.to_owned(), |text, (name, value)| {
            text.replace(&format!("{{{{{name}}}}}"), value)
        })
    }

    pub(crate) fn fill_json(&self, value: &Value) -> Value {
        strings(value, &|text| self.fill(text))
    }

    /// Replaces values in an answer by their names.
    pub(crate) fn put(&self, value: &Value) -> Value {
        strings(value, &|text| {
            let named = self.values.iter().find(|(_, value)| value == text);
            named.map_or_else(|| text.to_owned(), |(name, _)| format!("{{{{{name}}}}}"))
        })
    }
}

/// Returns the value with each of its strings changed, but not the names of fields.
fn strings(value: &Value, change: &impl Fn(&str) -> String) -> Value {
    match value {
        Value::String(text) => Value::String(change(text)),
        Value::Array(values) => values.iter().map(|value| strings(value, change)).collect(),
        Value::Object(fields) => {
            let fields = fields.iter();
            fields.map(|(name, value)| (name.clone(), strings(value, change))).collect()
        }
        _ => value.clone(),
    }
}

/// Returns whether the text is a UUID in the clients' form: version 4, lower case.
fn is_uuid(text: &str) -> bool {
    let pattern = "hhhhhhhh-hhhh-4hhh-vhhh-hhhhhhhhhhhh";
    let matches = |(byte, kind): (u8, u8)| match kind {
        b'h' => byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte),
        b'v' => b"89ab".contains(&byte),
        _ => byte == kind,
    };
    text.len() == pattern.len() && text.bytes().zip(pattern.bytes()).all(matches)
}

#[test]
fn a_value_keeps_its_first_name() {
    let (a, b) = ("11111111-2222-4333-8444-555555555555", "aaaaaaaa-bbbb-4ccc-addd-eeeeeeeeeeee");
    let mut names = Placeholders::default();
    let answer = serde_json::json!({ "a": a, "b": b, "c": "no UUID" });
    let asked = |name: &str, pointer: &str| BTreeMap::from([(name.to_owned(), pointer.to_owned())]);
    for (name, pointer) in
        [("first", "/a"), ("second", "/a"), ("b", "/b"), ("c", "/c"), ("d", "/d")]
    {
        names.give(&asked(name, pointer), Some(&answer));
    }
    let expected = serde_json::json!({ "a": "{{first}}", "b": "{{b}}", "c": "no UUID" });
    assert_eq!(names.put(&answer), expected);
    assert_eq!(names.fill_json(&expected), answer);
    assert_eq!(names.fill("{{second}}"), a);
    assert_eq!(names.fill("/x/{{b}}?{{c}}"), format!("/x/{b}?{{{{c}}}}"));
}

#[test]
fn a_uuid_is_told_by_its_shape() {
    assert!(is_uuid("01234567-89ab-4cde-bf01-23456789abcd"));
    for other in [
        "01234567-89ab-4cde-bf01-23456789abc",
        "01234567-89AB-4cde-bf01-23456789abcd",
        "01234567-89ab-1cde-bf01-23456789abcd",
        "01234567-89ab-4cde-cf01-23456789abcd",
        "01234567089ab04cde0bf01023456789abcd",
    ] {
        assert!(!is_uuid(other), "{other}");
    }
}
