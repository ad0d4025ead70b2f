//! Compares two reports of the same benchmark and shows which rows became faster or slower.
//!
//! # Invariants
//! - The reports come from different runs, so nothing is paired: the bootstrap draws from both.
//! - Rates are compared only between runs of one machine. Multiples of the baseline, which was
//!   measured in the same rounds, are compared between any two machines.

use std::collections::BTreeSet;
use std::fmt;

use anyhow::ensure;
use serde::Serialize;
use utoipa::ToSchema;

use crate::confidence_interval::{DifferenceVerdict, MedianDifference};
use crate::format::{self, MetricColumn};
use crate::machine::MachineInfo;
use crate::measure::Distribution;
use crate::report::BenchReport;
use crate::suite::{ResultRow, ResultTable};
use crate::text_report;

/// The differences between two reports of one benchmark.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct ReportComparison {
    /// The name of the benchmark: `pragma`, `sync`, `tps` …
    pub benchmark: String,
    /// The source of the first report.
    pub a: ReportSource,
    /// The source of the second report, which is compared with the first.
    pub b: ReportSource,
    /// Whether both reports come from the same kind of machine, so that rates may be compared.
    pub same_machine: bool,
    /// Tables that are in both reports.
    pub tables: Vec<TableComparison>,
    /// Rows of the first report that are not in the second, as `table: row`.
    pub only_in_a: Vec<String>,
    /// Rows of the second report that are not in the first, as `table: row`.
    pub only_in_b: Vec<String>,
}

/// The source of a report's figures.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct ReportSource {
    /// The machine and the program that the benchmark ran on.
    pub machine: MachineInfo,
    /// The command line that started the benchmark.
    pub command: String,
}

/// A table that is in both reports.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct TableComparison {
    /// The name of the table, as `--only` accepts it.
    pub name: String,
    /// The unit that the table's rates count, such as `transactions`.
    pub unit: String,
    /// Rows that are in both reports.
    pub rows: Vec<RowComparison>,
}

/// A row that is in both reports.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct RowComparison {
    /// The name of the measured case.
    pub name: String,
    /// The rate in the first report.
    pub a: Distribution,
    /// The rate in the second report.
    pub b: Distribution,
    /// How the second rate differs from the first; null unless the machines are the same.
    pub rate: Option<MedianDifference>,
    /// How the second rate, divided by its own report's baseline, differs from the first rate
    /// divided by its own; null for the baseline itself.
    pub relative: Option<MedianDifference>,
}

/// Compares `b` with `a`.
pub fn compare(a: &BenchReport, b: &BenchReport) -> anyhow::Result<ReportComparison> {
    ensure!(
        a.benchmark == b.benchmark,
        "the reports are of different benchmarks: {} and {}",
        a.benchmark,
        b.benchmark
    );
    let is_same_machine = a.machine.is_like(&b.machine);
    let pairs = || a.tables.iter().filter_map(|one| Some((one, named(&b.tables, &one.name)?)));
    let tables = pairs().map(|(a, b)| compared(a, b, is_same_machine));
    let (in_a, in_b) = (rows(a), rows(b));
    Ok(ReportComparison {
        benchmark: a.benchmark.to_string(),
        a: source(a),
        b: source(b),
        same_machine: is_same_machine,
        tables: tables.collect(),
        only_in_a: in_a.difference(&in_b).cloned().collect(),
        only_in_b: in_b.difference(&in_a).cloned().collect(),
    })
}

fn named<'t>(tables: &'t [ResultTable], name: &str) -> Option<&'t ResultTable> {
    tables.iter().find(|table| table.name == name)
}

fn rows(report: &BenchReport) -> BTreeSet<String> {
    let of = |table: &ResultTable| {
        let name = |row: &ResultRow| format!("{}: {}", table.name, row.name);
        table.rows.iter().map(name).collect::<Vec<_>>()
    };
    report.tables.iter().flat_map(of).collect()
}

fn source(report: &BenchReport) -> ReportSource {
    ReportSource { machine: report.machine.clone(), command: report.command.clone() }
}

fn compared(a: &ResultTable, b: &ResultTable, is_same_machine: bool) -> TableComparison {
    let pairs: Vec<(&ResultRow, &ResultRow)> = a
        .rows
        .iter()
        .filter_map(|one| Some((one, b.rows.iter().find(|other| other.name == one.name)?)))
        .collect();
    let count = pairs.len();
    let rows = pairs.into_iter().map(|(a, b)| {
        let difference = |a: &Distribution, b: &Distribution| {
            MedianDifference::between(&a.samples, &b.samples, count)
        };
        let is_compared = a.difference.is_some() && b.difference.is_some();
        RowComparison {
            name: a.name.clone(),
            rate: is_same_machine.then(|| difference(&a.rate, &b.rate)),
            relative: is_compared.then(|| difference(&a.relative, &b.relative)),
            a: a.rate.clone(),
            b: b.rate.clone(),
        }
    });
    TableComparison { name: a.name.clone(), unit: b.unit.to_string(), rows: rows.collect() }
}

impl fmt::Display for ReportComparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, ReportSource { machine, command }) in [("old", &self.a), ("new", &self.b)] {
            writeln!(f, "{name}: {command}\n{machine}\n")?;
        }
        if !self.same_machine {
            writeln!(f, "The machines differ: only ratios to the baseline are compared.\n")?;
        }
        let tables: Vec<String> = self.tables.iter().map(TableComparison::text).collect();
        write!(f, "{}", tables.join("\n\n"))?;
        for (which, only) in [("old", &self.only_in_a), ("new", &self.only_in_b)] {
            only.iter().try_for_each(|row| write!(f, "\nonly in the {which} report: {row}"))?;
        }
        Ok(())
    }
}

