//! Metrics of the open vaults, in Prometheus' text format.
//!
//! They are written here and not kept by the recorder, so that a closed vault has no series any
//! more.
//!
//! # Invariants
//! - A vault's label is its file name, 32 hex digits that appear in no request, never its
//!   account's login.
//! - However many vaults are open, a metric has at most `SERIES_MAX` series: those with the
//!   largest values. Sums and maxima cover all open vaults.

use std::fmt::Write;

use accounts::VaultId;
use engine::DatabaseHealth;

/// The maximum number of series per metric: more would be too many to read, and too large for a
/// scrape.
const SERIES_MAX: usize = 100;

/// One metric of a vault.
struct VaultMetric<T> {
    name: &'static str,
    help: &'static str,
    of: fn(&DatabaseHealth) -> T,
}

/// The metrics that are summed over all open vaults.
const SUMS: [VaultMetric<u64>; 5] = [
    VaultMetric {
        name: "file_bytes",
        help: "Size of the files.",
        of: |health| health.pages * health.page_bytes,
    },
    VaultMetric {
        name: "free_bytes",
        help: "Size of the free pages.",
        of: |health| health.free_pages * health.page_bytes,
    },
    VaultMetric { name: "wal_bytes", help: "Size of the WALs.", of: |health| health.wal_bytes },
    VaultMetric {
        name: "poisoned",
        help: "Vaults that refuse writes until they have recovered from a disk failure.",
        of: |health| health.is_poisoned.into(),
    },
    VaultMetric {
        name: "damaged",
        help: "Vaults with damaged pages that were not repaired.",
        of: |health| health.is_damaged.into(),
    },
];

/// The metrics that are shown for single vaults.
const FIGURES: [VaultMetric<f64>; 3] = [
    VaultMetric {
        name: "fragmentation_ratio",
        help: "Share of the file's pages that are free.",
        of: DatabaseHealth::fragmentation,
    },
    VaultMetric {
        name: "wal_bytes",
        help: "Size of the WAL.",
        of: |health| number(health.wal_bytes),
    },
    VaultMetric {
        name: "longest_read_seconds",
        help: "Age of the oldest running read, which prevents a restart of the WAL.",
        of: |health| health.longest_read.as_secs_f64(),
    },
];

/// A metric of 0 or 1, whose maximum would add no information to its sum.
const POISONED: VaultMetric<f64> = VaultMetric {
    name: "poisoned",
    help: "1 if the vault refuses writes until it has recovered from a disk failure.",
    of: |health| f64::from(u8::from(health.is_poisoned)),
};

/// Returns the metrics of these open vaults as text.
pub(crate) fn text(vaults: &[(VaultId, DatabaseHealth)]) -> String {
    let mut text = String::new();
    for figure in &SUMS {
        figure.write(vaults, &mut text).expect(TAKES_ALL);
    }
    for figure in &FIGURES {
        figure.write_max(vaults, &mut text).expect(TAKES_ALL);
        figure.write_worst(vaults, &mut text).expect(TAKES_ALL);
    }
    POISONED.write_worst(vaults, &mut text).expect(TAKES_ALL);
    text
}

const TAKES_ALL: &str = "a String takes all that is written to it";

impl VaultMetric<u64> {
    fn write(&self, vaults: &[(VaultId, DatabaseHealth)], text: &mut String) -> std::fmt::Result {
        let Self { name, help, of } = self;
        let sum: u64 = vaults.iter().map(|(_, health)| of(health)).sum();
        writeln!(text, "# HELP warren_vaults_{name} {help} All open vaults together.")?;
        writeln!(text, "# TYPE warren_vaults_{name} gauge\nwarren_vaults_{name} {sum}")
    }
}

impl VaultMetric<f64> {
    fn write_max(
        &self,
        vaults: &[(VaultId, DatabaseHealth)],
        text: &mut String,
    ) -> std::fmt::Result {
        let Self { name, help, of } = self;
        let max = vaults.iter().map(|(_, health)| of(health)).fold(0.0, f64::max);
        writeln!(text, "# HELP warren_vaults_{name}_max {help} Largest of all open vaults.")?;
        writeln!(text, "# TYPE warren_vaults_{name}_max gauge\nwarren_vaults_{name}_max {max}")
    }

    fn write_worst(
        &self,
        vaults: &[(VaultId, DatabaseHealth)],
        text: &mut String,
    ) -> std::fmt::Result {
        let Self { name, help, of } = self;
        writeln!(text, "# HELP warren_vault_{name} {help} Only vaults with the largest values.")?;
        writeln!(text, "# TYPE warren_vault_{name} gauge")?;
        let mut worst: Vec<_> = vaults.iter().map(|(id, health)| (id, of(health))).collect();
        // Sort by name last, so that the same vaults appear from one scrape to the next.
        worst.sort_by(|(a, x), (b, y)| y.total_cmp(x).then(a.cmp(b)));
        for (id, value) in worst.iter().take(SERIES_MAX) {
            let id = id.as_str();
            writeln!(text, "warren_vault_{name}{{vault_id=\"{id}\"}} {value}")?;
        }
        Ok(())
    }
}

#[expect(clippy::cast_precision_loss, reason = "sizes stay far below 2⁵³")]
fn number(bytes: u64) -> f64 {
    bytes as f64
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use engine::MaintenanceStats;

    use super::*;

    fn health(wal_bytes: u64) -> DatabaseHealth {
        DatabaseHealth {
            page_bytes: 4_096,
            pages: 100,
            free_pages: wal_bytes % 100,
            wal_bytes,
            longest_read: Duration::from_millis(wal_bytes),
            is_poisoned: wal_bytes == 7,
            is_damaged: wal_bytes == 7,
            maintenance: MaintenanceStats::default(),
            maintenance_age: None,
        }
    }

    #[test]
    fn only_the_worst_are_named_and_all_are_counted() {
        let id = |n| format!("{n:032x}").parse().unwrap();
        let vaults: Vec<_> = (0..250).map(|n| (id(n), health(n))).collect();
        let text = text(&vaults);
        let named = |name: &str| text.lines().filter(|line| line.starts_with(name)).count();
        assert!(!text.contains("warren_vaults_poisoned_max"), "{text}");
        for figure in FIGURES.iter().chain([&POISONED]) {
            assert_eq!(named(&format!("warren_vault_{}{{", figure.name)), SERIES_MAX);
        }
        for line in [
            "warren_vaults_wal_bytes 31125",
            "warren_vaults_file_bytes 102400000",
            "warren_vaults_wal_bytes_max 249",
            "warren_vaults_fragmentation_ratio_max 0.99",
            "warren_vaults_longest_read_seconds_max 0.249",
            "warren_vaults_poisoned 1",
            "warren_vaults_damaged 1",
            r#"warren_vault_poisoned{vault_id="00000000000000000000000000000007"} 1"#,
            r#"warren_vault_wal_bytes{vault_id="000000000000000000000000000000f9"} 249"#,
            r#"warren_vault_wal_bytes{vault_id="00000000000000000000000000000096"} 150"#,
        ] {
            assert!(text.lines().any(|found| found == line), "no {line} in\n{text}");
        }
        assert!(!text.contains("00000095\"} 149"), "{text}");
    }

    #[test]
    fn without_vaults_there_is_nothing_worse_than_zero() {
        let text = text(&[]);
        assert!(text.contains("warren_vaults_wal_bytes_max 0\n"), "{text}");
        assert!(!text.contains('{'), "{text}");
    }
}
