//! Slows those down who guess passwords, and nobody else.
//!
//! Failures are counted for each login and network together, so a stranger's guesses cost the
//! account's owner nothing; and for each network over all logins. An attempt counts as a failure
//! when it begins, and is taken back when it succeeds; so a hundred at once get no further than a
//! hundred in a row. The first few are free; past them each needs a pause after the one before,
//! 1 s, 2 s, 4 s … 15 min. Failures are forgiven one by one as time passes, so that what counts
//! against an attacker's patience does not count against an office's yearly typos.
//!
//! A network that an account has been used from, by password or by a device's token, is *known* to
//! it. From there nobody is refused because of others' guesses: past the free failures, attempts
//! wait in line, one each [`LINE_INTERVAL_MS`]. So who shares a network with an attacker gets in.
//!
//! The counts are in memory only. A restart forgives, and so does a flood of attempts from
//! [`KEYS_COUNT_MAX`] networks; each costs the attacker a hash to wait for.
//!
//! # Invariants
//! - At most [`KEYS_COUNT_MAX`] entries of each kind are remembered.
//! - No lock is held between the beginning of an attempt and its end.
//! - A clock that was set back makes nobody wait longer than 15 min.
//! - A login without an account is counted like any other, so a refusal does not tell.
//!
//! # Not here
//! - In which order passwords are hashed, and how often one login's → `turns.rs`.

use std::hash::Hash;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use accounts::Login;
use lru::LruCache;

use crate::admission::network::Network;

/// About 15 MB of each kind if all are in use.
const KEYS_COUNT_MAX: NonZeroUsize = NonZeroUsize::new(50_000).expect("not zero");

const PAUSE_FIRST_MS: u64 = 1_000;
const PAUSE_MS_MAX: u64 = 15 * 60 * 1_000;
/// 2¹⁰ s is the first pause over the longest, so more failures than that past the free ones change
/// nothing.
const DOUBLINGS_MAX: u64 = 10;

/// Between two attempts at a login from a network that is known to it, and how long one may wait.
/// Five who try at once all get their turn within ten seconds.
const LINE_INTERVAL_MS: u64 = 1_500;
const LINE_MS_MAX: u64 = 7_500;

/// How many failures are free, and how long until one is forgiven.
#[derive(Clone, Copy)]
pub(crate) struct Limit {
    free_count: u64,
    forgive_ms: u64,
}

impl Limit {
    /// Of one login from one network: 15 attempts at first, whatever the pattern, and then 96 a
    /// day.
    const PER_LOGIN: Self = Self { free_count: 5, forgive_ms: 15 * 60 * 1_000 };
    /// Of all logins from one network, which many people may share.
    pub(crate) const PER_NETWORK: Self = Self { free_count: 20, forgive_ms: 60 * 1_000 };
    /// Accounts that one network registers: a class in a computer room, but not a dictionary.
    pub(crate) const PER_REGISTRAR: Self = Self { free_count: 60, forgive_ms: 20 * 1_000 };
}

/// The attempt is refused: how long to wait before the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("too many failed attempts; try again in {retry_after_s} s")]
pub struct TooManyAttempts {
    pub retry_after_s: u64,
}

/// The failures that are not yet forgiven, and when the last attempt began.
#[derive(Clone, Copy, Default)]
struct Failures {
    all_forgiven_ms: u64,
    last_ms: u64,
}

/// A login, `None` for a secret that is no account's; and where it is tried from.
type Origin = (Option<Login>, Network);

/// When the next attempt from a known network may be made.
#[derive(Clone, Copy, Default)]
struct Line {
    next_ms: u64,
}

pub(crate) struct Throttle {
    per_network: Limit,
    counts: Mutex<Counts>,
}

struct Counts {
    by_login: LruCache<Origin, Failures>,
    by_network: LruCache<Network, Failures>,
    known: LruCache<Origin, Line>,
}

/// An attempt that may be made after `wait`. Dropped untried, it is taken back.
#[must_use]
pub(crate) struct Attempt {
    throttle: Arc<Throttle>,
    origin: Origin,
    pub(crate) wait: Duration,
    /// Whether the account has been used from this network before.
    pub(crate) is_known: bool,
    /// Of this login from this network, before this attempt.
    pub(crate) failures_count: u64,
    has_place: bool,
    is_over: bool,
}

impl Throttle {
    pub(crate) fn new(per_network: Limit) -> Arc<Self> {
        let (by_login, known) =
            (LruCache::sparse(KEYS_COUNT_MAX), LruCache::sparse(KEYS_COUNT_MAX));
        let by_network = LruCache::sparse(KEYS_COUNT_MAX);
        Arc::new(Self { per_network, counts: Mutex::new(Counts { by_login, by_network, known }) })
    }

    /// Counts an attempt, or refuses it. A refused one does not count. Without a login it is one at
    /// a secret that is no account's, and counts against the network alone.
    pub(crate) fn begin(
        self: &Arc<Self>,
        login: Option<&Login>,
        network: Network,
        now_ms: u64,
    ) -> Result<Attempt, TooManyAttempts> {
        let origin = (login.cloned(), network);
        let mut counts = self.counts();
        let of_login =
            login.map(|_| look_up(&mut counts.by_login, &origin, Limit::PER_LOGIN, now_ms));
        let of_network = look_up(&mut counts.by_network, &network, self.per_network, now_ms);
        let failures_count =
            of_login.map_or(0, |failures| failures.count(Limit::PER_LOGIN, now_ms));
        let known = counts.known.get_mut(&origin);
        let is_known = known.is_some();
        let is_slowed = match of_login {
            Some(failures) => failures.is_slowed(Limit::PER_LOGIN, now_ms),
            None => of_network.is_slowed(self.per_network, now_ms),
        };
        let has_place = is_known && is_slowed;
        let wait_ms = if let Some(line) = known {
            if is_slowed { line.join(now_ms)? } else { 0 }
        } else {
            let of_login = of_login.map_or(0, |of| of.pause_ms(Limit::PER_LOGIN, now_ms));
            let pause_ms = of_login.max(of_network.pause_ms(self.per_network, now_ms));
            if pause_ms > 0 {
                return Err(TooManyAttempts { retry_after_s: pause_ms.div_ceil(1_000) });
            }
            0
        };
        if let Some(of_login) = of_login {
            counts.by_login.put(origin.clone(), of_login.plus_one(Limit::PER_LOGIN, now_ms));
        }
        counts.by_network.put(network, of_network.plus_one(self.per_network, now_ms));
        drop(counts);
        let (throttle, wait) = (Arc::clone(self), Duration::from_millis(wait_ms));
        Ok(Attempt { throttle, origin, wait, is_known, failures_count, has_place, is_over: false })
    }

