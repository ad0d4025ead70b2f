//! Slows failed logins down, per account and per address.
//!
//! An attempt is counted as a failure when it begins, and taken back when it succeeds; so a hundred
//! at once get no further than a hundred in a row. The first few are free; past them each needs a
//! pause after the one before, 1 s, 2 s, 4 s … 15 min. Failures are forgiven one by one as time
//! passes, so that what counts against an attacker's patience does not count against an office's
//! yearly typos.
//!
//! An account forgives one every 15 min: whatever the pattern, it can be tried 15 times at first
//! and then 96 times a day. This also keeps its owner from logging in while somebody tries; their
//! registered devices are not affected, because tokens are never throttled. An address forgives one
//! a minute and has more for free, because many people may share it.
//!
//! The counts are in memory only. A restart forgives, and so does a flood of attempts on
//! [`KEYS_COUNT_MAX`] other logins or from as many other networks; each costs the attacker a hash
//! to wait for.
//!
//! # Invariants
//! - At most [`KEYS_COUNT_MAX`] logins and as many networks are remembered.
//! - No lock is held between the beginning of an attempt and its end.
//! - A clock that was set back makes nobody wait longer than 15 min.
//! - A login without an account is counted like any other, so a refusal does not tell.

use std::hash::Hash;
use std::net::{IpAddr, Ipv4Addr};
use std::num::NonZeroUsize;
use std::sync::{Mutex, MutexGuard};

use lru::LruCache;

use crate::error::{Error, Result};
use crate::login::Login;

/// About 10 MB if all are in use.
const KEYS_COUNT_MAX: NonZeroUsize = NonZeroUsize::new(50_000).expect("not zero");

const PAUSE_FIRST_MS: u64 = 1_000;
const PAUSE_MS_MAX: u64 = 15 * 60 * 1_000;
/// 2¹⁰ s is the first pause over the longest, so more failures than that past the free ones change
/// nothing.
const DOUBLINGS_MAX: u64 = 10;

const PER_ACCOUNT: Limit = Limit { free_count: 5, forgive_ms: 15 * 60 * 1_000 };
const PER_NETWORK: Limit = Limit { free_count: 20, forgive_ms: 60 * 1_000 };

struct Limit {
    /// Failures after which the pauses begin.
    free_count: u64,
    /// How long until one failure is forgiven.
    forgive_ms: u64,
}

/// The failures that are not yet forgiven, and when the last attempt began.
#[derive(Clone, Copy, Default)]
struct Failures {
    all_forgiven_ms: u64,
    last_ms: u64,
}

/// Whose attempts count as one's: an IPv4 address, or the /64 that an IPv6 customer has all of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Network {
    V4(Ipv4Addr),
    V6([u16; 4]),
}

pub(crate) struct Throttle {
    failures: Mutex<FailuresByKey>,
}

struct FailuresByKey {
    by_login: LruCache<Login, Failures>,
    by_network: LruCache<Network, Failures>,
}

/// An attempt that has begun. Dropped, it stays counted as a failure.
#[must_use]
pub(crate) struct Attempt<'a> {
    throttle: &'a Throttle,
    login: Option<&'a Login>,
    network: Option<Network>,
}

impl Throttle {
    pub(crate) fn new() -> Self {
        let by_login = LruCache::sparse(KEYS_COUNT_MAX);
        let by_network = LruCache::sparse(KEYS_COUNT_MAX);
        Self { failures: Mutex::new(FailuresByKey { by_login, by_network }) }
    }

