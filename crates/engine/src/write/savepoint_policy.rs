//! Decides how many transactions share one undo point.
//!
//! A savepoint around each transaction costs a third of the bare loop's speed. Most transactions
//! never fail after a write, so a *savepoint group* of transactions shares one undo point: when one
//! of them fails after it wrote, the group is undone, and those of it that had succeeded run again.
//! A savepoint per group costs the same for any length, a failure costs half a group, so the best
//! length is the square root of twice the savepoint's cost over the failure rate. The rate is that
//! of recent transactions.
//!
//! `docs/internals/engine.md` describes the measurement.

/// The measured cost of a savepoint, in transactions of two updates.
const SAVEPOINT_COST: f64 = 0.65;
/// The number of recent transactions that make up the failure rate.
const MEMORY: f64 = 1_000.0;

/// The rate of transactions that failed after they wrote.
#[derive(Debug, Default)]
pub(crate) struct FailureRate(f64);

impl FailureRate {
    /// Records the outcome of one transaction.
    pub(crate) fn observe(&mut self, has_failed: bool) {
        let seen = if has_failed { 1.0 } else { 0.0 };
        self.0 += (seen - self.0) / MEMORY;
    }

    /// Returns how many transactions should share one undo point: at least 1; `usize::MAX` if none
    /// ever fails.
    pub(crate) fn group_size(&self) -> usize {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "positive, and `as` stops at the largest"
        )]
        let size = (2.0 * SAVEPOINT_COST / self.0).sqrt() as usize;
        size.max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the group size after `count` transactions, of which each `every`th failed.
    fn after(count: usize, every: usize) -> usize {
        let mut rate = FailureRate::default();
        (1..=count).for_each(|index| rate.observe(index % every == 0));
        rate.group_size()
    }

    #[test]
    fn the_size_of_a_group_follows_the_rate() {
        assert_eq!(FailureRate::default().group_size(), usize::MAX);
        assert!((25..50).contains(&after(10_000, 1_000)), "{}", after(10_000, 1_000));
        assert!((9..14).contains(&after(10_000, 100)), "{}", after(10_000, 100));
        assert!((3..5).contains(&after(10_000, 10)), "{}", after(10_000, 10));
        assert_eq!(after(10_000, 1), 1);
    }

    #[test]
    fn a_failure_is_forgotten() {
        let mut rate = FailureRate::default();
        rate.observe(true);
        assert!(rate.group_size() < 50);
        (0..20_000).for_each(|_| rate.observe(false));
        assert!(rate.group_size() > 1_000);
    }
}
