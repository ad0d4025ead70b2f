//! Implements `warren json-schema`: prints the schema of a command's `--json` output.

use clap::Args;

use crate::json_schema;
use crate::output::{CommandError, Printer};

/// Print the JSON Schema of a command's --json output.
///
/// The schema covers results and errors. If a command prints several lines, each line is one such
/// value.
#[derive(Args)]
#[command(after_help = "Examples:\n  warren json-schema sync\n  \
                        warren json-schema device list > device-list.schema.json\n  \
                        warren json-schema > warren.schema.json")]
pub(crate) struct JsonSchemaArgs {
    /// Command to describe. Default: all commands, one key for each.
    #[arg(value_name = "COMMAND")]
    command: Vec<String>,
}

pub(crate) fn run(arguments: &JsonSchemaArgs, output: Printer) -> anyhow::Result<()> {
    let command = arguments.command.join(" ");
    let named = (!command.is_empty()).then_some(&*command);
    let unknown = || {
        CommandError::usage(format!("unknown command `warren {command}`"))
            .with_hint("run `warren --help` to list the commands")
    };
    let schema = json_schema::document(named).ok_or_else(unknown)?;
    output.text(format_args!("{:#}", schema.0));
    output.json(&schema)
}
