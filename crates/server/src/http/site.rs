//! The site: files of the program for browsers, at paths that are not calls of the API.
//!
//! # Invariants
//! - Every response has the same policy: no page loads or runs content of other origins, is framed,
//!   or sends data to other origins.
//! - Only files whose names change with their contents are cached without revalidation.
//!
//! # Not here
//! - The files → `web-assets`, or the program that configures the server.

use std::collections::HashMap;

use axum::body::Body;
use axum::http::header::{
    ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG,
    HeaderName, IF_NONE_MATCH, REFERRER_POLICY, VARY, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::Response;
use bytes::Bytes;

/// A file of the site.
#[derive(Clone, Copy, Debug)]
pub struct Asset {
    /// The path below the server's address, with a leading slash. `index.html` also answers for its
    /// folder.
    pub path: &'static str,
    pub bytes: &'static [u8],
    /// The content in Brotli, if that is worth it.
    pub brotli: Option<&'static [u8]>,
    /// The value of `Content-Type`.
    pub content_type: &'static str,
    /// A digest that changes with the content. It consists of letters and digits.
    pub digest: &'static str,
    /// Whether the path, too, changes with the content.
    pub is_immutable: bool,
}

const OPENER_POLICY: HeaderName = HeaderName::from_static("cross-origin-opener-policy");
const PERMISSIONS_POLICY: HeaderName = HeaderName::from_static("permissions-policy");

/// The content security policy. Scripts compile the wasm module; all else is as strict as a page
/// allows.
const CONTENT_POLICY: &str = "default-src 'self'; script-src 'self' 'wasm-unsafe-eval'; \
     style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; worker-src 'self'; \
     frame-ancestors 'none'; base-uri 'none'; form-action 'none'; object-src 'none'";

/// Headers that every response has.
const POLICIES: [(HeaderName, &str); 5] = [
    (CONTENT_SECURITY_POLICY, CONTENT_POLICY),
    (OPENER_POLICY, "same-origin"),
    (PERMISSIONS_POLICY, "camera=(), geolocation=(), microphone=(), payment=(), usb=()"),
    (REFERRER_POLICY, "no-referrer"),
    (X_CONTENT_TYPE_OPTIONS, "nosniff"),
];

const ASK_AGAIN: &str = "no-cache";
/// A year, the longest time for which caches keep a response.
const FOR_EVER: &str = "public, max-age=31536000, immutable";

/// The files by their paths.
pub struct StaticSite(HashMap<&'static str, &'static Asset>);

impl StaticSite {
    pub fn new(assets: &'static [Asset]) -> Self {
        Self(assets.iter().map(|asset| (asset.path, asset)).collect())
    }

    /// Returns the file at a path, or the folder's `index.html`.
    pub fn find(&self, path: &str) -> Option<&'static Asset> {
        let folder = path.strip_suffix('/').unwrap_or(path);
        let index = || self.0.get(format!("{folder}/index.html").as_str());
        self.0.get(path).or_else(index).copied()
    }
}

impl Asset {
    /// Returns the file in an encoding that the request accepts, or reports that the client's copy
    /// is current.
    pub fn answer(&self, request: &HeaderMap) -> Response {
        let brotli = self.brotli.filter(|_| accepts_brotli(request));
        let etag = match brotli {
            Some(_) => format!("\"{}.br\"", self.digest),
            None => format!("\"{}\"", self.digest),
        };
        let is_known = has_etag(request, &etag);
        let body = brotli.unwrap_or(self.bytes);
        let body = if is_known { Body::empty() } else { Bytes::from_static(body).into() };
        let mut response = Response::new(body);
        let headers = response.headers_mut();
        for (name, value) in POLICIES {
            headers.insert(name, HeaderValue::from_static(value));
        }
        let keep = if self.is_immutable { FOR_EVER } else { ASK_AGAIN };
        headers.insert(CACHE_CONTROL, HeaderValue::from_static(keep));
        headers.insert(ETAG, HeaderValue::try_from(etag).expect("letters, digits and quotes"));
        if self.brotli.is_some() {
            headers.insert(VARY, HeaderValue::from_static("accept-encoding"));
        }
        if is_known {
            *response.status_mut() = StatusCode::NOT_MODIFIED;
            return response;
        }
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(self.content_type));
        if brotli.is_some() {
            headers.insert(CONTENT_ENCODING, HeaderValue::from_static("br"));
        }
        response
    }
}

/// Returns the items of a list header, which may have several lines.
fn items(headers: &HeaderMap, name: HeaderName) -> impl Iterator<Item = &str> {
    let lines = headers.get_all(name).into_iter().filter_map(|line| line.to_str().ok());
    lines.flat_map(|line| line.split(',')).map(str::trim)
}

/// Whether the client names Brotli with a weight above 0. `*` does not count: clients that only
/// send it may not decode Brotli.
fn accepts_brotli(headers: &HeaderMap) -> bool {
    items(headers, ACCEPT_ENCODING).any(|item| {
        let (coding, weight) = item.split_once(';').unwrap_or((item, ""));
        let weight = weight.trim().strip_prefix("q=").and_then(|weight| weight.parse().ok());
        coding.trim_end().eq_ignore_ascii_case("br")
            && weight.is_none_or(|weight: f32| weight > 0.0)
    })
}

/// Checks `If-None-Match`, which compares weakly (RFC 9110 §13.1.2).
fn has_etag(headers: &HeaderMap, etag: &str) -> bool {
    items(headers, IF_NONE_MATCH)
        .any(|item| item == "*" || item.strip_prefix("W/").unwrap_or(item) == etag)
}
