//! Dispatches pushes and pulls to the API of each service.
//!
//! # Not here
//! - The API of a service → `warren.rs`, `plan_service.rs`, `actual.rs`.

use bytes::Bytes;
use crdt::Message;

use super::{actual, plan_service, warren};
use crate::http::BenchConnection;
use crate::message_generator::MessageGenerator;
use crate::service::device::{LoadDevice, PostRequest, PullResult, request};

/// The API of a service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ServiceApi {
    Warren,
    PlanService,
    Actual,
}

impl ServiceApi {
    /// Registers the devices of user number `user`; `secret` is the service's token for all users,
    /// or for this one.
    pub(crate) async fn register(
        self,
        connection: &mut BenchConnection,
        secret: &str,
        user: usize,
        devices: usize,
    ) -> anyhow::Result<Vec<LoadDevice>> {
        match self {
            Self::Warren => warren::register(connection, secret, devices).await,
            Self::PlanService => plan_service::register(connection, user, devices).await,
            Self::Actual => actual::register(connection, secret, user, devices).await,
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

    /// Returns the user's newest cursor, or 0 if the response has none.
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

    /// Returns the cursor after the first `count` of the user's messages.
    pub(crate) fn cursor_after(self, base: u64, changes: &MessageGenerator, count: u64) -> u64 {
        match self {
            Self::Warren | Self::PlanService => base + count,
            Self::Actual => base + changes.after_ms(count),
        }
    }

    /// Returns whether a pull can limit the number of messages.
    pub(crate) fn has_limit(self) -> bool {
        self != Self::Actual
    }
}
