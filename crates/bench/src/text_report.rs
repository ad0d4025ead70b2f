//! Formats measured tables for the terminal.
//!
//! A table that is too wide for a line continues below, with its row names repeated.

mod matrix;

use std::fmt::Write;

use crate::format::{self, MetricColumn, NONE};
use crate::goals::{self, GoalResult};
use crate::sqlite_bench::{EffectiveConfiguration, EffectivePragma};
use crate::suite::ResultTable;
use crate::summary;

pub(crate) use self::matrix::matrices;

/// The width that most terminals show without wrapping, and the width of our own lines.
const WIDTH_MAX: usize = 100;
/// This width leaves space for the rate, the ratio and one more column.
const NAME_WIDTH_MAX: usize = 36;
const GAP: &str = "  ";
/// The separator before a paragraph's further lines.
const INDENT: &str = "\n  ";

/// Formats the tables in order, with aligned columns.
pub(crate) fn text(tables: &[ResultTable]) -> String {
    let tables: Vec<String> = tables.iter().map(table).collect();
    tables.join("\n\n")
}

/// Formats the findings by name; empty if there are none.
pub(crate) fn summary(tables: &[ResultTable]) -> String {
    let findings = summary::findings(tables);
    if findings.is_empty() {
        return String::new();
    }
    let baseline = summary::baseline(tables).unwrap_or("the baseline of each table");
    let mut lines = vec![format!("\nSummary, compared with {baseline}:")];
    for finding in &findings {
        let differs = finding.differs.iter();
        let said = differs.map(|(table, text)| format!("{} {text}", table.name));
        let said: Vec<String> = said.chain(finding.same()).collect();
        let text = format!("{}: {}", finding.name, said.join("; "));
        lines.push(format::wrap(&text, WIDTH_MAX - INDENT.len()).join(INDENT));
    }
    lines.join("\n")
}

/// Formats the goals and whether each was met; empty if there are none.
pub(crate) fn goals(goals: &[GoalResult]) -> String {
    let mut lines = Vec::new();
    for summary in goals::summaries(goals) {
        let reached = summary.reached.iter().map(|(reached, goals)| {
            let told: Vec<String> = goals.iter().map(|goal| goals::describe(goal)).collect();
            format!("{}: {}", reached.as_str(), told.join(", "))
        });
        let reached: Vec<String> = reached.collect();
        let text = format!("Goal: {}; {}", summary.goal, reached.join("; "));
        lines.push(format::wrap(&text, WIDTH_MAX - INDENT.len()).join(INDENT) + "\n");
    }
    lines.concat()
}

/// Formats the configurations with their settings and descriptions: the first, which is the
/// baseline, with all settings, the others with those that differ.
pub(crate) fn configurations(all: &[EffectiveConfiguration]) -> String {
    let Some(baseline) = all.first() else { return String::new() };
    let names = all.iter().map(|one| one.name.chars().count());
    let width = names.max().unwrap_or(0);
    let mut lines = Vec::new();
    for one in all {
        let texts = if one.name == baseline.name {
            one.settings.iter().map(format::setting).collect()
        } else {
            changes(one, baseline)
        };
        let settings = if texts.is_empty() { None } else { Some(texts.join(", ")) };
        let parts: Vec<String> = settings.into_iter().chain([one.description.clone()]).collect();
        let space = WIDTH_MAX.saturating_sub(width + GAP.len());
        for (index, line) in format::wrap(&parts.join("; "), space).iter().enumerate() {
            let name = if index == 0 { one.name.as_str() } else { "" };
            lines.push(format!("{name:width$}{GAP}{line}"));
        }
    }
    lines.join("\n")
}

fn changes(one: &EffectiveConfiguration, baseline: &EffectiveConfiguration) -> Vec<String> {
    let is_same = |a: &EffectivePragma, b: &EffectivePragma| {
        (&a.name, &a.requested) == (&b.name, &b.requested)
    };
    let is_kept =
        |setting: &EffectivePragma| baseline.settings.iter().any(|of| is_same(of, setting));
    let changed = one.settings.iter().filter(|setting| !is_kept(setting));
    let has = |name: &str| one.settings.iter().any(|setting| setting.name == name);
    let lacking: Vec<&str> = baseline.settings.iter().map(|of| of.name.as_str()).collect();
    let lacking: Vec<&str> = lacking.into_iter().filter(|name| !has(name)).collect();
    let without = (!lacking.is_empty()).then(|| format!("without {}", lacking.join(", ")));
    changed.map(format::setting).chain(without).collect()
}

fn table(table: &ResultTable) -> String {
    let names: Vec<&str> = table.rows.iter().map(|row| row.name.as_str()).collect();
    let heading = format!("{}: {}", table.name, table.title);
    aligned(&heading, &names, &format::columns(table))
}

/// Formats a heading, and below it the names of the rows with their columns.
pub(crate) fn aligned(heading: &str, names: &[&str], columns: &[MetricColumn]) -> String {
    let names = names.iter().map(|name| format::wrap(name, NAME_WIDTH_MAX));
    let names = RowNames::of(names.collect());
    let mut lines = format::wrap(heading, WIDTH_MAX);
    for (index, block) in blocks(columns, names.width).iter().enumerate() {
        if index > 0 {
            lines.push(String::new());
        }
        lines.push(names.line("", block, |column| column.heading.clone()));
        lines.push(names.line("", block, |column| column.detail.to_owned()));
        lines.extend(names.rows(block));
    }
    lines.join("\n")
}

