//! When those who wait for a permit came first, so that who comes back goes on where they were.
//!
//! A digest is of the login, the network and the password: who comes back with the same is taken
//! for the same. So no client has to bring anything along, and each guess is somebody else's.
//!
//! # Invariants
//! - What no longer counts is forgotten with the next arrival, unless something of before counts
//!   still: for a quarter of an hour, where somebody was told to come back then.
//! - At most [`ARRIVALS_COUNT_MAX`] are remembered; of more, those that came back longest ago are
//!   forgotten.

use std::num::NonZeroUsize;
use std::time::Duration;

use lru::LruCache;
use tokio::time::Instant;

use super::permit_request::AttemptDigest;

/// As many as a flood makes in the time in which somebody comes back: five megabytes.
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

    /// The number under which somebody has come first; that is this one if they are new. It counts
    /// for as long as they are kept.
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

    /// Who has had their permit is new when they come again.
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
