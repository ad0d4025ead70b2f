//! Limits on what clients may make the server hold or do before they get their response, and
//! against whom it counts, so that enough remains for all others.
//!
//! | what | counts against | module |
//! |---|---|---|
//! | failed logins, registrations | login and network, network | `rate_limiter` |
//! | hashing passwords, comparing sets | network, account | `fair_semaphore` |
//! | bytes in memory | account, network, all | `memory`, `body` |
//! | connections | network, all | `connections` |
//!
//! A network is an IPv4 address, or the IPv6 prefix of one customer (`peer_network`,
//! `group_counts`). Behind a proxy that the operator has named, it is the network of the proxy's
//! client (`proxies`).

pub(crate) mod body;
pub(crate) mod client_delay;
pub(crate) mod connections;
pub(crate) mod fair_semaphore;
mod group_counts;
pub(crate) mod hosts;
mod keyed_semaphores;
pub(crate) mod logins;
pub(crate) mod memory;
pub(crate) mod peer_network;
pub(crate) mod proxies;
pub(crate) mod rate_limiter;
pub(crate) mod unread_body;
