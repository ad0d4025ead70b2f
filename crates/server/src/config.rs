//! The settings of a server as plain data. The program reads flags and files.

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

/// The default port of Warren.
const PORT: u16 = 4600;

const ADMIN_TOKEN_CHARACTERS_MIN: usize = 16;

/// The maximum length of a device name: enough for names that people give, and bounded because
/// lists show it.
pub(crate) const NAME_CHARACTERS_MAX: usize = 200;

/// A server's settings.
pub struct Config {
    /// The address to listen on; port 0 lets the system choose.
    pub listen: SocketAddr,
    /// The certificate with which all listeners speak TLS. If there is none, they speak plain HTTP.
    pub tls: Option<TlsFiles>,
    /// The directory of the accounts and vaults.
    pub data: PathBuf,
    /// The PostgreSQL database that stores the vaults instead of files. The text may contain a
    /// password.
    pub postgres: Option<Zeroizing<String>>,
    /// Whether anyone may create an account.
    pub registration_open: bool,
    /// The operator's token. It allows creating accounts even if registration is closed.
    pub admin_token: Option<AdminToken>,
    /// Other origins whose pages may call the API.
    pub origins: Vec<AllowedOrigin>,
    /// Host names under which the server answers. An empty list allows all, except on a loopback
    /// address, where only `localhost` and addresses are allowed.
    pub hosts: Vec<HostName>,
    /// Proxies whose `X-Forwarded-For` header is trusted for the client's address.
    pub trusted_proxies: Vec<TrustedProxy>,
    /// The files that browsers get from the server. If the list is empty, `/` shows a page that
    /// describes the server.
    pub site: &'static [Asset],
    /// The maximum number of messages in one request or response.
    pub messages_count_max: usize,
    /// The maximum size of one request's body in bytes.
    pub body_bytes_max: usize,
    /// The time in which a request's head and then a short body must arrive; afterwards a
    /// connection without a request closes. A long body gets one more second for each 16 KiB.
    pub request_timeout: Duration,
    /// The maximum number of bytes of all bodies and responses in memory at one time.
    pub memory_bytes_max: usize,
    /// The maximum number of open connections. A further one replaces another or is refused.
    pub connections_max: usize,
    /// The maximum number of devices of one account that subscribe at one time.
    pub account_subscribers_max: usize,
    /// The quota of accounts that have no limits of their own.
    pub limits: DefaultAccountLimits,
    /// The cost of hashing a password.
    pub kdf: KdfCost,
    /// The limits for open vaults, their memory and the threads that write.
    pub databases: engine::EngineLimits,
    /// The function that rebuilds gateway states in vaults that were damaged.
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
            // Enough for thousands of subscribers. Each connection needs a descriptor; the program
            // raises that limit.
            connections_max: 10_000,
            // As many as an account may have devices.
            account_subscribers_max: 500,
            limits: DefaultAccountLimits::default(),
            kdf: KdfCost::DEFAULT,
            databases: engine::EngineLimits::default(),
            repair_gateway_state: |record, _| Ok(record.to_vec()),
        }
    }
}

impl Config {
    /// The maximum number of subscribers. A tenth of the connections remains for requests that
    /// end.
    pub(crate) fn subscribers_max(&self) -> usize {
        self.connections_max - self.connections_max.div_ceil(10)
    }
}

/// The default limits of an account's vault and devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DefaultAccountLimits {
    /// The maximum number of messages in the vault.
    pub messages_max: u64,
    /// The maximum size of the messages' contents in bytes.
    pub bytes_max: u64,
    /// The maximum number of devices.
    pub devices_max: u32,
}

impl Default for DefaultAccountLimits {
    fn default() -> Self {
        let devices_max = DEVICES_COUNT_DEFAULT;
        Self { messages_max: u64::MAX, bytes_max: u64::MAX, devices_max }
    }
}

/// The operator's secret. It is zeroized on drop and has no `Debug`.
pub struct AdminToken(Zeroizing<String>);

/// The reasons why a text is not an admin token.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum InvalidAdminToken {
    /// The token is so short that it could be guessed.
    #[error("an admin token must have at least {ADMIN_TOKEN_CHARACTERS_MIN} characters")]
    TooShort,
    /// The token has characters that a request header cannot contain.
    #[error("an admin token must contain only printable ASCII characters")]
    Unprintable,
}

impl AdminToken {
    /// Parses an admin token. Surrounding spaces are removed, because they are removed from a
    /// header, too.
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

    /// Checks whether a text is this token, in constant time.
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
