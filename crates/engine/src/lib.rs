//! Opens SQLite databases, one or thousands, each with a key and a profile, one writer and many
//! readers.
//!
//! [`Databases`] keeps thousands of databases open with a few threads. A [`Database`] runs
//! transactions as closures: writes go through a queue and share commits, each isolated from its
//! neighbors; reads run on the caller's thread. The engine attaches no meaning to the rows.
//!
//! ```
//! use engine::{
//!     DatabaseKey, DatabaseOptions, Databases, Durability, EngineLimits, Error, FileEncryption,
//!     Migration, StaticStatement,
//! };
//!
//! static CREDIT: StaticStatement =
//!     StaticStatement::new("UPDATE account SET balance = balance + ?1 WHERE id = ?2");
//! static BALANCE: StaticStatement =
//!     StaticStatement::new("SELECT balance FROM account WHERE id = ?1");
//!
//! # let directory = tempfile::tempdir()?;
//! # let path = directory.path().join("accounts.db");
//! let databases = Databases::start(EngineLimits::default())?;
//! let key = DatabaseKey::generate();
//! let database = databases.open(&path, || DatabaseOptions {
//!     create: true,
//!     migrations: &[Migration {
//!         version: 1,
//!         sql: "CREATE TABLE account (id INTEGER PRIMARY KEY, balance INTEGER NOT NULL);
//!               INSERT INTO account VALUES (1, 100)",
//!     }],
//!     ..DatabaseOptions::new(FileEncryption::Key { key, cipher: None })
//! })?;
//!
//! // Returns a future that completes once the disk has the write; plain threads call `wait`.
//! let answer = database.write(Durability::Disk, |db| {
//!     let rows = db.statement(&CREDIT)?.execute((50, 1))?;
//!     // An error would undo the writes of this closure, and no others.
//!     if rows == 1 { Ok(()) } else { Err(Error::from(rusqlite::Error::QueryReturnedNoRows)) }
//! });
//! answer.wait()?;
//!
//! let balance: i64 = database.read::<_, Error>(|db| {
//!     Ok(db.statement(&BALANCE)?.query_row([1], |row| row.get(0))?)
//! })?;
//! assert_eq!(balance, 150);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! `docs/internals/engine.md` explains the design and the choices that were measured.
#![warn(missing_docs)]

mod backup;
mod checkpoint;
mod damage;
mod database;
mod databases;
mod error;
mod maintenance;
mod open;
mod readers;
mod stats;
mod system;
mod write;

pub use backup::{CopiedFile, CopyProgress, copy_file};
pub use damage::repair::quarantine_path;
pub use damage::{DamagePolicy, RepairHook};
pub use database::{Database, DatabaseOptions};
pub use databases::{Databases, EngineLimits};
pub use error::{Error, Result};
pub use maintenance::vacuum::{VacuumMethod, VacuumReport, vacuum};
pub use maintenance::{MaintenanceRun, MaintenanceStats};
pub use open::cipher::{Cipher, UnknownCipher};
pub use open::key::{DatabaseKey, Passphrase};
pub use open::migrate::Migration;
pub use open::profile::{PragmaScope, PragmaSetting, Profile};
pub use open::transaction::{StatementGuard, StaticStatement, Transaction};
pub use open::{
    FileEncryption, ReadOnlyMode, RecoverySource, open_connection, open_for_recovery,
    open_read_only,
};
pub use stats::{DatabaseHealth, DatabaseStats, EngineTotals};
pub use system::blocking::run_blocking;
pub use system::clock;
pub use system::directory::{create_directory, directory_of, sync_directory};
pub use system::fs_type::fs_type;
pub use system::scratch::{ScratchFolder, remove_temporary_files};
pub use system::side_files::{SIDE_FILES, remove_if_there, side_file_path, wal_bytes};
pub use write::job::{Durability, WriteFuture};
pub use write::writer::WriterLimits;
