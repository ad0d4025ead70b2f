//! Connections to PostgreSQL, and one call of one function on one of them.
//!
//! # Invariants
//! - Statements are unnamed and say their types: they work through poolers and routers, which send
//!   each to whichever connection is free.
//! - Every wait has an end; a connection whose answer did not come in time is not used again.
//! - The password is in no error and in no log line.

use std::time::Duration;

use deadpool_postgres::{Manager, ManagerConfig, Object, Pool, PoolError, RecyclingMethod};
use tokio::time::timeout;
use tokio_postgres::config::{Config, Host, SslMode};
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{NoTls, Row};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::error::{Error, Result};
use crate::postgres::vault_locks::VaultLocks;

/// Connections at one time. PostgreSQL takes a process for each, and a few per core do all that a
/// machine can.
const CONNECTIONS_MAX: usize = 16;
/// For a connection to be made, TLS and password included.
const CONNECT_MAX: Duration = Duration::from_secs(10);
/// For a connection to become free.
const WAIT_MAX: Duration = Duration::from_secs(20);
/// After which PostgreSQL gives up a statement. Checking a vault of ten million messages takes
/// half of it.
const STATEMENT_MAX: Duration = Duration::from_mins(1);
/// After which PostgreSQL gives up waiting for another transaction's row. A full request's takes
/// less than a second.
const LOCK_MAX: Duration = Duration::from_secs(10);
/// After which we give up an answer: PostgreSQL's own limit, and the way there and back.
const ANSWER_MAX: Duration = Duration::from_secs(70);
/// After which a connection counts as lost if nothing comes back.
const UNANSWERED_MAX: Duration = Duration::from_secs(30);

/// A statement's parameter, with its type.
pub(super) type PostgresParameter<'a> = (&'a (dyn ToSql + Sync), Type);

/// A PostgreSQL database that holds vaults. Cheap to clone.
#[derive(Clone)]
pub struct PostgresDatabase {
    pool: Pool,
    /// For people: no user, no password.
    name: String,
    pub(super) vault_locks: VaultLocks,
}

impl PostgresDatabase {
    /// A pool that makes its connections when they are needed. The URL is as for
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

    /// Host and database.
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

    /// All rows of one call.
    pub(super) async fn query_all(
        &self,
        sql: &str,
        parameters: &[PostgresParameter<'_>],
    ) -> Result<Vec<Row>> {
        let device = self.client().await?;
        match timeout(ANSWER_MAX, device.query_typed(sql, parameters)).await {
            Ok(rows) => Ok(rows?),
            Err(elapsed) => {
                // Its answer may come yet, and would be taken for the next call's.
                drop(Object::take(device));
                Err(Error::Unavailable(elapsed.into()))
            }
        }
    }

    /// The row of a call that always has one.
    pub(super) async fn query_one(
        &self,
        sql: &str,
        parameters: &[PostgresParameter<'_>],
    ) -> Result<Row> {
        let rows = self.query_all(sql, parameters).await?;
        Ok(rows.into_iter().next().expect("the function returns one row"))
    }
}

/// The URL's settings, and the limits.
fn settings(url: &str) -> Result<Config> {
    // What `require` means here is what libpq calls so.
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
