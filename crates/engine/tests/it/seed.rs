//! Random numbers that a failed test can be replayed with, and a time limit for tests that hang.

use std::ops::{Deref, DerefMut};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

/// Environment variable that takes a printed seed and replays it.
const SEED: &str = "ENGINE_TEST_SEED";

/// Running time after which a test counts as hanging; the slowest test takes a sixth of it.
const HANGS_AFTER: Duration = Duration::from_mins(4);

/// Random number generator that prints how to replay it if the test that holds it fails.
pub(crate) struct ReplayableRng {
    generator: StdRng,
    seed: u64,
}

pub(crate) fn random() -> ReplayableRng {
    let given = std::env::var_os(SEED);
    let given = given.map(|seed| seed.to_str().unwrap().parse().unwrap());
    seeded(given.unwrap_or_else(|| getrandom::u64().unwrap()))
}

pub(crate) fn seeded(seed: u64) -> ReplayableRng {
    ReplayableRng { generator: StdRng::seed_from_u64(seed), seed }
}

impl ReplayableRng {
    /// Creates another generator for another thread; it is the same for the same seed.
    pub(crate) fn fork(&mut self) -> StdRng {
        StdRng::seed_from_u64(self.random())
    }
}

impl Deref for ReplayableRng {
    type Target = StdRng;

    fn deref(&self) -> &StdRng {
        &self.generator
    }
}

impl DerefMut for ReplayableRng {
    fn deref_mut(&mut self) -> &mut StdRng {
        &mut self.generator
    }
}

impl Drop for ReplayableRng {
    #[expect(clippy::print_stderr, reason = "the harness shows it with the failure")]
    fn drop(&mut self) {
        if thread::panicking() {
            eprintln!("replay with {SEED}={}", self.seed);
        }
    }
}

/// Runs `body` on a thread of its own, so that a test that hangs fails.
pub(crate) fn within_time(body: impl FnOnce() + Send + 'static) {
    let (done, is_done) = mpsc::channel::<()>();
    let thread = thread::spawn(move || {
        body();
        drop(done);
    });
    // A panic drops the sender too; `join` passes the panic on.
    let result = is_done.recv_timeout(HANGS_AFTER);
    assert_eq!(result, Err(mpsc::RecvTimeoutError::Disconnected), "it hangs");
    if let Err(panic) = thread.join() {
        std::panic::resume_unwind(panic);
    }
}
