//! A request for a permit: whose it is, and behind whom it waits.

use accounts::Login;

use crate::admission::peer_network::PeerNetwork;

/// A request for a permit.
pub(crate) struct PermitRequest<K> {
    pub(crate) key: K,
    pub(crate) class: RequestClass,
    /// Among those of one key the lower is served first.
    pub(crate) rank: u64,
    pub(crate) lanes: Vec<AttemptLane>,
    /// By which somebody who comes back is recognised.
    pub(crate) digest: Option<AttemptDigest>,
}

/// Who waits for whom.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum RequestClass {
    /// Who has shown before, from where they ask, that the account is theirs.
    Known,
    /// Who tries to log in from elsewhere.
    Unknown,
    /// Who makes an account.
    Registration,
}

/// Attempts of which one is made at a time.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum AttemptLane {
    /// At a login, from networks where it has failed and that it does not know.
    Elsewhere(Login),
    /// At a login, or at a secret that is no account's, from one network.
    Here(Option<Login>, PeerNetwork),
    /// At all logins that do not know the network.
    Network(PeerNetwork),
}

/// Of a login, a network and a password, under a key that nobody has who might see it.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct AttemptDigest(pub(crate) u64);
