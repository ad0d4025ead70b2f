//! Implements `warren storage schema`: prints the SQL for the administrator of the database.

use clap::Args;
use serde::Serialize;
use utoipa::ToSchema;

use crate::output::Printer;

/// Print the SQL that creates Warren's tables and functions in PostgreSQL.
///
/// Use it if Warren's database user may not create tables and functions.
#[derive(Args)]
#[command(after_help = "Examples:\n  warren storage schema | psql shard0\n  \
                        warren storage schema --plproxy | psql proxy")]
pub(crate) struct StorageSchemaArgs {
    /// Print the functions for a PL/Proxy database that forwards calls to the shards.
    #[arg(long)]
    plproxy: bool,
}

/// The output of `warren storage schema`.
#[derive(Serialize, ToSchema)]
pub(crate) struct StorageSchemaOutput {
    /// The SQL that creates the tables and functions.
    sql: String,
}

pub(super) fn print_schema(arguments: &StorageSchemaArgs, output: Printer) -> anyhow::Result<()> {
    let sql = if arguments.plproxy { sync_store::plproxy_sql() } else { sync_store::schema_sql() };
    output.text(format_args!("{}", sql.trim_end()));
    output.json(&StorageSchemaOutput { sql })
}
