//! Computes the identity by which a finding is recognized in another report.

use serde_json::{Map, Value};

/// Returns path, code and names (tables, indexes, columns), but no numbers, processes or messages.
pub(crate) fn identity(path: &str, code: &str, details: &Map<String, Value>) -> String {
    let is_name = |value: &Value| match value {
        Value::String(_) => true,
        Value::Array(values) => values.iter().all(Value::is_string),
        _ => false,
    };
    let names = details.iter().filter(|(name, value)| *name != "message" && is_name(value));
    let names: Vec<String> = names.map(|(name, value)| format!("{name} {value}")).collect();
    format!("{path}: {code} {}", names.join(", ")).trim_end().to_owned()
}
