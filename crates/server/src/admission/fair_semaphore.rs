//! A fair semaphore for work that keeps a core busy: hashing passwords and comparing sets.
//!
//! # Invariants
//! - At most as many permits are held as were given to [`FairSemaphore::new`].
//! - Each [`RequestClass`] has its own queue. While others wait, known requests get three permits
//!   of four; of the others, registrations get theirs when no unknown request waits.
//! - Within a class, the network (or account) that holds the fewest permits is served first; then
//!   the one whose last permit was longest ago; of those that had none, the one with the fewest
//!   waiting requests; then the lowest rank; then the earliest arrival. So where n networks send
//!   requests without end, each request of another one waits for at most n permits, and its first
//!   mostly for none.
//! - When a queue is full, the request that would be served last loses its place, not the latest
//!   one: of the network with the most waiting requests, the highest rank, then the latest arrival.
//! - A request that had to leave untried and returns within [`RETURN_MAX`] of the announced time
//!   keeps its position in the order ([`FirstArrivals`]). So a client that retries with other
//!   passwords gains no advantage, and one that returns as announced is served before it.
//! - In one [`AttemptLane`], one permit is held at a time, and after a failure none for a while: an
//!   attacker who guesses one login, from a thousand networks or the owner's own, cannot be faster.
//! - At most [`WAITING_COUNT_MAX`] of each class wait. No request is refused at once, so a
//!   connection can send at most one per [`REFUSAL_DELAY`].

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::Instant;

use self::permit_request::{AttemptLane, PermitRequest, RequestClass};
use self::queue::FairSemaphoreState;
use crate::admission::peer_network::AdmissionGroup;
use crate::error::{OverloadError, RETRY_AFTER_S};

mod first_arrivals;
pub(crate) mod permit_request;
mod queue;

/// The time that a request waits for its permit: long, so that a burst is served and not refused.
const WAIT_MAX: Duration = Duration::from_secs(20);
/// The time that a slowed attempt waits. An attacker who does not return as announced loses the
/// place after this time, so the shorter it is, the sooner the owner is first.
const SLOWED_WAIT_MAX: Duration = Duration::from_secs(8);
/// The time after which a certain refusal is sent.
const REFUSAL_DELAY: Duration = Duration::from_secs(2);
/// A client is asked to return to a lane this long before it opens: if its clock were a little
/// late, another request would get the permit.
const RETURN_EARLY: Duration = Duration::from_secs(4);
/// The time after the longest wait for which a place in the order is kept: a person may have to
/// read a message and press a button.
const RETURN_MAX: Duration = Duration::from_secs(30);
pub(crate) struct FairSemaphore<K: AdmissionGroup> {
    what: &'static str,
    state: Mutex<FairSemaphoreState<K, FairPermit<K>>>,
}

/// A permit to keep a core busy. Dropping it releases it.
pub(crate) struct FairPermit<K: AdmissionGroup> {
    semaphore: Arc<FairSemaphore<K>>,
    key: K,
    lanes: Vec<AttemptLane>,
}

impl<K: AdmissionGroup> FairSemaphore<K> {
    /// Creates a semaphore with this number of permits. `what` is the message of refusals.
    pub(crate) fn new(count: usize, what: &'static str) -> Arc<Self> {
        Arc::new(Self { what, state: Mutex::new(FairSemaphoreState::new(count)) })
    }

    /// Waits for a permit.
    pub(crate) async fn acquire(
        self: &Arc<Self>,
        applicant: PermitRequest<K>,
    ) -> Result<FairPermit<K>, OverloadError> {
        let is_slowed =
            applicant.lanes.iter().any(|lane| !matches!(lane, AttemptLane::Elsewhere(_)));
        let opens_in = self.state().opens_in(&applicant.lanes);
        let wait_max = if !is_slowed {
            WAIT_MAX
        } else if opens_in > SLOWED_WAIT_MAX {
            REFUSAL_DELAY
        } else {
            SLOWED_WAIT_MAX
        };
        let (wake, woken) = oneshot::channel();
        self.state().enqueue(applicant, wake, opens_in + WAIT_MAX + RETURN_MAX);
        self.serve();
        match tokio::time::timeout(wait_max, woken).await {
            Ok(Ok(permit)) => return Ok(permit),
            // Other requests displaced this one from the queue.
            Ok(Err(_)) => tokio::time::sleep(REFUSAL_DELAY).await,
            Err(_elapsed) => {}
        }
        Err(OverloadError::Busy(self.what))
    }

    /// Pauses a lane: no request gets a permit in it until the pause is over.
    pub(crate) fn pause(self: &Arc<Self>, lane: AttemptLane, pause: Duration) {
        self.state().pause(lane.clone(), Instant::now() + pause);
        let turns = Arc::clone(self);
        tokio::spawn(async move {
            tokio::time::sleep(pause).await;
            turns.state().reopen(&lane, Instant::now());
            turns.serve();
        });
    }

    /// Returns after how many seconds a client should return that was refused in these lanes.
    pub(crate) fn retry_after_s(&self, lanes: &[AttemptLane]) -> u64 {
        let opens_in = self.state().opens_in(lanes);
        opens_in.saturating_sub(RETURN_EARLY).as_secs().max(RETRY_AFTER_S)
    }

    /// Gives free permits to the next requests.
    fn serve(self: &Arc<Self>) {
        loop {
            let Some(next) = self.state().next() else { return };
            let PermitRequest { key, lanes, .. } = next.applicant;
            let permit = FairPermit { semaphore: Arc::clone(self), key, lanes };
            // If the client is gone, this drops the permit, which serves the next request.
            drop(next.wake.send(permit));
        }
    }

    fn state(&self) -> MutexGuard<'_, FairSemaphoreState<K, FairPermit<K>>> {
        self.state.lock().expect("no code panics while it holds this lock")
    }
}

impl<K> PermitRequest<K> {
    /// Creates a request of an authenticated client, which cannot fail.
    pub(crate) fn known(key: K) -> Self {
        Self { key, class: RequestClass::Known, rank: 0, lanes: Vec::new(), digest: None }
    }
}

impl<K: AdmissionGroup> Drop for FairPermit<K> {
    fn drop(&mut self) {
        self.semaphore.state().end(self.key, &self.lanes);
        self.semaphore.serve();
    }
}

#[cfg(test)]
mod tests;
