//! An open mail vault.
//!
//! # Not here
//! - Its id and key → `accounts`. Its tables → `schema.rs`.

use std::path::Path;
use std::sync::Arc;

use accounts::{UnlockedAccount, VaultId};
use engine::{
    DamagePolicy, Database, DatabaseOptions, Databases, Durability, FileEncryption, Transaction,
    clock, create_directory, directory_of,
};

use crate::content::DigestKey;
use crate::error::{Error, Result};
use crate::mailboxes::{self, Mailbox, MailboxId};
use crate::messages::{self, MailboxEntry, NewMessage, StoredMessage};
use crate::prepared_message::PreparedMessage;
use crate::schema::MIGRATIONS;
use crate::sealed_delivery::keys::{MailPublicKey, MailSecretKey};

/// An open mail vault. Several processes may have the same one open. All calls block.
pub struct MailVault {
    id: VaultId,
    database: Arc<Database>,
    digest_key: DigestKey,
    delivery_key: MailSecretKey,
}

impl MailVault {
    /// Opens the mail vault `unlocked` in the data directory `data`; creates it if it is missing.
    /// If it knows of fewer than `restores_count` restores, its file comes from a backup: every
    /// mailbox gets a new UIDVALIDITY.
    pub fn open(
        databases: &Databases,
        data: &Path,
        unlocked: &UnlockedAccount,
        restores_count: u64,
    ) -> Result<Self> {
        let path = unlocked.vault.path(data);
        create_directory(directory_of(&path))?;
        let options = || DatabaseOptions {
            migrations: MIGRATIONS,
            create: true,
            damage: DamagePolicy::Report,
            ..DatabaseOptions::new(FileEncryption::Key { key: unlocked.key.clone(), cipher: None })
        };
        let database = databases.open(&path, options)?;
        let vault = Self {
            id: unlocked.vault.clone(),
            database,
            digest_key: DigestKey::derive(&unlocked.key),
            delivery_key: MailSecretKey::derive(&unlocked.key),
        };
        if vault.database.read(mailboxes::restores_count)? < restores_count {
            vault.write(move |db| mailboxes::record_restores(db, restores_count))?;
        }
        Ok(vault)
    }

    /// Parses and compresses a message, so that it can be stored in this vault.
    pub fn prepare(&self, message: &[u8]) -> Result<PreparedMessage> {
        PreparedMessage::new(message, &self.digest_key)
    }

    /// Stores messages in one transaction, in their order, and returns when the disk has them.
    /// Messages of an import that were stored before are left out. Returns how many were stored.
    pub fn store(&self, mailbox: MailboxId, messages: Vec<NewMessage>) -> Result<u32> {
        let now_ms = clock::now_ms();
        self.write(move |db| messages::store(db, mailbox, &messages, now_ms))
    }

    /// Returns all mailboxes, each after the one that contains it.
    pub fn mailboxes(&self) -> Result<Vec<Mailbox>> {
        self.database.read(mailboxes::list)
    }

    /// Returns the mailbox with a path such as `Archive/2026`.
    pub fn find_mailbox(&self, path: &str) -> Result<MailboxId> {
        self.database.read(|db| mailboxes::find(db, path))
    }

    /// Returns the mailbox with this path, which is created if it is missing.
    pub fn find_or_create_mailbox(&self, path: &str) -> Result<MailboxId> {
        match self.find_mailbox(path) {
            Err(Error::MailboxNotFound { .. }) => {
                let path = path.to_owned();
                self.write(move |db| mailboxes::find_or_create(db, &path))
            }
            found => found,
        }
    }

    /// Returns up to `count` messages of a mailbox with UIDs below `before`, the newest first.
    pub fn list(&self, mailbox: MailboxId, before: u32, count: u32) -> Result<Vec<MailboxEntry>> {
        self.database.read(|db| messages::list(db, mailbox, before, count))
    }

    /// Returns up to `count` UIDs of a mailbox above `after`, in their order.
    pub fn uids(&self, mailbox: MailboxId, after: u32, count: u32) -> Result<Vec<u32>> {
        self.database.read(|db| messages::uids(db, mailbox, after, count))
    }

    /// Returns a whole message, or `None` if the mailbox has no message with this UID.
    pub fn message(&self, mailbox: MailboxId, uid: u32) -> Result<Option<StoredMessage>> {
        self.database.read(|db| messages::read(db, mailbox, uid))
    }

    /// Whether a message of an import was stored before.
    pub(crate) fn is_imported(&self, item: &[u8; 32]) -> Result<bool> {
        self.database.read(|db| messages::is_imported(db, item))
    }

    /// Returns the key to which deliveries for this vault are sealed.
    pub fn public_key(&self) -> MailPublicKey {
        self.delivery_key.public_key()
    }

    /// Returns the vault's id, under which its deliveries wait.
    pub fn id(&self) -> &VaultId {
        &self.id
    }

    pub(crate) fn delivery_key(&self) -> &MailSecretKey {
        &self.delivery_key
    }

    pub(crate) fn read<T>(
        &self,
        transaction: impl FnOnce(&Transaction<'_>) -> Result<T>,
    ) -> Result<T> {
        self.database.read(transaction)
    }

    pub(crate) fn write<T: Send + 'static>(
        &self,
        transaction: impl Fn(&Transaction<'_>) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        self.database.write(Durability::Disk, transaction).wait()
    }
}
