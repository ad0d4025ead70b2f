//! The lab: what settings, ciphers and libraries do to the speed of one SQLite file.
//!
//! Everything that is measured is a plan (`docs/formats/12-lab-plan.md`), carried out on a file that
//! was prepared for it: by SQLite called from here, or by a driver of another library. Rounds,
//! intervals and verdicts are the suite's.

mod bed;
pub mod browser;
mod carry_out;
pub mod checkpoint;
pub mod cipher;
mod cold;
mod configuration;
mod driver;
mod message;
mod plan;
pub mod pragma;
pub mod runtime;
pub mod vacuum;

use std::path::PathBuf;
use std::time::{Duration, Instant};

pub(crate) use self::carry_out::{Random, carry_out, read_setting, unlock};
pub use self::configuration::{Configured, Setting};
pub use self::driver::Drivers;
pub(crate) use self::message::{CipherAndKey, Layout, Mailbox};
pub(crate) use self::plan::{Plan, Scalar, Statement, Step};
use crate::figures::asked;
use crate::measure::now;
use crate::suite::Effort;

/// How all of the lab measures.
#[derive(Clone, Debug)]
pub struct Method {
    /// Rounds of each case, each round in a random order: at least so many.
    pub rounds_min: usize,
    /// At most so many.
    pub rounds_max: usize,
    /// Enough, when half of every interval is this part of its median.
    pub precision: f64,
    /// For the whole report; the least number of rounds is made anyway.
    pub time: Duration,
    /// How long each operation works in each round.
    pub duration: Duration,
    /// Where the files go: the disk that is measured.
    pub folder: PathBuf,
    /// The command line, for the report.
    pub command: String,
}

impl Method {
    /// For the report.
    fn settings(&self) -> Vec<(String, String)> {
        let Self { rounds_min, rounds_max, precision, time, duration, .. } = self;
        let rounds = if rounds_min == rounds_max {
            rounds_min.to_string()
        } else {
            format!("{rounds_min} to {rounds_max}")
        };
        let (seconds, precision) = (asked(duration.as_secs_f64()), asked(precision * 100.0));
        let minutes = asked(time.as_secs_f64() / 60.0);
        let unit = if minutes == "1" { "minute" } else { "minutes" };
        let text = format!(
            "{rounds} of {seconds} s for each figure, until precise to {precision} % or after \
             {minutes} {unit}"
        );
        vec![("rounds".to_owned(), text)]
    }
}

/// The time that is left, shared by what is left to do.
struct Budget<'a> {
    method: &'a Method,
    end: Instant,
    /// Groups that were not begun.
    groups: u32,
}

impl<'a> Budget<'a> {
    fn new(method: &'a Method, groups: usize) -> Self {
        let groups = u32::try_from(groups).unwrap_or(u32::MAX);
        Self { method, end: now() + method.time, groups }
    }

    /// For the next group, its share.
    fn next(&mut self) -> Effort {
        self.share(1)
    }

    /// For a group that counts as so many.
    fn share(&mut self, parts: u32) -> Effort {
        let left = self.end.saturating_duration_since(now());
        let share = (left / self.groups.max(1)).saturating_mul(parts).min(left);
        self.groups = self.groups.saturating_sub(parts);
        let Method { rounds_min, rounds_max, precision, duration, .. } = *self.method;
        Effort { rounds_min, rounds_max, precision, duration, until: Some(now() + share) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_told_as_they_were_given() {
        let method = |rounds_min, minutes: f64| Method {
            rounds_min,
            rounds_max: 300,
            precision: 7.0 / 100.0,
            time: Duration::from_secs_f64(minutes * 60.0),
            duration: Duration::from_secs_f64(0.06),
            folder: PathBuf::new(),
            command: String::new(),
        };
        let settings = |rounds_min, minutes| method(rounds_min, minutes).settings()[0].1.clone();
        let each = "of 0.06 s for each figure, until precise to 7 % or after";
        assert_eq!(settings(11, 0.12), format!("11 to 300 {each} 0.12 minutes"));
        assert_eq!(settings(300, 1.0), format!("300 {each} 1 minute"));
    }
}
