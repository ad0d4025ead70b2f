//! Random numbers that a seed reproduces.

use std::hash::{BuildHasher, RandomState};

const SEED: &str = "WARREN_E2E_SEED";

/// `SplitMix64` (Steele, Lea, Flood 2014): every seed gives a full period.
pub(crate) struct SplitMixRng {
    pub(crate) seed: u64,
    state: u64,
}

impl SplitMixRng {
    /// Draws a fresh seed, or takes the given one to repeat a run. libtest shows the printed seed
    /// if the test fails.
    #[expect(clippy::print_stdout, reason = "libtest shows it when the test fails")]
    pub(crate) fn new() -> Self {
        let given = std::env::var_os(SEED).map(|seed| seed.into_string().unwrap().parse().unwrap());
        let seed = given.unwrap_or_else(|| RandomState::new().hash_one(SEED));
        println!("to run this again: {SEED}={seed}");
        Self::of(seed)
    }

    pub(crate) fn of(seed: u64) -> Self {
        Self { seed, state: seed }
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number in `0..end`.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    pub(crate) fn flip(&mut self) -> bool {
        self.below(2) == 0
    }

    /// Spends a random bit of time, so that the next action hits other processes at any point of
    /// their work.
    pub(crate) fn spin(&mut self, turns_max: u64) {
        for _ in 0..self.below(turns_max) {
            std::hint::spin_loop();
        }
    }
}
