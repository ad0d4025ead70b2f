//! Who is next, where each piece of work keeps a core busy: hashing passwords, comparing sets.
//!
//! # Invariants
//! - At most as many turns are held as were given to [`Turns::new`].
//! - Of those who wait, the key with the fewest turns under way is served first; then the lowest
//!   rank; then who has waited longest. So one key's hundred requests cost another key's one at
//!   most the work that is under way.
//! - In one lane one turn is held at a time, and after a failure none for [`LANE_PAUSE`]: whoever
//!   guesses one login from a thousand networks gets no further than that, but for the first guess
//!   of each.
//! - At most [`WAITING_COUNT_MAX`] wait, and [`WAITING_OF_KEY_MAX`] of one key.

use std::collections::{HashMap, HashSet};
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use accounts::Login;
use tokio::sync::oneshot;

use crate::error::Overload;

/// How long a request waits for its turn. Longer than a device would, so that a burst is served,
/// not refused.
const WAIT_MAX: Duration = Duration::from_secs(20);
/// After a wrong password from a network that the account does not know.
const LANE_PAUSE: Duration = Duration::from_secs(1);
/// More than can have their turn in time.
const WAITING_COUNT_MAX: usize = 1_024;
const WAITING_OF_KEY_MAX: usize = 64;

pub(crate) struct Turns<K: Key> {
    what: &'static str,
    state: Mutex<State<K>>,
}

struct State<K: Key> {
    free_count: usize,
    under_way: HashMap<K, usize>,
    closed_lanes: HashSet<Login>,
    waiting: Vec<Waiting<K>>,
    next_number: u64,
}

/// What turns are shared among.
pub(crate) trait Key: Copy + Eq + Hash + Send + 'static {}

impl<T: Copy + Eq + Hash + Send + 'static> Key for T {}

/// Who asks for a turn.
pub(crate) struct Applicant<K> {
    pub(crate) key: K,
    /// Among those of one key the lower is served first.
    pub(crate) rank: u64,
    pub(crate) lane: Option<Login>,
}

struct Waiting<K: Key> {
    applicant: Applicant<K>,
    number: u64,
    wake: oneshot::Sender<Turn<K>>,
}

/// Ends when it is dropped.
pub(crate) struct Turn<K: Key> {
    turns: Arc<Turns<K>>,
    key: K,
    lane: Option<Login>,
}

impl<K: Key> Turns<K> {
    /// `what` says to people what there is too much of.
    pub(crate) fn new(count: usize, what: &'static str) -> Arc<Self> {
        let state = State {
            free_count: count,
            under_way: HashMap::new(),
            closed_lanes: HashSet::new(),
            waiting: Vec::new(),
            next_number: 0,
        };
        Arc::new(Self { what, state: Mutex::new(state) })
    }

    /// Waits for a turn.
    pub(crate) async fn take(
        self: &Arc<Self>,
        applicant: Applicant<K>,
    ) -> Result<Turn<K>, Overload> {
        let busy = Overload::Busy(self.what);
        let (wake, woken) = oneshot::channel();
        if !self.state().join(applicant, wake) {
            return Err(busy);
        }
        self.serve();
        match tokio::time::timeout(WAIT_MAX, woken).await {
            Ok(turn) => Ok(turn.expect("who waits is told or still waits")),
            Err(_elapsed) => Err(busy),
        }
    }

    /// Gives turns to whoever is next.
    fn serve(self: &Arc<Self>) {
        loop {
            let Some(next) = self.state().next() else { return };
            let Applicant { key, lane, .. } = next.applicant;
            let turn = Turn { turns: Arc::clone(self), key, lane };
            // Who has gone meanwhile drops it, which serves the next.
            drop(next.wake.send(turn));
        }
    }

    fn reopen(self: &Arc<Self>, lane: &Login) {
        self.state().closed_lanes.remove(lane);
        self.serve();
    }

    fn state(&self) -> MutexGuard<'_, State<K>> {
        self.state.lock().expect("no code panics while it holds this lock")
    }
}

impl<K: Key> State<K> {
    /// False if too many wait already.
    fn join(&mut self, applicant: Applicant<K>, wake: oneshot::Sender<Turn<K>>) -> bool {
        // Who has gone waits no more.
        self.waiting.retain(|waiting| !waiting.wake.is_closed());
        let of_key = self.waiting.iter().filter(|waiting| waiting.applicant.key == applicant.key);
        if of_key.count() >= WAITING_OF_KEY_MAX || self.waiting.len() >= WAITING_COUNT_MAX {
            return false;
        }
        let number = self.next_number;
        self.next_number += 1;
        self.waiting.push(Waiting { applicant, number, wake });
        true
    }

    /// Takes out whose turn it is now.
    fn next(&mut self) -> Option<Waiting<K>> {
        if self.free_count == 0 {
            return None;
        }
        self.waiting.retain(|waiting| !waiting.wake.is_closed());
        let is_open = |waiting: &Waiting<K>| {
            waiting.applicant.lane.as_ref().is_none_or(|lane| !self.closed_lanes.contains(lane))
        };
        let order = |waiting: &Waiting<K>| {
            let under_way = self.under_way.get(&waiting.applicant.key).copied();
            (under_way.unwrap_or_default(), waiting.applicant.rank, waiting.number)
        };
        let open = self.waiting.iter().enumerate().filter(|(_, waiting)| is_open(waiting));
        let (index, _) = open.min_by_key(|(_, waiting)| order(waiting))?;
        let next = self.waiting.swap_remove(index);
        self.free_count -= 1;
        *self.under_way.entry(next.applicant.key).or_default() += 1;
        self.closed_lanes.extend(next.applicant.lane.clone());
        Some(next)
    }

