//! Defines the profiles, which are named sets of PRAGMAs, as data.
//!
//! The engine, `tune` and the benchmark read the same table. Each PRAGMA carries the value that it
//! must read back as, so that a setting without effect is an error and not an assumption.
//!
//! # Invariants
//! - PRAGMAs that only take effect on an empty file (`auto_vacuum`, `page_size`) come before
//!   `journal_mode`, which writes the first page (asserted by a test).
//! - An encrypted database keeps its temporary files in memory with every profile: `sqlite3mc`
//!   before 2.6 writes them in plaintext, and a compile option of later versions can restore that.
//!   It has no memory map, which the pager refuses for ciphertext.

use rusqlite::Connection;
use rusqlite::types::ValueRef;

use crate::error::{Error, Result, sqlite};

/// A named set of PRAGMAs.
#[derive(Debug, PartialEq, Eq)]
pub struct Profile {
    /// The profile's name in commands and reports.
    pub name: &'static str,
    /// The profile's purpose, in one line.
    pub about: &'static str,
    /// The settings of another profile, on which this one is based.
    pub base: &'static [PragmaSetting],
    /// The settings that replace those of the same name in `base`, or follow them.
    pub changes: &'static [PragmaSetting],
}

/// A PRAGMA with the value that it is set to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PragmaSetting {
    /// The name of the PRAGMA.
    pub name: &'static str,
    /// The value that the PRAGMA is set to.
    pub value: &'static str,
    /// The value that SQLite reports afterwards.
    pub read_back: &'static str,
    /// The connections that set the PRAGMA.
    pub scope: PragmaScope,
}

/// The connections that set a PRAGMA.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PragmaScope {
    /// Only the connection that creates the file sets it; the file then keeps the setting.
    Creation,
    /// Connections that may write set it.
    Writing,
    /// All connections set it.
    Always,
}

impl Profile {
    /// The default profile, for one of thousands of databases in a server.
    pub const SERVER: &'static Self = &OWN[0];

    /// The 12 configurations of the published benchmark: the mail provider's settings of 2025
    /// ("production"), variants of them, and two extremes.
    pub const PUBLISHED: &'static [Self] = PUBLISHED;

    /// Returns an iterator over all profiles.
    pub fn all() -> impl Iterator<Item = &'static Self> {
        OWN.iter().chain(PUBLISHED)
    }

    /// Returns the profile with this name.
    pub fn by_name(name: &str) -> Option<&'static Self> {
        Self::all().find(|profile| profile.name == name)
    }

    /// Returns the settings, in the order in which they are applied.
    pub fn pragmas(&self) -> impl Iterator<Item = PragmaSetting> {
        let Self { base, changes, .. } = *self;
        let changed = |one: &PragmaSetting| changes.iter().find(|other| other.name == one.name);
        let kept = base.iter().map(move |pragma| *changed(pragma).unwrap_or(pragma));
        let is_new = |one: &&PragmaSetting| base.iter().all(|other| other.name != one.name);
        kept.chain(changes.iter().filter(is_new).copied())
    }

    fn value(&self, name: &str) -> Option<&'static str> {
        self.pragmas().find(|pragma| pragma.name == name).map(|pragma| pragma.value)
    }
}

/// The connection that a profile is applied to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ProfileTarget {
    pub(crate) is_encrypted: bool,
    pub(crate) is_read_only: bool,
    pub(crate) is_empty: bool,
}

/// Applies a profile to a connection, and reads each setting back.
pub(crate) fn apply(profile: &Profile, db: &Connection, target: ProfileTarget) -> Result<()> {
    set(db, temp_store(profile, target))?;
    for pragma in profile.pragmas().filter(|pragma| pragma.name != "temp_store") {
        let applies = match pragma.scope {
            PragmaScope::Creation => target.is_empty && !target.is_read_only,
            PragmaScope::Writing => !target.is_read_only,
            PragmaScope::Always => true,
        };
        if applies {
            set(db, pragma)?;
        }
    }
    Ok(())
}

/// Refuses a profile that an encrypted database cannot have, before a file is changed.
pub(crate) fn check_encryptable(profile: &Profile) -> Result<()> {
    match profile.value("mmap_size") {
        None | Some("0") => Ok(()),
        Some(size) => Err(Error::PragmaNotApplied {
            pragma: "mmap_size",
            wanted: size.to_owned(),
            found: "without effect on an encrypted file".to_owned(),
        }),
    }
}

