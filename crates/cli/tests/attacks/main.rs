//! These tests attack the shipped binary while an honest user, who must not notice it, uses the
//! server: with clients that announce bodies and do not send them, that request and do not read,
//! that connect and send nothing, and that guess passwords.
//!
//! Every client has an address of its own in 127.0.0.0/8. `WARREN_ATTACKS=long` attacks with the
//! numbers that the documents state, and prints what the honest user has measured; without it
//! there are enough attackers to see that the limits hold. `WARREN_ATTACKED` names another binary,
//! such as an older one to compare with.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]
#![expect(clippy::disallowed_methods, reason = "the honest user measures")]

mod attacked_server;
mod attackers;
mod connections;
mod logins;
mod memory;
mod raw_client;

/// Returns `short`, or `long` in the long form.
fn count(short: usize, long: usize) -> usize {
    if is_long() { long } else { short }
}

fn is_long() -> bool {
    std::env::var_os("WARREN_ATTACKS").is_some_and(|form| form == "long")
}
