//! The lab: what settings, ciphers and libraries do to the speed of one SQLite file.
//!
//! Everything that is measured is a plan (`docs/reference/formats/12-lab-plan.md`), carried out on
//! a file that was prepared for it: by SQLite called from here, or by a driver of another library.
//! Rounds, intervals and verdicts are the suite's.

pub mod browser;
pub mod checkpoint;
pub mod cipher;
mod cold;
mod configuration;
mod driver;
mod execute_plan;
mod message;
mod message_fixture;
mod plan;
pub mod pragma;
pub mod runtime;
pub mod vacuum;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use engine::clock::now;

pub use self::configuration::{EffectiveConfiguration, EffectivePragma};
pub use self::driver::LabDrivers;
pub(crate) use self::execute_plan::{PortableRng, execute_plan, read_setting, unlock};
pub(crate) use self::message::{BodyLayout, CipherAndKey, MailboxTable};
pub(crate) use self::plan::{LabPlan, LabStatement, LabStep, SampleValue};
use crate::format::format_threshold;
use crate::report_setting::ReportSetting;
use crate::suite::StopRule;

/// How all of the lab measures.
#[derive(Clone, Debug)]
pub struct MeasureOptions {
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

impl MeasureOptions {
    /// For the report.
    fn settings(&self) -> Vec<ReportSetting> {
        let Self { rounds_min, rounds_max, precision, time, duration, .. } = self;
        let rounds = if rounds_min == rounds_max {
            rounds_min.to_string()
        } else {
            format!("{rounds_min} to {rounds_max}")
        };
        let (seconds, precision) =
            (format_threshold(duration.as_secs_f64()), format_threshold(precision * 100.0));
        let minutes = format_threshold(time.as_secs_f64() / 60.0);
        let unit = if minutes == "1" { "minute" } else { "minutes" };
        let text = format!(
            "{rounds} of {seconds} s for each figure, until precise to {precision} % or after \
             {minutes} {unit}"
        );
        vec![ReportSetting::new("rounds", text)]
    }
}

/// The time that is left, shared by what is left to do.
struct MeasureTimeBudget<'a> {
    method: &'a MeasureOptions,
    end: Instant,
    /// Groups that were not begun.
    groups: u32,
}

impl<'a> MeasureTimeBudget<'a> {
    fn new(method: &'a MeasureOptions, groups: usize) -> Self {
        let groups = u32::try_from(groups).unwrap_or(u32::MAX);
        Self { method, end: now() + method.time, groups }
    }

    /// For the next group, its share.
    fn next(&mut self) -> StopRule {
        self.share(1)
    }

    /// For a group that counts as so many.
    fn share(&mut self, parts: u32) -> StopRule {
        let left = self.end.saturating_duration_since(now());
        let share = (left / self.groups.max(1)).saturating_mul(parts).min(left);
        self.groups = self.groups.saturating_sub(parts);
        let MeasureOptions { rounds_min, rounds_max, precision, duration, .. } = *self.method;
        StopRule { rounds_min, rounds_max, precision, duration, until: Some(now() + share) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_told_as_they_were_given() {
        let method = |rounds_min, minutes: f64| MeasureOptions {
            rounds_min,
            rounds_max: 300,
            precision: 7.0 / 100.0,
            time: Duration::from_secs_f64(minutes * 60.0),
            duration: Duration::from_secs_f64(0.06),
            folder: PathBuf::new(),
            command: String::new(),
        };
        let settings =
            |rounds_min, minutes| method(rounds_min, minutes).settings()[0].value.clone();
        let each = "of 0.06 s for each figure, until precise to 7 % or after";
        assert_eq!(settings(11, 0.12), format!("11 to 300 {each} 0.12 minutes"));
        assert_eq!(settings(300, 1.0), format!("300 {each} 1 minute"));
    }
}
