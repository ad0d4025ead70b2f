//! A file that is examined: open, its schema read, its trees sampled.
//!
//! # How it is opened, and why that is safe
//! Nobody has the file open: on an *overlay*, without any lock. There a hot journal is rolled back
//! and a WAL is read as the next program would do it, and whatever that writes stays in memory; at
//! the end it is seen whether somebody wrote meanwhile. Somebody has: with SQLite's own locks, and
//! the WAL's index (`-shm`) opened read-only. A WAL without a `-shm` file is of a program that keeps
//! the index to itself: that is an overlay, too.
//!
//! # Invariants
//! - Of a file in use, page 1 decides about the way of opening, as an immutable connection sees it.
//! - A statement keeps its snapshot no longer than `HOLD_TIME_*`: writers of a rollback-journal
//!   database wait for readers, and a WAL cannot start anew while one reads.
//!
//! # Not here
//! - The checks → `checks.rs`.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::time::Duration;

use engine::{Cipher, Encryption, Untouched};
use rusqlite::{Connection, OptionalExtension};

use crate::Options;
use crate::checks;
use crate::clock::Budget;
use crate::error::{Error, Result, sqlite};
use crate::header::{Header, version_text};
use crate::opening::{how, open, why_closed};
use crate::outside::Outside;
use crate::page::{Malformed, Page};
use crate::report::{About, Log};
use crate::schema::{self, Schema, Table};
use crate::settings::ConnectionSettings;
use crate::tree::{Random, Sample};
use crate::trouble::Trouble;
use crate::workload::Workload;

/// How long one statement may keep a rollback-journal database's writers waiting.
const HOLD_TIME_ROLLBACK: Duration = Duration::from_millis(250);
/// How long one statement may keep a WAL from starting anew.
const HOLD_TIME_WAL: Duration = Duration::from_secs(2);
/// Of the budget, for samples of the trees.
const SAMPLE_SHARE: u32 = 4;
/// Random ways into each tree: first for all, then for the larger.
const WAYS_FIRST: usize = 8;
const WAYS_MAX: usize = 128;
/// Ways in one transaction.
const WAYS_AT_ONCE: usize = 16;

/// The open file.
pub(crate) struct Subject {
    pub(crate) db: Connection,
    pub(crate) encryption: Encryption,
    pub(crate) cipher: Option<Cipher>,
    pub(crate) how: Untouched,
    pub(crate) outside: Outside,
    pub(crate) header: Header,
    pub(crate) schema: Schema,
    /// By root page; those for which there was time.
    pub(crate) samples: BTreeMap<u32, Sample>,
    /// Modules of virtual tables that this SQLite has.
    pub(crate) modules: BTreeSet<String>,
    /// Collations that it has not, and that order by bytes here.
    pub(crate) stand_ins: BTreeSet<String>,
    /// Pages of trees that were read.
    pub(crate) pages_read: RefCell<HashSet<u32>>,
    /// Pages that the samples could not read.
    pub(crate) broken: Vec<(u32, Trouble)>,
    pub(crate) budget: Budget,
    pub(crate) queries: Vec<String>,
    pub(crate) workload: Option<Workload>,
    pub(crate) settings: Option<ConnectionSettings>,
}

impl Subject {
    /// Opens the file; or says what is known of one that cannot be opened without harm.
    pub(crate) fn open(
        outside: Outside,
        encryption: &Encryption,
        options: &Options,
        budget: &Budget,
        log: &mut Log,
    ) -> Result<Result<Self, About>> {
        if let Some(why) = why_closed(&outside, budget) {
            log.skip("the content", why);
            return Ok(Err(About::of(&outside)));
        }
        let how = if outside.may_be_in_use() {
            let (db, _) = open(&outside, encryption, Untouched::Immutable, budget)?;
            let is_wal = read_header(&db).ok().or_else(|| outside.header.clone());
            how(&outside, is_wal.map_or(outside.has_wal_content(), |header| header.is_wal))
        } else {
            Untouched::Overlay
        };
        let (db, cipher) = open(&outside, encryption, how, budget)?;
        let header = read_header(&db);
        let header = match header {
            Ok(header) => header,
            Err(trouble) => {
                checks::unreadable(&trouble, &outside, log);
                return Ok(Err(About { cipher: Some(cipher_name(cipher)), ..About::of(&outside) }));
            }
        };
        let mut subject = Self {
            db,
            encryption: encryption.clone(),
            cipher,
            how,
            outside,
            header,
            schema: Schema::default(),
            samples: BTreeMap::new(),
            modules: BTreeSet::new(),
            stand_ins: BTreeSet::new(),
            pages_read: RefCell::default(),
            broken: Vec::new(),
            budget: budget.clone(),
            queries: options.queries.clone(),
            workload: options.workload.clone(),
            settings: options.settings.clone(),
        };
        match schema::read(&subject.db, budget) {
            Ok(schema) => subject.schema = schema,
            Err(error) => checks::schema_unreadable(&error.into(), &subject.outside, log),
        }
        if subject.schema.unread_count > 0 {
            let (unread, read) = (subject.schema.unread_count, subject.schema.tables.len());
            log.skip(format!("{unread} of {} tables", unread + read), checks::TIME);
        }
        subject.look_what_is_unknown().map_err(sqlite("collations and modules"))?;
        for sql in &subject.queries {
            // Alone first: its error then has the query as it was given.
            let prepared = subject.db.prepare(sql);
            let prepared = prepared.and_then(|_| subject.db.prepare(&format!("EXPLAIN {sql}")));
            prepared.map_err(|source| Error::InvalidQuery { sql: sql.clone(), source })?;
        }
        subject.sample(log);
        Ok(Ok(subject))
    }

