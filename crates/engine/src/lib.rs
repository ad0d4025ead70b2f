//! SQLite databases, one and many: opened with a key and a profile, written by one writer, read by
//! many.
//!
//! [`Databases`] keeps thousands of databases with a handful of threads. A [`Database`] takes
//! transactions as closures: writes go through a queue and share commits, reads run on the caller's
//! thread. What the rows mean is the caller's business.
#![warn(missing_docs)]

mod cache;
mod checkpoint;
mod cipher;
mod clock;
mod courier;
mod database;
mod databases;
mod error;
mod isolation;
mod job;
mod key;
mod migrate;
mod open;
mod profile;
mod queue;
mod readers;
mod ready;
mod session;
mod stretch;
mod sync;
mod transaction;
mod upkeep;
mod writer;

pub use cipher::{Cipher, UnknownCipher};
pub use database::{Database, Options, Stats};
pub use databases::{Databases, Limits};
pub use error::{Error, Result};
pub use job::{Durability, Pending};
pub use key::Key;
pub use migrate::Migration;
pub use open::{Encryption, open_connection};
pub use profile::{Pragma, Profile, Scope};
pub use transaction::{Held, Sql, Transaction};
pub use writer::WriterLimits;
