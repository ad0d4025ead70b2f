//! Connects to PostgreSQL and creates the tables and functions there at the first start. A schema
//! of another version is refused.
//!
//! If Warren's role may not create tables, or connects through a router, an operator must create
//! them first by running [`schema_sql`].

use crate::error::{Error, Result};
use crate::postgres::pool::PostgresDatabase;

const TABLES: &str = include_str!("schema/tables.sql");
const STORE: &str = include_str!("schema/store.sql");
const GATEWAY: &str = include_str!("schema/gateway.sql");
const READ: &str = include_str!("schema/read.sql");

/// The version of the schema. It is raised with every change of the files in `schema/`.
const VERSION: i32 = 6;

/// The id of the lock that installers take: "warren" as bytes.
const LOCK: i64 = 0x7761_7272_656e;

impl PostgresDatabase {
    /// Connects, and creates the tables and functions if they are missing. `url` has the form of
    /// libpq: `postgres://user:password@host:5432/database`.
    ///
    /// Of its `sslmode`s, `require` checks the server's name and its certificate against the
    /// system's authorities; all others use no TLS.
    pub async fn connect(url: &str) -> Result<Self> {
        let postgres = Self::new(url)?;
        install(&postgres).await?;
        Ok(postgres)
    }
}

/// Returns SQL that creates the schema in one transaction. It changes nothing if the schema has
/// this version already, and fails if it has another one.
pub fn schema_sql() -> String {
    format!(
        "BEGIN;
SELECT pg_advisory_xact_lock({LOCK});
SET LOCAL client_min_messages = warning;
SET LOCAL search_path = warren, pg_temp;
DO $$
BEGIN
    IF to_regprocedure('warren.version()') IS NOT NULL THEN
        IF warren.version() <> {VERSION} THEN
            RAISE EXCEPTION 'the schema warren has version %, and version {VERSION} is needed',
                warren.version() USING HINT = 'Drop the schema, or use another database.';
        END IF;
    END IF;
END
$$;
{TABLES}
{STORE}
{GATEWAY}
{READ}
INSERT INTO schema_version (version) VALUES ({VERSION})
ON CONFLICT (one) DO NOTHING;
COMMIT;
"
    )
}

/// Returns the functions of a PL/Proxy database that passes each call on to the shard with the
/// vault. The cluster's name is `warren`.
pub fn plproxy_sql() -> String {
    let functions =
        [STORE, GATEWAY, READ].into_iter().flat_map(|file| file.split("\nCREATE OR REPLACE "));
    let proxies = functions.filter_map(|function| {
        let signature = function.split("\nLANGUAGE").next()?;
        let (name, parameters) = signature.strip_prefix("FUNCTION warren.")?.split_once('(')?;
        let is_of_vault = parameters.trim_start().starts_with("of_vault uuid");
        let run = match name {
            _ if is_of_vault => "RUN ON hashtext(of_vault::text)",
            "version" => "RUN ON 0",
            _ => return None,
        };
        let body = format!("$$ CLUSTER 'warren'; {run}; $$");
        Some(format!("CREATE OR REPLACE {signature}\nLANGUAGE plproxy AS {body};\n\n"))
    });
    let schema = "CREATE SCHEMA IF NOT EXISTS warren;\n\n".to_owned();
    std::iter::once(schema).chain(proxies).collect()
}

/// Returns the installed version; 0 if no schema is installed.
async fn installed_version(postgres: &PostgresDatabase) -> Result<i32> {
    let row =
        postgres.query_one("SELECT to_regprocedure('warren.version()') IS NOT NULL", &[]).await?;
    if !row.try_get::<_, bool>(0)? {
        return Ok(0);
    }
    Ok(postgres.query_one("SELECT warren.version()", &[]).await?.try_get(0)?)
}

pub(super) async fn install(postgres: &PostgresDatabase) -> Result<()> {
    match installed_version(postgres).await? {
        0 => create(postgres).await,
        VERSION => Ok(()),
        found if found > VERSION => Err(Error::PostgresSchema(format!(
            "it has version {found}, but version {VERSION} is required; a newer version of Warren \
             created it"
        ))),
        found => Err(Error::PostgresSchema(format!(
            "it has version {found}, but version {VERSION} is required: drop the schema `warren` \
             with all its vaults, or use another database"
        ))),
    }
}

async fn create(postgres: &PostgresDatabase) -> Result<()> {
    let connection = postgres.client().await?;
    connection.batch_execute(&schema_sql()).await.map_err(|error| match error.code() {
        Some(&tokio_postgres::error::SqlState::INSUFFICIENT_PRIVILEGE) => {
            Error::PostgresSchema("it does not exist, and this user may not create it".to_owned())
        }
        _ => error.into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_proxy_has_the_functions_that_are_called_from_outside() {
        let sql = plproxy_sql();
        let names: Vec<_> = sql
            .split("CREATE OR REPLACE FUNCTION warren.")
            .skip(1)
            .map(|function| function.split('(').next().unwrap())
            .collect();
        let expected = [
            "store",
            "rebuild",
            "rehash",
            "erase",
            "remove_vault",
            "add_device",
            "remove_devices",
            "read_gateway_state",
            "exchange",
            "clear",
            "messages_from",
            "put_chunk",
            "chunk",
            "chunk_ids",
            "replace_blob",
            "remove_blob",
            "summary",
            "messages",
            "messages_after",
            "windows",
            "buckets",
            "entries",
            "devices",
            "status",
            "verify",
            "scan",
            "version",
        ];
        assert_eq!(names, expected);
        assert_eq!(sql.matches("RUN ON hashtext(of_vault::text)").count(), expected.len() - 1);
        assert!(!sql.contains("plpgsql"));
    }
}
