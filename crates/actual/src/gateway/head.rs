//! Extracts the parts of a request that every handler reads before the body: headers and address.

use std::convert::Infallible;
use std::net::IpAddr;

use axum::extract::{FromRequestParts, Request};
use axum::http::request::Parts;
use axum::http::{Extensions, HeaderMap};
use server::GatewayPeer;

pub(crate) struct RequestHead {
    pub(crate) headers: HeaderMap,
    pub(crate) address: IpAddr,
    /// Whether the headers came from a trusted proxy.
    pub(crate) is_proxied: bool,
}

impl RequestHead {
    pub(crate) fn from_request(request: &Request) -> Self {
        Self::new(request.headers(), request.extensions())
    }

    fn new(headers: &HeaderMap, extensions: &Extensions) -> Self {
        let address = extensions.get().expect("the server adds it to each request");
        let GatewayPeer { address: client, is_proxied } = *address;
        Self { headers: headers.clone(), address: client, is_proxied }
    }
}

impl<S: Sync> FromRequestParts<S> for RequestHead {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(Self::new(&parts.headers, &parts.extensions))
    }
}
