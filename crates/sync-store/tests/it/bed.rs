//! What the tests' vaults are kept in.

use std::any::Any;
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::thread;

use accounts::VaultId;
use engine::{Databases, Key, Limits};
use postgres_lab::Server;
use sync_store::{Error, Files, Postgres, Vault, Vaults};
use tempfile::TempDir;
use tokio::sync::OnceCell;

/// A place for vaults.
pub(crate) struct Bed {
    pub(crate) vaults: Vaults,
    /// Ends with the bed.
    _server: Box<dyn Any + Send + Sync>,
}

impl Bed {
    /// A new vault.
    pub(crate) fn vault(&self) -> Vault {
        self.vaults.open_with::<Error>(&VaultId::generate(), || Ok(Key::generate())).unwrap()
    }
}

/// Files in a folder of their own.
pub(crate) fn sqlite() -> Bed {
    let store = Store::new();
    Bed { vaults: store.vaults.clone(), _server: Box::new(store) }
}

/// The tests' PostgreSQL server, started once; it ends with the process.
pub(crate) fn server() -> &'static Server {
    static SERVER: OnceLock<Server> = OnceLock::new();
    // A server waits for its start by itself, which a thread of a test's runtime may not.
    let start = || thread::spawn(|| Server::start_temporary(&["fsync=off"])).join();
    SERVER.get_or_init(|| start().unwrap().unwrap())
}

/// Rows of the tests' PostgreSQL.
pub(crate) async fn postgres() -> Bed {
    in_database("postgres").await
}

pub(crate) async fn in_database(database: &str) -> Bed {
    let postgres = Postgres::connect(&server().url(database)).await.unwrap();
    Bed { vaults: Vaults::Postgres(postgres), _server: Box::new(()) }
}

pub(crate) const SHARDS: [&str; 2] = ["shard0", "shard1"];

/// Rows of one of two databases, behind a third one that passes calls on.
pub(crate) async fn plproxy() -> Bed {
    static CLUSTER: OnceCell<()> = OnceCell::const_new();
    CLUSTER.get_or_init(cluster).await;
    in_database("proxy").await
}

async fn cluster() {
    let client = server().connect("postgres").await.unwrap();
    for database in SHARDS {
        client.batch_execute(&format!("CREATE DATABASE {database}")).await.unwrap();
    }
    proxy("proxy", SHARDS.map(|shard| (server(), shard))).await;
}

/// A new database that passes calls on, as `docs/operating/postgres.md` tells operators to make it.
pub(crate) async fn proxy(name: &str, shards: [(&Server, &str); 2]) {
    let client = server().connect("postgres").await.unwrap();
    client.batch_execute(&format!("CREATE DATABASE {name}")).await.unwrap();
    for (server, database) in shards {
        let shard = server.connect(database).await.unwrap();
        shard.batch_execute(&sync_store::schema_sql()).await.unwrap();
    }
    let [p0, p1] = shards.map(|(server, database)| {
        let (config, host) = (server.config(), "host=127.0.0.1 user=postgres");
        let password = str::from_utf8(config.get_password().unwrap()).unwrap();
        format!("{host} port={} dbname={database} password={password}", config.get_ports()[0])
    });
    let sql = format!(
        "CREATE EXTENSION plproxy;
         CREATE SERVER warren FOREIGN DATA WRAPPER plproxy OPTIONS (p0 '{p0}', p1 '{p1}');
         CREATE USER MAPPING FOR CURRENT_USER SERVER warren;"
    );
    let proxy = server().connect(name).await.unwrap();
    proxy.batch_execute(&sql).await.expect("the package postgresql-15-plproxy, or your version's");
    proxy.batch_execute(&sync_store::plproxy_sql()).await.unwrap();
}

/// A data directory, and what is open in it.
pub(crate) struct Store {
    pub(crate) databases: Arc<Databases>,
    pub(crate) vaults: Vaults,
    data: TempDir,
}

impl Store {
    pub(crate) fn new() -> Self {
        Self::open(tempfile::tempdir().unwrap())
    }

    fn open(data: TempDir) -> Self {
        let databases = Arc::new(Databases::start(Limits::default()).unwrap());
        let vaults = Vaults::Files(Files::new(Arc::clone(&databases), data.path().to_owned()));
        Self { databases, vaults, data }
    }

    /// Closes everything and opens the directory again, as a restarted server does.
    pub(crate) fn restart(self) -> Self {
        self.databases.shutdown();
        Self::open(self.data)
    }

    pub(crate) fn vault(&self) -> Vault {
        self.open_vault(&VaultId::generate(), &Key::generate()).unwrap()
    }

    pub(crate) fn open_vault(&self, vault: &VaultId, key: &Key) -> Result<Vault, Error> {
        self.vaults.open_with(vault, || Ok(key.clone()))
    }

    pub(crate) fn path(&self) -> &Path {
        self.data.path()
    }
}
