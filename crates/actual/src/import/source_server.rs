//! Reads a published server's account file: everything except the budgets' contents.
//!
//! Source: the migrations of `@actual-app/sync-server` 26.9.0, and a directory that it created.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, Row};
use uuid::Uuid;
use zeroize::Zeroizing;

use crate::gateway::is_id;
use crate::gateway_state::{BudgetKey, OwnerState};
use crate::import::error::ImportError;
use crate::import::old_file::OldFile;
use crate::import::password;
use crate::import::report::{OtherUsersAccess, OtherUsersBudget, SkippedData};

/// Columns without which a release is too old to be read, with their tables.
const COLUMNS: [(&str, &str, &str); 4] = [
    ("auth", "extra_data", "login methods (auth.extra_data)"),
    ("users", "user_name", "users (users.user_name)"),
    ("sessions", "user_id", "users (sessions.user_id)"),
    ("files", "owner", "owners of budgets (files.owner)"),
];
/// The start and end of the file names in the directory of budgets.
const BLOB: (&str, &str) = ("file-", ".blob");
const GROUP: (&str, &str) = ("group-", ".sqlite");

/// An old server's data, as it was when it was opened.
pub struct SourceServer {
    user_files: PathBuf,
    /// The hash of the password.
    hash: String,
    pub(super) owner: OwnerState,
    pub(super) tokens: Vec<Zeroizing<String>>,
    pub(super) files: Vec<SourceBudget>,
    pub(super) skipped: SkippedData,
}

/// A row of the table `files`.
pub(super) struct SourceBudget {
    pub(super) id: String,
    pub(super) group_id: Option<String>,
    pub(super) name: Option<String>,
    pub(super) format: Option<String>,
    pub(super) encrypt_meta: Option<String>,
    pub(super) key: BudgetKey,
    pub(super) is_deleted: bool,
    /// The owner's name, if the owner is not the user who logs in with the password.
    other_owner: Option<String>,
}

impl SourceServer {
    /// Returns the path of the file that the old server holds open while it runs.
    pub fn account_file(server_files: &Path) -> PathBuf {
        server_files.join("account.sqlite")
    }

    /// Reads the account file in `server_files`, and lists the files in `user_files`.
    pub fn open(server_files: &Path, user_files: &Path, now_ms: u64) -> Result<Self, ImportError> {
        let path = Self::account_file(server_files);
        let missing = || ImportError::Missing(path.clone());
        let account = OldFile::open(&path)?.ok_or_else(missing)?;
        if !user_files.is_dir() {
            return Err(ImportError::Missing(user_files.to_owned()));
        }
        for (table, column, missing) in COLUMNS {
            if !has_column(&account.db, table, column).map_err(ImportError::old(&path))? {
                return Err(ImportError::TooOld { path, missing });
            }
        }
        let mut read = read(&account.db, user_files, now_ms).map_err(ImportError::old(&path))?;
        let hash =
            read.hash.take().filter(|hash| !hash.is_empty()).ok_or(ImportError::NoPassword)?;
        let mut published = Self { hash, ..read.published };
        published.skipped.stray_files = published.stray_files()?;
        Ok(published)
    }

    /// Returns [`ImportError::WrongPassword`] if users do not log in with this password.
    pub fn check_password(&self, password: &str) -> Result<(), ImportError> {
        let is_right = password::is_right(password, &self.hash);
        if is_right { Ok(()) } else { Err(ImportError::WrongPassword) }
    }

    pub(super) fn blob_path(&self, file: &SourceBudget) -> PathBuf {
        self.user_files.join(format!("{}{}{}", BLOB.0, file.id, BLOB.1))
    }

    /// Returns the path of a budget's messages; `None` if the budget was reset and has no group.
    pub(super) fn group_path(&self, file: &SourceBudget) -> Option<PathBuf> {
        let group_id = file.group_id.as_ref()?;
        Some(self.user_files.join(format!("{}{group_id}{}", GROUP.0, GROUP.1)))
    }

    /// Counts all messages, canonical or not.
    pub(super) fn messages_count(&self) -> Result<u64, ImportError> {
        let mut sum = 0;
        for path in self.files.iter().filter_map(|file| self.group_path(file)) {
            if let Some(group) = OldFile::open(&path)? {
                let sql = "SELECT count(*) FROM messages_binary";
                let count: Result<i64, _> = group.db.query_row(sql, [], |row| row.get(0));
                sum += count.map_err(ImportError::old(&path))?.cast_unsigned();
            }
        }
        Ok(sum)
    }

