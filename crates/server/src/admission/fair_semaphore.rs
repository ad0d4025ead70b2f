//! Who is next, where each piece of work keeps a core busy: hashing passwords, comparing sets.
//!
//! # Invariants
//! - At most as many permits are held as were given to [`FairSemaphore::new`].
//! - Each [`RequestClass`] waits in a queue of its own. While others wait, known requests get
//!   three permits of four; of the others, registrations get theirs when no unknown one waits.
//! - Of one class, the network (or account) that holds the fewest permits is served first; then
//!   the one whose last permit was longest ago; of those that had none, the one of which the fewest
//!   wait; then the lowest rank; then who came first. So where n networks ask without end, each
//!   request of another one waits for n permits at most, and its first mostly for none.
//! - When a queue is full, the place is lost by whoever would be served last: of the network of
//!   which most wait, the highest rank, then the latest arrival. It is not lost by who comes last.
//! - Who had to leave untried and comes back within [`RETURN_MAX`] of the time that they are told
//!   has the place in the order that they had ([`FirstArrivals`]). So who asks again and again with
//!   other passwords gains nothing, and who comes back as told goes before them.
//! - In one [`AttemptLane`] one permit is held at a time, and after a failure none for a while:
//!   whoever guesses one login, from a thousand networks or from the owner's own, gets no further
//!   than that.
//! - At most [`WAITING_COUNT_MAX`] of each class wait. Nobody is refused at once, so a connection
//!   asks no more than once in [`REFUSAL_DELAY`].

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

/// How long a request waits for its permit. Longer than a device would, so that a burst is served,
/// not refused.
const WAIT_MAX: Duration = Duration::from_secs(20);
/// How long an attempt waits where others have failed too often. Who guesses without coming back as
/// told loses their place by it, so the shorter it is the sooner the owner is first.
const SLOWED_WAIT_MAX: Duration = Duration::from_secs(8);
/// How long a refusal takes that is certain.
const REFUSAL_DELAY: Duration = Duration::from_secs(2);
/// Whoever is told to come back to a lane comes so much before it opens: a clock that is a little
/// late would find that somebody else was there.
const RETURN_EARLY: Duration = Duration::from_secs(4);
/// How long after the longest wait somebody's place in the order is kept: a person may have to read
/// a message and press a button.
const RETURN_MAX: Duration = Duration::from_secs(30);
pub(crate) struct FairSemaphore<K: AdmissionGroup> {
    what: &'static str,
    state: Mutex<FairSemaphoreState<K, FairPermit<K>>>,
}

/// Ends when it is dropped.
pub(crate) struct FairPermit<K: AdmissionGroup> {
    semaphore: Arc<FairSemaphore<K>>,
    key: K,
    lanes: Vec<AttemptLane>,
}

impl<K: AdmissionGroup> FairSemaphore<K> {
    /// `what` says to people what there is too much of.
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
            // The place was lost to others.
            Ok(Err(_)) => tokio::time::sleep(REFUSAL_DELAY).await,
            Err(_elapsed) => {}
        }
        Err(OverloadError::Busy(self.what))
    }

    /// Nobody gets a permit in this lane for a while.
    pub(crate) fn pause(self: &Arc<Self>, lane: AttemptLane, pause: Duration) {
        self.state().pause(lane.clone(), Instant::now() + pause);
        let turns = Arc::clone(self);
        tokio::spawn(async move {
            tokio::time::sleep(pause).await;
            turns.state().reopen(&lane, Instant::now());
            turns.serve();
        });
    }

    /// In how many seconds somebody is to come back who has been refused in these lanes.
    pub(crate) fn retry_after_s(&self, lanes: &[AttemptLane]) -> u64 {
        let opens_in = self.state().opens_in(lanes);
        opens_in.saturating_sub(RETURN_EARLY).as_secs().max(RETRY_AFTER_S)
    }

    /// Gives permits to whoever is next.
    fn serve(self: &Arc<Self>) {
        loop {
            let Some(next) = self.state().next() else { return };
            let PermitRequest { key, lanes, .. } = next.applicant;
            let permit = FairPermit { semaphore: Arc::clone(self), key, lanes };
            // Who has gone meanwhile drops it, which serves the next.
            drop(next.wake.send(permit));
        }
    }

    fn state(&self) -> MutexGuard<'_, FairSemaphoreState<K, FairPermit<K>>> {
        self.state.lock().expect("no code panics while it holds this lock")
    }
}

impl<K> PermitRequest<K> {
    /// Who has shown whose account it is, and fails at nothing.
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
