//! Replicas against a server that is a list in memory: real files, real SQLite, no network.
//!
//! "Any program" is a second connection to the file that knows nothing of Warren.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod capture;
mod chinook;
mod clocks;
mod conflicts;
mod converge;
mod copies;
mod counted;
mod declarations;
mod deleted;
mod dismissals;
mod edits;
mod erasures;
mod heal;
mod hostile;
mod identities;
mod joins;
mod labels;
mod large;
mod memory_server;
mod rebuilds;
mod receipts;
mod references;
mod replaces;
mod schema;
mod sealed;
mod servers;
mod strangers;
mod support;
mod tracking;
mod turning;
mod values;
mod verification;
