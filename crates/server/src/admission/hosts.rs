//! Checks the host names under which the server may be reached.
//!
//! A page of any origin can make its host name point to 127.0.0.1 and so reach a server that only
//! this machine can reach (DNS rebinding). Its requests still carry the page's host name as their
//! `Host`.
//!
//! # Not here
//! - The other origins whose pages may call the API → `http/cors.rs`.

use std::net::IpAddr;
use std::str::FromStr;

use axum::http::header::HOST;
use axum::http::uri::Authority;
use axum::http::{Request, Version};
use protocol::ErrorCode;

use crate::error::ApiError;

/// The maximum length of a host name, also in the text of a refusal: the maximum in DNS.
const HOST_CHARACTERS_MAX: usize = 253;
/// The maximum length of a part of a name between two dots.
const LABEL_CHARACTERS_MAX: usize = 63;

/// A host name or an address of the server, without a scheme, a port or a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostName(String);

/// The error for a text that is not a valid host name.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("expected a host name (warren.example) or an address, without https://, port or path")]
pub struct InvalidHost;

impl FromStr for HostName {
    type Err = InvalidHost;

    fn from_str(text: &str) -> Result<Self, InvalidHost> {
        let name = text.strip_suffix('.').unwrap_or(text).to_ascii_lowercase();
        let is_label = |label: &str| {
            let is_of_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
            (1..=LABEL_CHARACTERS_MAX).contains(&label.len()) && label.bytes().all(is_of_name)
        };
        let is_name = name.len() <= HOST_CHARACTERS_MAX && name.split('.').all(is_label);
        if is_name || bare(&name).parse::<IpAddr>().is_ok() {
            Ok(Self(name))
        } else {
            Err(InvalidHost)
        }
    }
}

/// The host names under which the server answers.
#[derive(Clone, Debug)]
pub(crate) struct AllowedHosts {
    /// The names in lower case, without ports.
    names: Vec<String>,
    /// Whether only these names and addresses are allowed.
    is_closed: bool,
}

impl AllowedHosts {
    /// Allows the operator's names. If there are none, all names are allowed, unless only this
    /// machine reaches the address `listen`.
    pub(crate) fn new(names: &[HostName], listen: IpAddr) -> Self {
        let is_closed = !names.is_empty() || listen.is_loopback();
        let names = names.iter().map(|HostName(name)| name.clone()).collect();
        Self { names, is_closed }
    }

    /// Refuses a request for another server, or one without a clear host.
    pub(crate) fn check<B>(&self, request: &Request<B>) -> Result<(), ApiError> {
        let mut lines = request.headers().get_all(HOST).iter();
        let authority = match (lines.next(), lines.next()) {
            // The host in the request's first line takes precedence (RFC 9112, 3.2.2).
            (Some(_), None) if request.uri().authority().is_some() => {
                request.uri().authority().cloned()
            }
            (Some(line), None) => line.to_str().ok().and_then(|text| text.parse().ok()),
            // Monitors that use HTTP/1.0 send no Host header; browsers do not use it.
            (None, _) if request.version() < Version::HTTP_11 => return Ok(()),
            _ => None,
        };
        let authority: Authority = authority.ok_or_else(|| {
            ApiError::new(ErrorCode::Malformed, "a request must have one valid Host header")
        })?;
        if self.is_answered(authority.host()) {
            return Ok(());
        }
        let host: String = authority.host().chars().take(HOST_CHARACTERS_MAX).collect();
        let message = format!("this server does not answer requests for {host}");
        Err(ApiError::new(ErrorCode::HostNotAllowed, message))
    }

    fn is_answered(&self, host: &str) -> bool {
        // DNS rebinding needs a name: a page whose host is an address was loaded from that address.
        let is_address = bare(host).parse::<IpAddr>().is_ok();
        let name = host.trim_end_matches('.').to_ascii_lowercase();
        let is_local = name == "localhost" || name.ends_with(".localhost");
        !self.is_closed || is_address || is_local || self.names.contains(&name)
    }
}

/// Removes the brackets of an IPv6 address.
fn bare(host: &str) -> &str {
    host.trim_start_matches('[').trim_end_matches(']')
}

#[cfg(test)]
mod tests {
    use axum::http::request::Builder;

    use super::*;

    fn answers(hosts: &AllowedHosts, lines: &[&str]) -> bool {
        let request = |uri| Request::builder().uri(uri);
        let add = |request: Builder, line: &&str| request.header(HOST, *line);
        let request = lines.iter().fold(request("/healthz"), add);
        hosts.check(&request.body(()).unwrap()).is_ok()
    }

    #[test]
    fn on_loopback_only_its_own_names_are_answered_to() {
        let hosts = AllowedHosts::new(&[], IpAddr::from([127, 0, 0, 1]));
        for host in ["127.0.0.1:4600", "[::1]:4600", "localhost", "LOCALHOST:4600", "a.localhost"] {
            assert!(answers(&hosts, &[host]), "{host}");
        }
        for host in ["evil.example", "evil.example:4600", "127.0.0.1.evil.example", "", "a b"] {
            assert!(!answers(&hosts, &[host]), "{host}");
        }
        assert!(!answers(&hosts, &[]) && !answers(&hosts, &["localhost", "localhost"]));
        let absolute = Request::builder().uri("http://evil.example/").header(HOST, "localhost");
        hosts.check(&absolute.body(()).unwrap()).unwrap_err();
        let old = Request::builder().uri("/healthz").version(Version::HTTP_10).body(()).unwrap();
        hosts.check(&old).unwrap();
    }

    #[test]
    fn elsewhere_all_names_are_unless_some_are_given() {
        let anywhere = IpAddr::from([0, 0, 0, 0]);
        assert!(answers(&AllowedHosts::new(&[], anywhere), &["warren.example"]));
        assert!(!answers(&AllowedHosts::new(&[], anywhere), &[]));
        let hosts = AllowedHosts::new(&["Warren.example.".parse().unwrap()], anywhere);
        assert!(answers(&hosts, &["warren.example:443"]) && answers(&hosts, &["192.0.2.1"]));
        assert!(!answers(&hosts, &["other.example"]));
    }

    #[test]
    fn a_host_is_a_name_without_what_is_around_it_in_an_address_bar() {
        for text in ["warren.example", "localhost", "a_b-c.example.", "192.0.2.1", "[2001:db8::1]"]
        {
            text.parse::<HostName>().unwrap();
        }
        let long = "a".repeat(64);
        for text in [
            "",
            ".",
            "https://warren.example",
            "warren.example:4600",
            "warren.example/",
            "*.example",
            "a b",
            "a..b",
            &long,
        ] {
            assert_eq!(text.parse::<HostName>(), Err(InvalidHost), "{text}");
        }
    }
}
