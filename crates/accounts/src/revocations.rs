//! What must not come back with a restored accounts file: a list beside it that only grows.
//!
//! ```text
//! client <id>                                                   a device was revoked
//! account <vault>                                               an account was removed
//! password <vault> <memory_kib> <passes> <salt> <wrapped key>   a password was changed to this one
//! ```
//!
//! # Invariants
//! - A line is on the disk before the change that it is about is committed. So a restore may apply
//!   one that was never acknowledged, and never lacks one that was.
//! - It tells no more than the accounts file does: keys are wrapped.
//!
//! # Not here
//! - Who applies it → `warren restore`.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rusqlite::{Connection, params};

use crate::accounts::{Accounts, PasswordWrap};
use crate::error::{Error, Result};
use crate::id::{ClientId, VaultId, hex};
use crate::kdf::KdfCost;
use crate::schema;

/// The name of the list in a data directory.
pub const REVOCATIONS: &str = "revocations";

/// The list of one data directory. Several processes may append.
#[derive(Clone)]
pub(crate) struct RevocationList(Arc<PathBuf>);

/// One line of it.
#[derive(Clone)]
pub(crate) enum Revocation {
    Client(ClientId),
    Account(VaultId),
    Password(VaultId, PasswordWrap),
}

impl RevocationList {
    pub(crate) fn of(data: &Path) -> Self {
        Self(Arc::new(data.join(REVOCATIONS)))
    }

    /// Returns when the disk has the lines.
    pub(crate) fn append(&self, revocations: &[Revocation]) -> Result<()> {
        let lines: String = revocations.iter().map(Revocation::line).collect();
        let path = &**self.0;
        let append = || -> std::io::Result<()> {
            let is_new = !path.exists();
            let options = OpenOptions::new().append(true).create(true).mode(0o600).open(path);
            let mut list = options?;
            // In one call, so that lines of several processes do not mix.
            list.write_all(lines.as_bytes())?;
            list.sync_data()?;
            match path.parent() {
                Some(data) if is_new => File::open(data)?.sync_all(),
                _ => Ok(()),
            }
        };
        let context = |source| engine::Error::Io { path: path.to_owned(), source };
        Ok(append().map_err(context)?)
    }
}

impl Revocation {
    fn line(&self) -> String {
        match self {
            Self::Client(client) => format!("client {client}\n"),
            Self::Account(vault) => format!("account {vault}\n"),
            Self::Password(vault, wrap) => {
                let (memory_kib, passes) = wrap.cost.to_columns();
                let (salt, key) = (hex(&wrap.salt), hex(&wrap.wrapped_key));
                format!("password {vault} {memory_kib} {passes} {salt} {key}\n")
            }
        }
    }

    fn parse(line: &str) -> Result<Self> {
        const DAMAGED: Error = Error::Damaged { what: "a line of the revocations" };
        let words: Vec<&str> = line.split(' ').collect();
        match *words {
            ["client", client] => Ok(Self::Client(client.parse().or(Err(DAMAGED))?)),
            ["account", vault] => Ok(Self::Account(vault.parse().or(Err(DAMAGED))?)),
            ["password", vault, memory_kib, passes, salt, key] => {
                let number = |text: &str| text.parse().or(Err(DAMAGED));
                let wrap = PasswordWrap {
                    cost: KdfCost::from_columns(number(memory_kib)?, number(passes)?)?,
                    salt: from_hex(salt).ok_or(DAMAGED)?,
                    wrapped_key: from_hex(key).ok_or(DAMAGED)?,
                };
                Ok(Self::Password(vault.parse().or(Err(DAMAGED))?, wrap))
            }
            _ => Err(DAMAGED),
        }
    }

    /// Whether it changed anything.
    fn apply(&self, db: &Connection) -> Result<bool> {
        let changed = match self {
            Self::Client(client) => {
                db.prepare_cached("DELETE FROM client WHERE id = ?1")?.execute([client.as_str()])?
            }
            Self::Account(vault) => db
                .prepare_cached("DELETE FROM account WHERE vault = ?1")?
                .execute([vault.as_str()])?,
            Self::Password(vault, wrap) => {
                let (memory_kib, passes) = wrap.cost.to_columns();
                let sql = "UPDATE account SET memory_kib = ?2, passes = ?3, salt = ?4,
                               wrapped_key = ?5
                           WHERE vault = ?1 AND wrapped_key <> ?5";
                db.prepare_cached(sql)?.execute(params![
                    vault.as_str(),
                    memory_kib,
                    passes,
                    wrap.salt,
                    wrap.wrapped_key
                ])?
            }
        };
        Ok(changed > 0)
    }
}

impl Accounts {
    /// Applies a list to what was restored, in its order, and keeps it. Returns how many of its
    /// lines changed something.
    ///
    /// A last line that is not whole was never acknowledged, and is left out.
    pub fn apply_revocations(&self, list: &str) -> Result<u64> {
        let whole = list.rsplit_once('\n').map_or("", |(whole, _)| whole);
        let revocations: Vec<_> = whole.lines().map(Revocation::parse).collect::<Result<_>>()?;
        self.revocations.append(&revocations)?;
        schema::write(&self.database, move |db| {
            let mut changed = 0;
            for revocation in &revocations {
                changed += u64::from(revocation.apply(db)?);
            }
            Ok(changed)
        })
    }
}

fn from_hex<const BYTES: usize>(text: &str) -> Option<[u8; BYTES]> {
    let mut bytes = [0; BYTES];
    if text.len() != 2 * BYTES || !text.is_ascii() {
        return None;
    }
    for (byte, at) in bytes.iter_mut().zip((0..).step_by(2)) {
        *byte = u8::from_str_radix(&text[at..at + 2], 16).ok()?;
    }
    Some(bytes)
}
