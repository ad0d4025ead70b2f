//! Reads a request's body, within limits of bytes and time, while memory is reserved for it.
//!
//! # Invariants
//! - All bytes in memory are covered by a reservation.
//! - A body whose sender keeps the server waiting ends after a time that is the same for all and
//!   grows with the received bytes ([`time_for`]). Waiting for memory does not count, because it is
//!   the server that causes it.

use std::time::Duration;

use axum::body::{Body, HttpBody as _};
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use protocol::ErrorCode;
use tokio::time::{Instant, timeout};

use crate::admission::client_delay::time_for;
use crate::admission::memory::MemoryReservation;
use crate::error::{ApiError, OverloadError};

/// The steps in which a reservation grows with a body.
const STEP_BYTES: usize = 64 << 10;

/// The reasons why a body was not read.
#[derive(Debug, thiserror::Error)]
pub enum BodyError {
    #[error("the request body is larger than {0} bytes")]
    TooLarge(usize),
    #[error("the request body did not arrive in time")]
    Timeout,
    #[error(transparent)]
    Overload(#[from] OverloadError),
    /// The client sent an invalid body.
    #[error("{0}")]
    Broken(axum::Error),
}

/// The limits of a body.
#[derive(Clone, Copy, Debug)]
pub struct BodyLimits {
    pub bytes_max: usize,
    /// The time that the server waits for an empty body.
    pub wait_max: Duration,
    /// Whether a long body gets more time than a short one.
    pub is_long: bool,
}

/// A body that is being read.
pub struct IncomingBody {
    body: Body,
    limits: BodyLimits,
    received: usize,
    waited: Duration,
}

impl IncomingBody {
    pub fn new(body: Body, limits: BodyLimits) -> Self {
        Self { body, limits, received: 0, waited: Duration::ZERO }
    }

    /// Reads the next part, for which memory must be reserved already. Returns `None` at the end.
    pub async fn next(&mut self) -> Result<Option<Bytes>, BodyError> {
        loop {
            let begun = Instant::now();
            let frame = timeout(self.wait_left(), self.body.frame()).await;
            self.waited += begun.elapsed();
            let Some(frame) = frame.map_err(|_elapsed| BodyError::Timeout)? else {
                return Ok(None);
            };
            let Ok(data) = frame.map_err(BodyError::Broken)?.into_data() else { continue };
            if data.len() > self.limits.bytes_max - self.received {
                return Err(BodyError::TooLarge(self.limits.bytes_max));
            }
            self.received += data.len();
            return Ok(Some(data));
        }
    }

    /// Reads the whole body into the reserved memory.
    pub async fn whole(mut self, reservation: &mut MemoryReservation) -> Result<Bytes, BodyError> {
        let promised = self.body.size_hint();
        let bytes_max = self.limits.bytes_max;
        if promised.lower() > bytes_max as u64 {
            return Err(BodyError::TooLarge(bytes_max));
        }
        let promised = promised.upper().and_then(|bytes| usize::try_from(bytes).ok());
        let promised = promised.unwrap_or(bytes_max).min(bytes_max);
        reservation.reserve_for_account(promised).await?;
        // The system provides memory only as it is written, so a long body is allocated once and
        // not moved.
        let mut bytes = BytesMut::with_capacity(promised);
        while let Some(data) = self.next().await? {
            // Never reserve more than was promised: a body that uses up the account's memory could
            // not get more.
            let step = (bytes.len() + data.len()).next_multiple_of(STEP_BYTES).min(promised);
            reservation.grow_to(step).await?;
            bytes.extend_from_slice(&data);
        }
        Ok(bytes.freeze())
    }

    fn wait_left(&self) -> Duration {
        let BodyLimits { wait_max, is_long, .. } = self.limits;
        let earned = if is_long { time_for(self.received) } else { Duration::ZERO };
        (wait_max + earned).saturating_sub(self.waited)
    }
}

impl From<BodyError> for ApiError {
    fn from(error: BodyError) -> Self {
        match error {
            BodyError::TooLarge(_) => Self::new(ErrorCode::TooLarge, error.to_string()),
            BodyError::Timeout => Self::from_code(ErrorCode::Timeout),
            BodyError::Overload(error) => error.into(),
            BodyError::Broken(error) => Self::new(ErrorCode::Malformed, error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use accounts::AccountId;

    use super::*;
    use crate::admission::memory::{MemoryBudget, MemoryOwner};
    use crate::http::stream_body;

    const LIMITS: BodyLimits =
        BodyLimits { bytes_max: 1 << 20, wait_max: Duration::from_secs(30), is_long: true };

    #[tokio::test(start_paused = true)]
    async fn a_body_takes_no_more_of_its_account_than_it_has_promised() {
        let memory = MemoryBudget::new(1 << 20);
        let ada = MemoryOwner::for_account(AccountId::for_tests(1), [127, 0, 0, 1].into());
        let mut others = memory.reservation(ada);
        others.reserve_for_account(127 << 10).await.unwrap();
        let body = IncomingBody::new(Body::from(vec![7; 1 << 10]), LIMITS);
        assert_eq!(body.whole(&mut memory.reservation(ada)).await.unwrap().len(), 1 << 10);
    }

    #[tokio::test(start_paused = true)]
    async fn a_sender_who_keeps_the_server_waiting_is_given_up() {
        let mut senders = Vec::new();
        let mut silent = || {
            let (sender, receiver) = tokio::sync::mpsc::channel(1);
            senders.push(sender);
            stream_body::body_from_channel(receiver)
        };
        let begun = Instant::now();
        let mut body = IncomingBody::new(silent(), LIMITS);
        assert!(matches!(body.next().await, Err(BodyError::Timeout)));
        assert_eq!(begun.elapsed(), LIMITS.wait_max);
        // Received bytes give a long body more time.
        let mut body = IncomingBody::new(silent(), LIMITS);
        body.received = 80 << 10;
        assert!(matches!(body.next().await, Err(BodyError::Timeout)));
        assert_eq!(begun.elapsed(), 2 * LIMITS.wait_max + time_for(80 << 10));
    }
}
