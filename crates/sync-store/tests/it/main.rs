//! Vaults on real, encrypted files.
#![expect(clippy::unwrap_used, reason = "in a test, also in its helpers, a panic is the report")]

mod clients;
mod files;
mod messages;

use std::path::Path;
use std::sync::Arc;

use accounts::VaultId;
use crdt::{Message, Node, Timestamp};
use engine::{Databases, Key, Limits};
use sync_store::{Error, Vault, Vaults};
use tempfile::TempDir;

/// A data directory, and what is open in it.
struct Store {
    databases: Arc<Databases>,
    vaults: Vaults,
    data: TempDir,
}

impl Store {
    fn new() -> Self {
        Self::open(tempfile::tempdir().unwrap())
    }

    fn open(data: TempDir) -> Self {
        let databases = Arc::new(Databases::start(Limits::default()).unwrap());
        let vaults = Vaults::new(Arc::clone(&databases), data.path().to_owned());
        Self { databases, vaults, data }
    }

    /// Closes everything and opens the directory again, as a restarted server does.
    fn restart(self) -> Self {
        self.databases.shutdown();
        Self::open(self.data)
    }

    fn vault(&self) -> Vault {
        self.open_vault(&VaultId::generate(), &Key::generate()).unwrap()
    }

    fn open_vault(&self, vault: &VaultId, key: &Key) -> Result<Vault, Error> {
        self.vaults.open_with(vault, || Ok(key.clone()))
    }

    fn path(&self) -> &Path {
        self.data.path()
    }
}

fn timestamp(millis: u64) -> Timestamp {
    Timestamp::new(millis, 0, Node(7)).unwrap()
}

fn message(millis: u64, content: &str) -> Message {
    Message { timestamp: timestamp(millis), content: content.to_owned().into() }
}
