//! A rate limiter that slows password guessing down without slowing anyone else.
//!
//! Failures are counted for each login and network together, so a stranger's guesses cost the
//! account's owner no time; and for each network over all logins. The first few are free. Further
//! attempts are slowed: they run one after the other, in the order of `fair_semaphore.rs`, with a
//! pause after each failure, 1 s, 2 s, 4 s … 15 min. Failures are forgiven one by one as time
//! passes, so an attacker's patience is limited, but an office's yearly typos are not punished.
//!
//! An attempt that is not slowed counts as a failure when it begins, and this is undone when it
//! succeeds; so a hundred at once get no further than a hundred in a row. If it ends untried
//! because its client left or waited too long, it is undone for the login but not for the network:
//! making others wait is not free. A slowed attempt makes no other wait, and counts when it fails.
//!
//! A network from which an account has been used, by password or by a device's token, is *known* to
//! it. There, others' failures at other logins slow no attempt down, and the pause is always the
//! same, [`KNOWN_PAUSE`].
//!
//! The counts are in memory only. A restart forgives all failures, and so does a flood of attempts
//! from [`KEYS_COUNT_MAX`] networks; each attempt costs the attacker a hash to wait for.
//!
//! # Invariants
//! - At most [`KEYS_COUNT_MAX`] entries of each kind are remembered.
//! - No lock is held between the beginning of an attempt and its end.
//! - If the clock is set back, no attempt waits longer than 15 min.
//! - A login without an account is counted like any other, so a refusal does not reveal whether it
//!   exists.
//! - Only counted failures are undone: no attempt removes other failures by ending.
//!
//! # Not here
//! - The order of password hashes, and the end of a pause → `fair_semaphore.rs`.

use std::hash::Hash;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use accounts::Login;
use lru::LruCache;
use protocol::ErrorCode;

use crate::admission::fair_semaphore::permit_request::AttemptLane;
use crate::admission::peer_network::{AdmissionGroup, PeerNetwork};
use crate::error::ApiError;

/// The maximum number of entries: about 15 MB of each kind if all are in use.
const KEYS_COUNT_MAX: NonZeroUsize = NonZeroUsize::new(50_000).expect("not zero");

/// The pause after a wrong password from a network that the account knows, past the free failures.
pub(crate) const KNOWN_PAUSE: Duration = Duration::from_millis(1_500);
/// The pause after a wrong password for a login that has failed before, from any network that it
/// does not know.
const ELSEWHERE_PAUSE: Duration = Duration::from_secs(1);
const PAUSE_FIRST_MS: u64 = 1_000;
const PAUSE_MS_MAX: u64 = 15 * 60 * 1_000;
/// A pause of 2¹⁰ s is the first one over the maximum, so more failures past the free ones change
/// nothing.
const DOUBLINGS_MAX: u64 = 10;

/// The number of free failures, and the time until one is forgiven.
#[derive(Clone, Copy)]
pub(crate) struct RateLimit {
    free_count: u64,
    forgive_ms: u64,
}

impl RateLimit {
    /// The limit of one login from one network: 15 attempts at first, whatever the pattern, and
    /// then 96 a day.
    const PER_LOGIN: Self = Self { free_count: 5, forgive_ms: 15 * 60 * 1_000 };
    /// The limit of all logins from one network, which many people may share.
    pub(crate) const PER_NETWORK: Self = Self { free_count: 20, forgive_ms: 60 * 1_000 };
    /// The limit of registrations from one network: a class in a computer room, but not a
    /// dictionary.
    pub(crate) const PER_REGISTRAR: Self = Self { free_count: 60, forgive_ms: 20 * 1_000 };

    /// Returns the limit of this many clients together.
    fn times(self, clients_count: usize) -> Self {
        let times = u64::try_from(clients_count).expect("a small number");
        Self { free_count: self.free_count * times, forgive_ms: self.forgive_ms / times }
    }
}

/// A refusal of an attempt, with the time until the next is allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("too many failed attempts; try again in {retry_after_s} s")]
pub struct TooManyAttempts {
    pub retry_after_s: u64,
}

