//! Connections to PostgreSQL, and calls of single functions on them.
//!
//! # Invariants
//! - Statements are unnamed and declare their types: they work through poolers and routers, which
//!   send each to any free connection.
//! - Every wait has a limit. A connection whose response did not arrive in time is not used again.
//! - No error and no log line contains the password.

use std::time::Duration;

use deadpool_postgres::{Manager, ManagerConfig, Object, Pool, PoolError, RecyclingMethod};
use tokio::time::timeout;
use tokio_postgres::config::{Config, Host, SslMode};
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{NoTls, Row};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::error::{Error, Result};
use crate::postgres::vault_locks::VaultLocks;

/// The maximum number of connections. PostgreSQL uses a process for each, and a few per core use
/// the whole machine.
const CONNECTIONS_MAX: usize = 16;
/// The time limit for opening a connection, including TLS and the password.
const CONNECT_MAX: Duration = Duration::from_secs(10);
/// The time limit for waiting for a free connection.
const WAIT_MAX: Duration = Duration::from_secs(20);
/// The time after which PostgreSQL cancels a statement. Checking a vault of ten million messages
/// takes half of it.
const STATEMENT_MAX: Duration = Duration::from_mins(1);
/// The time after which PostgreSQL stops waiting for a row that another transaction has locked. A
/// full request holds its rows for less than a second.
const LOCK_MAX: Duration = Duration::from_secs(10);
/// The time limit for a response: PostgreSQL's own limit, and the way there and back.
const ANSWER_MAX: Duration = Duration::from_secs(70);
/// The time without any reply after which a connection counts as lost.
const UNANSWERED_MAX: Duration = Duration::from_secs(30);

/// A parameter of a statement, with its type.
pub(super) type PostgresParameter<'a> = (&'a (dyn ToSql + Sync), Type);

/// A PostgreSQL database that stores vaults. Cloning it is cheap.
#[derive(Clone)]
pub struct PostgresDatabase {
    pool: Pool,
    /// The name for texts; it contains no user and no password.
    name: String,
    pub(super) vault_locks: VaultLocks,
}

impl PostgresDatabase {
    /// Creates a pool that opens connections when they are needed. The URL is as for
    /// [`PostgresDatabase::connect`].
    pub(super) fn new(url: &str) -> Result<Self> {
        let config = settings(url)?;
        let name = name_of(&config);
        let recycling_method = RecyclingMethod::Fast;
        let manager = ManagerConfig { recycling_method };
        let manager = match config.get_ssl_mode() {
            SslMode::Require => {
                let tls = MakeRustlsConnect::with_native_certs();
                let (tls, _unreadable) = tls.map_err(|errors| {
                    Error::PostgresUrl(format!(
                        "no certificate authorities found on this system: {errors:?}"
                    ))
                })?;
                Manager::from_config(config, tls, manager)
            }
            _ => Manager::from_config(config, NoTls, manager),
        };
        let pool = Pool::builder(manager).max_size(CONNECTIONS_MAX).build();
        let pool = pool.map_err(|error| Error::Unavailable(error.into()))?;
        Ok(Self { pool, name, vault_locks: VaultLocks::new() })
    }

    /// Returns the host and database.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) async fn client(&self) -> Result<Object> {
        match timeout(WAIT_MAX, self.pool.get()).await {
            Ok(Ok(device)) => Ok(device),
            Ok(Err(PoolError::Backend(error))) => Err(error.into()),
            Ok(Err(error)) => Err(Error::Unavailable(error.into())),
            Err(elapsed) => Err(Error::Busy(elapsed.into())),
        }
    }

    /// Returns all rows of one call.
    pub(super) async fn query_all(
        &self,
        sql: &str,
        parameters: &[PostgresParameter<'_>],
    ) -> Result<Vec<Row>> {
        let device = self.client().await?;
        match timeout(ANSWER_MAX, device.query_typed(sql, parameters)).await {
            Ok(rows) => Ok(rows?),
            Err(elapsed) => {
                // Its response may still arrive, and would be taken for that of the next call.
                drop(Object::take(device));
                Err(Error::Unavailable(elapsed.into()))
            }
        }
    }

    /// Returns the row of a call that always has one.
    pub(super) async fn query_one(
        &self,
        sql: &str,
        parameters: &[PostgresParameter<'_>],
    ) -> Result<Row> {
        let rows = self.query_all(sql, parameters).await?;
        Ok(rows.into_iter().next().expect("the function returns one row"))
    }
}

/// Parses a URL's settings and adds the limits.
fn settings(url: &str) -> Result<Config> {
    // In this client, `require` means what libpq calls `verify-full`.
    let url = url.replacen("sslmode=verify-full", "sslmode=require", 1);
    let mut config: Config = url
        .parse()
        .map_err(|error: tokio_postgres::Error| Error::PostgresUrl(error.to_string()))?;
    let options = format!(
        "{} -c statement_timeout={} -c lock_timeout={} \
         -c default_transaction_isolation=read\\ committed",
        config.get_options().unwrap_or_default(),
        STATEMENT_MAX.as_millis(),
        LOCK_MAX.as_millis(),
    );
    config.options(options.trim());
    config.application_name("warren");
    config.connect_timeout(CONNECT_MAX);
    config.tcp_user_timeout(UNANSWERED_MAX);
    Ok(config)
}

fn name_of(config: &Config) -> String {
    let mut ports = config.get_ports().iter();
    let hosts = config.get_hosts().iter().map(|host| {
        let port = ports.next().map(|port| format!(":{port}")).unwrap_or_default();
        match host {
            Host::Tcp(name) => format!("{name}{port}"),
            #[cfg(unix)]
            Host::Unix(path) => path.display().to_string(),
        }
    });
    let hosts = hosts.collect::<Vec<_>>().join(",");
    format!("{hosts}/{}", config.get_dbname().or(config.get_user()).unwrap_or_default())
}
