//! Compares every value that `warren … --json` prints in a test with the JSON Schema that
//! `warren json-schema` prints for the command.

use std::collections::HashMap;
use std::fmt::Write;
use std::process::Command;
use std::sync::{LazyLock, Mutex};

use jsonschema::Validator;
use serde_json::{Value, json};

const WARREN: &str = env!("CARGO_BIN_EXE_warren");

/// The schema of one of the values that a command may print.
struct ValueSchema {
    name: String,
    validator: Validator,
}

static SCHEMAS: LazyLock<Mutex<HashMap<String, &'static [ValueSchema]>>> =
    LazyLock::new(Mutex::default);

/// Asserts that each line of the output is a value that the command may print. It checks nothing
/// if the arguments do not contain `--json`.
#[track_caller]
pub(crate) fn check(arguments: &[&str], stdout: &str) {
    if !arguments.contains(&"--json") {
        return;
    }
    for line in stdout.lines() {
        let value = serde_json::from_str(line);
        let value = value.unwrap_or_else(|error| panic!("{arguments:?}: {error}: {line}"));
        if let Some(fault) = fault(arguments, &value) {
            panic!("{arguments:?} printed {value}, which is none of:{fault}");
        }
    }
}

/// Returns the reason why the command may not print the value; `None` if it may.
pub(crate) fn fault(arguments: &[&str], value: &Value) -> Option<String> {
    let mut faults = String::new();
    for ValueSchema { name, validator } in schemas_of(&command(arguments)) {
        let error = validator.validate(value).err()?;
        write!(faults, "\n  {name}: {}: {error}", error.instance_path()).unwrap();
    }
    Some(faults)
}

/// Returns the command's name, of one to three words.
pub(crate) fn command(arguments: &[&str]) -> String {
    let words: Vec<&str> =
        arguments.iter().copied().take_while(|word| !word.starts_with('-')).take(3).collect();
    let has_subcommands = ["account", "actual-budget", "bench", "device", "mail", "storage"];
    match &words[..] {
        ["mail", second @ ("address" | "password" | "spool"), third] => {
            format!("mail {second} {third}")
        }
        [first, second, ..] if has_subcommands.contains(first) => format!("{first} {second}"),
        [first, ..] => (*first).to_owned(),
        [] => panic!("no command in {arguments:?}"),
    }
}

/// Returns the schemas of the values that a command may print; they are read once.
fn schemas_of(command: &str) -> &'static [ValueSchema] {
    let mut known = SCHEMAS.lock().unwrap();
    if let Some(schemas) = known.get(command) {
        return schemas;
    }
    let ran = Command::new(WARREN).arg("json-schema").args(command.split(' ')).output().unwrap();
    let document: Value = serde_json::from_slice(&ran.stdout)
        .unwrap_or_else(|error| panic!("the schema of `warren {command}`: {error}: {ran:?}"));
    let schema = |alternative: &Value| {
        let own = json!({"allOf": [alternative], "$defs": document["$defs"]});
        let name = alternative["$ref"].as_str().unwrap_or("a list").to_owned();
        ValueSchema { name, validator: jsonschema::validator_for(&own).unwrap() }
    };
    let schemas = document["anyOf"].as_array().unwrap().iter().map(schema);
    let schemas: &'static [ValueSchema] = Vec::leak(schemas.collect());
    known.insert(command.to_owned(), schemas);
    schemas
}
