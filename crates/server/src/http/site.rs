//! The site: files that the program brings along, for browsers, where no call of the API is.
//!
//! # Invariants
//! - Every answer carries the same policy: nothing from elsewhere is loaded or run, no page frames
//!   this one, nothing is sent to other origins.
//! - Only files whose names change with their contents are kept without asking again.
//!
//! # Not here
//! - What the files are → `web-assets`, or whoever sets the server up.

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
    /// Under the server's address, with the slash that it begins with. `index.html` answers for its
    /// folder.
    pub path: &'static str,
    pub bytes: &'static [u8],
    /// The same in Brotli, where that is worth it.
    pub brotli: Option<&'static [u8]>,
    /// `Content-Type`.
    pub content_type: &'static str,
    /// Another one whenever the bytes are others; letters and digits.
    pub digest: &'static str,
    /// Whether the path is another one, too, whenever the bytes are others.
    pub is_immutable: bool,
}

const OPENER_POLICY: HeaderName = HeaderName::from_static("cross-origin-opener-policy");
const PERMISSIONS_POLICY: HeaderName = HeaderName::from_static("permissions-policy");

/// Scripts compile the wasm module; the rest is the strictest that lets a page be one.
const CONTENT_POLICY: &str = "default-src 'self'; script-src 'self' 'wasm-unsafe-eval'; \
     style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; worker-src 'self'; \
     frame-ancestors 'none'; base-uri 'none'; form-action 'none'; object-src 'none'";

/// What every answer carries.
const POLICIES: [(HeaderName, &str); 5] = [
    (CONTENT_SECURITY_POLICY, CONTENT_POLICY),
    (OPENER_POLICY, "same-origin"),
    (PERMISSIONS_POLICY, "camera=(), geolocation=(), microphone=(), payment=(), usb=()"),
    (REFERRER_POLICY, "no-referrer"),
    (X_CONTENT_TYPE_OPTIONS, "nosniff"),
];

const ASK_AGAIN: &str = "no-cache";
/// A year, which is as long as caches keep anything.
const FOR_EVER: &str = "public, max-age=31536000, immutable";

/// Files by their paths.
pub struct StaticSite(HashMap<&'static str, &'static Asset>);

impl StaticSite {
    pub fn new(assets: &'static [Asset]) -> Self {
        Self(assets.iter().map(|asset| (asset.path, asset)).collect())
    }

    /// The file at a path, or the folder's `index.html`.
    pub fn find(&self, path: &str) -> Option<&'static Asset> {
        let folder = path.strip_suffix('/').unwrap_or(path);
        let index = || self.0.get(format!("{folder}/index.html").as_str());
        self.0.get(path).or_else(index).copied()
    }
}

impl Asset {
    /// The file in the encoding that the request accepts, or that the caller has it.
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

/// The items of a header that is a list, on however many lines.
fn items(headers: &HeaderMap, name: HeaderName) -> impl Iterator<Item = &str> {
    let lines = headers.get_all(name).into_iter().filter_map(|line| line.to_str().ok());
    lines.flat_map(|line| line.split(',')).map(str::trim)
}

/// Whether Brotli is named, and not with the weight 0. `*` names it for nobody that can decode it.
fn accepts_brotli(headers: &HeaderMap) -> bool {
    items(headers, ACCEPT_ENCODING).any(|item| {
        let (coding, weight) = item.split_once(';').unwrap_or((item, ""));
        let weight = weight.trim().strip_prefix("q=").and_then(|weight| weight.parse().ok());
        coding.trim_end().eq_ignore_ascii_case("br")
            && weight.is_none_or(|weight: f32| weight > 0.0)
    })
}

/// `If-None-Match` compares weakly (RFC 9110 §13.1.2).
fn has_etag(headers: &HeaderMap, etag: &str) -> bool {
    items(headers, IF_NONE_MATCH)
        .any(|item| item == "*" || item.strip_prefix("W/").unwrap_or(item) == etag)
}
