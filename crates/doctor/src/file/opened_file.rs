//! Opens a file for the examination, reads its schema and samples its trees.
//!
//! # How the file is opened, and why that is safe
//! If no process has the file open, it is opened on an *overlay*, without any lock. There, a hot
//! journal is rolled back and a WAL is read, as the next program would do it, and everything that
//! this writes stays in memory. At the end, a check shows whether a process wrote to the file. If a
//! process has the file open, SQLite's own locks are used, and the WAL's index (`-shm`) is opened
//! read-only. A WAL without a `-shm` file belongs to a program that keeps the index in its own
//! memory: in this case, the file is opened on an overlay, too.
//!
//! # Invariants
//! - For a file in use, page 1, read by an immutable connection, decides how the file is opened.
//! - A statement keeps its snapshot no longer than `HOLD_TIME_*`: writers of a rollback-journal
//!   database wait for readers, and a WAL cannot be restarted while a reader uses it.
//!
//! # Not here
//! - The checks → `checks.rs`.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::time::Duration;

use engine::{Cipher, FileEncryption, ReadOnlyMode};
use rusqlite::{Connection, OptionalExtension};
use sqlite_schema::{ForeignKeySchema, TableSchema};

use super::btree_page::{BtreePage, MalformedPage};
use super::btree_sample::{SampleRng, TreeSample};
use super::check_error::CheckError;
use super::database_header::{DatabaseHeader, version_text};
use super::opening::{how, open, why_closed};
use super::schema::{self, DatabaseSchema};
use super::unreadable;
use crate::environment::file_environment::FileEnvironment;
use crate::error::{Error, Result, sqlite};
use crate::options::ExamineOptions;
use crate::program::settings::ConnectionSettings;
use crate::program::workload::QueryLog;
use crate::report::CheckResults;
use crate::report::file_summary::{FileOpenMode, FileSummary, JournalKind};
use crate::time_limit::ExaminationBudget;

/// The time that one statement may make writers of a rollback-journal database wait.
const HOLD_TIME_ROLLBACK: Duration = Duration::from_millis(250);
/// The time that one statement may prevent the restart of a WAL.
const HOLD_TIME_WAL: Duration = Duration::from_secs(2);
/// The divisor for the share of the remaining time that the samples of the trees may take.
const SAMPLE_SHARE: u32 = 4;
/// The number of random paths in each tree: first for all trees, then for the larger ones.
const PATHS_FIRST: usize = 8;
const PATHS_MAX: usize = 128;
/// The number of paths in one transaction.
const PATHS_AT_ONCE: usize = 16;

/// An open file with everything that the checks need.
pub(crate) struct OpenedFile {
    pub(crate) db: Connection,
    pub(crate) encryption: FileEncryption,
    pub(crate) cipher: Option<Cipher>,
    pub(crate) open_mode: ReadOnlyMode,
    pub(crate) environment: FileEnvironment,
    pub(crate) header: DatabaseHeader,
    pub(crate) schema: DatabaseSchema,
    /// The samples by root page, as far as the time allowed.
    pub(crate) samples: BTreeMap<u32, TreeSample>,
    /// The modules of virtual tables that this SQLite has.
    pub(crate) modules: BTreeSet<String>,
    /// The collations that this SQLite does not have; stand-ins compare by bytes.
    pub(crate) stand_ins: BTreeSet<String>,
    /// The numbers of the tree pages that were read.
    pub(crate) pages_read: RefCell<HashSet<u32>>,
    /// The root pages of trees that the samples could not read, with the errors.
    pub(crate) broken: Vec<(u32, CheckError)>,
    pub(crate) time_limit: ExaminationBudget,
    pub(crate) queries: Vec<String>,
    pub(crate) workload: Option<QueryLog>,
    pub(crate) settings: Option<ConnectionSettings>,
}

