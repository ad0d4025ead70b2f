//! The exit status of `warren doctor`: what the gravest finding is.

use doctor::{DoctorReport, Severity};

use super::doctor_args::{DoctorArgs, FailOn};
use crate::output::NonZeroExit;

const STATUS_WARNING: u8 = 3;

const STATUS_ERROR: u8 = 4;

const STATUS_INCOMPLETE: u8 = 5;

pub(crate) fn verdict(status: u8) -> anyhow::Result<()> {
    match status {
        0 => Ok(()),
        status => Err(NonZeroExit(status).into()),
    }
}

pub(crate) fn status(report: &DoctorReport, arguments: &DoctorArgs) -> u8 {
    let is_incomplete = !report.integrity.is_complete;
    exit_status(report.severity(), is_incomplete, arguments)
}

pub(crate) fn exit_status(
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