/// The failures that are not yet forgiven, and the time of the last attempt.
#[derive(Clone, Copy, Default)]
struct FailureCount {
    all_forgiven_ms: u64,
    last_ms: u64,
}

/// The origin of an attempt: its login (`None` for a secret without an account) and its network.
pub(crate) type AttemptKey = (Option<Login>, PeerNetwork);

pub(crate) struct RateLimiter {
    per_network: RateLimit,
    counts: Mutex<FailureCounts>,
}

struct FailureCounts {
    by_login: LruCache<AttemptKey, FailureCount>,
    /// The failures of each network and of the wider ones around it.
    by_network: LruCache<PeerNetwork, FailureCount>,
    known: LruCache<AttemptKey, ()>,
}

/// An attempt. If it is dropped untried, it counts only against its network, and only if it was not
/// slowed and the account does not know the network.
#[must_use]
pub(crate) struct LoginAttempt {
    limiter: Arc<RateLimiter>,
    pub(crate) origin: AttemptKey,
    begun_ms: u64,
    /// Whether the account has been used from this network before.
    pub(crate) is_known: bool,
    /// Whether there were more failures than are free.
    pub(crate) is_slowed: bool,
    /// The failures of this login from this network, before this attempt.
    pub(crate) failures_count: u64,
    /// The lanes in which only one attempt runs at a time.
    pub(crate) lanes: Vec<AttemptLane>,
    is_over: bool,
}

impl RateLimiter {
    pub(crate) fn new(per_network: RateLimit) -> Arc<Self> {
        let counts = FailureCounts {
            by_login: LruCache::sparse(KEYS_COUNT_MAX),
            by_network: LruCache::sparse(KEYS_COUNT_MAX),
            known: LruCache::sparse(KEYS_COUNT_MAX),
        };
        Arc::new(Self { per_network, counts: Mutex::new(counts) })
    }

    /// Begins an attempt. If there is no login, it is an attempt at a secret without an account,
    /// and counts only against the network.
    pub(crate) fn begin(
        self: &Arc<Self>,
        login: Option<&Login>,
        network: PeerNetwork,
        now_ms: u64,
    ) -> LoginAttempt {
        let origin = (login.cloned(), network);
        let mut counts = self.counts();
        let is_known = counts.known.get(&origin).is_some();
        let of_login = look_up(&mut counts.by_login, &origin, RateLimit::PER_LOGIN, now_ms);
        let failures_count = of_login.count(RateLimit::PER_LOGIN, now_ms);
        let slow = counts.slow(&origin, is_known, self.per_network, now_ms);
        let mut lanes: Vec<_> = slow.into_iter().map(|(lane, _)| lane).collect();
        let is_slowed = !lanes.is_empty();
        if !is_slowed {
            counts.add_to_login(&origin, now_ms);
            if !is_known {
                counts.add_to_network(network, self.per_network, now_ms);
            }
        }
        drop(counts);
        // An origin that has failed before waits for others like it, and for no first attempt.
        let elsewhere = login.filter(|_| !is_known && failures_count > 0);
        lanes.extend(elsewhere.cloned().map(AttemptLane::Elsewhere));
        let (limiter, begun_ms, is_over) = (Arc::clone(self), now_ms, false);
        LoginAttempt {
            limiter,
            origin,
            begun_ms,
            is_known,
            is_slowed,
            failures_count,
            lanes,
            is_over,
        }
    }

    /// Counts an action of a network that must not be repeated without end, or refuses it.
    pub(crate) fn count(&self, network: PeerNetwork, now_ms: u64) -> Result<(), TooManyAttempts> {
        let mut counts = self.counts();
        let pauses = network.distinct_groups().map(|(group, clients_count)| {
            let limit = self.per_network.times(clients_count);
            look_up(&mut counts.by_network, &group, limit, now_ms).pause_ms(limit, now_ms)
        });
        let pause_ms = pauses.max().unwrap_or_default();
        if pause_ms > 0 {
            return Err(TooManyAttempts { retry_after_s: pause_ms.div_ceil(1_000) });
        }
        counts.add_to_network(network, self.per_network, now_ms);
        Ok(())
    }