    /// Sees what the file uses and this SQLite has not.
    fn look_what_is_unknown(&mut self) -> rusqlite::Result<()> {
        // The file's own connection has stand-ins already.
        let plain = Connection::open_in_memory()?;
        self.modules = names(&plain, MODULES)?;
        let collations = names(&plain, COLLATIONS)?;
        self.stand_ins = self.schema.collations();
        self.stand_ins.retain(|name| !collations.contains(&name.to_ascii_lowercase()));
        Ok(())
    }

    /// One page's bytes.
    pub(crate) fn bytes(&self, number: u32) -> Result<Vec<u8>, Trouble> {
        let bytes = read_page(&self.db, number)?;
        Ok(bytes.ok_or(Malformed { page: number, what: "not in the file" })?)
    }

    /// One page, as a page of a B-tree.
    pub(crate) fn page(&self, number: u32) -> Result<Page, Trouble> {
        let usable = self.header.page_size - u32::from(self.header.reserved_size);
        let bytes = self.bytes(number)?;
        self.pages_read.borrow_mut().insert(number);
        Ok(Page::parse(number, bytes, usable.try_into().expect("pages are small"))?)
    }

    /// Gives the next statement its time: at most `wish`, and less where somebody waits for it.
    /// Returns that time.
    pub(crate) fn allow(&self, wish: Duration) -> Duration {
        let hold = match self.how {
            Untouched::Immutable | Untouched::Overlay => Duration::MAX,
            Untouched::Shared if self.header.is_wal => HOLD_TIME_WAL,
            Untouched::Shared => HOLD_TIME_ROLLBACK,
        };
        let time = wish.min(hold).min(self.budget.left());
        self.budget.limit(time);
        time
    }

    /// Runs a statement that writes, to memory: on an overlay.
    pub(crate) fn write(&self, sql: &str) -> Result<(), Trouble> {
        self.db.execute_batch("PRAGMA query_only = OFF")?;
        let written = self.db.execute_batch(sql);
        self.db.execute_batch("PRAGMA query_only = ON")?;
        Ok(written?)
    }

