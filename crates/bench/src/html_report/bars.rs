//! Draws bars: every row's multiple of the baseline.

use maud::{Markup, html};

use super::axis::ChartAxis;
use super::markup::{em, heading, percent, rounds};
use crate::confidence_interval::{ConfidenceInterval, DifferenceVerdict};
use crate::format;
use crate::suite::{ResultRow, ResultTable};

/// Characters of a name next to its figure on a narrow phone; SVG does not wrap lines
/// automatically.
const NAME_CHARACTERS_MAX: usize = 28;
/// Characters of a name next to the text that it has too few rounds.
const NAME_CHARACTERS_WITHOUT_VERDICT_MAX: usize = 20;
const MARKS_MAX: usize = 6;
/// The pattern that fills bars with too few rounds.
const HATCH: &str = "hatch";
/// Vertical sizes, which are in `em` like all vertical positions.
const LINE: f64 = 1.35;
const BAR: f64 = 0.85;
const GAP: f64 = 0.9;

struct ChartBar<'a> {
    row: &'a ResultRow,
    name: Vec<String>,
    top: f64,
}

impl ChartBar<'_> {
    /// Returns the position where the bar itself starts, below its name.
    fn bar_top(&self) -> f64 {
        self.name.iter().fold(self.top, |top, _| top + LINE)
    }

    fn bottom(&self) -> f64 {
        self.bar_top() + BAR + GAP
    }
}

/// Renders the hatch pattern, once for all charts of the page.
pub(super) fn hatch() -> Markup {
    html! {
        svg.markers width="0" height="0" aria-hidden="true" {
            defs {
                pattern id=(HATCH) width="7" height="7" patternUnits="userSpaceOnUse"
                    patternTransform="rotate(45)"
                {
                    line.hatch x1="0" x2="0" y1="0" y2="7" {}
                }
            }
        }
    }
}

/// Renders the chart of a table, or no element if the table has no rows.
pub(super) fn chart(table: &ResultTable) -> Markup {
    let Some(baseline) = table.rows.first() else { return html! {} };
    let mut bars: Vec<ChartBar<'_>> = Vec::new();
    for row in &table.rows {
        let top = bars.last().map_or(0.0, ChartBar::bottom);
        let width = match verdict(row) {
            Some(DifferenceVerdict::TooFewRounds) => NAME_CHARACTERS_WITHOUT_VERDICT_MAX,
            _ => NAME_CHARACTERS_MAX,
        };
        bars.push(ChartBar { row, name: format::wrap(&row.name, width), top });
    }
    let bottom = bars.last().map_or(0.0, ChartBar::bottom);
    let highest = table.rows.iter().map(|row| row.relative.interval.high);
    let highest = highest.filter(|max| max.is_finite()).fold(1.0, f64::max);
    let axis = ChartAxis::linear(highest);
    let id = table.name.as_str();
    let has = |verdict| table.rows.iter().any(|row| self::verdict(row) == Some(verdict));
    html! {
        figure.bars {
            svg role="img" aria-labelledby={ (id) "-chart " (id) "-below" }
                height=(em(bottom + LINE))
            {
                title id={ (id) "-chart" } { (heading(table)) ": multiples of the baseline" }
                desc id={ (id) "-below" } { "The table below has the same figures." }
                (scale(&axis, bottom))
                @for bar in &bars { (self::bar(bar, &axis)) }
            }
            figcaption {
                "Multiples of the baseline, " b { (baseline.name) }
                ". Bars: median of " (rounds(table)) "; whiskers: " (format::whisker(table)) "."
                @if has(DifferenceVerdict::NoDifference) { " Pale: no difference found." }
                @if has(DifferenceVerdict::TooFewRounds) {
                    " Hatched: too few rounds for a verdict."
                }
            }
        }
    }
}

fn verdict(row: &ResultRow) -> Option<DifferenceVerdict> {
    row.difference.as_ref().map(|difference| difference.verdict)
}

fn scale(axis: &ChartAxis, bottom: f64) -> Markup {
    html! {
        @for mark in axis.marks(MARKS_MAX) {
            line.grid x1=(percent(axis.at(mark))) x2=(percent(axis.at(mark)))
                y1="0" y2=(em(bottom)) {}
            text.tick x=(percent(axis.at(mark))) y=(em(bottom + 1.0)) { (format::tick(mark)) "×" }
        }
        line.baseline x1=(percent(axis.at(1.0))) x2=(percent(axis.at(1.0)))
            y1="0" y2=(em(bottom)) {}
    }
}

fn bar(bar: &ChartBar<'_>, axis: &ChartAxis) -> Markup {
    let relative = &bar.row.relative;
    let figure = format::ratio(relative);
    let lines = bar.name.iter().scan(bar.top, |top, line| {
        let y = *top + 1.0;
        *top += LINE;
        Some((y, line))
    });
    let verdict = verdict(bar.row);
    let (class, fill) = match verdict {
        Some(DifferenceVerdict::NoDifference) => (Some("same"), None),
        Some(DifferenceVerdict::TooFewRounds) => (Some("few"), Some(format!("url(#{HATCH})"))),
        _ => (None, None),
    };
    let too_few = class.filter(|class| *class == "few").map(|_| "too few rounds");
    let (top, middle) = (bar.bar_top(), bar.bar_top() + BAR / 2.0);
    html! {
        "\n"
        g class=[class] {
            title {
                (bar.row.name) ": " (figure)
                @if let Some(text) = too_few { ", " (text) " for a verdict" }
            }
            @for (y, line) in lines { text.name x="0" y=(em(y)) { (line) } }
            text.value x="100%" dx="-0.6em" y=(em(bar.top + 1.0)) {
                @if let Some(text) = too_few { tspan.said-of { (text) ": " } }
                (figure.value) "×"
            }
            @if relative.median.is_finite() {
                rect.bar x="0" y=(em(top)) width=(percent(axis.at(relative.median)))
                    height=(em(BAR)) fill=[fill] {}
            }
            @if relative.interval.low < relative.interval.high {
                @let ConfidenceInterval { low, high } = relative.interval;
                @let (low, high) = (axis.at(low), axis.at(high));
                line.whisker x1=(percent(low)) x2=(percent(high)) y1=(em(middle)) y2=(em(middle)) {}
                @for end in [low, high] {
                    line.whisker x1=(percent(end)) x2=(percent(end))
                        y1=(em(middle - 0.25)) y2=(em(middle + 0.25)) {}
                }
            }
        }
    }
}
