//! How a server is set up. Plain data: reading flags and files is the program's.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use accounts::{DEVICES_COUNT_DEFAULT, KdfCost};
use subtle::ConstantTimeEq;
use sync_store::RepairStateFn;
use zeroize::Zeroizing;

use crate::admission::hosts::HostName;
use crate::admission::proxies::TrustedProxy;
use crate::error::TlsFiles;
use crate::http::cors::AllowedOrigin;
use crate::http::site::Asset;

/// Warren's port, unless told otherwise.
const PORT: u16 = 4600;

const ADMIN_TOKEN_CHARACTERS_MIN: usize = 16;

/// Enough for what people call things, and bounded because it is shown in lists.
pub(crate) const NAME_CHARACTERS_MAX: usize = 200;

/// A server's settings.
pub struct Config {
    /// Where to listen; port 0 lets the system choose.
    pub listen: SocketAddr,
    /// The certificate with which all listeners speak TLS; without it they speak plain HTTP.
    pub tls: Option<TlsFiles>,
    /// The directory of the accounts and vaults.
    pub data: PathBuf,
    /// The PostgreSQL database that has the vaults instead. May hold a password.
    pub postgres: Option<Zeroizing<String>>,
    /// Whether anybody may make an account.
    pub registration_open: bool,
    /// Who has it may make accounts all the same.
    pub admin_token: Option<AdminToken>,
    /// Other origins whose pages may call the API.
    pub origins: Vec<AllowedOrigin>,
    /// Names that the server is asked under; without any, all of them, or where it listens on a
    /// loopback address, `localhost` and addresses.
    pub hosts: Vec<HostName>,
    /// Proxies whose `X-Forwarded-For` says who asks.
    pub trusted_proxies: Vec<TrustedProxy>,
    /// What browsers find here; if it is empty, `/` is a page that says what this is.
    pub site: &'static [Asset],
    /// Messages in one request or answer.
    pub messages_count_max: usize,
    /// Bytes of one request's body.
    pub body_bytes_max: usize,
    /// In this time a request's head must arrive, and then a short body; a connection without a
    /// request closes. A long body has a second more for each 16 KiB.
    pub request_timeout: Duration,
    /// Bytes of all bodies and answers that are in memory at one time.
    pub memory_bytes_max: usize,
    /// Connections at one time; further ones wait in the system's queue.
    pub connections_max: usize,
    /// Devices of one account that listen at one time.
    pub account_subscribers_max: usize,
    /// What an account may hold, unless it has limits of its own.
    pub limits: DefaultAccountLimits,
    /// What hashing a password costs.
    pub kdf: KdfCost,
    /// Open vaults, their memory, and the threads that write.
    pub databases: engine::EngineLimits,
    /// What the records of gateways are made anew with, in vaults that were damaged.
    pub repair_gateway_state: RepairStateFn,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, PORT)),
            tls: None,
            data: PathBuf::from("data"),
            postgres: None,
            registration_open: false,
            admin_token: None,
            origins: Vec::new(),
            hosts: Vec::new(),
            trusted_proxies: Vec::new(),
            site: &[],
            messages_count_max: protocol::MESSAGES_COUNT_MAX,
            body_bytes_max: protocol::BODY_BYTES_MAX,
            request_timeout: Duration::from_secs(30),
            memory_bytes_max: 512 << 20,
            // Thousands of devices that listen; at a descriptor each, which the program sees to.
            connections_max: 10_000,
            // As many as an account has devices.
            account_subscribers_max: 500,
            limits: DefaultAccountLimits::default(),
            kdf: KdfCost::DEFAULT,
            databases: engine::EngineLimits::default(),
            repair_gateway_state: |record, _| Ok(record.to_vec()),
        }
    }
}

impl Config {
    /// Devices that listen at one time. A tenth of the connections stays with requests that end.
    pub(crate) fn subscribers_max(&self) -> usize {
        self.connections_max - self.connections_max.div_ceil(10)
    }
}

/// How much an account may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DefaultAccountLimits {
    /// Messages in the vault.
    pub messages_max: u64,
    /// Bytes of their contents.
    pub bytes_max: u64,
    /// Devices.
    pub devices_max: u32,
}

impl Default for DefaultAccountLimits {
    fn default() -> Self {
        let devices_max = DEVICES_COUNT_DEFAULT;
        Self { messages_max: u64::MAX, bytes_max: u64::MAX, devices_max }
    }
}

/// The operator's secret. Zeroised on drop; there is no `Debug`.
pub struct AdminToken(Zeroizing<String>);

/// The reasons why a text is not an admin token.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum InvalidAdminToken {
    /// Somebody could guess it.
    #[error("an admin token must have at least {ADMIN_TOKEN_CHARACTERS_MIN} characters")]
    TooShort,
    /// No request could have it in its header.
    #[error("an admin token must contain only printable ASCII characters")]
    Unprintable,
}

impl AdminToken {
    /// Spaces around it are not part of it: those of a header are not, either.
    pub fn parse(text: &str) -> Result<Self, InvalidAdminToken> {
        let text = text.trim();
        if text.len() < ADMIN_TOKEN_CHARACTERS_MIN {
            return Err(InvalidAdminToken::TooShort);
        }
        if !text.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic()) {
            return Err(InvalidAdminToken::Unprintable);
        }
        Ok(Self(Zeroizing::new(text.to_owned())))
    }

    /// Takes the same time wherever the texts differ.
    pub(crate) fn is(&self, text: &str) -> bool {
        bool::from(self.0.as_bytes().ct_eq(text.as_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_that_somebody_could_guess_or_nobody_send_is_none() {
        let refused = |text: &str| AdminToken::parse(text).map(drop).unwrap_err();
        for text in ["", "a", "fifteen letters", "   short            "] {
            assert_eq!(refused(text), InvalidAdminToken::TooShort, "{text}");
        }
        assert_eq!(refused("sixteen and more, ü"), InvalidAdminToken::Unprintable);
        let token = AdminToken::parse(" sixteen letters, \r\n");
        assert!(token.unwrap().is("sixteen letters,"));
    }
}