    /// Lists the files in the directory of budgets that belong to no imported budget.
    fn stray_files(&self) -> Result<Vec<String>, ImportError> {
        let error = || ImportError::io(&self.user_files);
        let paths = self.files.iter().flat_map(|file| {
            [Some(self.blob_path(file)), self.group_path(file)].into_iter().flatten()
        });
        let used: BTreeSet<PathBuf> = paths.collect();
        let mut stray = Vec::new();
        for entry in fs::read_dir(&self.user_files).map_err(error())? {
            let entry = entry.map_err(error())?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let is = |(start, end): (&str, &str)| name.starts_with(start) && name.ends_with(end);
            if (is(BLOB) || is(GROUP)) && !used.contains(&entry.path()) {
                stray.push(name);
            }
        }
        stray.sort_unstable();
        Ok(stray)
    }
}

/// The contents of the account file; the hash is missing if there is no password.
struct AccountFileContents {
    hash: Option<String>,
    published: SourceServer,
}

fn read(db: &Connection, user_files: &Path, now_ms: u64) -> rusqlite::Result<AccountFileContents> {
    let first = |sql: &str| {
        let found = db.query_row(sql, [], |row| row.get::<_, Option<String>>(0));
        rusqlite::OptionalExtension::optional(found).map(Option::flatten)
    };
    let hash = first("SELECT extra_data FROM auth WHERE method = 'password'")?;
    let user_id = first("SELECT id FROM users WHERE user_name = ''")?;
    let user_id = user_id.unwrap_or_else(|| Uuid::new_v4().to_string());
    let mut skipped = SkippedData {
        openid: first("SELECT 'yes' FROM auth WHERE method = 'openid' AND active = 1")?.is_some(),
        secrets_count: count_rows(db, "secrets")?,
        ..SkippedData::default()
    };
    let tokens = tokens(db, now_ms, &mut skipped)?;
    let files = files(db, &mut skipped)?;
    skipped.access_of_others = access_of_others(db, &files)?;
    let owner = OwnerState { user_id, prefs: prefs(db)? };
    let (user_files, no_hash) = (user_files.to_owned(), String::new());
    let published = SourceServer { user_files, hash: no_hash, owner, tokens, files, skipped };
    Ok(AccountFileContents { hash, published })
}

/// Reads the valid tokens, except those of other users.
fn tokens(
    db: &Connection,
    now_ms: u64,
    skipped: &mut SkippedData,
) -> rusqlite::Result<Vec<Zeroizing<String>>> {
    // -1 means never; other values are seconds since 1970.
    let mut statement = db.prepare(
        "SELECT token, coalesce(expires_at, -1) <> -1 AND expires_at * 1000 <= ?1,
             user_id IN (SELECT id FROM users WHERE user_name <> '')
         FROM sessions ORDER BY rowid",
    )?;
    let mut rows = statement.query([now_ms.cast_signed()])?;
    let mut tokens = Vec::new();
    while let Some(row) = rows.next()? {
        let (is_expired, is_others): (bool, Option<bool>) = (row.get(1)?, row.get(2)?);
        if is_others == Some(true) {
            skipped.tokens_of_others_count += 1;
        } else if is_expired {
            skipped.expired_tokens_count += 1;
        } else {
            tokens.push(Zeroizing::new(row.get(0)?));
        }
    }
    Ok(tokens)
}

/// Reads the budgets of the user who logs in with the password, in order of creation.
fn files(db: &Connection, skipped: &mut SkippedData) -> rusqlite::Result<Vec<SourceBudget>> {
    let mut statement = db.prepare(
        "SELECT files.id, group_id, name, CAST(sync_version AS TEXT), encrypt_meta, encrypt_keyid,
             encrypt_salt, encrypt_test, coalesce(deleted, 0) <> 0, nullif(user_name, '')
         FROM files LEFT JOIN users ON users.id = files.owner ORDER BY files.rowid",
    )?;
    let mut files = Vec::new();
    for file in statement.query_map([], file)? {
        let file = file?;
        if let Some(owner) = file.other_owner {
            let (file_id, name) = (file.id, file.name);
            skipped.files_of_others.push(OtherUsersBudget { file_id, name, owner });
        } else if is_id(&file.id) && file.group_id.as_deref().is_none_or(is_id) {
            files.push(file);
        } else {
            skipped.files_with_invalid_id.push(file.id);
        }
    }
    Ok(files)
}

fn file(row: &Row<'_>) -> rusqlite::Result<SourceBudget> {
    let key = BudgetKey { id: row.get(5)?, salt: row.get(6)?, test: row.get(7)? };
    let meta: Option<String> = row.get(4)?;
    Ok(SourceBudget {
        id: row.get(0)?,
        group_id: row.get(1)?,
        name: row.get(2)?,
        format: row.get(3)?,
        // The old server treats an empty text as missing.
        encrypt_meta: meta.filter(|meta| !meta.is_empty()),
        key,
        is_deleted: row.get(8)?,
        other_owner: row.get(9)?,
    })
}

