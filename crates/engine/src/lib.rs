//! SQLite databases, one and many: opened with a key and a profile, written by one writer, read by
//! many.
//!
//! [`Databases`] keeps thousands of databases with a handful of threads. A [`Database`] takes
//! transactions as closures: writes go through a queue and share commits, each isolated from its
//! neighbours; reads run on the caller's thread. What the rows mean is the caller's business.
//!
//! ```
//! use engine::{Databases, Durability, Encryption, Error, Key, Limits, Migration, Options, Sql};
//!
//! static CREDIT: Sql = Sql::new("UPDATE account SET balance = balance + ?1 WHERE id = ?2");
//! static BALANCE: Sql = Sql::new("SELECT balance FROM account WHERE id = ?1");
//!
//! # let directory = tempfile::tempdir()?;
//! # let path = directory.path().join("accounts.db");
//! let databases = Databases::start(Limits::default())?;
//! let key = Key::generate();
//! let database = databases.open(&path, || Options {
//!     create: true,
//!     migrations: &[Migration {
//!         version: 1,
//!         sql: "CREATE TABLE account (id INTEGER PRIMARY KEY, balance INTEGER NOT NULL);
//!               INSERT INTO account VALUES (1, 100)",
//!     }],
//!     ..Options::new(Encryption::Key { key, cipher: None })
//! })?;
//!
//! // A future, or for a plain thread `wait`: answered when the disk has it.
//! let answer = database.write(Durability::Disk, |db| {
//!     let rows = db.statement(&CREDIT)?.execute((50, 1))?;
//!     // An error would take back what this closure wrote, and nothing else.
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
//! `docs/engine.md` explains the design and the choices that were measured.
#![warn(missing_docs)]

mod backup;
mod cache;
mod checkpoint;
mod cipher;
mod clock;
mod compact;
mod courier;
mod damage;
mod database;
mod databases;
mod delay_queue;
mod error;
mod flush;
mod idle;
mod isolation;
mod job;
mod key;
mod maintenance;
mod migrate;
mod mount;
mod open;
mod pace;
mod poison;
mod profile;
mod queue;
mod readers;
mod ready;
mod repair;
mod reserve;
mod salvage;
mod scratch;
mod session;
mod stats;
mod stretch;
mod swap;
mod sync;
mod transaction;
mod upkeep;
mod vacuum;
mod writer;

pub use backup::{CopiedFile, CopyProgress, copy_file};
pub use cipher::{Cipher, UnknownCipher};
pub use compact::SIDE_FILES;
pub use damage::{DamagePolicy, FinishRepair};
pub use database::{Database, Options};
pub use databases::{Databases, Limits};
pub use error::{Error, Result};
pub use job::{Durability, Pending};
pub use key::{Key, Passphrase};
pub use maintenance::{Maintained, MaintenanceStats};
pub use migrate::Migration;
pub use mount::file_system;
pub use open::{
    Encryption, RecoverySource, Untouched, open_connection, open_for_recovery, open_untouched,
};
pub use profile::{Pragma, Profile, Scope};
pub use repair::damaged_path;
pub use scratch::{ScratchFolder, remove_temporary_files};
pub use stats::{Health, Stats, Totals};
pub use transaction::{Held, Sql, Transaction};
pub use vacuum::{Vacuum, Vacuumed, vacuum};
pub use writer::WriterLimits;
