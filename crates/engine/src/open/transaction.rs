//! Provides closures with the connection inside their transaction, and with statements that stay
//! prepared.
//!
//! A [`StaticStatement`] is a static: it finds its prepared statement on any connection by an
//! index, whereas `prepare_cached` hashes the text each time.
//!
//! # Invariants
//! - The writes of a transaction are never underestimated, because they decide whether a failure
//!   must be undone. SQLite counts the rows that statements change; all other writes (schema
//!   changes, PRAGMAs, incremental BLOBs, anything through the bare connection) count as unseen
//!   writes.
//!
//! # Not here
//! - The start and end of a transaction → `write/writer.rs`, `readers.rs`.

use std::cell::{Cell, RefCell};
use std::ops::{Deref, DerefMut};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use rusqlite::{Connection, Statement};

/// The text of a statement, with its index among the prepared statements of every connection.
///
/// Create it once, as a `static`:
/// ```
/// static CREDIT: engine::StaticStatement = engine::StaticStatement::new("UPDATE account SET
/// balance = balance + ?1");
/// ```
#[derive(Debug)]
pub struct StaticStatement {
    text: &'static str,
    index: OnceLock<usize>,
}

static PLACES_COUNT: AtomicUsize = AtomicUsize::new(0);

impl StaticStatement {
    /// Creates a statement from its text; text after a semicolon is an error when it is first
    /// prepared.
    pub const fn new(text: &'static str) -> Self {
        Self { text, index: OnceLock::new() }
    }

    /// Returns the index of the statement; indexes are dense over the program, in order of first
    /// use.
    fn index(&self) -> usize {
        *self.index.get_or_init(|| PLACES_COUNT.fetch_add(1, Ordering::Relaxed))
    }
}

/// The connection inside a transaction. Dereferences to [`rusqlite::Connection`].
pub struct Transaction<'c> {
    connection: &'c Connection,
    /// The prepared statements, by [`StaticStatement::index`]. A place is empty before its first
    /// use and while its statement is lent.
    prepared: RefCell<Vec<Option<Box<PreparedStatement<'c>>>>>,
    effect: Cell<WriteEffect>,
    changes_before: Cell<u64>,
}

struct PreparedStatement<'c> {
    statement: Statement<'c>,
    effect: WriteEffect,
    /// Whether the statement was used since its parameters were last cleared.
    is_used: bool,
}

/// The writes that may have happened in a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum WriteEffect {
    Nothing,
    /// Only rows were written, all of which SQLite counts.
    Counted,
    /// Rows were written, and perhaps a counter of AUTOINCREMENT, which SQLite does not count.
    Inserts,
    Unknown,
}

impl<'c> Transaction<'c> {
    pub(crate) fn new(connection: &'c Connection) -> Self {
        Self {
            connection,
            prepared: RefCell::default(),
            effect: Cell::new(WriteEffect::Nothing),
            changes_before: Cell::new(0),
        }
    }

    /// Returns the prepared statement of this text. It is prepared at its first use on this
    /// connection, and then kept.
    pub fn statement(
        &self,
        sql: &'static StaticStatement,
    ) -> rusqlite::Result<StatementGuard<'_, 'c>> {
        let place = sql.index();
        let kept = self.prepared.borrow_mut().get_mut(place).and_then(Option::take);
        let prepared = match kept {
            Some(prepared) => prepared,
            // This is the first use, or the statement is lent further up the stack. The place is
            // then taken by the one that is dropped last.
            None => prepare(self.connection, sql.text)?,
        };
        self.effect.set(self.effect.get().max(prepared.effect));
        Ok(StatementGuard { transaction: self, index: place, prepared: Some(prepared) })
    }

    /// Starts a new transaction, and forgets the writes of the previous one.
    pub(crate) fn start(&self) {
        self.effect.set(WriteEffect::Nothing);
        self.changes_before.set(self.connection.total_changes());
    }

    /// Checks whether anything may have been written since the start.
    pub(crate) fn may_have_written(&self) -> bool {
        match self.effect.get() {
            WriteEffect::Nothing => false,
            WriteEffect::Counted => self.has_changes(),
            WriteEffect::Inserts => self.has_changes() || self.has_autoincrement(),
            WriteEffect::Unknown => true,
        }
    }

    fn has_changes(&self) -> bool {
        self.connection.total_changes() != self.changes_before.get()
    }

    /// Checks for AUTOINCREMENT counters. An ignored INSERT moves the counter all the same.
    fn has_autoincrement(&self) -> bool {
        static COUNTERS: StaticStatement =
            StaticStatement::new("PRAGMA table_list('sqlite_sequence')");
        self.statement(&COUNTERS).and_then(|mut counters| counters.exists([])).unwrap_or(true)
    }

    /// Clears the parameters of all statements that were used.
    pub(crate) fn clear_parameters(&self) {
        for prepared in self.prepared.borrow_mut().iter_mut().flatten() {
            if std::mem::take(&mut prepared.is_used) {
                prepared.statement.clear_bindings();
            }
        }
    }

