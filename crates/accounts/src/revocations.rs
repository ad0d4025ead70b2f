//! The list of revocations: what an older accounts file must not bring back. The list is a file next
//! to the accounts file, and only grows. It is applied to whatever accounts file a server finds.
//!
//! # Invariants
//! - A line is on the disk before the change that it is about is committed. So the list never lacks
//!   a change that was acknowledged. One that was rolled back is cancelled; one whose outcome nobody
//!   knows, because the process ended or the disk failed, may be made when the list is applied.
//! - Applying a list twice, or one that is older than the accounts file, changes nothing.
//! - Keys are wrapped, as in the accounts file. Unlike that file, the list keeps the wraps of former
//!   passwords.
//!
//! # Not here
//! - When it is applied → `server` at its start, `warren restore`.

mod line;

use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use engine::{directory_of, sync_directory};
use rusqlite::{Connection, params};

pub use self::line::ParsedRevocations;
pub(crate) use self::line::Revocation;
use crate::credentials::password_record::write_wrap;
use crate::error::{Error, Result};
use crate::id::{AccountId, VaultId, vault_of_column};

/// The name of the list in a data directory.
pub const REVOCATIONS_FILE: &str = "revocations";

/// The list of one data directory. Several processes may append.
#[derive(Clone)]
pub(crate) struct RevocationList(Arc<PathBuf>);

/// What came of applying a list to an accounts file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AppliedRevocations {
    /// How many lines changed something: the accounts file was older than they are.
    pub applied_count: u64,
    /// Vaults of accounts that were removed now: nothing opens their files any more.
    pub removed_vaults: Vec<VaultId>,
    /// How many lines could not be looked up, because the accounts file is damaged there.
    pub unknown_count: u64,
    /// [`ParsedRevocations::damaged_lines`]
    pub damaged_lines: Vec<usize>,
}

impl RevocationList {
    pub(crate) fn new(data: &Path) -> Self {
        Self(Arc::new(data.join(REVOCATIONS_FILE)))
    }

    pub(crate) fn read(&self) -> Result<ParsedRevocations> {
        match fs::read(&**self.0) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(ParsedRevocations::parse(&[])),
            list => Ok(ParsedRevocations::parse(&list.map_err(|source| self.error(source))?)),
        }
    }

    /// Returns when the disk has the lines.
    pub(crate) fn append(&self, lines: &str) -> Result<()> {
        let path = &**self.0;
        let is_new = !path.exists();
        let append = || -> std::io::Result<()> {
            let options = OpenOptions::new().append(true).create(true).mode(0o600).open(path);
            let mut list = options?;
            // In one call, so that lines of several processes do not mix.
            list.write_all(lines.as_bytes())?;
            list.sync_data()
        };
        append().map_err(|source| self.error(source))?;
        if is_new { Ok(sync_directory(directory_of(path))?) } else { Ok(()) }
    }

    fn error(&self, source: std::io::Error) -> Error {
        engine::Error::Io { path: self.0.to_path_buf(), source }.into()
    }
}

impl Revocation {
    /// Whether an accounts file is older than this.
    pub(crate) fn is_missing(&self, db: &Connection) -> Result<bool> {
        let is_missing = match self {
            Self::Device(device) => {
                let sql = "SELECT 1 FROM device WHERE id = ?1";
                db.prepare_cached(sql)?.exists([device.as_str()])?
            }
            Self::Account(vault) => {
                let sql = "SELECT 1 FROM account WHERE vault_id = ?1";
                db.prepare_cached(sql)?.exists([vault.as_str()])?
            }
            Self::Password(vault, number, _) => {
                let sql = "SELECT 1 FROM account WHERE vault_id = ?1 AND wrap_number < ?2";
                db.prepare_cached(sql)?.exists(params![vault.as_str(), number])?
            }
        };
        Ok(is_missing)
    }

    pub(crate) fn apply(&self, db: &Connection, applied: &mut AppliedRevocations) -> Result<()> {
        // By now it may have been applied, or a newer password of the same account.
        if !self.is_missing(db)? {
            return Ok(());
        }
        applied.applied_count += 1;
        match self {
            Self::Device(device) => {
                // Those that it registered have lines of their own, unless they stayed.
                let sql = "UPDATE device SET registered_by = NULL
                           WHERE account_id = (SELECT account_id FROM device WHERE id = ?1)
                               AND registered_by = ?1";
                db.prepare_cached(sql)?.execute([device.as_str()])?;
                let sql = "DELETE FROM device WHERE id = ?1";
                db.prepare_cached(sql)?.execute([device.as_str()])?;
            }
            Self::Account(vault) => {
                applied.removed_vaults.extend(vaults_of(db, "vault_id", vault.as_str())?);
                let sql = "DELETE FROM account WHERE vault_id = ?1";
                db.prepare_cached(sql)?.execute([vault.as_str()])?;
            }
            Self::Password(vault, number, wrap) => {
                let account = "SELECT id FROM account WHERE vault_id = ?1";
                let account =
                    db.prepare_cached(account)?.query_row([vault.as_str()], |row| row.get(0))?;
                write_wrap(db, AccountId(account), wrap, *number)?;
            }
        }
        Ok(())
    }
}

/// The vaults of the account in whose row `column` has this value, its own first.
pub(crate) fn vaults_of(db: &Connection, column: &str, value: &str) -> Result<Vec<VaultId>> {
    let mut vaults = db.prepare_cached(&format!(
        "SELECT vault_id FROM account WHERE {column} = ?1
         UNION ALL
         SELECT sub_vault.vault_id
         FROM sub_vault JOIN account ON id = account_id WHERE account.{column} = ?1"
    ))?;
    let vaults =
        vaults.query_and_then([value], |row| vault_of_column(&row.get::<_, String>(0)?))?;
    vaults.collect()
}

#[cfg(test)]
mod tests {
    use engine::{Databases, EngineLimits};

    use super::*;
    use crate::accounts::Accounts;
    use crate::credentials::kdf::KdfCost;
    use crate::id::DeviceId;

    #[test]
    fn what_was_rolled_back_is_cancelled() {
        let data = tempfile::tempdir().unwrap();
        let databases = Databases::start(EngineLimits::default()).unwrap();
        let cost = KdfCost::insecure_for_tests(1);
        let accounts = Accounts::open(&databases, data.path(), cost).unwrap();
        let revocation = Revocation::Device(DeviceId::generate());
        let listed = revocation.clone();
        let revoked = accounts.revoke_in(move |db| {
            // SQLite gives up the transaction, and this closure does not notice.
            let sql = "INSERT OR ROLLBACK INTO sub_vault VALUES ('a', 0), ('a', 0)";
            assert!(db.execute(sql, []).is_err());
            Ok(((), vec![listed.clone()]))
        });
        assert!(matches!(revoked, Err(Error::Engine(engine::Error::RolledBack { .. }))));
        let path = data.path().join(REVOCATIONS_FILE);
        let written = fs::read_to_string(&path).unwrap();
        assert!(written.contains(&revocation.to_line()), "{written}");
        assert_eq!(accounts.revocations.read().unwrap().count(), 0, "{written}");

        let listed = revocation.clone();
        accounts.revoke_in(move |_| Ok(((), vec![listed.clone()]))).unwrap();
        assert!(accounts.revocations.read().unwrap().in_effect == [revocation]);
    }
}
