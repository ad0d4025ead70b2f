//! Lists the configurations that `bench pragma` knows by name.

use engine::Profile;

use crate::sqlite_bench::configuration::PragmaConfiguration;

/// The published configuration with which the others are compared.
const BASELINE: &str = "production";

/// Configurations that are the baseline with one change: name, purpose, PRAGMA, value.
const CHANGES: &[(&str, &str, &str, &str)] = &[
    (
        "synchronous-full",
        "fsync at each commit: commits survive a power loss",
        "synchronous",
        "FULL",
    ),
    (
        "synchronous-extra",
        "FULL, and an fsync of the directory after a rollback journal is deleted",
        "synchronous",
        "EXTRA",
    ),
    ("page-1024", "pages of 1 KiB", "page_size", "1024"),
    ("page-8192", "pages of 8 KiB", "page_size", "8192"),
    ("page-16384", "pages of 16 KiB", "page_size", "16384"),
    (
        "journal-delete",
        "SQLite's default: a rollback journal for each transaction; readers and writers block each \
         other",
        "journal_mode",
        "DELETE",
    ),
    (
        "journal-truncate",
        "a rollback journal that is truncated instead of deleted",
        "journal_mode",
        "TRUNCATE",
    ),
    (
        "journal-persist",
        "a rollback journal that is marked as invalid instead of deleted",
        "journal_mode",
        "PERSIST",
    ),
    (
        "journal-memory",
        "unsafe: the rollback journal in memory; a crash while writing corrupts the file",
        "journal_mode",
        "MEMORY",
    ),
    (
        "journal-off",
        "unsafe: no rollback journal; a crash while writing corrupts the file, and the effect of \
         ROLLBACK is undefined",
        "journal_mode",
        "OFF",
    ),
    ("auto-vacuum-none", "free pages stay in the file", "auto_vacuum", "NONE"),
    (
        "secure-delete-off",
        "deleted content stays on the disk until it is overwritten",
        "secure_delete",
        "OFF",
    ),
];

/// Returns all configurations: the baseline first, then its repetition, then the others.
pub(super) fn configurations() -> Vec<PragmaConfiguration> {
    let published = Profile::PUBLISHED.iter();
    let mut all: Vec<PragmaConfiguration> =
        published.map(PragmaConfiguration::from_profile).collect();
    all.sort_by_key(|one| one.name != BASELINE);
    let baseline = all[0].clone();
    let changed = CHANGES.iter();
    all.extend(changed.map(|(name, text, pragma, value)| baseline.with(name, text, pragma, value)));
    let again = PragmaConfiguration {
        name: format!("{BASELINE} again"),
        description: "the baseline repeated, to show the effect of chance".to_owned(),
        ..baseline
    };
    all.insert(1, again);
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::confidence_interval::{DifferenceVerdict, MedianDifference};
    use crate::sqlite_bench::configuration::EffectiveConfiguration;
    use crate::sqlite_bench::pragma::ROUNDS_MIN;

    #[test]
    fn every_configuration_takes_effect_on_a_plain_file() {
        let folder = tempfile::tempdir().unwrap();
        let all = configurations();
        assert_eq!(all[0].name, "production");
        for one in &all {
            let configured = EffectiveConfiguration::read_back(one, &None, folder.path()).unwrap();
            assert_eq!(configured.faults().collect::<Vec<_>>(), [""; 0]);
        }
        assert_eq!((Profile::PUBLISHED.len(), all.len()), (12, 13 + CHANGES.len()));
    }

    #[test]
    fn the_least_number_of_rounds_is_enough_for_a_verdict() {
        let comparisons = (configurations().len() - 1) * 2;
        let verdict =
            |rounds: usize| MedianDifference::from_ratios(&vec![2.0; rounds], comparisons).verdict;
        let rounds: usize = ROUNDS_MIN.parse().unwrap();
        assert_eq!(verdict(rounds), DifferenceVerdict::Faster);
        assert_eq!(verdict(rounds - 1), DifferenceVerdict::TooFewRounds);
    }

    #[test]
    fn a_change_is_the_baseline_but_for_one_setting() {
        let all = configurations();
        for (name, _, pragma, value) in CHANGES {
            let one = all.iter().find(|one| one.name == *name).unwrap();
            let changed: Vec<&(String, String)> =
                one.settings.iter().filter(|of| !all[0].settings.contains(of)).collect();
            assert_eq!(changed, [&((*pragma).to_owned(), (*value).to_owned())], "{name}");
        }
        assert_eq!(all[0].settings, all[1].settings);
    }
}