    /// Returns the connection, for calls that certainly write nothing.
    pub(crate) fn connection_read_only(&self) -> &'c Connection {
        self.connection
    }
}

impl Deref for Transaction<'_> {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        self.effect.set(WriteEffect::Unknown);
        self.connection
    }
}

impl std::fmt::Debug for Transaction<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Transaction").field("effect", &self.effect).finish_non_exhaustive()
    }
}

fn prepare<'c>(
    connection: &'c Connection,
    text: &str,
) -> rusqlite::Result<Box<PreparedStatement<'c>>> {
    let statement = connection.prepare(text)?;
    let is_one_of = |verbs: &[&str]| {
        let begins = |verb: &str| {
            text.trim_start()
                .get(..verb.len())
                .is_some_and(|start| start.eq_ignore_ascii_case(verb))
        };
        verbs.iter().copied().any(begins)
    };
    let effect = if statement.readonly() {
        WriteEffect::Nothing
    } else if is_one_of(&["UPDATE", "DELETE"]) {
        WriteEffect::Counted
    } else if is_one_of(&["INSERT", "REPLACE", "WITH"]) {
        WriteEffect::Inserts
    } else {
        WriteEffect::Unknown
    };
    Ok(Box::new(PreparedStatement { statement, effect, is_used: false }))
}

/// A prepared statement on loan. Dereferences to [`rusqlite::Statement`], and is returned when
/// dropped. Its parameters keep the values that they were last bound to, so bind all of them.
pub struct StatementGuard<'t, 'c> {
    transaction: &'t Transaction<'c>,
    index: usize,
    /// The statement, or `None` while the guard is dropped.
    prepared: Option<Box<PreparedStatement<'c>>>,
}

impl<'c> Deref for StatementGuard<'_, 'c> {
    type Target = Statement<'c>;

    fn deref(&self) -> &Statement<'c> {
        &self.prepared.as_ref().expect("only drop takes it").statement
    }
}

impl<'c> DerefMut for StatementGuard<'_, 'c> {
    fn deref_mut(&mut self) -> &mut Statement<'c> {
        &mut self.prepared.as_mut().expect("only drop takes it").statement
    }
}

impl std::fmt::Debug for StatementGuard<'_, '_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StatementGuard").field("index", &self.index).finish_non_exhaustive()
    }
}

impl Drop for StatementGuard<'_, '_> {
    fn drop(&mut self) {
        let Some(mut prepared) = self.prepared.take() else { return };
        prepared.is_used = true;
        let mut places = self.transaction.prepared.borrow_mut();
        if places.len() <= self.index {
            places.resize_with(self.index + 1, || None);
        }
        places[self.index] = Some(prepared);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    static INSERT: StaticStatement = StaticStatement::new("INSERT INTO t VALUES (?1)");
    static READ: StaticStatement = StaticStatement::new("SELECT x FROM t ORDER BY x");
    static PRAGMA: StaticStatement = StaticStatement::new("PRAGMA user_version = 7");
    static NO_ROW: StaticStatement = StaticStatement::new("UPDATE t SET x = 0 WHERE x > 99");

    fn check(work: impl FnOnce(&Transaction<'_>)) -> bool {
        let connection = Connection::open_in_memory().unwrap();
        connection.execute_batch("CREATE TABLE t (x); INSERT INTO t VALUES (1), (2)").unwrap();
        let transaction = Transaction::new(&connection);
        transaction.start();
        work(&transaction);
        transaction.may_have_written()
    }

    #[test]
    fn a_statement_is_prepared_once_and_nests() {
        check(|db| {
            let mut outer = db.statement(&READ).unwrap();
            let mut rows = outer.query([]).unwrap();
            rows.next().unwrap().unwrap();
            let inner: i64 = db.statement(&READ).unwrap().query_row([], |row| row.get(0)).unwrap();
            assert_eq!(inner, 1);
            let next: i64 = rows.next().unwrap().unwrap().get(0).unwrap();
            assert_eq!(next, 2);
        });
    }

    #[test]
    fn parameters_do_not_stay() {
        check(|db| {
            db.statement(&INSERT).unwrap().execute([5]).unwrap();
            db.clear_parameters();
            db.statement(&INSERT).unwrap().raw_execute().unwrap();
            let nulls = "SELECT count(*) FROM t WHERE x IS NULL";
            let nulls: i64 = db.query_row(nulls, [], |row| row.get(0)).unwrap();
            assert_eq!(nulls, 1);
        });
    }

    #[test]
    fn what_may_have_been_written_is_known() {
        assert!(!check(|_| {}));
        assert!(!check(|db| {
            db.statement(&READ).unwrap().query_row([], |_| Ok(())).unwrap();
        }));
        assert!(!check(|db| assert_eq!(db.statement(&NO_ROW).unwrap().execute([]).unwrap(), 0)));
        assert!(check(|db| assert_eq!(db.statement(&INSERT).unwrap().execute([1]).unwrap(), 1)));
        assert!(check(|db| {
            db.statement(&PRAGMA).unwrap().execute([]).unwrap();
        }));
        assert!(check(|db| assert!(db.is_autocommit())), "through the bare connection");
    }
}
