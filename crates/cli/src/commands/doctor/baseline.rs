//! Reads the findings of an earlier report: a finding is known if the same code was found at the
//! same place in the same file. Numbers do not count: a file with 30 % free pages had 12 % before.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::fs;
use std::path::Path;

use anyhow::Context;
use doctor::DoctorFinding;
use protocol::ErrorCode;
use serde_json::Value;

use super::examined_file::ExaminedFile;
use super::finding_identity::identity;
use crate::output::CommandError;

/// The number of findings by their identity.
pub(super) struct FindingsBaseline(BTreeMap<String, usize>);

impl FindingsBaseline {
    /// Reads the output of `--json`, of one file or of many.
    pub(super) fn read(path: &Path) -> anyhow::Result<Self> {
        let name = || path.display().to_string();
        let text = fs::read_to_string(path).with_context(name)?;
        let invalid = |why: &dyn Display| {
            CommandError::new(ErrorCode::InvalidFile, format!("{}: {why}", path.display()))
        };
        let value: Value = serde_json::from_str(&text).map_err(|error| invalid(&error))?;
        let mut known = BTreeMap::new();
        let reports = match value.get("files").and_then(Value::as_array) {
            Some(files) => files.iter().map(|file| &file["report"]).collect(),
            None => vec![&value],
        };
        for report in reports.into_iter().filter(|report| !report.is_null()) {
            let place = report["file"]["path"].as_str();
            let findings = report["findings"].as_array();
            let (place, findings) = place
                .zip(findings)
                .ok_or_else(|| invalid(&"not the output of `warren doctor --json`"))?;
            for finding in findings {
                let code = finding["code"].as_str().unwrap_or_default();
                let details = finding["details"].as_object().cloned().unwrap_or_default();
                *known.entry(identity(place, code, &details)).or_default() += 1;
            }
        }
        Ok(Self(known))
    }

    /// Removes the findings of a file from the baseline, and returns the indexes of those that were
    /// in it.
    pub(super) fn take_known(&mut self, examined: &ExaminedFile) -> Vec<usize> {
        let Some(report) = &examined.report else { return Vec::new() };
        let is_known = |(index, finding): (usize, &DoctorFinding)| {
            let DoctorFinding { code, details, .. } = finding;
            let left = self.0.get_mut(&identity(&report.file.path, code.as_str(), details))?;
            *left = left.checked_sub(1)?;
            Some(index)
        };
        report.findings.iter().enumerate().filter_map(is_known).collect()
    }

    /// Returns the findings that were not found again.
    pub(super) fn into_missing(self) -> Vec<String> {
        self.0.into_iter().filter(|(_, count)| *count > 0).map(|(identity, _)| identity).collect()
    }
}
