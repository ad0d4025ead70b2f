//! Cross-origin rules: the other origins whose pages may call the API.
//!
//! A page sends its device's token in a header, and there are no cookies: a page without a token
//! can do no more than any other program. Still, only named origins are allowed.
//!
//! # Not here
//! - Rules for Actual's apps, which allow any page → `actual`.

use std::str::FromStr;
use std::time::Duration;

use axum::http::header::{AUTHORIZATION, CONTENT_TYPE, ORIGIN, RETRY_AFTER};
use axum::http::{HeaderValue, Method, Uri};
use tower_http::cors::{AllowOrigin, Any, CorsLayer};

/// The time for which a browser may cache a preflight response. Chromium's own maximum is the same.
const KEPT_MAX: Duration = Duration::from_hours(2);

/// An origin as browsers write it: `https://app.example`, or `*` for all origins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AllowedOrigin(HeaderValue);

/// The error for a text that is not a valid origin.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error(
    "expected a scheme and a host as browsers send them (https://app.example, \
     http://localhost:5173), without a path or the scheme's default port, or * for any origin"
)]
pub struct InvalidOrigin;

impl FromStr for AllowedOrigin {
    type Err = InvalidOrigin;

    fn from_str(text: &str) -> Result<Self, InvalidOrigin> {
        if text != "*" && normalize_origin(text).as_deref() != Some(text) {
            return Err(InvalidOrigin);
        }
        HeaderValue::try_from(text).map(Self).or(Err(InvalidOrigin))
    }
}

/// Returns the origin of a URL as browsers write it.
fn normalize_origin(url: &str) -> Option<String> {
    let uri: Uri = url.parse().ok()?;
    let (scheme, host) = (uri.scheme_str()?, uri.host()?.to_ascii_lowercase());
    let port = match (scheme, uri.port_u16()) {
        ("http", Some(80)) | ("https", Some(443)) | (_, None) => String::new(),
        (_, Some(port)) => format!(":{port}"),
    };
    (!host.contains('*')).then(|| format!("{scheme}://{host}{port}"))
}

/// Returns the layer that answers preflights and adds headers to responses, if any origin is
/// allowed.
pub(crate) fn layer(allowed: &[AllowedOrigin]) -> Option<CorsLayer> {
    if allowed.is_empty() {
        return None;
    }
    let layer = CorsLayer::new()
        .allow_methods([Method::DELETE, Method::GET, Method::POST, Method::PUT])
        .allow_headers([AUTHORIZATION, CONTENT_TYPE])
        .expose_headers([RETRY_AFTER])
        .max_age(KEPT_MAX)
        .vary([ORIGIN]);
    if allowed.iter().any(|origin| origin.0 == "*") {
        return Some(layer.allow_origin(Any));
    }
    let origins = allowed.iter().map(|origin| origin.0.clone());
    Some(layer.allow_origin(AllowOrigin::list(origins)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn origins_are_written_as_browsers_send_them() {
        for text in [
            "*",
            "https://app.example",
            "http://localhost:5173",
            "http://[::1]:3000",
            "https://app.example:80",
            "tauri://localhost",
        ] {
            assert!(text.parse::<AllowedOrigin>().is_ok(), "{text}");
        }
        for text in [
            "",
            "app.example",
            "https://",
            "https://app.example/",
            "https://app.example/plan",
            "https://app.example:443",
            "http://app.example:80",
            "http://app.example:80800",
            "https://App.example",
            "https://ada@app.example",
            "https://*.example",
            "null",
        ] {
            assert_eq!(text.parse::<AllowedOrigin>(), Err(InvalidOrigin), "{text}");
        }
    }
}