    /// Counts an attempt, or refuses it. A refused one does not count. Without a login it is one at
    /// a secret that is no account's, and counts against the address alone.
    pub(crate) fn begin<'a>(
        &'a self,
        login: Option<&'a Login>,
        address: Option<IpAddr>,
        now_ms: u64,
    ) -> Result<Attempt<'a>> {
        let network = address.map(Network::of);
        let mut failures = self.lock();
        let FailuresByKey { by_login, by_network } = &mut *failures;
        let of_login = login.map(|login| look_up(by_login, login, &PER_ACCOUNT, now_ms));
        let of_network = network.map(|network| look_up(by_network, &network, &PER_NETWORK, now_ms));
        let pause_ms = of_login
            .map_or(0, |failures| failures.pause_ms(&PER_ACCOUNT, now_ms))
            .max(of_network.map_or(0, |failures| failures.pause_ms(&PER_NETWORK, now_ms)));
        if pause_ms > 0 {
            return Err(Error::TooManyAttempts { retry_after_s: pause_ms.div_ceil(1_000) });
        }
        if let (Some(login), Some(of_login)) = (login, of_login) {
            by_login.put(login.clone(), of_login.plus_one(&PER_ACCOUNT, now_ms));
        }
        if let (Some(network), Some(of_network)) = (network, of_network) {
            by_network.put(network, of_network.plus_one(&PER_NETWORK, now_ms));
        }
        Ok(Attempt { throttle: self, login, network })
    }

    fn lock(&self) -> MutexGuard<'_, FailuresByKey> {
        self.failures.lock().expect("no code panics while it holds this lock")
    }
}

impl Attempt<'_> {
    /// The password was right. The account is forgiven everything; the address only this attempt,
    /// or a password of one's own would be a licence to guess others'.
    pub(crate) fn succeed(self) {
        let mut failures = self.throttle.lock();
        if let Some(login) = self.login {
            failures.by_login.pop(login);
        }
        self.take_back_network(&mut failures);
    }

    /// Whether the password is right was not found out.
    pub(crate) fn abandon(self) {
        let mut failures = self.throttle.lock();
        let of_login = self.login.and_then(|login| failures.by_login.get_mut(login));
        if let Some(of_login) = of_login {
            of_login.take_one_back(&PER_ACCOUNT);
        }
        self.take_back_network(&mut failures);
    }

    fn take_back_network(&self, failures: &mut FailuresByKey) {
        let of_network = self.network.and_then(|network| failures.by_network.get_mut(&network));
        if let Some(of_network) = of_network {
            of_network.take_one_back(&PER_NETWORK);
        }
    }
}

impl Network {
    fn of(address: IpAddr) -> Self {
        // An IPv4 client of an IPv6 socket has a mapped address, and all of those are in one /64.
        match address.to_canonical() {
            IpAddr::V4(address) => Self::V4(address),
            IpAddr::V6(address) => {
                let [a, b, c, d, ..] = address.segments();
                Self::V6([a, b, c, d])
            }
        }
    }
}

/// The present failures of a key. What a clock set back has put into the future is corrected for
/// good, or the wait would begin anew at each look.
fn look_up<K: Hash + Eq>(
    failures: &mut LruCache<K, Failures>,
    key: &K,
    limit: &Limit,
    now_ms: u64,
) -> Failures {
    let Some(failures) = failures.get_mut(key) else { return Failures::default() };
    *failures = failures.as_of(limit, now_ms);
    *failures
}

impl Failures {
    /// The same, with no more failures than make a difference, and none in the future.
    fn as_of(self, limit: &Limit, now_ms: u64) -> Self {
        let count_max = limit.free_count + DOUBLINGS_MAX;
        Self {
            all_forgiven_ms: self.all_forgiven_ms.min(now_ms + count_max * limit.forgive_ms),
            last_ms: self.last_ms.min(now_ms),
        }
    }

    fn pause_ms(self, limit: &Limit, now_ms: u64) -> u64 {
        let count = self.all_forgiven_ms.saturating_sub(now_ms).div_ceil(limit.forgive_ms);
        let Some(doublings) = count.checked_sub(limit.free_count) else { return 0 };
        let pause_ms = (PAUSE_FIRST_MS << doublings.min(DOUBLINGS_MAX)).min(PAUSE_MS_MAX);
        pause_ms.saturating_sub(now_ms - self.last_ms)
    }

    fn plus_one(self, limit: &Limit, now_ms: u64) -> Self {
        let all_forgiven_ms = self.all_forgiven_ms.max(now_ms) + limit.forgive_ms;
        Self { all_forgiven_ms, last_ms: now_ms }.as_of(limit, now_ms)
    }

    fn take_one_back(&mut self, limit: &Limit) {
        self.all_forgiven_ms = self.all_forgiven_ms.saturating_sub(limit.forgive_ms);
    }
}

#[cfg(test)]
mod tests;