    /// Records that an account was used from this network.
    pub(crate) fn record_known_network(&self, login: &Login, network: PeerNetwork) {
        let origin = (Some(login.clone()), network);
        self.counts().known.put(origin, ());
    }

    fn counts(&self) -> MutexGuard<'_, FailureCounts> {
        self.counts.lock().expect("no code panics while it holds this lock")
    }
}

impl FailureCounts {
    /// Returns the lanes of an origin that has, or whose networks have, more failures than are
    /// free, each with its pause after a failure at this time.
    fn slow(
        &mut self,
        origin: &AttemptKey,
        is_known: bool,
        per_network: RateLimit,
        now_ms: u64,
    ) -> Vec<(AttemptLane, Duration)> {
        let (login, network) = origin;
        let mut slow = Vec::new();
        let of_login = look_up(&mut self.by_login, origin, RateLimit::PER_LOGIN, now_ms);
        let by_network = network.distinct_groups().map(|(group, clients_count)| {
            let limit = per_network.times(clients_count);
            let failures = look_up(&mut self.by_network, &group, limit, now_ms);
            (group, failures.pause_after(limit, now_ms))
        });
        let by_network = by_network.filter_map(|(group, pause)| Some((group, pause?)));
        let by_network: Vec<_> = by_network.collect();
        let is_slowed = match login {
            Some(_) => of_login.is_slowed(RateLimit::PER_LOGIN, now_ms),
            None => is_known && !by_network.is_empty(),
        };
        if is_slowed {
            let pause = of_login.pause_after(RateLimit::PER_LOGIN, now_ms);
            let pause = pause.filter(|_| !is_known).unwrap_or(KNOWN_PAUSE);
            slow.push((AttemptLane::Here(login.clone(), *network), pause));
        }
        if !is_known {
            let lane = |group| match login {
                Some(_) => AttemptLane::Network(group),
                None => AttemptLane::Here(None, group),
            };
            slow.extend(by_network.into_iter().map(|(group, pause)| (lane(group), pause)));
        }
        slow
    }

    fn add_to_network(&mut self, network: PeerNetwork, per_network: RateLimit, now_ms: u64) {
        for (group, clients_count) in network.distinct_groups() {
            let limit = per_network.times(clients_count);
            let failures = look_up(&mut self.by_network, &group, limit, now_ms);
            self.by_network.put(group, failures.plus_one(limit, now_ms));
        }
    }

    /// Counts a failure of a login. Attempts at secrets without an account are not counted here.
    fn add_to_login(&mut self, origin: &AttemptKey, now_ms: u64) {
        if let (Some(_), _) = origin {
            let failures = look_up(&mut self.by_login, origin, RateLimit::PER_LOGIN, now_ms);
            self.by_login.put(origin.clone(), failures.plus_one(RateLimit::PER_LOGIN, now_ms));
        }
    }
}

impl LoginAttempt {
    /// Records a success. The login is forgiven all failures from this network, but the network
    /// only this attempt: otherwise a user's own password would allow guessing others'.
    pub(crate) fn succeed(mut self) {
        self.is_over = true;
        let mut counts = self.limiter.counts();
        counts.by_login.pop(&self.origin);
        self.take_back_network(&mut counts);
        counts.known.put(self.origin.clone(), ());
    }

    /// Cancels an attempt that could not be tried because of the server, without counting it.
    pub(crate) fn cancel(self) {
        self.take_back_network(&mut self.limiter.counts());
    }

    /// Records a failure, which is counted now if it was not when it began. Returns the lanes that
    /// must be paused, with their pauses.
    pub(crate) fn fail(mut self) -> Vec<(AttemptLane, Duration)> {
        self.is_over = true;
        let (_, network) = &self.origin;
        let (per_network, now_ms) = (self.limiter.per_network, self.begun_ms);
        let mut counts = self.limiter.counts();
        if self.is_known || self.is_slowed {
            counts.add_to_network(*network, per_network, now_ms);
        }
        if self.is_slowed {
            counts.add_to_login(&self.origin, now_ms);
        }
        let mut pauses = counts.slow(&self.origin, self.is_known, per_network, now_ms);
        let elsewhere = self.lanes.iter().filter(|lane| matches!(lane, AttemptLane::Elsewhere(_)));
        pauses.extend(elsewhere.map(|lane| (lane.clone(), ELSEWHERE_PAUSE)));
        pauses
    }

