//! What differs from one service to the other: how a push and a pull are said.
//!
//! # Not here
//! - How a service speaks → `warren.rs`, `plan_service.rs`, `actual.rs`.

use anyhow::Context;
use bytes::Bytes;
use crdt::{Message, NodeId};
use http_body_util::Full;
use hyper::Request;
use hyper::header::{HeaderMap, HeaderValue};

use super::{actual, plan_service, warren};
use crate::http::BenchConnection;
use crate::message_generator::MessageGenerator;

pub(crate) type PostRequest = Request<Full<Bytes>>;

/// A service's way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ServiceApi {
    Warren,
    PlanService,
    Actual,
}

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

impl ServiceApi {
    /// Makes the devices of user number `user`; `secret` is what the service gave or was given for
    /// all, or for this user.
    pub(crate) async fn enroll(
        self,
        connection: &mut BenchConnection,
        secret: &str,
        user: usize,
        devices: usize,
    ) -> anyhow::Result<Vec<LoadDevice>> {
        match self {
            Self::Warren => warren::enroll(connection, secret, devices).await,
            Self::PlanService => plan_service::enroll(connection, user, devices).await,
            Self::Actual => actual::enroll(connection, secret, user, devices).await,
        }
    }

    pub(crate) fn push(
        self,
        device: &LoadDevice,
        messages: Vec<Message>,
    ) -> anyhow::Result<PostRequest> {
        match self {
            Self::Warren => warren::push(device, messages),
            Self::PlanService => plan_service::push(device, &messages),
            Self::Actual => actual::push(device, &messages),
        }
    }

    /// Returns the user's newest cursor; 0 where there is none.
    pub(crate) fn pushed(self, answer: Bytes) -> anyhow::Result<u64> {
        match self {
            Self::Warren => warren::pushed(answer),
            Self::PlanService => plan_service::pushed(&answer),
            Self::Actual => actual::pushed(answer),
        }
    }

    pub(crate) fn pull(
        self,
        device: &LoadDevice,
        cursor: u64,
        limit: usize,
    ) -> anyhow::Result<PostRequest> {
        match self {
            Self::Warren | Self::PlanService => {
                let path = format!("/v1/sync/delta?cursor={cursor}&limit={limit}");
                request("GET", &path, &device.headers, Bytes::new())
            }
            Self::Actual => actual::pull(device, cursor),
        }
    }

    pub(crate) fn pulled(self, answer: Bytes) -> anyhow::Result<PullResult> {
        match self {
            Self::Warren => warren::pulled(answer),
            Self::PlanService => plan_service::pulled(&answer),
            Self::Actual => actual::pulled(answer),
        }
    }

    /// The cursor after the first `count` of the user's messages.
    pub(crate) fn cursor_after(self, base: u64, changes: &MessageGenerator, count: u64) -> u64 {
        match self {
            Self::Warren | Self::PlanService => base + count,
            Self::Actual => base + changes.after_ms(count),
        }
    }

    /// Whether a pull may ask for so many messages at most.
    pub(crate) fn has_limit(self) -> bool {
        self != Self::Actual
    }
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

/// The nodes of a user's devices.
pub(crate) fn nodes(devices: usize) -> impl Iterator<Item = NodeId> {
    (1..=devices as u64).map(NodeId)
}
