//! Computes the exit status of `warren doctor` from the most severe finding.

use doctor::{DoctorReport, Severity};

use super::doctor_args::{DoctorArgs, FailOn};
use crate::output::NonZeroExit;
use crate::output::exit_status::{STATUS_ERROR, STATUS_INCOMPLETE, STATUS_WARNING};

pub(crate) fn verdict(status: u8) -> anyhow::Result<()> {
    match status {
        0 => Ok(()),
        status => Err(NonZeroExit(status).into()),
    }
}

pub(crate) fn status(report: &DoctorReport, arguments: &DoctorArgs) -> u8 {
    let is_incomplete = !report.integrity.complete;
    severity_status(report.severity(), is_incomplete, arguments)
}

pub(crate) fn severity_status(
    gravest: Option<Severity>,
    is_incomplete: bool,
    arguments: &DoctorArgs,
) -> u8 {
    match (gravest, arguments.fail_on) {
        _ if is_incomplete && arguments.require.is_some() && gravest < Some(Severity::Error) => {
            STATUS_INCOMPLETE
        }
        (_, FailOn::Never) => 0,
        (Some(Severity::Error), _) => STATUS_ERROR,
        (_, FailOn::Error) => 0,
        (Some(Severity::Warning), _) => STATUS_WARNING,
        _ if is_incomplete => STATUS_INCOMPLETE,
        _ => 0,
    }
}
