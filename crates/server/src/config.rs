//! How a server is set up. Plain data: reading flags and files is the program's.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use accounts::KdfCost;
use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

/// Warren's port, unless told otherwise.
const PORT: u16 = 4600;

/// A server's settings.
pub struct Config {
    /// Where to listen; port 0 lets the system choose.
    pub listen: SocketAddr,
    /// The directory of the accounts and vaults.
    pub data: PathBuf,
    /// The PostgreSQL database that has the vaults instead. May hold a password.
    pub postgres: Option<Zeroizing<String>>,
    /// Whether anybody may make an account.
    pub registration_open: bool,
    /// Who has it may make accounts all the same.
    pub admin_token: Option<AdminToken>,
    /// Messages in one request or answer.
    pub messages_count_max: usize,
    /// Bytes of one request's body.
    pub body_bytes_max: usize,
    /// In this time a request's head must arrive, and then its body; a connection without a request
    /// closes.
    pub request_timeout: Duration,
    /// Connections at one time; further ones wait in the system's queue.
    pub connections_max: usize,
    /// What hashing a password costs.
    pub kdf: KdfCost,
    /// Open vaults, their memory, and the threads that write.
    pub databases: engine::Limits,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, PORT)),
            data: PathBuf::from("data"),
            postgres: None,
            registration_open: false,
            admin_token: None,
            messages_count_max: protocol::MESSAGES_COUNT_MAX,
            body_bytes_max: protocol::BODY_BYTES_MAX,
            request_timeout: Duration::from_secs(30),
            // At a descriptor each this leaves most of the usual limit of 4,096 to the vaults.
            connections_max: 1_024,
            kdf: KdfCost::DEFAULT,
            databases: engine::Limits::default(),
        }
    }
}

/// The operator's secret. Zeroised on drop; there is no `Debug`.
pub struct AdminToken(Zeroizing<String>);

impl AdminToken {
    pub fn new(text: impl Into<Zeroizing<String>>) -> Self {
        Self(text.into())
    }

    /// Takes the same time wherever the texts differ. An empty token is nobody's.
    pub(crate) fn is(&self, text: &str) -> bool {
        !self.0.is_empty() && bool::from(self.0.as_bytes().ct_eq(text.as_bytes()))
    }
}
