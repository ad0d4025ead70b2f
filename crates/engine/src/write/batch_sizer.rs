//! Decides how many of the waiting transactions the next batch takes.
//!
//! Callers that each wait for their answer before they write again take turns with the writer: if a
//! batch takes all of them, the writer then idles until the first of them return. So a batch leaves
//! half of them behind, and the writer runs that half while the other half's answers are on their
//! way. This doubles the commits, so it only pays where a commit takes less time than the callers
//! do: roughly half the time of their transactions. A commit with an fsync is rarely that fast.

use std::time::Duration;

/// The number of callers below which smaller batches gain nothing.
const CALLERS_COUNT_MIN: usize = 100;

/// The measurements of recent batches from which the next batch's size follows.
#[derive(Debug, Default)]
pub(crate) struct BatchSizer {
    /// The most transactions that recently waited or ran at once: an estimate of the number of
    /// callers.
    callers_count: usize,
    /// The average time of one transaction.
    run_time: Duration,
    commit_time: Duration,
}

impl BatchSizer {
    /// Returns how many transactions the next batch should take at most.
    pub(crate) fn next_size(&self) -> usize {
        let callers_count = u32::try_from(self.callers_count).unwrap_or(u32::MAX);
        let is_commit_cheap = self.commit_time < self.run_time.saturating_mul(callers_count / 2);
        if is_commit_cheap && self.callers_count >= CALLERS_COUNT_MIN {
            self.callers_count.div_ceil(2)
        } else {
            usize::MAX
        }
    }

    /// Records a batch of `ran_count` transactions, after which `waiting_count` waited.
    pub(crate) fn observe(
        &mut self,
        ran_count: usize,
        waiting_count: usize,
        run_time: Duration,
        commit_time: Duration,
    ) {
        let forgotten = self.callers_count / 8;
        self.callers_count = (ran_count + waiting_count).max(self.callers_count - forgotten);
        self.commit_time = average(self.commit_time, commit_time);
        if let Ok(count @ 1..) = u32::try_from(ran_count) {
            self.run_time = average(self.run_time, run_time / count);
        }
    }
}

fn average(before: Duration, now: Duration) -> Duration {
    (before * 7 + now) / 8
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(ran_count: usize, waiting_count: usize, commit_us: u64) -> usize {
        let mut batch_sizer = BatchSizer::default();
        for _ in 0..50 {
            let run_time = Duration::from_micros(ran_count as u64);
            let commit_time = Duration::from_micros(commit_us);
            batch_sizer.observe(ran_count, waiting_count, run_time, commit_time);
        }
        batch_sizer.next_size()
    }

    #[test]
    fn half_of_the_callers_are_left_behind_where_a_commit_is_cheap() {
        assert_eq!(after(1_000, 0, 40), 500);
        assert_eq!(after(500, 500, 40), 500);
        assert_eq!(after(10, 0, 40), usize::MAX);
        assert_eq!(after(1_000, 0, 5_000), usize::MAX, "with an fsync");
    }

    #[test]
    fn callers_that_have_gone_are_forgotten() {
        let mut batch_sizer = BatchSizer::default();
        batch_sizer.observe(1_000, 9_000, Duration::from_millis(1), Duration::from_micros(1));
        for _ in 0..100 {
            batch_sizer.observe(100, 0, Duration::from_millis(1), Duration::from_micros(1));
        }
        assert_eq!(batch_sizer.next_size(), 50);
    }
}
