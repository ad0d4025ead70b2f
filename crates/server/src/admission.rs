//! What clients may make the server hold or do before they get their answer, and whose it counts
//! as, so that there is enough left for everybody else.
//!
//! | what | counts against | module |
//! |---|---|---|
//! | failed logins, registrations | login and network, network | `throttle` |
//! | hashing passwords, comparing sets | network, account | `turns` |
//! | bytes in memory | account, network, all | `memory`, `body` |
//! | connections | network, all | `connections` |
//!
//! A network is an address, or what one customer has of IPv6 (`network`, `group_counts`); behind a
//! proxy that the operator has named, that of the proxy's client (`proxies`).

pub(crate) mod body;
pub(crate) mod body_rest;
pub(crate) mod client_delay;
pub(crate) mod connections;
mod group_counts;
pub(crate) mod hosts;
pub(crate) mod logins;
pub(crate) mod memory;
pub(crate) mod network;
pub(crate) mod proxies;
mod shares;
pub(crate) mod throttle;
pub(crate) mod turns;