    /// Undoes the network's count from the beginning of the attempt.
    fn take_back_network(&self, counts: &mut FailureCounts) {
        if self.is_known || self.is_slowed {
            return;
        }
        let (_, network) = &self.origin;
        for (group, clients_count) in network.distinct_groups() {
            if let Some(failures) = counts.by_network.get_mut(&group) {
                failures.take_one_back(self.limiter.per_network.times(clients_count));
            }
        }
    }
}

impl Drop for LoginAttempt {
    fn drop(&mut self) {
        if self.is_over || self.is_slowed {
            return;
        }
        if let Some(of_login) = self.limiter.counts().by_login.get_mut(&self.origin) {
            of_login.take_one_back(RateLimit::PER_LOGIN);
        }
    }
}

/// Returns the current failures of a key. Times in the future, from before a clock was set back,
/// are corrected permanently; otherwise the wait would begin again at each call.
fn look_up<K: Hash + Eq>(
    failures: &mut LruCache<K, FailureCount>,
    key: &K,
    limit: RateLimit,
    now_ms: u64,
) -> FailureCount {
    let Some(failures) = failures.get_mut(key) else { return FailureCount::default() };
    *failures = failures.as_of(limit, now_ms);
    *failures
}

impl FailureCount {
    /// Limits the failures to those that make a difference, and the times to the past.
    fn as_of(self, limit: RateLimit, now_ms: u64) -> Self {
        let count_max = limit.free_count + DOUBLINGS_MAX;
        Self {
            all_forgiven_ms: self.all_forgiven_ms.min(now_ms + count_max * limit.forgive_ms),
            last_ms: self.last_ms.min(now_ms),
        }
    }

    fn count(self, limit: RateLimit, now_ms: u64) -> u64 {
        self.all_forgiven_ms.saturating_sub(now_ms).div_ceil(limit.forgive_ms)
    }

    fn is_slowed(self, limit: RateLimit, now_ms: u64) -> bool {
        self.count(limit, now_ms) >= limit.free_count
    }

    /// Returns the pause after a failure if there were more failures than are free.
    fn pause_after(self, limit: RateLimit, now_ms: u64) -> Option<Duration> {
        let doublings = self.count(limit, now_ms).checked_sub(limit.free_count)?;
        let pause_ms = (PAUSE_FIRST_MS << doublings.min(DOUBLINGS_MAX)).min(PAUSE_MS_MAX);
        Some(Duration::from_millis(pause_ms))
    }

    /// Returns the rest of that pause.
    fn pause_ms(self, limit: RateLimit, now_ms: u64) -> u64 {
        let pause = self.pause_after(limit, now_ms).unwrap_or_default();
        let pause_ms = u64::try_from(pause.as_millis()).expect("at most 15 min");
        pause_ms.saturating_sub(now_ms - self.last_ms)
    }

    fn plus_one(self, limit: RateLimit, now_ms: u64) -> Self {
        let all_forgiven_ms = self.all_forgiven_ms.max(now_ms) + limit.forgive_ms;
        Self { all_forgiven_ms, last_ms: now_ms }.as_of(limit, now_ms)
    }

    fn take_one_back(&mut self, limit: RateLimit) {
        self.all_forgiven_ms = self.all_forgiven_ms.saturating_sub(limit.forgive_ms);
    }
}

impl From<TooManyAttempts> for ApiError {
    fn from(error: TooManyAttempts) -> Self {
        let refusal = Self::new(ErrorCode::TooManyAttempts, error.to_string());
        Self { retry_after_s: Some(error.retry_after_s), ..refusal }
    }
}

#[cfg(test)]
mod tests;
