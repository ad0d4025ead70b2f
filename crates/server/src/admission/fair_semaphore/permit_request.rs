//! Requests for permits, with the properties that decide their order.

use accounts::Login;

use crate::admission::peer_network::PeerNetwork;

/// A request for a permit.
pub(crate) struct PermitRequest<K> {
    pub(crate) key: K,
    pub(crate) class: RequestClass,
    /// The rank among the requests of one key. The lowest is served first.
    pub(crate) rank: u64,
    pub(crate) lanes: Vec<AttemptLane>,
    /// The digest by which a returning request is recognized.
    pub(crate) digest: Option<AttemptDigest>,
}

/// The class of a request, which selects its queue.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum RequestClass {
    /// A client that has proven before, from the same network, that the account is its own.
    Known,
    /// A client that tries to log in from another network.
    Unknown,
    /// A client that creates an account.
    Registration,
}

/// A lane of attempts, of which only one runs at a time.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum AttemptLane {
    /// Attempts at a login from networks where it has failed and that it does not know.
    Elsewhere(Login),
    /// Attempts at a login, or at a secret without an account, from one network.
    Here(Option<Login>, PeerNetwork),
    /// Attempts at all logins that do not know the network.
    Network(PeerNetwork),
}

/// A digest of a login, a network and a password, under a key that is unknown to anyone who may see
/// the digest.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct AttemptDigest(pub(crate) u64);
