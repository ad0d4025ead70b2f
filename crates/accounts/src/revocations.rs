//! The revocation list: revocations that must stay in effect with an older accounts file. It is a
//! file next to the accounts file, and only grows. A server applies it to the accounts file at its
//! start.
//!
//! # Invariants
//! - A line is on the disk before its change is committed, so the list never lacks an acknowledged
//!   change. A change that was rolled back is cancelled; one whose outcome is unknown, because the
//!   process ended or the disk failed, may be made when the list is applied.
//! - Applying a list twice, or one that is older than the accounts file, changes nothing.
//! - Keys are wrapped, as in the accounts file. Unlike that file, the list keeps the wraps of
//!   former passwords and recovery secrets.
//!
//! # Not here
//! - The callers that apply it → `server` at its start, `warren restore`.

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
use crate::credentials::recovery_secret::write_recovery_wrap;
use crate::error::{Error, Result};
use crate::id::{AccountId, VaultId, vault_of_column};

/// The file name of the list in a data directory.
pub const REVOCATIONS_FILE: &str = "revocations";

/// The list of one data directory. Several processes may append to it.
#[derive(Clone)]
pub(crate) struct RevocationList(Arc<PathBuf>);

/// The result of applying a list to an accounts file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AppliedRevocations {
    /// The number of lines that changed the accounts file, because it was older.
    pub applied_count: u64,
    /// The vaults of accounts that were removed now. Their files cannot be opened any more.
    pub removed_vaults: Vec<VaultId>,
    /// The number of lines that could not be checked, because the accounts file is damaged there.
    pub unknown_count: u64,
    /// The numbers of damaged lines: [`ParsedRevocations::damaged_lines`].
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

    /// Appends lines and returns when the disk has them.
    pub(crate) fn append(&self, lines: &str) -> Result<()> {
        let path = &**self.0;
        let is_new = !path.exists();
        let append = || -> std::io::Result<()> {
            let options = OpenOptions::new().append(true).create(true).mode(0o600).open(path);
            let mut list = options?;
            // Write in one call, so that lines of several processes do not mix.
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
    /// Whether an accounts file is older than this revocation.
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
            Self::MailPassword(id) => {
                let sql = "SELECT 1 FROM mail_password WHERE id = ?1";
                db.prepare_cached(sql)?.exists([id.as_str()])?
            }
            Self::RecoverySecret(vault, number, _) => {
                let sql = "SELECT 1 FROM account WHERE vault_id = ?1 AND recovery_number < ?2";
                db.prepare_cached(sql)?.exists(params![vault.as_str(), number])?
            }
            Self::Password(vault, number, _) => {
                let sql = "SELECT 1 FROM account WHERE vault_id = ?1 AND wrap_number < ?2";
                db.prepare_cached(sql)?.exists(params![vault.as_str(), number])?
            }
        };
        Ok(is_missing)
    }

    pub(crate) fn apply(&self, db: &Connection, applied: &mut AppliedRevocations) -> Result<()> {
        // By now this, or a newer password of the same account, may have been applied.
        if !self.is_missing(db)? {
            return Ok(());
        }
        applied.applied_count += 1;
        match self {
            Self::Device(device) => {
                // Devices that it registered have their own lines, unless they stayed.
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
            Self::MailPassword(id) => {
                let sql = "DELETE FROM mail_password WHERE id = ?1";
                db.prepare_cached(sql)?.execute([id.as_str()])?;
            }
            Self::RecoverySecret(vault, number, wrapped_key) => {
                write_recovery_wrap(db, vault, *number, wrapped_key)?;
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

/// Returns all vaults of the account in whose row `column` has this value: its own first, then its
/// sub-vaults, and its mail vault last.
pub(crate) fn vaults_of(db: &Connection, column: &str, value: &str) -> Result<Vec<VaultId>> {
    let mut vaults = db.prepare_cached(&format!(
        "SELECT vault_id FROM account WHERE {column} = ?1
         UNION ALL
         SELECT sub_vault.vault_id
         FROM sub_vault JOIN account ON id = account_id WHERE account.{column} = ?1
         UNION ALL
         SELECT mail_vault.vault_id
         FROM mail_vault JOIN account ON id = account_id WHERE account.{column} = ?1"
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
            // SQLite rolls the transaction back, and this closure does not notice.
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