impl OpenedFile {
    /// Opens the file, or returns the known facts about a file that cannot be opened without harm.
    pub(crate) fn open(
        environment: FileEnvironment,
        encryption: &FileEncryption,
        options: &ExamineOptions,
        budget: &ExaminationBudget,
        log: &mut CheckResults,
    ) -> Result<Result<Self, FileSummary>> {
        if let Some(why) = why_closed(&environment, budget) {
            log.add_skipped("content", why);
            return Ok(Err(FileSummary::from_environment(&environment)));
        }
        let how = if environment.may_be_in_use() {
            let (db, _) = open(&environment, encryption, ReadOnlyMode::Immutable, budget)?;
            let is_wal = read_header(&db).ok().or_else(|| environment.header.clone());
            how(&environment, is_wal.map_or(environment.has_wal_content(), |header| header.is_wal))
        } else {
            ReadOnlyMode::Overlay
        };
        let (db, cipher) = open(&environment, encryption, how, budget)?;
        let header = read_header(&db);
        let header = match header {
            Ok(header) => header,
            Err(trouble) => {
                unreadable::report_unreadable(&trouble, &environment, log);
                return Ok(Err(FileSummary {
                    cipher: Some(cipher_name(cipher)),
                    ..FileSummary::from_environment(&environment)
                }));
            }
        };
        let mut subject = Self {
            db,
            encryption: encryption.clone(),
            cipher,
            open_mode: how,
            environment,
            header,
            schema: DatabaseSchema::default(),
            samples: BTreeMap::new(),
            modules: BTreeSet::new(),
            stand_ins: BTreeSet::new(),
            pages_read: RefCell::default(),
            broken: Vec::new(),
            time_limit: budget.clone(),
            queries: options.queries.clone(),
            workload: options.workload.clone(),
            settings: options.settings.clone(),
        };
        match schema::read(&subject.db, budget) {
            Ok(schema) => subject.schema = schema,
            Err(error) => {
                unreadable::report_unreadable_schema(&error.into(), &subject.environment, log);
            }
        }
        if subject.schema.unread_count > 0 {
            let (unread, read) = (subject.schema.unread_count, subject.schema.tables.len());
            log.add_skipped(
                format!("tables ({unread} of {})", unread + read),
                unreadable::TIME_LIMIT_REACHED,
            );
        }
        subject.look_what_is_unknown().map_err(sqlite("reading the collations and modules"))?;
        for sql in &subject.queries {
            // The query is prepared alone first: its error then quotes the query as it was given.
            let prepared = subject.db.prepare(sql);
            let prepared = prepared.and_then(|_| subject.db.prepare(&format!("EXPLAIN {sql}")));
            prepared.map_err(|source| Error::InvalidQuery { sql: sql.clone(), source })?;
        }
        subject.sample(log);
        Ok(Ok(subject))
    }

    /// Finds the modules that this SQLite has, and the collations that the file uses and it lacks.
    fn look_what_is_unknown(&mut self) -> rusqlite::Result<()> {
        // The connection to the file already has stand-ins for missing collations.
        let plain = Connection::open_in_memory()?;
        self.modules = names(&plain, MODULES)?;
        let collations = names(&plain, COLLATIONS)?;
        self.stand_ins = self.schema.collations();
        self.stand_ins.retain(|name| !collations.contains(&name.to_ascii_lowercase()));
        Ok(())
    }

    /// Returns the bytes of one page.
    pub(crate) fn page_bytes(&self, number: u32) -> Result<Vec<u8>, CheckError> {
        let bytes = read_page(&self.db, number)?;
        Ok(bytes.ok_or(MalformedPage { page: number, what: "not in the file" })?)
    }

    /// Returns one page, decoded as a page of a B-tree.
    pub(crate) fn page(&self, number: u32) -> Result<BtreePage, CheckError> {
        let usable = self.header.page_size - u32::from(self.header.reserved_size);
        let bytes = self.page_bytes(number)?;
        self.pages_read.borrow_mut().insert(number);
        Ok(BtreePage::parse(number, bytes, usable.try_into().expect("pages are small"))?)
    }

    /// Sets the time limit of the next statement: at most `wish`, and less where other processes
    /// may have to wait. Returns this time.
    pub(crate) fn grant_time(&self, wish: Duration) -> Duration {
        let hold = match self.open_mode {
            ReadOnlyMode::Immutable | ReadOnlyMode::Overlay => Duration::MAX,
            ReadOnlyMode::Shared if self.header.is_wal => HOLD_TIME_WAL,
            ReadOnlyMode::Shared => HOLD_TIME_ROLLBACK,
        };
        let time = wish.min(hold).min(self.time_limit.remaining());
        self.time_limit.limit(time);
        time
    }

