//! Summarizes a report: lists, for each row name, the tables in which it made a difference.

use crate::confidence_interval::{DifferenceVerdict, MedianDifference};
use crate::suite::ResultTable;

/// The findings for the rows of one name.
#[derive(Debug)]
pub(crate) struct ComparisonFinding<'t> {
    pub(crate) name: &'t str,
    /// The tables in which it is faster or slower than the baseline, and how.
    pub(crate) differs: Vec<(&'t ResultTable, String)>,
    /// Tables in which no difference was found.
    pub(crate) same_count: usize,
}

impl ComparisonFinding<'_> {
    /// Describes in words how often no difference was found; `None` if never.
    pub(crate) fn same(&self) -> Option<String> {
        let count = self.same_count;
        match (count, self.differs.is_empty()) {
            (0, _) => None,
            (1, true) => Some("no difference found".to_owned()),
            (_, true) => Some(format!("no difference found in {count} tables")),
            (1, false) => Some("no difference found in 1 other table".to_owned()),
            (_, false) => Some(format!("no difference found in {count} other tables")),
        }
    }
}

/// Returns the findings in the order in which the names appear, without rows of too few rounds.
pub(crate) fn findings(tables: &[ResultTable]) -> Vec<ComparisonFinding<'_>> {
    let mut findings: Vec<ComparisonFinding<'_>> = Vec::new();
    for table in tables {
        for row in &table.rows {
            let Some(difference) = &row.difference else { continue };
            if difference.verdict == DifferenceVerdict::TooFewRounds {
                continue;
            }
            let known = findings.iter().position(|finding| finding.name == row.name);
            let index = known.unwrap_or_else(|| {
                findings.push(ComparisonFinding {
                    name: &row.name,
                    differs: Vec::new(),
                    same_count: 0,
                });
                findings.len() - 1
            });
            let finding = &mut findings[index];
            match describe_difference(difference, row.by_cpu.as_ref()) {
                None => finding.same_count += 1,
                Some(text) => finding.differs.push((table, text)),
            }
        }
    }
    findings
}

/// Describes the difference, if any: by time, or else by processor time.
fn describe_difference(
    difference: &MedianDifference,
    by_cpu: Option<&MedianDifference>,
) -> Option<String> {
    let differs = |one: &&MedianDifference| {
        matches!(one.verdict, DifferenceVerdict::Faster | DifferenceVerdict::Slower)
    };
    let by_cpu = by_cpu.filter(differs).map(|one| format!("{} in processor time", one.text));
    Some(difference).filter(differs).map(|one| one.text.clone()).or(by_cpu)
}

/// Returns the baseline's name, if it is the same in all tables.
pub(crate) fn baseline(tables: &[ResultTable]) -> Option<&str> {
    let mut names = tables.iter().filter_map(|table| Some(table.rows.first()?.name.as_str()));
    let first = names.next()?;
    names.all(|name| name == first).then_some(first)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::html_report::sample;
    use crate::suite::ResultRow;

    fn table(name: &str, ratios: &[(&str, f64)]) -> ResultTable {
        let rows = ratios.iter().enumerate().map(|(index, (name, ratio))| ResultRow {
            difference: (index > 0)
                .then(|| MedianDifference::from_ratios(&[*ratio; 12], ratios.len() - 1)),
            ..sample::row(name, 1_000.0)
        });
        ResultTable {
            name: name.to_owned(),
            unit: "rows".into(),
            title: String::new(),
            rows: rows.collect(),
        }
    }

    #[test]
    fn each_name_says_where_it_made_a_difference() {
        let tables = [
            table("insert", &[("base", 1.0), ("cache", 1.0), ("off", 1.5)]),
            table("list", &[("base", 1.0), ("cache", 1.0), ("off", 1.0)]),
        ];
        let findings = findings(&tables);
        let said = findings.iter().map(|finding| {
            let differs = finding.differs.iter();
            let differs: Vec<String> =
                differs.map(|(table, text)| format!("{} {text}", table.name)).collect();
            (finding.name, differs.join(", "), finding.same().unwrap())
        });
        let expected = [
            ("cache", String::new(), "no difference found in 2 tables".to_owned()),
            (
                "off",
                "insert faster by 50 %".to_owned(),
                "no difference found in 1 other table".to_owned(),
            ),
        ];
        assert_eq!(said.collect::<Vec<_>>(), expected);
        assert_eq!(baseline(&tables), Some("base"));
    }

    #[test]
    fn processor_time_speaks_where_time_does_not() {
        let mut table = table("list", &[("base", 1.0), ("cache", 1.0)]);
        table.rows[1].by_cpu = Some(MedianDifference::from_ratios(&[0.8; 12], 2));
        let tables = [table];
        let findings = findings(&tables);
        assert_eq!(findings[0].differs[0].1, "slower by 20 % in processor time");
        assert_eq!(findings[0].same(), None);
    }

    #[test]
    fn too_few_rounds_are_no_finding() {
        assert!(findings(&sample::tables()).is_empty());
        assert_eq!(baseline(&sample::tables()), None);
    }
}