    /// All rows of a query, which is a short one.
    pub(crate) fn rows<T>(
        &self,
        sql: &str,
        parameters: impl rusqlite::Params,
        row: impl FnMut(&rusqlite::Row<'_>) -> rusqlite::Result<T>,
    ) -> rusqlite::Result<Vec<T>> {
        self.allow(Duration::MAX);
        schema::rows(&self.db, sql, parameters, row)
    }

    /// Pages in the file, those of its WAL included.
    pub(crate) fn pages_count(&self) -> u64 {
        let count = self.db.query_row("PRAGMA page_count", [], |row| row.get::<_, u32>(0));
        count.map_or(self.outside.stamp.bytes / u64::from(self.header.page_size), u64::from)
    }

    /// Bytes of all pages.
    pub(crate) fn pages_bytes(&self) -> u64 {
        self.pages_count() * u64::from(self.header.page_size)
    }

    /// Tables of the user's own, not of SQLite's or of a virtual table's.
    pub(crate) fn user_tables(&self) -> impl Iterator<Item = &Table> {
        self.schema.tables.iter().filter(|table| !table.is_internal)
    }

    /// What is known of a tree that a sample reached.
    pub(crate) fn sample_of(&self, root: u32) -> Option<&Sample> {
        self.samples.get(&root).filter(|sample| sample.leaves_seen() > 0)
    }

    /// Ends the examination.
    pub(crate) fn finish(self, log: &mut Log) -> About {
        let mut about = About::of(&self.outside);
        about.page_bytes = Some(self.header.page_size);
        about.pages_count = Some(self.pages_count());
        about.free_pages_count = Some(self.header.free_pages_count.into());
        about.journal = Some(if self.header.is_wal { "wal" } else { "rollback" });
        about.cipher = Some(cipher_name(self.cipher));
        about.sqlite_version = Some(version_text(self.header.sqlite_version));
        about.tables_count = Some(self.user_tables().count());
        about.indexes_count = Some(self.user_tables().map(|table| table.indexes.len()).sum());
        about.opened = Some(match self.how {
            Untouched::Immutable => "immutable",
            Untouched::Overlay => "overlay",
            Untouched::Shared => "shared",
        });
        about.changed = self.outside.has_changed();
        if about.changed && self.how == Untouched::Overlay {
            // Read without locks while somebody wrote: what looks broken may be half of each.
            log.forget_faults();
            log.skip("integrity", "somebody wrote to the file meanwhile: run it again");
        }
        about
    }

    /// Trees in two rounds, so that none of many is left out for the sake of one.
    fn sample(&mut self, log: &mut Log) {
        let roots: Vec<u32> = self.schema.tables.iter().flat_map(Table::roots).collect();
        let end = self.budget.elapsed() + self.budget.left() / SAMPLE_SHARE;
        let mut random = Random::of(0);
        for ways in [WAYS_FIRST, WAYS_MAX] {
            for root in &roots {
                if self.budget.elapsed() >= end {
                    break;
                }
                if let Err(trouble) = self.sample_tree(*root, ways, &mut random) {
                    self.samples.remove(root);
                    self.broken.push((*root, trouble));
                }
            }
        }
        let missed = roots.len() - self.samples.len() - self.broken.len();
        if missed > 0 {
            log.skip("sizes", format!("no time to sample {missed} of {} trees", roots.len()));
        }
    }

    fn sample_tree(&mut self, root: u32, ways: usize, random: &mut Random) -> Result<(), Trouble> {
        if self.broken.iter().any(|(broken, _)| *broken == root) {
            return Ok(());
        }
        self.allow(Duration::MAX);
        let mut sample = match self.samples.remove(&root) {
            Some(sample) => sample,
            None => self.in_snapshot(|| Sample::of(root, &|page| self.page(page)))?,
        };
        while !sample.is_whole && sample.leaves_seen() < ways {
            self.allow(Duration::MAX);
            self.in_snapshot(|| {
                for _ in 0..WAYS_AT_ONCE.min(ways - sample.leaves_seen()) {
                    sample.descend(root, &|page| self.page(page), random)?;
                }
                Ok(())
            })?;
        }
        self.samples.insert(root, sample);
        Ok(())
    }

    /// Looks at some more leaves of a tree, others for another seed. Returns how many.
    pub(crate) fn more_leaves(&self, root: u32, seed: u64) -> Result<u64, Trouble> {
        let (mut random, mut more) = (Random::of(seed), Sample::default());
        self.allow(Duration::MAX);
        self.in_snapshot(|| {
            for _ in 0..WAYS_AT_ONCE {
                more.descend(root, &|page| self.page(page), &mut random)?;
            }
            Ok(())
        })?;
        Ok(more.leaves_seen().try_into().unwrap_or(0))
    }

    /// Several reads of one state of the file.
    pub(crate) fn in_snapshot<T>(
        &self,
        work: impl FnOnce() -> Result<T, Trouble>,
    ) -> Result<T, Trouble> {
        self.db.execute_batch("BEGIN")?;
        let result = work();
        self.db.execute_batch("ROLLBACK")?;
        result
    }
}

impl About {
    /// From outside.
    fn of(outside: &Outside) -> Self {
        Self {
            path: outside.path.display().to_string(),
            file_bytes: outside.stamp.bytes,
            wal_bytes: outside.wal.as_ref().map(|wal| wal.bytes),
            file_system: outside.file_system.clone(),
            processes: outside.users.processes.clone(),
            ..Self::default()
        }
    }
}

const COLLATIONS: &str = "SELECT lower(name) FROM pragma_collation_list";
const MODULES: &str = "SELECT lower(name) FROM pragma_module_list";

fn names(db: &Connection, sql: &str) -> rusqlite::Result<BTreeSet<String>> {
    db.prepare(sql)?.query_map([], |row| row.get(0))?.collect()
}

fn read_header(db: &Connection) -> Result<Header, Trouble> {
    let page = read_page(db, 1)?.and_then(|page| Header::parse(&page));
    Ok(page.ok_or(Malformed { page: 1, what: "no header of a database" })?)
}

/// A page's bytes, as SQLite has them: decrypted, and of the WAL where it is newer there.
fn read_page(db: &Connection, number: u32) -> rusqlite::Result<Option<Vec<u8>>> {
    let mut statement = db.prepare_cached("SELECT data FROM sqlite_dbpage WHERE pgno = ?1")?;
    statement.query_row([number], |row| row.get(0)).optional()
}

pub(crate) fn cipher_name(cipher: Option<Cipher>) -> &'static str {
    cipher.map_or("none", Cipher::name)
}