/// The first column, with each name split into lines.
struct RowNames {
    names: Vec<Vec<String>>,
    width: usize,
}

impl RowNames {
    fn of(names: Vec<Vec<String>>) -> Self {
        let width = names.iter().flatten().map(|line| line.chars().count()).max().unwrap_or(0);
        Self { names, width }
    }

    /// Returns the lines of all rows. The figures are next to the first line of the name.
    fn rows(&self, block: &[&MetricColumn]) -> Vec<String> {
        let mut lines = Vec::new();
        for (index, name) in self.names.iter().enumerate() {
            let mut name = name.iter().cloned();
            let first = name.next().unwrap_or_default();
            lines.push(self.line(&first, block, |column| cell(column, index)));
            lines.extend(name);
        }
        lines
    }

    fn line(
        &self,
        name: &str,
        block: &[&MetricColumn],
        cell: impl Fn(&MetricColumn) -> String,
    ) -> String {
        let mut line = format!("{name:width$}", width = self.width);
        for column in block {
            let width = width(column);
            write!(line, "{GAP}{:>width$}", cell(column)).expect("a string takes everything");
        }
        line
    }
}

/// Groups the columns into blocks that fit into a line; latencies stay together.
fn blocks(columns: &[MetricColumn], names_width: usize) -> Vec<Vec<&MetricColumn>> {
    let mut blocks: Vec<Vec<&MetricColumn>> = Vec::new();
    let mut block_width = usize::MAX;
    for group in columns.chunk_by(|a, b| a.is_latency() && b.is_latency()) {
        let group_width: usize = group.iter().map(|column| GAP.len() + width(column)).sum();
        match blocks.last_mut() {
            Some(block) if block_width + group_width <= WIDTH_MAX => {
                block.extend(group);
                block_width += group_width;
            }
            _ => {
                blocks.push(group.iter().collect());
                block_width = names_width + group_width;
            }
        }
    }
    blocks
}

fn cell(column: &MetricColumn, row: usize) -> String {
    column.cells[row].as_ref().map_or_else(|| NONE.to_owned(), ToString::to_string)
}

fn width(column: &MetricColumn) -> usize {
    let cells = (0..column.cells.len()).map(|row| cell(column, row).chars().count());
    let headings = [column.heading.as_str(), column.detail].map(|line| line.chars().count());
    cells.chain(headings).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::html_report::sample;

    #[test]
    fn columns_are_aligned() {
        let expected = "\
waiting: How many callers wait at the same time
               transactions/s       of baseline
              median, min–max   median, min–max
one caller  1,000 (900–1,100)  1.00 (0.90–1.10)";
        assert_eq!(text(&sample::tables()[3..]), expected);
    }

    #[test]
    fn a_goal_says_where_it_was_met() {
        let expected = "\
Goal: transactions a second, at least 2 times the baseline; met: transfers 3.00 (2.90–3.10)
Goal: memory, MB, at most 0.5 times the baseline; missed: transfers 3.00 (2.90–3.10)
";
        assert_eq!(goals(&sample::goals()), expected);
    }

    #[test]
    fn a_configuration_tells_how_it_differs_from_the_baseline() {
        let configured = |name: &str, settings: &[(&str, &str, bool)]| EffectiveConfiguration {
            name: name.to_owned(),
            description: "some".to_owned(),
            settings: settings
                .iter()
                .map(|(name, value, is_default)| EffectivePragma {
                    name: (*name).to_owned(),
                    requested: (*value).to_owned(),
                    actual: (*value).to_owned(),
                    default: *is_default,
                    fault: None,
                })
                .collect(),
        };
        let wal = ("journal_mode", "WAL", false);
        let all = [
            configured("a", &[wal, ("synchronous", "NORMAL", false)]),
            configured("full", &[wal, ("synchronous", "FULL", true)]),
            configured("wal", &[wal]),
            configured("again", &[wal, ("synchronous", "NORMAL", false)]),
        ];
        let expected = "\
a      journal_mode WAL, synchronous NORMAL; some
full   synchronous FULL (the default); some
wal    without synchronous; some
again  some";
        assert_eq!(configurations(&all), expected);
    }

    #[test]
    fn wide_tables_go_on_below() {
        let text = text(&sample::tables()[..1]);
        assert!(text.lines().all(|line| line.chars().count() <= WIDTH_MAX), "{text}");
        let again = text.lines().filter(|line| line.starts_with("bare SQLite, one thread"));
        assert_eq!(again.count(), 3, "{text}");
        let latencies = ["81.4 µs", "342 µs", "2.52 ms"];
        let is_together = |line: &str| latencies.iter().all(|latency| line.contains(latency));
        assert!(text.lines().any(is_together), "{text}");
        assert!(text.lines().any(|line| line == "the operating system"), "{text}");
    }
}
