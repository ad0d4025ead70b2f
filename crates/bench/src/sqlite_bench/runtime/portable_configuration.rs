//! Completes configurations so that they mean the same to every library.
//!
//! Libraries compile SQLite with different defaults, such as whether a commit is flushed or how
//! large the cache is. A setting that a configuration leaves open would compare these, so it is
//! set to its value here.

use std::path::Path;

use tempfile::TempDir;

use crate::sqlite_bench::configuration::{EffectiveConfiguration, PragmaConfiguration, text};
use crate::sqlite_bench::driver::LabDriver;
use crate::sqlite_bench::execute_plan::{open, read_setting};
use crate::sqlite_bench::message::{BodyLayout, CipherAndKey, MailboxTable};
use crate::sqlite_bench::plan::LabPlan;

/// The PRAGMAs that have different defaults in different builds, and on which the measured work
/// depends. `temp_store` is not among them: its default has one number and several meanings, but
/// no work here needs temporary files.
const OPEN: [&str; 8] = [
    "busy_timeout",
    "cache_size",
    "foreign_keys",
    "journal_size_limit",
    "mmap_size",
    "secure_delete",
    "synchronous",
    "wal_autocheckpoint",
];

/// A configuration that leaves no setting open, and the values that SQLite returns for it here.
pub(super) struct PortableConfiguration {
    pub(super) configuration: PragmaConfiguration,
    pub(super) configured: EffectiveConfiguration,
    /// A plan that opens a small file and does nothing else.
    plan: LabPlan,
    _scratch: TempDir,
}

impl PortableConfiguration {
    /// Completes a configuration with the values of this build, on a file in `folder`.
    pub(super) fn of(
        configuration: &PragmaConfiguration,
        encryption: &CipherAndKey,
        folder: &Path,
    ) -> anyhow::Result<Self> {
        let scratch = tempfile::tempdir_in(folder)?;
        let file = scratch.path().join("even");
        let mailbox = MailboxTable { layout: BodyLayout::Last, rows: 10, body_bytes: 10 };
        let mut configuration = configuration.clone();
        mailbox.make(&file, &configuration.settings, encryption)?;
        let plan = |configuration: &PragmaConfiguration| {
            mailbox.plan(&file, &configuration.settings, encryption, Vec::new())
        };
        let db = open(&plan(&configuration))?;
        for name in OPEN {
            if configuration.settings.iter().all(|(set, _)| set != name) {
                let value = text(&read_setting(&db, name)?);
                configuration.settings.push((name.to_owned(), value));
            }
        }
        drop(db);
        let plan = plan(&configuration);
        let configured = EffectiveConfiguration::read_back(&configuration, encryption, folder)?;
        Ok(Self { configuration, configured, plan, _scratch: scratch })
    }

    /// Checks whether the driver supports this configuration at all.
    pub(super) fn try_on(&self, driver: &LabDriver) -> anyhow::Result<()> {
        self.configured.check(&driver.run(&self.plan)?.settings)
    }
}

#[cfg(test)]
mod tests {
    use engine::Profile;

    use super::*;

    #[test]
    fn what_a_configuration_leaves_open_is_set_and_what_it_sets_stays() {
        let folder = tempfile::tempdir().unwrap();
        let production = PragmaConfiguration::from_profile(Profile::by_name("production").unwrap());
        let even = PortableConfiguration::of(&production, &None, folder.path()).unwrap();
        let settings = &even.configuration.settings;
        assert!(settings.starts_with(&production.settings));
        for name in OPEN {
            assert_eq!(settings.iter().filter(|(set, _)| set == name).count(), 1, "{name}");
        }
        let again = PortableConfiguration::of(&even.configuration, &None, folder.path()).unwrap();
        assert_eq!(again.configuration, even.configuration);
        assert_eq!(again.configured.settings, even.configured.settings);
    }
}
