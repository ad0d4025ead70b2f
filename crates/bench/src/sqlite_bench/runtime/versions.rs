//! Separates the effect of a library's version from that of its runtime's version: the same
//! library on several releases of Node, in a separate table.
//!
//! This needs no further measurement: the rounds of the table with all drivers are compared with
//! another baseline, and by processor time. All these rows do the same reads and writes, and other
//! work of the machine changes that time little.

use std::collections::BTreeMap;

use crate::confidence_interval::MedianDifference;
use crate::measure::{CPU_US, Distribution};
use crate::sqlite_bench::plan::LabDriverInfo;
use crate::suite::{ResultRow, ResultTable, ratios};

/// The runtime that is the fastest on the published page.
const PUBLISHED_RUNTIME: &str = "node v20.";

/// Returns the drivers of the first library that has one version on several runtimes; the first
/// driver is the baseline. `None` if there is no such library.
pub(super) fn of_one_library<'a>(
    drivers: impl Iterator<Item = &'a LabDriverInfo>,
) -> Option<Vec<String>> {
    let mut drivers: Vec<&LabDriverInfo> = drivers.collect();
    let all = drivers.clone();
    // A library that is part of its runtime has one version on each, so the effects cannot be
    // separated.
    let runs_twice = |one: &LabDriverInfo| {
        let same = |other: &&&LabDriverInfo| {
            (&other.driver, &other.version) == (&one.driver, &one.version)
        };
        all.iter().filter(same).count() > 1
    };
    let library = drivers.iter().find(|about| runs_twice(about))?.driver.clone();
    drivers.retain(|about| about.driver == library);
    let version = |about: &LabDriverInfo| -> Vec<u64> {
        about.version.split('.').map(|part| part.parse().unwrap_or(0)).collect()
    };
    drivers.sort_by_key(|about| {
        (version(about), !about.runtime.starts_with(PUBLISHED_RUNTIME), about.runtime.clone())
    });
    Some(drivers.into_iter().map(ToString::to_string).collect())
}

/// Returns the rows of these names, compared with the first of them. `None` if there are not two.
pub(super) fn table(all: &ResultTable, names: &[String]) -> Option<ResultTable> {
    let row = |name: &String| {
        let row = all.rows.iter().find(|row| row.name == *name)?;
        // The rates are operations per second of processor time.
        let rates: Vec<f64> = row.metrics.get(CPU_US)?.samples.iter().map(|us| 1e6 / us).collect();
        Some((row, rates))
    };
    let rows: Vec<(&ResultRow, Vec<f64>)> = names.iter().filter_map(row).collect();
    let comparisons = rows.len().checked_sub(1).filter(|count| *count > 0)?;
    let compared = rows.iter().enumerate().map(|(number, (row, rates))| {
        let relative = ratios(rates, &rows[0].1);
        ResultRow {
            name: row.name.clone(),
            published: None,
            point: None,
            rate: Distribution::from_samples(rates.clone()),
            difference: (number > 0).then(|| MedianDifference::from_ratios(&relative, comparisons)),
            relative: Distribution::from_samples(relative),
            by_cpu: None,
            latency: None,
            metrics: BTreeMap::new(),
        }
    });
    Some(ResultTable {
        name: format!("{}-versions", all.name),
        title: format!("versions of one library, by processor time: {}", all.title),
        unit: all.unit.clone(),
        rows: compared.collect(),
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use indicatif::ProgressBar;

    use super::*;
    use crate::measure::RoundSample;
    use crate::suite::{BenchCase, BenchSection, StopRule, run};

    fn about(driver: &str, version: &str, runtime: &str) -> LabDriverInfo {
        LabDriverInfo {
            driver: driver.to_owned(),
            version: version.to_owned(),
            sqlite: "3.50.0".to_owned(),
            runtime: runtime.to_owned(),
            ciphers: Vec::new(),
            compile_options: Vec::new(),
        }
    }

    #[test]
    fn the_oldest_version_on_the_published_runtime_comes_first() {
        let part_of = ["22.1.0", "24.1.0"].map(|v| about("node:sqlite", v, &format!("node v{v}")));
        assert_eq!(of_one_library(part_of.iter()), None);
        let new = ["node v18.1.0", "node v20.1.0"].map(|node| about("mc", "12.4.1", node));
        let old = ["node v18.1.0", "node v20.1.0"].map(|node| about("mc", "9.10.0", node));
        let all = part_of.iter().chain(&new).chain(&old);
        let names = of_one_library(all).unwrap();
        let expected = [
            "mc 9.10.0 on node v20.1.0",
            "mc 9.10.0 on node v18.1.0",
            "mc 12.4.1 on node v20.1.0",
            "mc 12.4.1 on node v18.1.0",
        ];
        assert_eq!(names, expected);
    }

    #[test]
    fn rows_are_compared_with_the_first_of_them() {
        let case = |name: &str, rate: u32| {
            BenchCase::new(name, move |_| {
                let mut sample = RoundSample::new(rate.into(), Duration::from_secs(1));
                // A slower case also uses less processor time in total.
                sample.metrics.push((CPU_US, 4_000.0 / f64::from(rate).sqrt()));
                Ok(sample)
            })
        };
        let section = BenchSection {
            name: "list".to_owned(),
            unit: "operations",
            title: "lists".to_owned(),
            cases: vec![case("ours", 9_000), case("new", 4_000), case("old", 1_000)],
        };
        let stop_rule = StopRule::rounds(8, Duration::ZERO);
        let all = run(section, &stop_rule, &ProgressBar::hidden()).unwrap();
        let table = table(&all, &["old", "new", "absent"].map(str::to_owned)).unwrap();
        let [old, new] = &table.rows[..] else { panic!("two rows") };
        assert_eq!((old.name.as_str(), old.difference.is_none()), ("old", true));
        assert!((new.relative.median - 2.0).abs() < 1e-9, "{new:?}");
        assert!((new.rate.median - 1e6 / 4_000.0 * 4_000f64.sqrt()).abs() < 1e-6, "{new:?}");
        let difference = new.difference.as_ref().unwrap();
        assert_eq!(difference.text, "2.0 times as fast");
        assert_eq!(table.name, "list-versions");
    }
}
