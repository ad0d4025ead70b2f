//! Measured tables for the terminal.
//!
//! A table that is too wide for a line goes on below, under its row names again.

use std::fmt::Write;

use crate::figures::{self, Column, NONE};
use crate::lab::Configured;
use crate::suite::Table;
use crate::summary;

/// What most terminals show without folding, and the width of our own lines.
const WIDTH_MAX: usize = 100;
/// Leaves room for the rate, the ratio and one more.
const NAME_WIDTH_MAX: usize = 36;
const GAP: &str = "  ";
/// Of a paragraph's further lines.
const INDENT: &str = "\n  ";

/// Aligned columns, the tables in order.
pub(crate) fn text(tables: &[Table]) -> String {
    let tables: Vec<String> = tables.iter().map(table).collect();
    tables.join("\n\n")
}

/// What was found, name by name; empty if nothing may be said.
pub(crate) fn summary(tables: &[Table]) -> String {
    let findings = summary::findings(tables);
    if findings.is_empty() {
        return String::new();
    }
    let baseline = summary::baseline(tables).unwrap_or("the baseline of each table");
    let mut lines = vec![format!("\nIn short, against {baseline}:")];
    for finding in &findings {
        let differs = finding.differs.iter();
        let said = differs.map(|(table, difference)| format!("{} {}", table.name, difference.text));
        let said: Vec<String> = said.chain(finding.same()).collect();
        let text = format!("{}: {}", finding.name, said.join("; "));
        lines.push(figures::wrap(&text, WIDTH_MAX - INDENT.len()).join(INDENT));
    }
    lines.join("\n")
}

/// A configuration in a paragraph: what was set, what SQLite made of it, what it would be anyway.
pub(crate) fn configured(one: &Configured) -> String {
    let settings: Vec<String> = one.settings.iter().map(figures::setting).collect();
    let text = format!("{}: {}. {}", one.name, one.about, settings.join(", "));
    figures::wrap(&text, WIDTH_MAX).join(INDENT)
}

fn table(table: &Table) -> String {
    let names: Vec<&str> = table.rows.iter().map(|row| row.name.as_str()).collect();
    let heading = format!("{}: {}", table.name, table.title);
    aligned(&heading, &names, &figures::columns(table))
}

/// Columns beside the names of their rows, under a heading.
pub(crate) fn aligned(heading: &str, names: &[&str], columns: &[Column]) -> String {
    let names = names.iter().map(|name| figures::wrap(name, NAME_WIDTH_MAX));
    let names = Names::of(names.collect());
    let mut lines = figures::wrap(heading, WIDTH_MAX);
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

/// The first column, each name in lines.
struct Names {
    names: Vec<Vec<String>>,
    width: usize,
}

impl Names {
    fn of(names: Vec<Vec<String>>) -> Self {
        let width = names.iter().flatten().map(|line| line.chars().count()).max().unwrap_or(0);
        Self { names, width }
    }

    /// The figures stand beside the first line of the name.
    fn rows(&self, block: &[&Column]) -> Vec<String> {
        let mut lines = Vec::new();
        for (index, name) in self.names.iter().enumerate() {
            let mut name = name.iter().cloned();
            let first = name.next().unwrap_or_default();
            lines.push(self.line(&first, block, |column| cell(column, index)));
            lines.extend(name);
        }
        lines
    }

    fn line(&self, name: &str, block: &[&Column], cell: impl Fn(&Column) -> String) -> String {
        let mut line = format!("{name:width$}", width = self.width);
        for column in block {
            let width = width(column);
            write!(line, "{GAP}{:>width$}", cell(column)).expect("a string takes everything");
        }
        line
    }
}

/// As many columns beside each other as the line holds; latencies stay together.
fn blocks(columns: &[Column], names_width: usize) -> Vec<Vec<&Column>> {
    let mut blocks: Vec<Vec<&Column>> = Vec::new();
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

fn cell(column: &Column, row: usize) -> String {
    column.cells[row].as_ref().map_or_else(|| NONE.to_owned(), ToString::to_string)
}

fn width(column: &Column) -> usize {
    let cells = (0..column.cells.len()).map(|row| cell(column, row).chars().count());
    let headings = [column.heading.as_str(), column.detail].map(|line| line.chars().count());
    cells.chain(headings).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::html::sample;

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
    fn wide_tables_go_on_below() {
        let text = text(&sample::tables()[..1]);
        assert!(text.lines().all(|line| line.chars().count() <= WIDTH_MAX), "{text}");
        let of_baseline = text.lines().filter(|line| line.starts_with("bare SQLite, one thread"));
        assert_eq!(of_baseline.count(), 3, "{text}");
        let latencies = ["81.4 µs", "342 µs", "2.52 ms"];
        let is_together = |line: &str| latencies.iter().all(|latency| line.contains(latency));
        assert!(text.lines().any(is_together), "{text}");
        assert!(text.lines().any(|line| line == "the operating system"), "{text}");
    }
}
