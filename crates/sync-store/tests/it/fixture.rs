//! Fixtures: the storages of the tests' vaults.

use std::any::Any;
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::thread;

use accounts::VaultId;
use engine::{DatabaseKey, Databases, EngineLimits};
use postgres_lab::PostgresServer;
use sync_store::{Error, PostgresDatabase, Vault, VaultFiles, Vaults};
use tempfile::TempDir;
use tokio::sync::OnceCell;

/// A storage for vaults.
pub(crate) struct VaultsFixture {
    pub(crate) vaults: Vaults,
    /// The server or data directory, which lives as long as the fixture.
    _server: Box<dyn Any + Send + Sync>,
}

impl VaultsFixture {
    /// Creates a new vault.
    pub(crate) fn vault(&self) -> Vault {
        self.vaults
            .open_with::<Error>(&VaultId::generate(), || Ok(DatabaseKey::generate()))
            .unwrap()
    }
}

/// Creates a storage of files in a directory of its own.
pub(crate) fn sqlite() -> VaultsFixture {
    let store = DataDirFixture::new();
    VaultsFixture { vaults: store.vaults.clone(), _server: Box::new(store) }
}

/// Returns the tests' PostgreSQL server, which is started once and ends with the process.
pub(crate) fn server() -> &'static PostgresServer {
    static SERVER: OnceLock<PostgresServer> = OnceLock::new();
    // Starting blocks the thread, which a thread of a test's runtime must not do.
    let start = || thread::spawn(|| PostgresServer::start_temporary(&["fsync=off"])).join();
    SERVER.get_or_init(|| start().unwrap().unwrap())
}

/// Creates a storage in the tests' PostgreSQL.
pub(crate) async fn postgres() -> VaultsFixture {
    in_database("postgres").await
}

pub(crate) async fn in_database(database: &str) -> VaultsFixture {
    let postgres = PostgresDatabase::connect(&server().url(database)).await.unwrap();
    VaultsFixture { vaults: Vaults::Postgres(postgres), _server: Box::new(()) }
}

pub(crate) const SHARDS: [&str; 2] = ["shard0", "shard1"];

/// Creates a storage in two databases, behind a third one that passes calls on.
pub(crate) async fn plproxy() -> VaultsFixture {
    static CLUSTER: OnceCell<()> = OnceCell::const_new();
    CLUSTER.get_or_init(cluster).await;
    in_database("proxy").await
}

async fn cluster() {
    let device = server().connect("postgres").await.unwrap();
    for database in SHARDS {
        device.batch_execute(&format!("CREATE DATABASE {database}")).await.unwrap();
    }
    proxy("proxy", SHARDS.map(|shard| (server(), shard))).await;
}

/// Creates a database that passes calls on, as `docs/operating/postgres.md` describes for
/// operators.
pub(crate) async fn proxy(name: &str, shards: [(&PostgresServer, &str); 2]) {
    let device = server().connect("postgres").await.unwrap();
    device.batch_execute(&format!("CREATE DATABASE {name}")).await.unwrap();
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

/// A data directory and its open databases.
pub(crate) struct DataDirFixture {
    pub(crate) databases: Arc<Databases>,
    pub(crate) vaults: Vaults,
    data: TempDir,
}

impl DataDirFixture {
    pub(crate) fn new() -> Self {
        Self::open(tempfile::tempdir().unwrap())
    }

    fn open(data: TempDir) -> Self {
        let databases = Arc::new(Databases::start(EngineLimits::default()).unwrap());
        let vaults = Vaults::Files(VaultFiles::new(Arc::clone(&databases), data.path().to_owned()));
        Self { databases, vaults, data }
    }

    /// Closes everything and opens the directory again, as a restarted server does.
    pub(crate) fn restart(self) -> Self {
        self.databases.shutdown();
        Self::open(self.data)
    }

    pub(crate) fn vault(&self) -> Vault {
        self.open_vault(&VaultId::generate(), &DatabaseKey::generate()).unwrap()
    }

    pub(crate) fn open_vault(&self, vault: &VaultId, key: &DatabaseKey) -> Result<Vault, Error> {
        self.vaults.open_with(vault, || Ok(key.clone()))
    }

    pub(crate) fn path(&self) -> &Path {
        self.data.path()
    }
}
