//! The queues of a fair semaphore: the waiting requests, and the order in which they are served.

use std::collections::{HashMap, HashSet};
use std::num::NonZeroUsize;
use std::time::Duration;

use lru::LruCache;
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::first_arrivals::FirstArrivals;
use super::permit_request::{AttemptLane, PermitRequest, RequestClass};
use crate::admission::group_counts::GroupCounts;
use crate::admission::peer_network::AdmissionGroup;

/// The maximum number of known requests that are served in a row while others wait.
const KNOWN_IN_A_ROW_MAX: u32 = 3;

/// The number of networks whose last permits are remembered. A forgotten network counts as one that
/// never had a permit.
const SERVED_COUNT_MAX: NonZeroUsize = NonZeroUsize::new(50_000).expect("not zero");

/// The maximum number of waiting requests of one class: more than can get their permit in time.
pub(crate) const WAITING_COUNT_MAX: usize = 1_024;

pub(super) struct FairSemaphoreState<K: AdmissionGroup, P> {
    pub(super) free_count: usize,
    /// The number of held permits by the widest group.
    pub(super) running: HashMap<K, usize>,
    /// The number of each group's last permit.
    served: LruCache<K, u64>,
    /// The lanes in which a permit is held.
    busy_lanes: HashSet<AttemptLane>,
    /// The paused lanes, in which no permit is granted before this time.
    paused_lanes: HashMap<AttemptLane, Instant>,
    /// The queues by class.
    pub(super) queues: [PermitQueue<K, P>; 3],
    known_in_a_row: u32,
    /// The next number of an arrival or a permit.
    next_number: u64,
    pub(super) arrivals: FirstArrivals,
}

pub(super) struct PermitWaiter<K: AdmissionGroup, P> {
    pub(super) applicant: PermitRequest<K>,
    number: u64,
    pub(super) wake: oneshot::Sender<P>,
}

/// The waiting requests of one class.
pub(super) struct PermitQueue<K: AdmissionGroup, P> {
    waiting: Vec<PermitWaiter<K, P>>,
    counts: GroupCounts<K>,
}

impl<K: AdmissionGroup, P> FairSemaphoreState<K, P> {
    pub(super) fn new(free_count: usize) -> Self {
        Self {
            free_count,
            running: HashMap::new(),
            served: LruCache::sparse(SERVED_COUNT_MAX),
            busy_lanes: HashSet::new(),
            paused_lanes: HashMap::new(),
            queues: [PermitQueue::new(), PermitQueue::new(), PermitQueue::new()],
            known_in_a_row: 0,
            next_number: 1,
            arrivals: FirstArrivals::new(),
        }
    }

    /// Adds a request to its queue, which may push another one or itself out. A request whose
    /// `wake` is dropped waits no longer. Its position in the order is kept for the time `kept`.
    pub(super) fn enqueue(
        &mut self,
        applicant: PermitRequest<K>,
        wake: oneshot::Sender<P>,
        kept: Duration,
    ) {
        let number = self.number();
        let number = match applicant.digest {
            Some(digest) => self.arrivals.arrive(digest, number, Instant::now(), kept),
            None => number,
        };
        self.queues[applicant.class as usize].push(PermitWaiter { applicant, number, wake });
    }

    /// Removes the request that gets the next permit.
    pub(super) fn next(&mut self) -> Option<PermitWaiter<K, P>> {
        if self.free_count == 0 {
            return None;
        }
        let classes = if self.known_in_a_row < KNOWN_IN_A_ROW_MAX {
            [RequestClass::Known, RequestClass::Unknown, RequestClass::Registration]
        } else {
            [RequestClass::Unknown, RequestClass::Registration, RequestClass::Known]
        };
        let next = classes.into_iter().find_map(|class| self.next_of(class))?;
        let PermitRequest { key, class, digest, ref lanes, .. } = next.applicant;
        self.known_in_a_row =
            if class == RequestClass::Known { self.known_in_a_row.saturating_add(1) } else { 0 };
        self.free_count -= 1;
        let [widest, ..] = key.groups();
        *self.running.entry(widest).or_default() += 1;
        let number = self.number();
        for (group, _) in key.distinct_groups() {
            self.served.put(group, number);
        }
        self.busy_lanes.extend(lanes.iter().cloned());
        if let Some(digest) = digest {
            self.arrivals.forget(digest);
            // The same request may wait twice at a time; only one of them counts as the first
            // arrival.
            let waiting = self.queues[class as usize].waiting.iter_mut();
            let same = waiting.filter(|waiting| waiting.applicant.digest == Some(digest));
            same.for_each(|waiting| waiting.number = number);
        }
        Some(next)
    }