fn temp_store(profile: &Profile, target: ProfileTarget) -> PragmaSetting {
    if target.is_encrypted || profile.value("temp_store") == Some(TEMP_STORE_MEMORY.value) {
        TEMP_STORE_MEMORY
    } else {
        TEMP_STORE_FILE
    }
}

fn set(db: &Connection, pragma: PragmaSetting) -> Result<()> {
    let PragmaSetting { name, value, read_back, .. } = pragma;
    db.execute_batch(&format!("PRAGMA {name} = {value}")).map_err(sqlite(name))?;
    let found = read(db, name).map_err(sqlite(name))?;
    if found == read_back {
        Ok(())
    } else {
        Err(Error::PragmaNotApplied { pragma: name, wanted: read_back.to_owned(), found })
    }
}

/// Returns the present value of a PRAGMA as text.
pub(crate) fn read(db: &Connection, name: &str) -> rusqlite::Result<String> {
    db.query_row(&format!("PRAGMA {name}"), [], |row| {
        Ok(match row.get_ref(0)? {
            ValueRef::Integer(value) => value.to_string(),
            ValueRef::Text(text) => String::from_utf8_lossy(text).into_owned(),
            other => format!("{:?}", other.data_type()),
        })
    })
}

const fn creation(
    name: &'static str,
    value: &'static str,
    read_back: &'static str,
) -> PragmaSetting {
    PragmaSetting { name, value, read_back, scope: PragmaScope::Creation }
}

const fn writing(
    name: &'static str,
    value: &'static str,
    read_back: &'static str,
) -> PragmaSetting {
    PragmaSetting { name, value, read_back, scope: PragmaScope::Writing }
}

const fn always(name: &'static str, value: &'static str, read_back: &'static str) -> PragmaSetting {
    PragmaSetting { name, value, read_back, scope: PragmaScope::Always }
}

const ANALYSIS_LIMIT_1000: PragmaSetting = always("analysis_limit", "1000", "1000");
const AUTOCHECKPOINT_1000: PragmaSetting = writing("wal_autocheckpoint", "1000", "1000");
const AUTO_VACUUM_FULL: PragmaSetting = creation("auto_vacuum", "FULL", "1");
const AUTO_VACUUM_INCREMENTAL: PragmaSetting = creation("auto_vacuum", "INCREMENTAL", "2");
const BUSY_5S: PragmaSetting = always("busy_timeout", "5000", "5000");
const BUSY_10S: PragmaSetting = always("busy_timeout", "10000", "10000");
const BUSY_30S: PragmaSetting = always("busy_timeout", "30000", "30000");
const BUSY_60S: PragmaSetting = always("busy_timeout", "60000", "60000");
const CACHE_8MB: PragmaSetting = always("cache_size", "-8000", "-8000");
const CACHE_16MB: PragmaSetting = always("cache_size", "-16000", "-16000");
const CACHE_64MB: PragmaSetting = always("cache_size", "-64000", "-64000");
const ENCODING_UTF8: PragmaSetting = creation("encoding", "'UTF-8'", "UTF-8");
const FOREIGN_KEYS: PragmaSetting = always("foreign_keys", "ON", "1");
const MMAP_0: PragmaSetting = always("mmap_size", "0", "0");
const MMAP_256MB: PragmaSetting = always("mmap_size", "268435456", "268435456");
const SECURE_DELETE: PragmaSetting = writing("secure_delete", "ON", "1");
const SYNCHRONOUS_FULL: PragmaSetting = always("synchronous", "FULL", "2");
const SYNCHRONOUS_NORMAL: PragmaSetting = always("synchronous", "NORMAL", "1");
const SYNCHRONOUS_OFF: PragmaSetting = always("synchronous", "OFF", "0");
const TEMP_STORE_FILE: PragmaSetting = always("temp_store", "FILE", "1");
const TEMP_STORE_MEMORY: PragmaSetting = always("temp_store", "MEMORY", "2");
const WAL: PragmaSetting = writing("journal_mode", "WAL", "wal");
const WAL_SIZE_64MB: PragmaSetting = writing("journal_size_limit", "67108864", "67108864");
const WAL_SIZE_256MB: PragmaSetting = writing("journal_size_limit", "268435456", "268435456");

/// The profile `server`, and the settings that the mail provider uses now.
const OWN: &[Profile] = &[
    Profile {
        name: "server",
        about: "one of thousands of databases: a small cache, incremental vacuum",
        base: &[],
        changes: &[
            AUTO_VACUUM_INCREMENTAL,
            BUSY_5S,
            WAL,
            SYNCHRONOUS_NORMAL,
            WAL_SIZE_64MB,
            FOREIGN_KEYS,
            CACHE_8MB,
        ],
    },
    Profile {
        name: "mail-production",
        about: "the mail provider's latest known settings",
        base: PRODUCTION,
        changes: &[
            BUSY_10S,
            SYNCHRONOUS_FULL,
            CACHE_16MB,
            AUTOCHECKPOINT_1000,
            MMAP_0,
            WAL_SIZE_256MB,
        ],
    },
];

