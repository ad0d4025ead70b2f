//! Keeps a connection together with the statements that are prepared on it.
//!
//! # Invariants
//! - The statements are finalized before the connection is closed (`self_cell` drops them first).
#![expect(unsafe_code, reason = "one `unsafe impl Send`, which says why it is sound")]

use rusqlite::Connection;
use self_cell::self_cell;

use super::transaction::{StaticStatement, Transaction};

self_cell!(
    struct ConnectionAndStatements {
        owner: Connection,
        #[not_covariant]
        dependent: Transaction,
    }
);

/// An open connection and its prepared statements.
pub(crate) struct PreparedConnection(ConnectionAndStatements);

// SAFETY: a `Connection` may move to another thread; it may not be used by two at once. A
// `PreparedConnection` owns its connection and every reference to it: the statements inside
// `Transaction` borrow it, and so are not `Send` on their own, but they only ever move together
// with it. None can stay behind: `with` lends the transaction for a lifetime that its closure
// cannot name.
unsafe impl Send for PreparedConnection {}

impl PreparedConnection {
    pub(crate) fn new(connection: Connection) -> Self {
        Self(ConnectionAndStatements::new(connection, |connection| Transaction::new(connection)))
    }

    /// Lends the transaction, which holds the statements.
    pub(crate) fn with<T>(&self, f: impl FnOnce(&Transaction<'_>) -> T) -> T {
        self.0.with_dependent(|_connection, transaction| f(transaction))
    }

    /// Runs one of the engine's own statements.
    pub(crate) fn run(&self, sql: &'static StaticStatement) -> rusqlite::Result<()> {
        self.with(|transaction| transaction.statement(sql)?.execute([]).map(drop))
    }

    /// Clears the parameters, so that no contents stay in memory while the connection is idle.
    pub(crate) fn clear_parameters(&self) {
        self.0.with_dependent(|_connection, transaction| transaction.clear_parameters());
    }

    pub(crate) fn connection(&self) -> &Connection {
        self.0.borrow_owner()
    }

    /// Finalizes the statements and returns the connection.
    pub(crate) fn into_connection(self) -> Connection {
        self.0.into_owner()
    }
}
