//! Parses the address of a server.

use std::str::FromStr;

use ureq::http::Uri;

/// The address of a server, such as `https://sync.example` or `http://127.0.0.1:4600`; a path is
/// allowed. One server has one form, the one that browsers use: scheme and host are in lower case,
/// and there is no default port and no slash at the end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerUrl(String);

impl ServerUrl {
    /// Returns the address as a text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    fn normalize(text: &str) -> Option<Self> {
        let uri: Uri = text.parse().ok()?;
        let scheme = uri.scheme_str()?;
        let default_port = match scheme {
            "http" => 80,
            "https" => 443,
            _ => return None,
        };
        let authority = uri.authority()?.as_str();
        let host = uri.host().filter(|host| !host.is_empty())?.to_ascii_lowercase();
        let port = match authority.rsplit_once(':').filter(|(_, port)| !port.contains(']')) {
            Some((_, port)) => Some(port.parse::<u16>().ok()?).filter(|port| *port != default_port),
            None => None,
        };
        let is_plain = !authority.contains('@') && uri.query().is_none() && !text.contains('#');
        let port = port.map_or(String::new(), |port| format!(":{port}"));
        let path = uri.path().trim_end_matches('/');
        is_plain.then(|| Self(format!("{scheme}://{host}{port}{path}")))
    }
}

impl FromStr for ServerUrl {
    type Err = InvalidServerUrl;

    fn from_str(text: &str) -> Result<Self, InvalidServerUrl> {
        Self::normalize(text).ok_or(InvalidServerUrl)
    }
}

/// The text is not the address of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "a server's URL begins with http:// or https:// and has no user name and no query, such as \
     http://127.0.0.1:4600"
)]
pub struct InvalidServerUrl;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_server_has_one_url() {
        for (text, url) in [
            ("http://127.0.0.1:4600", "http://127.0.0.1:4600"),
            ("http://127.0.0.1:4600/", "http://127.0.0.1:4600"),
            ("HTTPS://Sync.Example//", "https://sync.example"),
            ("https://example.org/Warren/", "https://example.org/Warren"),
            ("http://[::1]:4600", "http://[::1]:4600"),
            ("http://[::1]", "http://[::1]"),
            ("http://example.org:80/", "http://example.org"),
            ("http://example.org:443", "http://example.org:443"),
            ("https://example.org:443/a", "https://example.org/a"),
        ] {
            assert_eq!(text.parse::<ServerUrl>().unwrap().as_str(), url);
        }
    }

    #[test]
    fn other_texts_are_refused() {
        for text in [
            "",
            "localhost",
            "127.0.0.1:4600",
            "localhost:4600",
            "ftp://example.org",
            "http://",
            "http:/one-slash",
            "https://ada@example.org",
            "https://example.org?a=b",
            "https://example.org/#top",
            "/path",
            "http://a b",
            "http://:4600",
            "http://example.org:",
            "http://example.org:99999",
        ] {
            assert_eq!(text.parse::<ServerUrl>(), Err(InvalidServerUrl), "{text}");
        }
    }
}
