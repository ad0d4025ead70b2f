//! Finds the client's address of a request that came through proxies.
//!
//! A proxy appends the address of its client to `X-Forwarded-For`; the part before it may have been
//! written by anyone. So the list is read from its end, as long as each entry comes from a proxy
//! that the operator has named.

use std::net::IpAddr;
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::http::{HeaderMap, HeaderName};
use ipnet::IpNet;

const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// The address of a trusted proxy, or a network of them in CIDR notation (RFC 4632).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrustedProxy(IpNet);

/// The reasons why a text is not a valid proxy.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum InvalidProxy {
    /// The text is neither an address nor a network.
    #[error("expected an address (127.0.0.1) or a network (10.0.0.0/8)")]
    Malformed,
    /// The network is so large that all of its clients could forge their addresses.
    #[error(
        "the network is too large: all of its clients could forge their addresses; name your \
         proxy, or a network no larger than 10.0.0.0/8"
    )]
    TooWide,
}

/// The shortest prefixes of private networks (RFC 1918, RFC 4193).
const PREFIX_V4_MIN: u8 = 8;
const PREFIX_V6_MIN: u8 = 7;

/// Headers that proxies add to requests.
const FORWARDING: [&str; 10] = [
    "forwarded",
    "via",
    "x-forwarded-for",
    "x-forwarded-host",
    "x-forwarded-proto",
    "x-forwarded-server",
    "x-real-ip",
    "x-client-ip",
    "true-client-ip",
    "cf-connecting-ip",
];

/// Whether a request's headers show that it came through a proxy, trusted or not.
pub(crate) fn is_forwarded(headers: &HeaderMap) -> bool {
    FORWARDING.iter().any(|name| headers.contains_key(*name))
}

impl FromStr for TrustedProxy {
    type Err = InvalidProxy;

    fn from_str(text: &str) -> Result<Self, InvalidProxy> {
        let network = match text.parse::<IpAddr>() {
            Ok(address) => address.into(),
            Err(_) => text.parse().or(Err(InvalidProxy::Malformed))?,
        };
        let prefix_min = match network {
            IpNet::V4(_) => PREFIX_V4_MIN,
            IpNet::V6(_) => PREFIX_V6_MIN,
        };
        if network.prefix_len() < prefix_min {
            Err(InvalidProxy::TooWide)
        } else {
            Ok(Self(network))
        }
    }
}

/// The proxies that the operator trusts.
pub(crate) struct TrustedProxies {
    trusted: Vec<TrustedProxy>,
    has_warned: AtomicBool,
}

impl TrustedProxies {
    pub(crate) fn new(trusted: Vec<TrustedProxy>) -> Self {
        Self { trusted, has_warned: AtomicBool::new(false) }
    }

    pub(crate) fn is_trusted(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.trusted.iter().any(|proxy| proxy.0.contains(&address))
    }

    /// Returns the client's address of a request that came over a connection from `peer`.
    pub(crate) fn client(&self, peer: IpAddr, headers: &HeaderMap) -> IpAddr {
        if !headers.contains_key(FORWARDED_FOR) {
            return peer;
        }
        if !self.is_trusted(peer) {
            self.warn(peer);
            return peer;
        }
        let mut client = peer;
        // Several headers are one list (RFC 9110, 5.3).
        for value in headers.get_all(FORWARDED_FOR).iter().rev() {
            for text in value.to_str().unwrap_or_default().rsplit(',') {
                let Some(address) = address(text.trim()) else { return client };
                client = address;
                if !self.is_trusted(client) {
                    return client;
                }
            }
        }
        client
    }

    /// Warns only once: anyone who sends such a header could otherwise fill the log.
    fn warn(&self, peer: IpAddr) {
        if !self.has_warned.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                %peer,
                "X-Forwarded-For is ignored: if this is your proxy, all of its clients count as \
                 one until you add it as a trusted proxy"
            );
        }
    }
}

/// Parses an address as proxies write it: some add a port, and IPv6 is in brackets.
fn address(text: &str) -> Option<IpAddr> {
    let in_brackets = text.strip_prefix('[').and_then(|text| text.split_once(']'));
    let parsed = match in_brackets {
        Some((address, _port)) => address.parse(),
        None => text.parse().or_else(|error| match text.split_once(':') {
            Some((address, _port)) => address.parse(),
            None => Err(error),
        }),
    };
    parsed.ok().map(|address: IpAddr| address.to_canonical())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_word_of_trusted_proxies_counts() {
        let trusted =
            ["127.0.0.1", "10.0.0.0/8", "2001:db8::/32"].map(|text| text.parse().unwrap());
        let proxies = TrustedProxies::new(trusted.into());
        let client = |peer: &str, lines: &[&str]| {
            let mut headers = HeaderMap::new();
            for line in lines {
                headers.append(FORWARDED_FOR, line.parse().unwrap());
            }
            proxies.client(peer.parse().unwrap(), &headers).to_string()
        };
        assert_eq!(client("192.0.2.1", &[]), "192.0.2.1");
        assert_eq!(client("192.0.2.1", &["203.0.113.9"]), "192.0.2.1", "of a stranger");
        assert_eq!(client("127.0.0.1", &[]), "127.0.0.1");
        assert_eq!(client("127.0.0.1", &["203.0.113.9"]), "203.0.113.9");
        assert_eq!(client("127.0.0.1", &["198.51.100.1, 203.0.113.9"]), "203.0.113.9");
        assert_eq!(client("127.0.0.1", &["203.0.113.9, 10.1.2.3"]), "203.0.113.9");
        assert_eq!(client("127.0.0.1", &["198.51.100.1", "203.0.113.9"]), "203.0.113.9");
        assert_eq!(client("127.0.0.1", &["203.0.113.9:5000"]), "203.0.113.9");
        assert_eq!(client("127.0.0.1", &["[2001:db9::1]:5000"]), "2001:db9::1");
        assert_eq!(client("127.0.0.1", &["2001:db9::1"]), "2001:db9::1");
        assert_eq!(client("::ffff:127.0.0.1", &["::ffff:203.0.113.9"]), "203.0.113.9");
        for nonsense in ["unknown", "", "203.0.113.9,", "203.0.113.9, _hidden"] {
            assert_eq!(client("127.0.0.1", &[nonsense]), "127.0.0.1", "{nonsense}");
        }
        assert_eq!(client("127.0.0.1", &["unknown, 10.1.2.3"]), "10.1.2.3");
    }

    #[test]
    fn proxies_are_addresses_or_networks() {
        assert!(["::1", "127.0.0.0/8", "fc00::/7"].iter().all(|text| is_proxy(text)));
        assert!(!["", "localhost", "10.0.0.0/33", "10.0.0.1:80"].iter().any(|text| is_proxy(text)));
        for text in ["0.0.0.0/0", "::/0", "128.0.0.0/1"] {
            assert_eq!(text.parse::<TrustedProxy>(), Err(InvalidProxy::TooWide), "{text}");
        }
    }

    fn is_proxy(text: &str) -> bool {
        text.parse::<TrustedProxy>().is_ok()
    }
}
