//! Attacks on the shipped binary, with an honest user beside each who must not notice: clients that
//! promise and do not send, ask and do not read, connect and say nothing, and guess passwords.
//!
//! Every client has an address of its own in 127.0.0.0/8. `WARREN_ATTACKS=long` attacks with the
//! numbers that are in the documents, and prints what the honest user has measured; without it
//! there is enough of each to see that the limits hold. `WARREN_ATTACKED` names another binary, such
//! as an older one to compare with.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]
#![expect(clippy::disallowed_methods, reason = "the honest user measures")]

mod attacked_server;
mod attackers;
mod connections;
mod logins;
mod memory;
mod raw_client;

/// `short`, or in the long form `long`.
fn count(short: usize, long: usize) -> usize {
    if is_long() { long } else { short }
}

fn is_long() -> bool {
    std::env::var_os("WARREN_ATTACKS").is_some_and(|form| form == "long")
}
