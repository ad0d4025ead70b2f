//! Runs attackers, each on a thread of its own, while an honest user works.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use rustix::process::setpriority_process;

/// The lowest priority, as `nice` numbers it.
const PRIORITY_LOWEST: i32 = 19;

/// Runs attackers until the honest user is done; also returns how many of their attempts were
/// answered.
pub(crate) fn beside<T>(
    attackers: usize,
    attack: impl Fn(usize) + Sync,
    honest: impl FnOnce() -> T,
) -> (T, usize) {
    let (is_over, attempts) = (AtomicBool::new(false), AtomicUsize::new(0));
    let done = thread::scope(|scope| {
        for number in 0..attackers {
            let (is_over, attempts, attack) = (&is_over, &attempts, &attack);
            scope.spawn(move || {
                // Real attackers have machines of their own, so they must not slow down the honest
                // user here.
                setpriority_process(None, PRIORITY_LOWEST).unwrap();
                while !is_over.load(Ordering::Relaxed) {
                    attack(number);
                    attempts.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        // The attack runs for a while first.
        thread::park_timeout(Duration::from_secs(4));
        // A failure here must not let the attack run forever.
        let done = catch_unwind(AssertUnwindSafe(honest));
        is_over.store(true, Ordering::Relaxed);
        done.unwrap_or_else(|failure| resume_unwind(failure))
    });
    (done, attempts.into_inner())
}