    /// Notes that an account was used from here.
    pub(crate) fn note(&self, login: &Login, network: Network) {
        let origin = (Some(login.clone()), network);
        let mut counts = self.counts();
        if counts.known.get(&origin).is_none() {
            counts.known.put(origin, Line::default());
        }
    }

    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().expect("no code panics while it holds this lock")
    }
}

impl Attempt {
    /// It was right. The login is forgiven everything that it failed from here; the network only
    /// this attempt, or a password of one's own would be a licence to guess others'.
    pub(crate) fn succeed(mut self) {
        self.is_over = true;
        let mut counts = self.throttle.counts();
        counts.by_login.pop(&self.origin);
        self.take_back_network(&mut counts);
        if counts.known.get(&self.origin).is_none() {
            counts.known.put(self.origin.clone(), Line::default());
        }
    }

    /// It was wrong.
    pub(crate) fn fail(mut self) {
        self.is_over = true;
    }

    fn take_back_network(&self, counts: &mut Counts) {
        let (_, network) = &self.origin;
        if let Some(of_network) = counts.by_network.get_mut(network) {
            of_network.take_one_back(self.throttle.per_network);
        }
    }
}

impl Drop for Attempt {
    fn drop(&mut self) {
        if self.is_over {
            return;
        }
        let mut counts = self.throttle.counts();
        if let Some(of_login) = counts.by_login.get_mut(&self.origin) {
            of_login.take_one_back(Limit::PER_LOGIN);
        }
        self.take_back_network(&mut counts);
        if let Some(line) = counts.known.get_mut(&self.origin).filter(|_| self.has_place) {
            line.leave();
        }
    }
}

impl Line {
    /// Takes the next place; returns how long to wait for it.
    fn join(&mut self, now_ms: u64) -> Result<u64, TooManyAttempts> {
        // Later than this no place is given: the clock was set back.
        let latest_ms = now_ms + LINE_MS_MAX + LINE_INTERVAL_MS;
        let place_ms = if self.next_ms > latest_ms { now_ms } else { self.next_ms.max(now_ms) };
        let wait_ms = place_ms - now_ms;
        if wait_ms > LINE_MS_MAX {
            let retry_after_s = (wait_ms - LINE_MS_MAX).div_ceil(1_000);
            return Err(TooManyAttempts { retry_after_s });
        }
        self.next_ms = place_ms + LINE_INTERVAL_MS;
        Ok(wait_ms)
    }

    /// Who has gone before their turn gives a place back, or the line would be full of them.
    fn leave(&mut self) {
        self.next_ms = self.next_ms.saturating_sub(LINE_INTERVAL_MS);
    }
}

/// The present failures of a key. What a clock set back has put into the future is corrected for
/// good, or the wait would begin anew at each look.
fn look_up<K: Hash + Eq>(
    failures: &mut LruCache<K, Failures>,
    key: &K,
    limit: Limit,
    now_ms: u64,
) -> Failures {
    let Some(failures) = failures.get_mut(key) else { return Failures::default() };
    *failures = failures.as_of(limit, now_ms);
    *failures
}

impl Failures {
    /// The same, with no more failures than make a difference, and none in the future.
    fn as_of(self, limit: Limit, now_ms: u64) -> Self {
        let count_max = limit.free_count + DOUBLINGS_MAX;
        Self {
            all_forgiven_ms: self.all_forgiven_ms.min(now_ms + count_max * limit.forgive_ms),
            last_ms: self.last_ms.min(now_ms),
        }
    }

    fn count(self, limit: Limit, now_ms: u64) -> u64 {
        self.all_forgiven_ms.saturating_sub(now_ms).div_ceil(limit.forgive_ms)
    }

    fn is_slowed(self, limit: Limit, now_ms: u64) -> bool {
        self.count(limit, now_ms) >= limit.free_count
    }

    fn pause_ms(self, limit: Limit, now_ms: u64) -> u64 {
        let count = self.count(limit, now_ms);
        let Some(doublings) = count.checked_sub(limit.free_count) else { return 0 };
        let pause_ms = (PAUSE_FIRST_MS << doublings.min(DOUBLINGS_MAX)).min(PAUSE_MS_MAX);
        pause_ms.saturating_sub(now_ms - self.last_ms)
    }

    fn plus_one(self, limit: Limit, now_ms: u64) -> Self {
        let all_forgiven_ms = self.all_forgiven_ms.max(now_ms) + limit.forgive_ms;
        Self { all_forgiven_ms, last_ms: now_ms }.as_of(limit, now_ms)
    }

    fn take_one_back(&mut self, limit: Limit) {
        self.all_forgiven_ms = self.all_forgiven_ms.saturating_sub(limit.forgive_ms);
    }
}

#[cfg(test)]
mod tests;
