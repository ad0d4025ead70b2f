//! Defines a device that puts load on a service, with its requests and responses.

use anyhow::Context;
use bytes::Bytes;
use crdt::NodeId;
use http_body_util::Full;
use hyper::Request;
use hyper::header::{HeaderMap, HeaderValue};

pub(crate) type PostRequest = Request<Full<Bytes>>;

/// A device of a user, known to the service.
#[derive(Clone, Debug)]
pub(crate) struct LoadDevice {
    /// The credentials and other headers of each request.
    pub(crate) headers: HeaderMap,
    /// The file and group of the user's messages, for a service that expects them in the body.
    pub(crate) place: (String, String),
    pub(crate) node: NodeId,
    /// The cursor before the user's first message.
    pub(crate) base: u64,
    pub(crate) cursor: u64,
}

/// The result of a pull.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PullResult {
    pub(crate) messages: u64,
    pub(crate) cursor: u64,
}

pub(crate) fn request(
    method: &str,
    path: &str,
    headers: &HeaderMap,
    body: impl Into<Bytes>,
) -> anyhow::Result<PostRequest> {
    let mut request = Request::builder().method(method).uri(path).body(Full::new(body.into()))?;
    request.headers_mut().clone_from(headers);
    Ok(request)
}

/// Returns headers from names and values; the names are in lower case.
pub(crate) fn headers(pairs: &[(&'static str, &str)]) -> anyhow::Result<HeaderMap> {
    let mut headers = HeaderMap::new();
    for (name, value) in pairs {
        let value = HeaderValue::try_from(*value).with_context(|| format!("header {name}"))?;
        headers.insert(*name, value);
    }
    Ok(headers)
}

/// Returns the node ids of a user's devices.
pub(crate) fn nodes(devices: usize) -> impl Iterator<Item = NodeId> {
    (1..=devices as u64).map(NodeId)
}
