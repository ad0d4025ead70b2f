//! What the tests' vaults are kept in.

use std::any::Any;
use std::path::Path;
use std::sync::Arc;

use accounts::VaultId;
use engine::{Databases, Key, Limits};
use sync_store::{Error, Files, Vault, Vaults};
use tempfile::TempDir;

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