    /// Runs a statement that writes, on an overlay, to memory only.
    pub(crate) fn write(&self, sql: &str) -> Result<(), CheckError> {
        self.db.execute_batch("PRAGMA query_only = OFF")?;
        let written = self.db.execute_batch(sql);
        self.db.execute_batch("PRAGMA query_only = ON")?;
        Ok(written?)
    }

    /// Returns all rows of a query, which must be a short one.
    pub(crate) fn rows<T>(
        &self,
        sql: &str,
        parameters: impl rusqlite::Params,
        row: impl FnMut(&rusqlite::Row<'_>) -> rusqlite::Result<T>,
    ) -> rusqlite::Result<Vec<T>> {
        self.grant_time(Duration::MAX);
        schema::rows(&self.db, sql, parameters, row)
    }

    /// Returns the number of pages in the file, including those of its WAL.
    pub(crate) fn pages_count(&self) -> u64 {
        let count = self.db.query_row("PRAGMA page_count", [], |row| row.get::<_, u32>(0));
        count.map_or(self.environment.stamp.bytes / u64::from(self.header.page_size), u64::from)
    }

    /// Returns the size of all pages in bytes.
    pub(crate) fn pages_bytes(&self) -> u64 {
        self.pages_count() * u64::from(self.header.page_size)
    }

    /// Returns the user's own tables, without those of SQLite or of a virtual table.
    pub(crate) fn user_tables(&self) -> impl Iterator<Item = &TableSchema> {
        self.schema.tables.iter().filter(|table| !table.is_internal())
    }

    /// Returns the foreign keys of a table.
    pub(crate) fn foreign_keys(
        &self,
        table: &TableSchema,
    ) -> rusqlite::Result<Vec<ForeignKeySchema>> {
        self.grant_time(Duration::MAX);
        sqlite_schema::foreign_keys(&self.db, &table.name)
    }

    /// Returns the sample of a table or an index, if a sample reached it.
    pub(crate) fn sample_of(&self, name: &str) -> Option<&TreeSample> {
        self.sample_at(self.schema.root_of(name)?)
    }

    /// Returns the sample of the tree with this root page, if a sample reached it.
    pub(crate) fn sample_at(&self, root: u32) -> Option<&TreeSample> {
        self.samples.get(&root).filter(|sample| sample.leaves_seen() > 0)
    }

    /// Ends the examination and returns the summary of the file.
    pub(crate) fn finish(self, log: &mut CheckResults) -> FileSummary {
        let mut summary = FileSummary::from_environment(&self.environment);
        summary.page_bytes = Some(self.header.page_size);
        summary.pages_count = Some(self.pages_count());
        summary.free_pages_count = Some(self.header.free_pages_count.into());
        summary.journal =
            Some(if self.header.is_wal { JournalKind::Wal } else { JournalKind::Rollback });
        summary.cipher = Some(cipher_name(self.cipher));
        summary.sqlite_version = Some(version_text(self.header.sqlite_version));
        summary.tables_count = Some(self.user_tables().count());
        summary.indexes_count = Some(self.user_tables().map(|table| table.indexes.len()).sum());
        summary.open_mode = Some(match self.open_mode {
            ReadOnlyMode::Immutable => FileOpenMode::Immutable,
            ReadOnlyMode::Overlay => FileOpenMode::Overlay,
            ReadOnlyMode::Shared => FileOpenMode::Shared,
        });
        summary.changed_meanwhile = self.environment.has_changed();
        if summary.changed_meanwhile && self.open_mode == ReadOnlyMode::Overlay {
            // The file was read without locks while a process wrote to it: apparent damage may be a
            // mixture of two states.
            log.discard_page_faults();
            log.add_skipped(
                "integrity",
                "another program wrote to the file during the check; run it again",
            );
        }
        summary
    }

    /// Samples the trees in two rounds, so that one large tree does not use up the time of the
    /// others.
    fn sample(&mut self, log: &mut CheckResults) {
        let tables = self.schema.tables.iter();
        let roots: Vec<u32> = tables.flat_map(|table| self.schema.roots_of(table)).collect();
        let end = self.time_limit.elapsed() + self.time_limit.remaining() / SAMPLE_SHARE;
        let mut random = SampleRng::from_seed(0);
        for ways in [PATHS_FIRST, PATHS_MAX] {
            for root in &roots {
                if self.time_limit.elapsed() >= end {
                    break;
                }
                if let Err(error) = self.sample_tree(*root, ways, &mut random) {
                    self.samples.remove(root);
                    self.broken.push((*root, error));
                }
            }
        }
        let missed = roots.len() - self.samples.len() - self.broken.len();
        if missed > 0 {
            log.add_skipped(
                "sizes of tables and indexes",
                format!("not enough time to sample {missed} of {} B-trees", roots.len()),
            );
        }
    }

    fn sample_tree(
        &mut self,
        root: u32,
        ways: usize,
        random: &mut SampleRng,
    ) -> Result<(), CheckError> {
        if self.broken.iter().any(|(broken, _)| *broken == root) {
            return Ok(());
        }
        self.grant_time(Duration::MAX);
        let mut sample = match self.samples.remove(&root) {
            Some(sample) => sample,
            None => self.in_snapshot(|| TreeSample::from_root(root, &|page| self.page(page)))?,
        };
        while !sample.is_whole && sample.leaves_seen() < ways {
            self.grant_time(Duration::MAX);
            self.in_snapshot(|| {
                for _ in 0..PATHS_AT_ONCE.min(ways - sample.leaves_seen()) {
                    sample.add_random_path(root, &|page| self.page(page), random)?;
                }
                Ok(())
            })?;
        }
        self.samples.insert(root, sample);
        Ok(())
    }

    /// Checks some more random leaves of a tree, which depend on the seed. Returns their number.
    pub(crate) fn sample_more_leaves(&self, root: u32, seed: u64) -> Result<u64, CheckError> {
        let (mut random, mut more) = (SampleRng::from_seed(seed), TreeSample::default());
        self.grant_time(Duration::MAX);
        self.in_snapshot(|| {
            for _ in 0..PATHS_AT_ONCE {
                more.add_random_path(root, &|page| self.page(page), &mut random)?;
            }
            Ok(())
        })?;
        Ok(more.leaves_seen().try_into().unwrap_or(0))
    }

    /// Runs several reads on one snapshot of the file.
    pub(crate) fn in_snapshot<T>(
        &self,
        work: impl FnOnce() -> Result<T, CheckError>,
    ) -> Result<T, CheckError> {
        self.db.execute_batch("BEGIN")?;
        let result = work();
        self.db.execute_batch("ROLLBACK")?;
        result
    }
}

impl FileSummary {
    /// Creates a summary of the facts that are visible from outside.
    fn from_environment(environment: &FileEnvironment) -> Self {
        Self {
            path: environment.path.display().to_string(),
            file_bytes: environment.stamp.bytes,
            wal_bytes: environment.wal.as_ref().map(|wal| wal.bytes),
            file_system: environment.file_system.clone(),
            processes: environment.users.processes.clone(),
            ..Self::default()
        }
    }
}

const COLLATIONS: &str = "SELECT lower(name) FROM pragma_collation_list";
const MODULES: &str = "SELECT lower(name) FROM pragma_module_list";

fn names(db: &Connection, sql: &str) -> rusqlite::Result<BTreeSet<String>> {
    db.prepare(sql)?.query_map([], |row| row.get(0))?.collect()
}

fn read_header(db: &Connection) -> Result<DatabaseHeader, CheckError> {
    let page = read_page(db, 1)?.and_then(|page| DatabaseHeader::parse(&page));
    Ok(page.ok_or(MalformedPage { page: 1, what: "no database header" })?)
}

/// Reads a page as SQLite sees it: decrypted, and from the WAL where that has a newer version.
fn read_page(db: &Connection, number: u32) -> rusqlite::Result<Option<Vec<u8>>> {
    let mut statement = db.prepare_cached("SELECT data FROM sqlite_dbpage WHERE pgno = ?1")?;
    statement.query_row([number], |row| row.get(0)).optional()
}

pub(crate) fn cipher_name(cipher: Option<Cipher>) -> &'static str {
    cipher.map_or("none", Cipher::name)
}
