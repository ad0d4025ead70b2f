//! The lab: measures how settings, ciphers and libraries change the speed of one SQLite file.
//!
//! Every measurement is a plan (`docs/reference/formats/12-lab-plan.md`), carried out on a file
//! that was prepared for it: by SQLite called from here, or by a driver of another library.
//! Rounds, intervals and verdicts come from `suite.rs`.

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

/// The measuring options that all benchmarks of the lab share.
#[derive(Clone, Debug)]
pub struct MeasureOptions {
    /// The least number of rounds of each case, each round in a random order.
    pub rounds_min: usize,
    /// The largest number of rounds.
    pub rounds_max: usize,
    /// The wanted precision: measuring ends when half of every interval is at most this part of
    /// its median.
    pub precision: f64,
    /// The time for the whole report; the least number of rounds is completed anyway.
    pub time: Duration,
    /// How long each operation works in each round.
    pub duration: Duration,
    /// The folder for the files, on the disk that is measured.
    pub folder: PathBuf,
    /// The command line, for the report.
    pub command: String,
}

impl MeasureOptions {
    /// Returns the settings for the report.
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

/// The remaining time, shared by the remaining groups.
struct MeasureTimeBudget<'a> {
    method: &'a MeasureOptions,
    end: Instant,
    /// The number of groups that were not begun.
    groups: u32,
}

impl<'a> MeasureTimeBudget<'a> {
    fn new(method: &'a MeasureOptions, groups: usize) -> Self {
        let groups = u32::try_from(groups).unwrap_or(u32::MAX);
        Self { method, end: now() + method.time, groups }
    }

    /// Returns the stop rule of the next group, with its share of the time.
    fn next(&mut self) -> StopRule {
        self.share(1)
    }

    /// Returns the stop rule of a group that counts as `parts` groups.
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
