//! Tests of replicas against a server that is a list in memory: real files, real SQLite, no
//! network.
//!
//! "Any program" is a second connection to the file that does not depend on Warren.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod accounts;
mod capture;
mod chinook;
mod clocks;
mod conflicts;
mod converge;
mod copies;
mod declarations;
mod deleted;
mod dismissals;
mod e2ee;
mod edits;
mod erasures;
mod faulty_servers;
mod heal;
mod hostile;
mod identities;
mod labels;
mod large;
mod memory_server;
mod merges;
mod provisional_keys;
mod rebuilds;
mod references;
mod replaces;
mod schema;
mod strangers;
mod support;
mod sync_status;
mod tracking;
mod turning;
mod values;
mod verification;
