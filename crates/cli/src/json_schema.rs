//! Generates the JSON Schema of each command's `--json` output from the types that the command
//! prints (`docs/reference/formats/21-cli-json.md`).
//!
//! # Invariants
//! - Schemas are strict: each key of an object is required, and no other is allowed.
//! - Every command is in the list; a test compares it with the commands that exist.

use ::doctor::RecoverReport;
#[cfg(feature = "bench")]
use bench::BenchOutput;
#[cfg(feature = "bench")]
use bench::tune::TuneOutput;
use protocol::DeviceList;
use replica::{DeletedRow, SyncReport};
use serde::Serialize;
use serde_json::{Map, Value, json};
use utoipa::ToSchema;

use crate::commands::{
    account, actual_budget, backup, command_reference, completions, conflicts, device, doctor,
    erase, history, inspect, mail, man, recovery_phrase, serve, status, storage, sync, track,
    vacuum,
};
use crate::output::ErrorOutput;

/// Defines `OUTPUTS`, the types of the values that each command prints: `"command" => Type | Type,
/// …`.
macro_rules! outputs {
    ($($(#[$condition:meta])* $command:literal => $($output:ty)|+,)*) => {
        const OUTPUTS: &[CommandSchema] = &[$(
            $(#[$condition])*
            CommandSchema { command: $command, types: &[$(Definitions::add::<$output>),+] },
        )*];
    };
}

outputs! {
    "account add" => account::AccountAddOutput,
    "account list" => Vec<account::AccountListItem>,
    "account password" => account::AccountPasswordOutput,
    "account quota" => account::quota::AccountQuotaOutput,
    "account recovery-phrase" =>
        account::recovery_phrase::AccountRecoveryPhraseOutput<'static>,
    "account remove" => account::AccountRemoveOutput,
    "account show" => account::show::AccountShowOutput,
    "actual-budget export" => Vec<actual_budget::export::BudgetExportItem>,
    "actual-budget import" => actual_budget::import::BudgetImportOutput,
    "actual-budget list" => Vec<actual_budget::list::BudgetListItem>,
    "actual-budget restore" => actual_budget::restore::BudgetRestoreOutput,
    "backup" => backup::BackupOutput,
    #[cfg(feature = "bench")]
    "bench actual" => BenchOutput,
    #[cfg(feature = "bench")]
    "bench browser" => BenchOutput,
    #[cfg(feature = "bench")]
    "bench bulk" => BenchOutput,
    #[cfg(feature = "bench")]
    "bench checkpoint" => BenchOutput,
    #[cfg(feature = "bench")]
    "bench cipher" => BenchOutput,
    #[cfg(feature = "bench")]
    "bench compare" => BenchOutput,
    #[cfg(feature = "bench")]
    "bench mail" => BenchOutput,
    #[cfg(feature = "bench")]
    "bench pragma" => BenchOutput,
    #[cfg(feature = "bench")]
    "bench reconcile" => BenchOutput,
    #[cfg(feature = "bench")]
    "bench runtime" => BenchOutput,
    #[cfg(feature = "bench")]
    "bench sync" => BenchOutput,
    #[cfg(feature = "bench")]
    "bench tps" => BenchOutput,
    #[cfg(feature = "bench")]
    "bench vacuum" => BenchOutput,
    "clone" => SyncReport,
    "command-reference" => command_reference::CommandReference,
    "completions" => completions::CompletionsOutput,
    "conflicts" => conflicts::ConflictsOutput,
    "device list" => DeviceList,
    "device revoke" => device::DeviceRevokeOutput,
    "doctor" => doctor::doctor_output::DoctorOutput,
    "erase" => erase::EraseOutput,
    "history" => history::HistoryOutput,
    "inspect" => inspect::InspectOutput,
    "json-schema" => JsonSchemaOutput,
    "mail address add" => mail::address::MailAddressOutput,
    "mail address list" => Vec<mail::address::MailAddressOutput>,
    "mail address remove" => mail::address::MailAddressRemoveOutput,
    "mail export" => mail::export::MailExportOutput,
    "mail import" => mail::import::MailImportOutput,
    "mail list" => Vec<mail::list::MailListItem>,
    "mail mailboxes" => Vec<mail::mailboxes::MailboxListItem>,
    "mail password add" => mail::password::MailPasswordAddOutput<'static>,
    "mail password list" => Vec<mail::password::MailPasswordListItem>,
    "mail password remove" => mail::password::MailPasswordRemoveOutput,
    "mail search" => Vec<mail::list::MailListItem>,
    "mail show" => mail::show::MailShowOutput,
    "mail spool list" => mail::spool::MailSpoolOutput,
    "mail spool remove" => mail::spool::MailSpoolRemoveOutput,
    "man" => man::ManOutput,
    "recover" => RecoverReport,
    "recovery-phrase" => recovery_phrase::RecoveryPhraseOutput<'static>,
    "restore" => backup::BackupOutput,
    "serve" => serve::serve_output::ServeOutput,
    "settings" => Vec<serve::settings::markdown_table::SettingsTableRow>,
    "status" => status::StatusOutput,
    "storage migrate" => storage::StorageMigrateOutput,
    "storage schema" => storage::schema::StorageSchemaOutput,
    "sync" => SyncReport | sync::watch::WatchEvent,
    "track" => track::TrackOutput<'static>,
    #[cfg(feature = "bench")]
    "tune" => TuneOutput,
    "untrack" => track::UntrackOutput<'static>,
    "vacuum" => vacuum::VacuumOutput,
}

/// Types that only a browser receives from the engine.
const BROWSER_TYPES: &[fn(&mut Definitions) -> Value] = &[Definitions::add::<DeletedRow>];

/// The types of the values that a command may print.
struct CommandSchema {
    /// The name of the command, without `warren`.
    command: &'static str,
    types: &'static [fn(&mut Definitions) -> Value],
}

/// The output of `warren json-schema`: a JSON Schema.
#[derive(Serialize, ToSchema)]
#[schema(value_type = Object)]
pub(crate) struct JsonSchemaOutput(pub(crate) Value);

/// Returns the schema of one command's output, or of all commands as one object with a key for
/// each. `None` if the command does not exist.
pub(crate) fn document(command: Option<&str>) -> Option<JsonSchemaOutput> {
    let mut definitions = Definitions::default();
    let error = definitions.add::<ErrorOutput>();
    let mut any_of = |output: &CommandSchema| {
        let types = output.types.iter().map(|add| add(&mut definitions));
        let types: Vec<Value> = types.chain([error.clone()]).collect();
        json!({"anyOf": types})
    };
    let wanted = OUTPUTS.iter().filter(|one| command.is_none_or(|name| name == one.command));
    let schemas: Vec<_> = wanted.map(|one| (one.command, any_of(one))).collect();
    if command.is_none() {
        for add in BROWSER_TYPES {
            add(&mut definitions);
        }
    }
    let mut schemas =
        schemas.iter().map(|(name, schema)| ((*name).to_owned(), definitions.strict(schema)));
    let mut document = if command.is_some() {
        schemas.next()?.1
    } else {
        json!({"type": "object", "properties": schemas.collect::<Map<_, _>>()})
    };
    let strict = definitions.by_name.iter();
    let strict = strict.map(|(name, schema)| (name.clone(), definitions.strict(schema)));
    document["$defs"] = strict.collect::<Map<_, _>>().into();
    document["$schema"] = "https://json-schema.org/draft/2020-12/schema".into();
    document["title"] = match command {
        Some(command) => format!("A value that `warren {command} --json` prints").into(),
        None => "Values that commands print with --json, by command".into(),
    };
    Some(JsonSchemaOutput(document))
}

/// The prefix of utoipa's references.
const COMPONENTS: &str = "#/components/schemas/";

/// The types that schemas refer to.
#[derive(Default)]
struct Definitions {
    by_name: Map<String, Value>,
}

impl Definitions {
    /// Adds a type and those that it refers to, and returns the schema of its values.
    fn add<T: ToSchema>(&mut self) -> Value {
        let mut named = Vec::new();
        T::schemas(&mut named);
        for (name, schema) in named {
            self.insert(name, to_value(&schema));
        }
        let schema = to_value(&T::schema());
        // A list has no name of its own, and a reference needs none.
        if schema.get("$ref").is_some() || schema["type"] == "array" {
            return schema;
        }
        let name = T::name().into_owned();
        let reference = json!({"$ref": format!("{COMPONENTS}{name}")});
        self.insert(name, schema);
        reference
    }

    fn insert(&mut self, name: String, schema: Value) {
        if let Some(known) = self.by_name.get(&name) {
            assert_eq!(*known, schema, "two types have the schema name {name}");
        }
        self.by_name.insert(name, schema);
    }

    /// Returns the schema with all keys of its objects required, and no others allowed.
    fn strict(&self, schema: &Value) -> Value {
        let mut schema = match schema {
            Value::Array(parts) => return parts.iter().map(|part| self.strict(part)).collect(),
            Value::Object(schema) => schema.clone(),
            other => return other.clone(),
        };
        self.flatten(&mut schema);
        if let Some(Value::String(reference)) = schema.get_mut("$ref") {
            *reference = reference.replace(COMPONENTS, "#/$defs/");
        }
        // `oneOf` requires that exactly one matches: that is useful for writers of a value, not for
        // readers.
        if let Some(one_of) = schema.remove("oneOf") {
            schema.insert("anyOf".to_owned(), one_of);
        }
        if let Some(Value::Object(properties)) = schema.get("properties") {
            let keys: Vec<_> = properties.keys().cloned().collect();
            schema.insert("required".to_owned(), keys.into());
            schema.insert("additionalProperties".to_owned(), false.into());
        }
        schema.iter().map(|(key, part)| (key.clone(), self.strict(part))).collect()
    }

    /// Merges the keys of all parts of an `allOf` into one object.
    fn flatten(&self, schema: &mut Map<String, Value>) {
        let Some(Value::Array(parts)) = schema.remove("allOf") else { return };
        let mut properties = Map::new();
        for part in parts {
            let mut part = self.resolve(&part);
            self.flatten(&mut part);
            for (key, value) in part {
                match (key.as_str(), value) {
                    ("properties", Value::Object(keys)) => properties.extend(keys),
                    (_, value) => drop(schema.entry(key).or_insert(value)),
                }
            }
        }
        if let Some(Value::Object(own)) = schema.get("properties") {
            properties.extend(own.clone());
        }
        if !properties.is_empty() {
            schema.insert("properties".to_owned(), properties.into());
        }
    }

    /// Returns the target of a reference.
    fn resolve(&self, schema: &Value) -> Map<String, Value> {
        let name = schema["$ref"].as_str().and_then(|place| place.strip_prefix(COMPONENTS));
        let schema = name.map_or(schema, |name| &self.by_name[name]);
        schema.as_object().cloned().unwrap_or_default()
    }
}

fn to_value(schema: &impl Serialize) -> Value {
    serde_json::to_value(schema).expect("a schema is JSON")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use clap::Command;

    use super::*;

    /// Keys of numbers whose unit is in another key, or that have none.
    const WITHOUT_UNIT: &[&str] = &[
        "at_least",
        "at_most",
        "count",
        "cursor",
        "delivery_id",
        "format",
        "high",
        "low",
        "max",
        "median",
        "message_number",
        "min",
        "new_key",
        "old_key",
        "pid",
        "published",
        "uid",
        "uid_next",
        "uid_validity",
        "x",
    ];
    const UNITS: &[&str] = &["_bytes", "_count", "_max", "_ms", "_ratio", "_us"];

    /// Returns all commands, without those that only group others.
    fn commands(command: &Command, above: &str) -> Vec<String> {
        let below: Vec<_> = command.get_subcommands().collect();
        if below.is_empty() {
            return vec![above.trim_start().to_owned()];
        }
        below.iter().flat_map(|one| commands(one, &format!("{above} {}", one.get_name()))).collect()
    }

    #[test]
    fn every_command_is_here() {
        let expected: BTreeSet<String> = commands(&crate::cli(), "").into_iter().collect();
        let described: Vec<_> = OUTPUTS.iter().map(|output| output.command.to_owned()).collect();
        assert_eq!(described.len(), expected.len(), "each once");
        assert_eq!(described.into_iter().collect::<BTreeSet<_>>(), expected);
        assert!(document(Some("nope")).is_none());
    }

    /// Collects the keys of all objects, and the types of their values.
    fn keys(schema: &Value, found: &mut Vec<(String, Value)>) {
        match schema {
            Value::Array(parts) => parts.iter().for_each(|part| keys(part, found)),
            Value::Object(parts) => {
                if let Some(properties) = parts.get("properties").and_then(Value::as_object) {
                    found.extend(properties.clone());
                }
                parts.values().for_each(|part| keys(part, found));
            }
            _ => {}
        }
    }

    #[test]
    fn keys_say_their_unit_and_are_no_questions() {
        let mut definitions = document(None).unwrap().0["$defs"].take();
        // The keys of this object are reasons.
        definitions.as_object_mut().unwrap().remove("RejectionCounts");
        let mut found = Vec::new();
        keys(&definitions, &mut found);
        assert!(found.len() > 400, "{}", found.len());
        for (key, schema) in found {
            let is_letter = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
            assert!(key.chars().all(is_letter), "{key} is not snake_case");
            let text = schema["type"].to_string();
            let is_question = ["is_", "has_", "can_"].iter().any(|word| key.starts_with(word));
            assert!(!is_question, "{key}: {schema}");
            let is_number = text.contains("integer") || text.contains("number");
            let has_unit = UNITS.iter().any(|unit| key.ends_with(unit));
            let is_clear = has_unit || WITHOUT_UNIT.contains(&&*key);
            assert!(!is_number || is_clear, "{key} has no unit: {schema}");
        }
    }

    #[test]
    fn flattened_types_are_one_object() {
        let document = document(Some("status")).unwrap().0;
        let status = &document["$defs"]["StatusOutput"];
        for key in ["node_id", "tables", "sync_status", "verification"] {
            assert!(status["properties"][key].is_object(), "{key} in {status}");
            assert!(status["required"].as_array().unwrap().contains(&key.into()), "{key}");
        }
        assert_eq!(status["additionalProperties"], false);
        assert!(!document.to_string().contains("allOf"));
    }
}
