//! Everything that reads what strangers wrote, as functions of bytes that must not panic.
//!
//! A target takes any bytes, reads them, and holds what it read against what must be true of it:
//! that it is written back as the same bytes, that a sync ends. Each has a corpus, inputs that
//! together reach what can be reached (`corpora/NAME.zip`).
//!
//! ```text
//! cargo xtask fuzz messages --minutes 60   searches for inputs with libFuzzer, keeps what is new
//! cargo test -p fuzz                       the kept inputs, and some neighbours of each
//! ```
//!
//! # Invariants
//! - A target is a function of its bytes: no clock, no random numbers, nothing left from the input
//!   before.
//!
//! # Not here
//! - Plan's CSV: it is TypeScript → `web/tests/plan/csv.test.ts`.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod budget;
pub mod corpus;
mod database;
mod device;
/// A server that says what is true, as the replica's own tests have it.
#[path = "../../replica/tests/it/memory_server.rs"]
#[expect(clippy::unwrap_used, reason = "written for tests")]
mod memory_server;
mod stored;
mod wire;

/// Something that reads foreign bytes.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// As `cargo xtask fuzz` calls it.
    pub name: &'static str,
    /// Panics if the bytes break what must always hold.
    pub run: fn(&[u8]),
    /// What a search begins with.
    pub seeds: fn() -> Vec<Vec<u8>>,
}

/// All of them.
pub const TARGETS: &[Target] = &[
    Target { name: "contents", run: stored::contents, seeds: stored::content_seeds },
    Target { name: "keys", run: stored::keys, seeds: stored::key_seeds },
    Target { name: "sealed", run: stored::sealed, seeds: stored::sealed_seeds },
    Target { name: "timestamps", run: stored::timestamps, seeds: stored::timestamp_seeds },
    Target { name: "phrases", run: stored::phrases, seeds: stored::phrase_seeds },
    Target { name: "protobuf", run: wire::protobuf, seeds: wire::protobuf_seeds },
    Target { name: "json", run: wire::json, seeds: wire::json_seeds },
    Target { name: "pages", run: wire::pages, seeds: wire::page_seeds },
    Target { name: "events", run: wire::events, seeds: wire::event_seeds },
    Target { name: "messages", run: device::messages, seeds: device::message_seeds },
    Target { name: "answers", run: device::answers, seeds: device::answer_seeds },
    Target { name: "actual-sync", run: budget::sync_requests, seeds: budget::request_seeds },
    Target { name: "actual-tries", run: budget::tries, seeds: budget::trie_seeds },
    Target { name: "actual-records", run: budget::records, seeds: budget::record_seeds },
    Target { name: "actual-archives", run: budget::archives, seeds: budget::archive_seeds },
    Target { name: "databases", run: database::doctor, seeds: database::seeds },
    Target { name: "logs", run: database::logs, seeds: database::log_seeds },
];

/// The one with this name.
pub fn target(name: &str) -> Option<&'static Target> {
    TARGETS.iter().find(|target| target.name == name)
}