    fn next_of(&mut self, class: RequestClass) -> Option<PermitWaiter<K, P>> {
        let Self { queues, busy_lanes, paused_lanes, running, served, .. } = self;
        queues[class as usize].take_min(|PermitWaiter { applicant, number, .. }, share| {
            let mut lanes = applicant.lanes.iter();
            let is_open = lanes.all(|l| !busy_lanes.contains(l) && !paused_lanes.contains_key(l));
            is_open.then(|| {
                let groups = applicant.key.groups();
                let running = running.get(&groups[0]).copied().unwrap_or_default();
                let served = groups.map(|group| served.peek(&group).copied().unwrap_or_default());
                (running, served, share, applicant.rank, *number)
            })
        })
    }

    pub(super) fn end(&mut self, key: K, lanes: &[AttemptLane]) {
        self.free_count += 1;
        for lane in lanes {
            self.busy_lanes.remove(lane);
        }
        let [widest, ..] = key.groups();
        let running = self.running.get_mut(&widest).expect("who ends a turn has had it");
        *running -= 1;
        if *running == 0 {
            self.running.remove(&widest);
        }
    }

    /// Pauses a lane; of several pauses the longest counts.
    pub(super) fn pause(&mut self, lane: AttemptLane, until: Instant) {
        let paused = self.paused_lanes.entry(lane).or_insert(until);
        *paused = until.max(*paused);
    }

    pub(super) fn reopen(&mut self, lane: &AttemptLane, now: Instant) {
        if self.paused_lanes.get(lane).is_some_and(|until| *until <= now) {
            self.paused_lanes.remove(lane);
        }
    }

    /// Returns how long one of these lanes is still paused.
    pub(super) fn opens_in(&self, lanes: &[AttemptLane]) -> Duration {
        let until = lanes.iter().filter_map(|lane| self.paused_lanes.get(lane)).max();
        until.map_or(Duration::ZERO, |until| until.saturating_duration_since(Instant::now()))
    }

    fn number(&mut self) -> u64 {
        self.next_number += 1;
        self.next_number
    }
}

impl<K: AdmissionGroup, P> PermitQueue<K, P> {
    fn new() -> Self {
        Self { waiting: Vec::new(), counts: GroupCounts::new() }
    }

    /// Adds a request, and if there are too many, removes the last one in the order.
    fn push(&mut self, waiting: PermitWaiter<K, P>) {
        self.remove_gone();
        self.counts.add(waiting.applicant.key);
        self.waiting.push(waiting);
        if self.waiting.len() > WAITING_COUNT_MAX {
            let order = |waiting: &PermitWaiter<K, P>| {
                (self.counts.share(waiting.applicant.key), waiting.applicant.rank, waiting.number)
            };
            let all = self.waiting.iter().enumerate();
            let (last, _) = all.max_by_key(|(_, waiting)| order(waiting)).expect("one was added");
            drop(self.remove(last));
        }
    }

    /// Removes the request with the lowest order, of those that have one. The order is computed
    /// from the request and its share.
    fn take_min<O: Ord>(
        &mut self,
        order: impl Fn(&PermitWaiter<K, P>, usize) -> Option<O>,
    ) -> Option<PermitWaiter<K, P>> {
        self.remove_gone();
        let ordered = self.waiting.iter().enumerate().filter_map(|(index, waiting)| {
            Some((order(waiting, self.counts.share(waiting.applicant.key))?, index))
        });
        let (_, index) = ordered.min()?;
        Some(self.remove(index))
    }

    /// Removes requests whose clients have gone.
    fn remove_gone(&mut self) {
        let mut index = 0;
        while index < self.waiting.len() {
            if self.waiting[index].wake.is_closed() {
                drop(self.remove(index));
            } else {
                index += 1;
            }
        }
    }

    fn remove(&mut self, index: usize) -> PermitWaiter<K, P> {
        let removed = self.waiting.swap_remove(index);
        self.counts.remove(removed.applicant.key);
        removed
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }
}
