//! The vaults of a data directory: where their files are, how they are opened and removed.
//!
//! # Invariants
//! - A vault opens with the key that its user's password or token unwrapped, never with another.
//!
//! # Not here
//! - Which vaults are open, and for how long → `engine::Databases`.

use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use accounts::VaultId;
use engine::{Databases, Encryption, Key, Options, SIDE_FILES};

use crate::error::{Error, Result};
use crate::sqlite::schema::MIGRATIONS;
use crate::sqlite::{SqliteStore, blocking};
use crate::store::Vault;

/// The vaults under one data directory.
#[derive(Clone)]
pub struct Files {
    databases: Arc<Databases>,
    pub(super) data: PathBuf,
}

impl Files {
    pub fn new(databases: Arc<Databases>, data: PathBuf) -> Self {
        Self { databases, data }
    }

    /// [`crate::Vaults::open_with`]
    pub(crate) fn open_with<E: From<Error>>(
        &self,
        vault: &VaultId,
        key: impl FnOnce() -> Result<Key, E>,
    ) -> Result<Vault, E> {
        let path = vault.path(&self.data);
        create_directory(directory_of(&path))?;
        let mut refused = None;
        let options = || match key() {
            Ok(key) => Options {
                is_sole_writer: true,
                migrations: MIGRATIONS,
                create: true,
                ..Options::new(Encryption::Key { key, cipher: None })
            },
            // The engine has no way to take an error here; without a key it opens and creates
            // nothing.
            Err(error) => {
                refused = Some(error);
                Options::new(Encryption::None)
            }
        };
        let opened = self.databases.open(&path, options);
        match refused {
            Some(error) => Err(error),
            None => Ok(Arc::new(SqliteStore::new(opened.map_err(Error::from)?))),
        }
    }

    /// [`crate::Vaults::opened`]
    pub(crate) fn opened(&self, vault: &VaultId) -> Option<Vault> {
        let database = self.databases.opened(&vault.path(&self.data))?;
        Some(Arc::new(SqliteStore::new(database)))
    }

    /// Closes a vault and deletes its files. One that is not there is no error.
    pub(crate) async fn remove(&self, vault: &VaultId) -> Result<()> {
        let (files, path) = (self.clone(), vault.path(&self.data));
        blocking(move || files.remove_file(&path)).await
    }

    fn remove_file(&self, path: &Path) -> Result<()> {
        if !directory_of(path).is_dir() {
            return Ok(());
        }
        self.databases.close(path)?;
        remove_file(path)?;
        for suffix in SIDE_FILES {
            let mut file = path.as_os_str().to_owned();
            file.push(suffix);
            remove_file(Path::new(&file))?;
        }
        sync_directory(directory_of(path))
    }
}

fn directory_of(path: &Path) -> &Path {
    path.parent().expect("a vault's path has a directory")
}

/// Makes a directory, and those above it, and sees to it that their names are on the disk.
fn create_directory(path: &Path) -> Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    let parent = directory_of(path);
    create_directory(parent)?;
    match fs::create_dir(path) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(io(path)(error)),
        _ => {}
    }
    sync_directory(parent)
}

fn remove_file(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(io(path)(error)),
        _ => Ok(()),
    }
}

fn sync_directory(path: &Path) -> Result<()> {
    File::open(path).and_then(|directory| directory.sync_all()).map_err(io(path))
}

fn io(path: &Path) -> impl FnOnce(std::io::Error) -> Error {
    let path = path.to_owned();
    move |source| Error::Io { path, source }
}
