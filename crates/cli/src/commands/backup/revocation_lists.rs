//! Reads the revocation lists of a restore: the one in the backup, and optionally a newer one.

use std::fmt::Display;
use std::fs;
use std::path::Path;

use crate::output::CommandError;
use accounts::ParsedRevocations;
use anyhow::{Context, ensure};
use protocol::ErrorCode;
use serde::Serialize;
use utoipa::ToSchema;

/// A revocation list that was read.
#[derive(Serialize, ToSchema)]
pub(super) struct ListFile {
    /// The path of the list.
    path: String,
    /// The number of devices, accounts and passwords on the list.
    revocations_count: usize,
    /// The numbers of the lines, from 1, that are damaged and were skipped.
    pub(super) damaged_lines: Vec<usize>,
    #[serde(skip)]
    content: Vec<u8>,
}

impl ListFile {
    pub(super) fn read(path: &Path) -> anyhow::Result<Self> {
        let content = fs::read(path).with_context(|| path.display().to_string())?;
        let list = ParsedRevocations::parse(&content);
        let damaged_lines = list.damaged_lines().to_vec();
        let (path, revocations_count) = (path.display().to_string(), list.count());
        Ok(Self { path, revocations_count, damaged_lines, content })
    }

    /// Reads a list from the command line; refuses any other file.
    pub(super) fn read_named(path: &Path) -> anyhow::Result<Self> {
        let list = Self::read(path)?;
        let is_list = list.revocations_count > 0 || list.damaged_lines.is_empty();
        let message = || format!("{} is not a revocation list: it has no intact line", list.path);
        ensure!(is_list, CommandError::new(ErrorCode::InvalidFile, message()));
        Ok(list)
    }

    /// Returns a warning about damaged lines, if there are any.
    pub(super) fn warning(&self) -> Option<impl Display> {
        let numbers: Vec<_> = self.damaged_lines.iter().map(ToString::to_string).collect();
        (!numbers.is_empty()).then(|| {
            format!(
                "{}: skipped damaged {} {}; repeat the revocations that may be missing",
                self.path,
                if numbers.len() == 1 { "line" } else { "lines" },
                numbers.join(", ")
            )
        })
    }
}

/// Merges the entries of all lists into one: the backup contains its server's list of that time,
/// and that list only grows.
pub(super) fn merge(lists: &[ListFile]) -> Vec<u8> {
    let mut merged: Vec<u8> = Vec::new();
    for list in lists.iter().map(|list| &list.content) {
        if list.starts_with(&merged) {
            merged.clone_from(list);
        } else if !merged.starts_with(list) {
            merged.extend(list);
        }
    }
    merged
}

#[cfg(test)]
mod tests {
    use super::*;

    fn merge_of(contents: &[&str]) -> String {
        let list = |content: &&str| ListFile {
            path: String::new(),
            revocations_count: 0,
            damaged_lines: Vec::new(),
            content: content.as_bytes().to_vec(),
        };
        let lists: Vec<_> = contents.iter().map(list).collect();
        String::from_utf8_lossy(&merge(&lists)).into_owned()
    }

    #[test]
    fn a_merged_list_has_what_either_has_and_the_longer_of_two_is_enough() {
        assert_eq!(merge_of(&[]), "");
        assert_eq!(merge_of(&["\na 1"]), "\na 1");
        assert_eq!(merge_of(&["\na 1", "\na 1\nb 2"]), "\na 1\nb 2");
        assert_eq!(merge_of(&["\na 1\nb 2", "\na 1"]), "\na 1\nb 2");
        assert_eq!(merge_of(&["\na 1\nb", "\nx 1\nb 2"]), "\na 1\nb\nx 1\nb 2");
    }
}
