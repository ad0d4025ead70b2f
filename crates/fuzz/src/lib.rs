//! Fuzz targets: all code that reads untrusted input, as functions of bytes that must not panic.
//!
//! A target takes any bytes, reads them, and checks the result: for example, that it is written
//! back as the same bytes, or that a sync ends. Each target has a corpus, inputs that together
//! reach everything that can be reached (`vectors/fuzz/NAME.zip`).
//!
//! ```text
//! cargo xtask fuzz messages --minutes 60   searches for inputs with libFuzzer, keeps what is new
//! cargo test -p fuzz                       the kept inputs, and some neighbours of each
//! ```
//!
//! # Invariants
//! - A target is a function of its bytes: it uses no clock and no random numbers, and keeps no state
//!   from the previous input.
//!
//! # Not here
//! - Plan's CSV: it is TypeScript → `web/tests/plan/csv.test.ts`.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod actual_budget;
pub mod corpus;
mod database;
/// An honest server, as in the replica's own tests.
#[path = "../../replica/tests/it/memory_server.rs"]
#[expect(clippy::unwrap_used, reason = "written for tests")]
mod memory_server;
mod stored_formats;
mod untrusted_peers;
mod wire_formats;

/// A function that reads untrusted bytes, with the inputs of its search.
#[derive(Clone, Copy, Debug)]
pub struct FuzzTarget {
    /// The target's name, as `cargo xtask fuzz` takes it.
    pub name: &'static str,
    /// The function, which panics if the bytes violate something that must always hold.
    pub run: fn(&[u8]),
    /// The inputs with which a search begins.
    pub seeds: fn() -> Vec<Vec<u8>>,
}

/// All fuzz targets.
pub const TARGETS: &[FuzzTarget] = &[
    FuzzTarget {
        name: "contents",
        run: stored_formats::contents,
        seeds: stored_formats::content_seeds,
    },
    FuzzTarget { name: "keys", run: stored_formats::keys, seeds: stored_formats::key_seeds },
    FuzzTarget { name: "sealed", run: stored_formats::sealed, seeds: stored_formats::sealed_seeds },
    FuzzTarget {
        name: "deliveries",
        run: stored_formats::deliveries,
        seeds: stored_formats::delivery_seeds,
    },
    FuzzTarget {
        name: "timestamps",
        run: stored_formats::timestamps,
        seeds: stored_formats::timestamp_seeds,
    },
    FuzzTarget {
        name: "phrases",
        run: stored_formats::phrases,
        seeds: stored_formats::phrase_seeds,
    },
    FuzzTarget {
        name: "protobuf",
        run: wire_formats::protobuf,
        seeds: wire_formats::protobuf_seeds,
    },
    FuzzTarget { name: "json", run: wire_formats::json, seeds: wire_formats::json_seeds },
    FuzzTarget { name: "pages", run: wire_formats::pages, seeds: wire_formats::page_seeds },
    FuzzTarget { name: "events", run: wire_formats::events, seeds: wire_formats::event_seeds },
    FuzzTarget {
        name: "messages",
        run: untrusted_peers::messages,
        seeds: untrusted_peers::message_seeds,
    },
    FuzzTarget {
        name: "answers",
        run: untrusted_peers::answers,
        seeds: untrusted_peers::answer_seeds,
    },
    FuzzTarget {
        name: "actual-sync",
        run: actual_budget::sync_requests,
        seeds: actual_budget::request_seeds,
    },
    FuzzTarget {
        name: "actual-tries",
        run: actual_budget::tries,
        seeds: actual_budget::trie_seeds,
    },
    FuzzTarget {
        name: "actual-records",
        run: actual_budget::records,
        seeds: actual_budget::record_seeds,
    },
    FuzzTarget {
        name: "actual-archives",
        run: actual_budget::archives,
        seeds: actual_budget::archive_seeds,
    },
    FuzzTarget { name: "databases", run: database::doctor, seeds: database::seeds },
    FuzzTarget { name: "logs", run: database::logs, seeds: database::log_seeds },
];

/// Returns the target with this name.
pub fn target(name: &str) -> Option<&'static FuzzTarget> {
    TARGETS.iter().find(|target| target.name == name)
}