impl TableComparison {
    fn text(&self) -> String {
        let names: Vec<&str> = self.rows.iter().map(|row| row.name.as_str()).collect();
        let told = |difference: &Option<MedianDifference>| {
            difference.as_ref().map(format::format_difference)
        };
        let column = |heading: &str, detail, cells| MetricColumn {
            heading: heading.to_owned(),
            detail,
            cells,
        };
        let cells = |cell: &dyn Fn(&RowComparison) -> Option<format::FormattedValue>| {
            self.rows.iter().map(cell).collect::<Vec<_>>()
        };
        let columns = [
            column("old", "median", cells(&|row| Some(format::median(&row.a)))),
            column("new", "median", cells(&|row| Some(format::median(&row.b)))),
            column("new vs. old", "", cells(&|row| told(&row.rate))),
            column("relative to baseline", "", cells(&|row| told(&row.relative))),
        ];
        let columns: Vec<MetricColumn> =
            columns.into_iter().filter(MetricColumn::says_something).collect();
        text_report::aligned(&format!("{}: {}/s", self.name, self.unit), &names, &columns)
    }

    /// Returns whether any row of the table became faster or slower.
    pub fn differs(&self) -> bool {
        let is_one = |difference: &Option<MedianDifference>| {
            let verdict = difference.as_ref().map(|difference| difference.verdict);
            matches!(verdict, Some(DifferenceVerdict::Faster | DifferenceVerdict::Slower))
        };
        self.rows.iter().any(|row| is_one(&row.rate) || is_one(&row.relative))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::html_report::sample;
    use crate::report::REPORT_FORMAT;

    fn report(factor: f64, rounds: i32) -> BenchReport {
        let spread = |median: f64| {
            Distribution::from_samples(
                (0..rounds).map(|round| median * (1.0 + 0.001 * f64::from(round))).collect(),
            )
        };
        let row = |name: &str, rate: f64, relative: f64| {
            let difference =
                (relative < 1.0).then(|| MedianDifference::from_ratios(&[relative], 1));
            ResultRow {
                rate: spread(rate),
                relative: spread(relative),
                difference,
                ..sample::row(name, rate)
            }
        };
        let table = ResultTable {
            name: "inserts".to_owned(),
            unit: "operations".into(),
            title: String::new(),
            rows: vec![row("bare", 1_000.0, 1.0), row("ours", 500.0 * factor, 0.5 * factor)],
        };
        BenchReport {
            format: REPORT_FORMAT,
            benchmark: "pragma".into(),
            machine: sample::machine(),
            command: "warren bench pragma".to_owned(),
            settings: Vec::new(),
            configurations: Vec::new(),
            tables: vec![table],
            matrices: Vec::new(),
            goals: Vec::new(),
            notes: Vec::new(),
            title: "".into(),
            lead: "".into(),
        }
    }

    fn texts(comparison: &ReportComparison) -> Vec<(Option<&str>, Option<&str>)> {
        let text = |of: &'_ Option<MedianDifference>| of.as_ref().map(|one| one.text.clone());
        let rows = comparison.tables[0].rows.iter();
        rows.map(|row| (text(&row.rate), text(&row.relative)))
            .map(|(a, b)| (a.map(leak), b.map(leak)))
            .collect()
    }

    fn leak(text: String) -> &'static str {
        text.leak()
    }

    #[test]
    fn what_changed_is_told_and_what_did_not_is_not() {
        let comparison = compare(&report(1.0, 12), &report(1.5, 12)).unwrap();
        let expected = [
            (Some("no difference found"), None),
            (Some("faster by 49–51 %"), Some("faster by 49–51 %")),
        ];
        assert_eq!(texts(&comparison), expected);
        assert!(comparison.tables[0].differs());
        let text = comparison.to_string();
        assert!(text.contains("ours     503     754"), "{text}");
        assert!(!compare(&report(1.0, 12), &report(1.0, 12)).unwrap().tables[0].differs());
    }

    #[test]
    fn too_few_rounds_say_nothing() {
        let comparison = compare(&report(1.0, 3), &report(1.5, 12)).unwrap();
        assert_eq!(texts(&comparison)[1].0, Some("too few rounds for a verdict"));
    }

    #[test]
    fn rates_of_two_machines_are_not_compared() {
        let mut other = report(1.5, 12);
        other.machine.processor = "another".to_owned();
        let comparison = compare(&report(1.0, 12), &other).unwrap();
        assert_eq!(texts(&comparison), [(None, None), (None, Some("faster by 49–51 %"))]);
        assert!(comparison.to_string().contains("The machines differ"));
    }

    #[test]
    fn what_only_one_has_is_named_and_other_benchmarks_are_refused() {
        let (a, mut b) = (report(1.0, 6), report(1.0, 6));
        b.tables[0].rows[1].name = "theirs".to_owned();
        let comparison = compare(&a, &b).unwrap();
        assert_eq!(comparison.only_in_a, ["inserts: ours"]);
        assert_eq!(comparison.only_in_b, ["inserts: theirs"]);
        b.benchmark = "tps".into();
        let error = compare(&a, &b).unwrap_err().to_string();
        assert_eq!(error, "the reports are of different benchmarks: pragma and tps");
    }

    #[test]
    fn a_report_reads_back_as_it_was_written() {
        let mut report = report(1.0, 6);
        report.tables[0].rows[1].relative = Distribution::from_samples(vec![f64::NAN, 1.0 / 3.0]);
        let written = serde_json::to_string(&report).unwrap();
        assert!(written.starts_with(r#"{"format":11,"benchmark":"pragma","#), "{written}");
        let read = BenchReport::from_json(&written).unwrap();
        assert_eq!(serde_json::to_string(&read).unwrap(), written);
    }
}