    fn end(&mut self, key: K) {
        self.free_count += 1;
        let under_way = self.under_way.get_mut(&key).expect("who ends a turn has had it");
        *under_way -= 1;
        if *under_way == 0 {
            self.under_way.remove(&key);
        }
    }
}

impl<K: Key> Turn<K> {
    /// Ends the turn of an attempt that failed: its lane stays closed for a while.
    pub(crate) fn fail(mut self) {
        if let Some(lane) = self.lane.take() {
            let turns = Arc::clone(&self.turns);
            tokio::spawn(async move {
                tokio::time::sleep(LANE_PAUSE).await;
                turns.reopen(&lane);
            });
        }
    }
}

impl<K: Key> Drop for Turn<K> {
    fn drop(&mut self) {
        self.turns.state().end(self.key);
        match self.lane.take() {
            Some(lane) => self.turns.reopen(&lane),
            None => self.turns.serve(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::pin::Pin;

    use super::*;

    type Taking = Pin<Box<dyn Future<Output = Result<Turn<u8>, Overload>>>>;

    fn taking(turns: &Arc<Turns<u8>>, key: u8, rank: u64, lane: Option<&str>) -> Taking {
        let (turns, lane) = (Arc::clone(turns), lane.map(|login| Login::parse(login).unwrap()));
        Box::pin(async move { turns.take(Applicant { key, rank, lane }).await })
    }

    /// Whether it has its turn, when everything that can go on has gone on.
    async fn is_served(taking: &mut Taking) -> Option<Turn<u8>> {
        tokio::select! {
            biased;
            turn = taking => Some(turn.unwrap()),
            () = tokio::task::yield_now() => None,
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_hundred_of_one_key_keep_another_key_waiting_for_one() {
        let turns = Turns::new(2, "too many");
        let first = taking(&turns, 1, 0, None).await.unwrap();
        let second = taking(&turns, 1, 0, None).await.unwrap();
        let mut many: Vec<_> = (0..50).map(|_| taking(&turns, 1, 0, None)).collect();
        for taking in &mut many {
            assert!(is_served(taking).await.is_none());
        }
        let mut other = taking(&turns, 2, 9, None);
        assert!(is_served(&mut other).await.is_none());
        drop(first);
        assert!(is_served(&mut many[0]).await.is_none());
        let other = is_served(&mut other).await;
        assert!(other.is_some());
        drop(second);
        assert!(is_served(&mut many[0]).await.is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn the_lowest_rank_is_served_first() {
        let turns = Turns::new(1, "too many");
        let first = taking(&turns, 9, 0, None).await.unwrap();
        let mut guess = taking(&turns, 1, 7, None);
        let mut owner = taking(&turns, 2, 0, None);
        assert!(is_served(&mut guess).await.is_none() && is_served(&mut owner).await.is_none());
        drop(first);
        assert!(is_served(&mut guess).await.is_none());
        assert!(is_served(&mut owner).await.is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn a_lane_has_one_turn_at_a_time_and_a_pause_after_a_failure() {
        let turns = Turns::new(2, "too many");
        let first = taking(&turns, 1, 0, Some("ada")).await.unwrap();
        let mut second = taking(&turns, 2, 0, Some("ada"));
        assert!(is_served(&mut second).await.is_none());
        drop(taking(&turns, 3, 0, Some("bob")).await.unwrap());
        first.fail();
        assert!(is_served(&mut second).await.is_none());
        let begun = tokio::time::Instant::now();
        drop(second.await.unwrap());
        assert_eq!(begun.elapsed().as_secs(), LANE_PAUSE.as_secs());
        // After a success there is none.
        drop(taking(&turns, 2, 0, Some("ada")).await.unwrap());
    }

    #[tokio::test(start_paused = true)]
    async fn who_waits_too_long_or_comes_too_many_is_told_and_leaves_nothing_behind() {
        let turns = Turns::new(1, "too many");
        let held = taking(&turns, 1, 0, None).await.unwrap();
        assert_eq!(taking(&turns, 1, 0, None).await.map(drop), Err(Overload::Busy("too many")));
        let mut many: Vec<_> =
            (0..WAITING_OF_KEY_MAX).map(|_| taking(&turns, 1, 0, None)).collect();
        for taking in &mut many {
            assert!(is_served(taking).await.is_none());
        }
        let refused = taking(&turns, 1, 0, None);
        assert_eq!(refused.await.map(drop), Err(Overload::Busy("too many")));
        drop(many);
        drop(held);
        drop(taking(&turns, 2, 0, None).await.unwrap());
        let state = turns.state();
        assert_eq!((state.free_count, state.under_way.len(), state.waiting.len()), (1, 0, 0));
    }
}