/// Lists other users who may use these budgets. Older releases do not have this table.
fn access_of_others(
    db: &Connection,
    files: &[SourceBudget],
) -> rusqlite::Result<Vec<OtherUsersAccess>> {
    if !has_column(db, "user_access", "file_id")? {
        return Ok(Vec::new());
    }
    let mut statement = db.prepare(
        "SELECT file_id, user_name FROM user_access JOIN users ON users.id = user_id
         WHERE user_name <> '' ORDER BY user_access.rowid",
    )?;
    let mut all = Vec::new();
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let (file_id, user): (String, String) = (row.get(0)?, row.get(1)?);
        if let Some(file) = files.iter().find(|file| file.id == file_id) {
            all.push(OtherUsersAccess { file_id, name: file.name.clone(), user });
        }
    }
    Ok(all)
}

/// Reads the server's preferences. Older releases have none.
fn prefs(db: &Connection) -> rusqlite::Result<BTreeMap<String, String>> {
    if !has_column(db, "server_prefs", "value")? {
        return Ok(BTreeMap::new());
    }
    let sql = "SELECT key, value FROM server_prefs WHERE value IS NOT NULL";
    let mut statement = db.prepare(sql)?;
    statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect()
}

fn count_rows(db: &Connection, table: &str) -> rusqlite::Result<u64> {
    if !has_column(db, table, "name")? {
        return Ok(0);
    }
    let sql = format!("SELECT count(*) FROM {table}");
    db.query_row(&sql, [], |row| row.get::<_, i64>(0)).map(i64::cast_unsigned)
}

fn has_column(db: &Connection, table: &str, column: &str) -> rusqlite::Result<bool> {
    Ok(sqlite_schema::columns(db, table)?.iter().any(|known| known.name == column))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW_MS: u64 = 1_795_000_000_000;
    const TABLES: &str = "
        CREATE TABLE auth (method TEXT PRIMARY KEY, display_name TEXT, extra_data TEXT, active INTEGER);
        CREATE TABLE users (id TEXT PRIMARY KEY, user_name TEXT, display_name TEXT);
        CREATE TABLE sessions (token TEXT PRIMARY KEY, expires_at INTEGER, user_id TEXT);
        CREATE TABLE files (id TEXT PRIMARY KEY, group_id TEXT, sync_version SMALLINT,
            encrypt_meta TEXT, encrypt_keyid TEXT, encrypt_salt TEXT, encrypt_test TEXT,
            deleted BOOLEAN DEFAULT FALSE, name TEXT, owner TEXT);";

    /// Opens a directory whose account file was created with `sql`.
    fn opened(sql: &str) -> Result<SourceServer, ImportError> {
        let folder = tempfile::tempdir().unwrap();
        let account = Connection::open(SourceServer::account_file(folder.path())).unwrap();
        account.execute_batch(sql).unwrap();
        drop(account);
        SourceServer::open(folder.path(), folder.path(), NOW_MS)
    }

    #[test]
    fn folders_that_are_none_of_a_server_with_a_password() {
        let folder = tempfile::tempdir().unwrap();
        let missing = SourceServer::open(folder.path(), folder.path(), NOW_MS);
        assert!(
            matches!(missing, Err(ImportError::Missing(path)) if path.ends_with("account.sqlite"))
        );
        let old = opened("CREATE TABLE auth (password TEXT PRIMARY KEY)");
        assert!(
            matches!(old, Err(ImportError::TooOld { missing, .. }) if missing.contains("auth"))
        );
        let none = [TABLES, "INSERT INTO auth (method) VALUES ('openid')"].concat();
        for sql in [TABLES, &none] {
            assert!(matches!(opened(sql), Err(ImportError::NoPassword)), "{sql}");
        }
    }

    #[test]
    fn a_release_without_prefs_secrets_and_owners() {
        let rows = "INSERT INTO auth VALUES ('password', 'Password', 'hash', 1);
            INSERT INTO files (id, sync_version, encrypt_meta) VALUES ('b', 2, ''), ('a', NULL, '{}');
            INSERT INTO sessions VALUES ('no end', NULL, NULL), ('yet', 1795000001, NULL),
                ('over', 1795000000, NULL);";
        let published = opened(&[TABLES, rows].concat()).unwrap();
        let files = published.files.iter();
        let files =
            files.map(|file| (&*file.id, file.format.as_deref(), file.encrypt_meta.as_deref()));
        assert_eq!(files.collect::<Vec<_>>(), [("b", Some("2"), None), ("a", None, Some("{}"))]);
        let tokens: Vec<&str> = published.tokens.iter().map(|token| token.as_str()).collect();
        assert_eq!((tokens, published.skipped.expired_tokens_count), (vec!["no end", "yet"], 1));
        assert_eq!(published.owner.prefs, BTreeMap::new());
        assert!(!published.owner.user_id.is_empty());
    }
}
