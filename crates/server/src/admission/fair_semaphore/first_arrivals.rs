//! Remembers when each waiting request first arrived, so that a returning one keeps its position.
//!
//! Requests are recognized by a digest of the login, the network and the password. So no client has
//! to bring a ticket along, and each guess of a password counts as another request.
//!
//! # Invariants
//! - Expired arrivals are forgotten with the next arrival, once all older ones have expired, too:
//!   an arrival counts for about a quarter of an hour if its client was asked to return then.
//! - At most [`ARRIVALS_COUNT_MAX`] are remembered; beyond that, those whose last arrival is the
//!   oldest are forgotten.

use std::num::NonZeroUsize;
use std::time::Duration;

use lru::LruCache;
use tokio::time::Instant;

use super::permit_request::AttemptDigest;

/// The maximum number of remembered arrivals: as many as a flood causes before a client returns, in
/// 5 MB.
const ARRIVALS_COUNT_MAX: NonZeroUsize = NonZeroUsize::new(100_000).expect("not zero");

pub(super) struct FirstArrivals(LruCache<AttemptDigest, FirstArrival>);

struct FirstArrival {
    number: u64,
    until: Instant,
}

impl FirstArrivals {
    pub(super) fn new() -> Self {
        Self(LruCache::sparse(ARRIVALS_COUNT_MAX))
    }

    /// Returns the number of a request's first arrival, which is the given one if the request is
    /// new. It is remembered for the time `kept`.
    pub(super) fn arrive(
        &mut self,
        digest: AttemptDigest,
        number: u64,
        now: Instant,
        kept: Duration,
    ) -> u64 {
        let Self(all) = self;
        while all.peek_lru().is_some_and(|(_, oldest)| oldest.until < now) {
            all.pop_lru();
        }
        let known = all.get(&digest).filter(|arrival| arrival.until >= now);
        let number = known.map_or(number, |arrival| arrival.number);
        all.put(digest, FirstArrival { number, until: now + kept });
        number
    }

    /// Forgets a request that has got its permit: if it arrives again, it is new.
    pub(super) fn forget(&mut self, digest: AttemptDigest) {
        let Self(all) = self;
        all.pop(&digest);
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        let Self(all) = self;
        all.len()
    }
}