/// The published profiles. The published program sets `auto_vacuum` after WAL, where SQLite ignores
/// it; here it takes effect.
const PUBLISHED: &[Profile] = &[
    Profile {
        name: "production",
        about: "published: the base of the other published profiles",
        base: PRODUCTION,
        changes: &[],
    },
    Profile {
        name: "wal-autocheckpoint-1000",
        about: "published: production, with SQLite's default checkpoint interval set explicitly",
        base: PRODUCTION,
        changes: &[AUTOCHECKPOINT_1000],
    },
    Profile {
        name: "memory-temp-store",
        about: "published: production, with temporary files in memory",
        base: PRODUCTION,
        changes: &[TEMP_STORE_MEMORY],
    },
    Profile {
        name: "cache-64mb",
        about: "published: production, with a page cache of 64 MB",
        base: PRODUCTION,
        changes: &[CACHE_64MB],
    },
    Profile {
        name: "mmap-256mb",
        about: "published: production, with a memory map of 256 MB; not for encrypted files",
        base: PRODUCTION,
        changes: &[MMAP_256MB],
    },
    Profile {
        name: "synchronous-off",
        about: "published: production, without fsync; a power loss may corrupt the file",
        base: PRODUCTION,
        changes: &[SYNCHRONOUS_OFF],
    },
    Profile {
        name: "incremental-vacuum",
        about: "published: production, with incremental auto-vacuum",
        base: PRODUCTION,
        changes: &[AUTO_VACUUM_INCREMENTAL],
    },
    Profile {
        name: "analysis-limit-1000",
        about: "published: production, with ANALYZE reading at most 1000 rows per index",
        base: PRODUCTION,
        changes: &[ANALYSIS_LIMIT_1000],
    },
    Profile {
        name: "busy-timeout-60s",
        about: "published: production, waiting up to a minute for a lock",
        base: PRODUCTION,
        changes: &[BUSY_60S],
    },
    Profile {
        name: "cache-64mb-mmap-256mb",
        about: "published: production, with large cache and memory map; not for encrypted files",
        base: PRODUCTION,
        changes: &[CACHE_64MB, MMAP_256MB],
    },
    Profile {
        name: "all",
        about: "published: all changes that were expected to help; not for encrypted files",
        base: PRODUCTION,
        changes: &[
            AUTO_VACUUM_INCREMENTAL,
            BUSY_60S,
            TEMP_STORE_MEMORY,
            CACHE_64MB,
            MMAP_256MB,
            AUTOCHECKPOINT_1000,
            ANALYSIS_LIMIT_1000,
        ],
    },
    Profile {
        name: "baseline",
        about: "published: only the key and WAL",
        base: &[],
        changes: &[WAL],
    },
];

/// The mail provider's settings of 2025.
const PRODUCTION: &[PragmaSetting] = &[
    AUTO_VACUUM_FULL,
    ENCODING_UTF8,
    BUSY_30S,
    WAL,
    SYNCHRONOUS_NORMAL,
    SECURE_DELETE,
    FOREIGN_KEYS,
    TEMP_STORE_FILE,
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_only_an_empty_file_takes_comes_before_wal() {
        for profile in Profile::all() {
            let position = |wanted: &str| profile.pragmas().position(|p| p.name == wanted);
            let wal = position("journal_mode").unwrap();
            for pragma in profile.pragmas().filter(|p| p.scope == PragmaScope::Creation) {
                assert!(position(pragma.name).unwrap() < wal, "{}: {}", profile.name, pragma.name);
            }
        }
    }

    #[test]
    fn names_are_unique_and_found() {
        for profile in Profile::all() {
            assert_eq!(Profile::by_name(profile.name), Some(profile));
        }
        assert_eq!(Profile::by_name("fastest"), None);
        assert_eq!(Profile::SERVER.name, "server");
    }

    #[test]
    fn a_setting_that_does_not_take_is_an_error() {
        let db = Connection::open_in_memory().unwrap();
        let error = set(&db, WAL).unwrap_err();
        let Error::PragmaNotApplied { pragma, wanted, found } = error else { panic!("{error}") };
        assert_eq!((pragma, &*wanted, &*found), ("journal_mode", "wal", "memory"));
    }
}
