//! The files that are measured: one for each case, made when it first runs.

use std::path::Path;
use std::time::Duration;

use super::carry_out::carry_out;
use super::configuration::Configuration;
use super::message::{CipherAndKey, Mailbox, steps};
use super::plan::{Answer, Plan, Timing};
use crate::figures::whole;
use crate::measure::Sample;
use crate::suite::{Case, Heading};

/// The fact that says what processor time an operation took.
pub(crate) const CPU_US: &str = "CPU µs each";

/// A table of messages in a folder, and what is done with it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bed<'a> {
    /// Which of several beds of a report; begins the names of its tables.
    pub(crate) name: &'a str,
    pub(crate) folder: &'a Path,
    pub(crate) mailbox: &'a Mailbox,
    /// Writes in a transaction.
    pub(crate) transactions: &'a [usize],
}

impl Bed<'_> {
    /// One table for each step.
    pub(crate) fn headings(&self) -> Vec<Heading> {
        let (rows, body) = (self.mailbox.rows, self.mailbox.body_bytes);
        let of = format!("{} messages of {} bytes", whole(rows), whole(body));
        let headings = steps(self.transactions, 0.0).into_iter().map(|step| Heading {
            name: format!("{}-{}", self.name, step.name),
            unit: "operations",
            title: format!("{}; {of}", about(&step.cycle, step.transaction)),
        });
        headings.collect()
    }
}

/// Measures a configuration on a file of its own, called `file`.
pub(crate) fn case<'a>(
    bed: Bed<'a>,
    name: &str,
    file: &str,
    configuration: &Configuration,
    encryption: &CipherAndKey,
) -> Case<'a, Vec<Sample>> {
    case_by(bed, name, file, configuration, encryption, carry_out)
}

/// The same, when somebody else carries the plan out.
pub(crate) fn case_by<'a>(
    bed: Bed<'a>,
    name: &str,
    file: &str,
    configuration: &Configuration,
    encryption: &CipherAndKey,
    carry_out: impl Fn(&Plan) -> anyhow::Result<Answer> + 'a,
) -> Case<'a, Vec<Sample>> {
    let path = bed.folder.join(file);
    let (settings, encryption) = (configuration.settings.clone(), encryption.clone());
    let mut is_made = false;
    Case::new(name, move |duration: Duration| {
        if !is_made {
            bed.mailbox.make(&path, &settings, &encryption)?;
            is_made = true;
        }
        let steps = steps(bed.transactions, duration.as_secs_f64());
        let answer = carry_out(&bed.mailbox.plan(&path, &settings, &encryption, steps))?;
        Ok(answer.steps.iter().map(sample).collect())
    })
}

/// A step as the suite counts.
pub(crate) fn sample(timing: &Timing) -> Sample {
    let mut sample = Sample::new(timing.operations, Duration::from_secs_f64(timing.seconds));
    #[expect(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
    let operations = timing.operations.max(1) as f64;
    sample.facts.push((CPU_US, timing.cpu_seconds * 1e6 / operations));
    sample.facts.push(("slowest ms", timing.slowest_us / 1e3));
    sample
}

fn about(cycle: &[String], transaction: usize) -> String {
    let what = match cycle {
        [only] => match only.as_str() {
            "insert" => "inserts of a message",
            "list" => "the 50 messages before a random date, without bodies",
            "read" => "the body of a random message",
            "update" => "flags of a random message",
            _ => "deletes of a message",
        },
        _ => "of ten, 6 reads, 2 updates, an insert and a delete",
    };
    match transaction {
        1 => what.to_owned(),
        size => format!("{what}; {size} in a transaction"),
    }
}
