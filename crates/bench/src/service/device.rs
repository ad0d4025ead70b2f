//! A device that puts load on a service, and what it is answered.

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
    /// What it proves itself with, and what else each of its requests carries.
    pub(crate) headers: HeaderMap,
    /// Of the user's messages, where the service wants it in the body: file and group.
    pub(crate) place: (String, String),
    pub(crate) node: NodeId,
    /// The cursor before the user's first message.
    pub(crate) base: u64,
    pub(crate) cursor: u64,
}

/// What came with an answer to a pull.
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

/// Names of headers and what they say; the names are in lower case.
pub(crate) fn headers(pairs: &[(&'static str, &str)]) -> anyhow::Result<HeaderMap> {
    let mut headers = HeaderMap::new();
    for (name, value) in pairs {
        let value = HeaderValue::try_from(*value).with_context(|| format!("header {name}"))?;
        headers.insert(*name, value);
    }
    Ok(headers)
}

/// The nodes of a user's devices.
pub(crate) fn nodes(devices: usize) -> impl Iterator<Item = NodeId> {
    (1..=devices as u64).map(NodeId)
}
