//! Draws lines: the rate of each series at its numbers, which grow by factors.

use maud::{Markup, html};

use super::axis::ChartAxis;
use super::markup::{em, heading, percent, rounds};
use super::series::{ChartCurve, ChartSeries};
use crate::format;
use crate::measure::Distribution;
use crate::suite::{ResultRow, ResultTable};

/// Shapes around 0, one for each series, so that no series is recognizable by its color alone.
const MARKERS: [&str; 6] = [
    "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0 -8 0",
    "M-3.5 -3.5h7v7h-7z",
    "M0 -5L4.6 3.5H-4.6z",
    "M0 -5L5 0L0 5L-5 0z",
    "M0 5L4.6 -3.5H-4.6z",
    "M-1.6 -4.5h3.2v2.9h2.9v3.2h-2.9v2.9h-3.2v-2.9h-2.9v-3.2h2.9z",
];
const MARKS_MAX: usize = 6;
/// Beyond this factor the vertical axis is logarithmic too, so that no series lies flat at the
/// bottom.
const LINEAR_FACTOR_MAX: f64 = 100.0;
/// Vertical sizes, which are in `em` like all vertical positions.
const TOP: f64 = 1.8;
const HEIGHT: f64 = 16.0;
/// The space for the outermost markers, in percent.
const INSET: f64 = 2.5;
/// The width of a digit on a phone, in percent of the chart.
const DIGIT: f64 = 2.4;

/// The axes of a chart, which map values to positions.
struct ChartPlot {
    across: ChartAxis,
    up: ChartAxis,
    is_log: bool,
}

impl ChartPlot {
    fn for_series(series: &ChartSeries<'_>) -> Self {
        let numbers = || series.curves.iter().flat_map(|curve| &curve.points).map(|point| point.0);
        let lowest = numbers().fold(f64::INFINITY, f64::min);
        let across = ChartAxis::log(lowest, numbers().fold(lowest, f64::max));
        let extremes = rates(series).flat_map(|rate| [rate.interval.low, rate.interval.high]);
        let rates: Vec<f64> = extremes.filter(|rate| rate.is_finite()).collect();
        let low = rates.iter().copied().fold(f64::INFINITY, f64::min);
        let high = rates.iter().copied().fold(0.0, f64::max);
        let is_log = low > 0.0 && high > low * LINEAR_FACTOR_MAX;
        let up = if is_log { ChartAxis::log(low, high) } else { ChartAxis::linear(high) };
        Self { across, up: up.widened(MARKS_MAX), is_log }
    }

    fn x(&self, number: f64) -> f64 {
        INSET + self.across.at(number) * (1.0 - 2.0 * INSET / 100.0)
    }

    fn y(&self, rate: f64) -> f64 {
        TOP + HEIGHT * (1.0 - self.up.at(rate) / 100.0)
    }
}

fn is_drawn(rate: &Distribution) -> bool {
    [rate.interval.low, rate.median, rate.interval.high].into_iter().all(f64::is_finite)
}

fn rates<'a>(series: &'a ChartSeries<'_>) -> impl Iterator<Item = &'a Distribution> {
    let points = series.curves.iter().flat_map(|curve| &curve.points).map(|(_, row)| &row.rate);
    points.chain(series.levels.iter().map(|row| &row.rate))
}

/// Renders the markers, once for all charts of the page.
pub(super) fn markers() -> Markup {
    html! {
        svg.markers width="0" height="0" aria-hidden="true" {
            defs {
                @for (index, shape) in MARKERS.iter().enumerate() {
                    path id={ "marker-" (index) } d=(shape) {}
                }
            }
        }
    }
}

pub(super) fn chart(table: &ResultTable, series: &ChartSeries<'_>) -> Markup {
    let plot = ChartPlot::for_series(series);
    let id = table.name.as_str();
    let bottom = TOP + HEIGHT;
    html! {
        figure.lines {
            (legend(series))
            svg role="img" aria-labelledby={ (id) "-chart " (id) "-below" }
                height=(em(bottom + 3.0))
            {
                title id={ (id) "-chart" } { (heading(table)) ": " (table.unit) "/s by " (series.unit) }
                desc id={ (id) "-below" } { "The table below has the same figures." }
                text.unit x="0" y="0.8em" { (table.unit) "/s" }
                text.unit.end x="100%" y=(em(bottom + 2.6)) { (series.unit) }
                (scales(&plot, series))
                @for (index, level) in series.levels.iter().enumerate() {
                    @if is_drawn(&level.rate) {
                        @let y = plot.y(level.rate.median);
                        line class={ "level-" (index) } x1="0" x2="100%" y1=(em(y)) y2=(em(y)) {}
                    }
                }
                @for (index, curve) in series.curves.iter().enumerate() {
                    "\n"
                    g class=(class(index)) { (self::curve(curve, index, &plot)) }
                }
            }
            figcaption {
                "Median of " (rounds(table)) "; whiskers: " (format::whisker(table))
                ". "
                @if plot.is_log { "Both axes are logarithmic." }
                @else { "The horizontal axis is logarithmic." }
            }
        }
    }
}

fn legend(series: &ChartSeries<'_>) -> Markup {
    html! {
        ul.legend {
            @for (index, curve) in series.curves.iter().enumerate() {
                li class=(class(index)) {
                    svg aria-hidden="true" {
                        line x1="0" x2="100%" y1="50%" y2="50%" {}
                        use href=(marker(index)) x="50%" y="50%" {}
                    }
                    (curve.name)
                }
            }
            @for (index, level) in series.levels.iter().enumerate() {
                li {
                    svg aria-hidden="true" {
                        line class={ "level-" (index) } x1="0" x2="100%" y1="50%" y2="50%" {}
                    }
                    (level.name)
                }
            }
        }
    }
}

fn scales(plot: &ChartPlot, series: &ChartSeries<'_>) -> Markup {
    let bottom = TOP + HEIGHT;
    let numbers = series.curves.iter().flat_map(|curve| &curve.points).map(|point| point.0);
    html! {
        @for mark in plot.up.marks(MARKS_MAX) {
            @let y = plot.y(mark);
            line.grid x1="0" x2="100%" y1=(em(y)) y2=(em(y)) {}
            text.height x="0" dx="-0.6em" y=(em(y + 0.35)) { (format::tick(mark)) }
        }
        line.floor x1="0" x2="100%" y1=(em(bottom)) y2=(em(bottom)) {}
        @for (x, label) in labels(numbers.map(|number| (plot.x(number), format::tick(number)))) {
            line.notch x1=(percent(x)) x2=(percent(x)) y1=(em(bottom)) y2=(em(bottom + 0.35)) {}
            text.tick x=(percent(x)) y=(em(bottom + 1.35)) { (label) }
        }
    }
}

/// Returns the labels that fit next to each other, always with the first and the last.
fn labels(all: impl Iterator<Item = (f64, String)>) -> Vec<(f64, String)> {
    let mut all: Vec<(f64, String)> = all.collect();
    all.sort_by(|a, b| a.0.total_cmp(&b.0));
    all.dedup_by(|a, b| a.1 == b.1);
    let Some(last) = all.pop() else { return all };
    let mut kept: Vec<(f64, String)> = Vec::new();
    for label in all {
        let is_free = kept.last().is_none_or(|before| has_room(before, &label));
        if is_free && (kept.is_empty() || has_room(&label, &last)) {
            kept.push(label);
        }
    }
    kept.push(last);
    kept
}

fn has_room(left: &(f64, String), right: &(f64, String)) -> bool {
    #[expect(clippy::cast_precision_loss, reason = "a handful of digits")]
    let digits = (left.1.chars().count() + right.1.chars().count()) as f64;
    right.0 - left.0 >= digits / 2.0 * DIGIT + DIGIT
}

fn curve(curve: &ChartCurve<'_>, index: usize, plot: &ChartPlot) -> Markup {
    let points: Vec<_> = curve.points.iter().filter(|(_, row)| is_drawn(&row.rate)).collect();
    let place = |point: &(f64, &ResultRow)| (plot.x(point.0), plot.y(point.1.rate.median));
    html! {
        @for pair in points.windows(2) {
            @let ((x1, y1), (x2, y2)) = (place(pair[0]), place(pair[1]));
            line x1=(percent(x1)) y1=(em(y1)) x2=(percent(x2)) y2=(em(y2)) {}
        }
        @for point in &points {
            @let (x, y) = place(point);
            @let rate = &point.1.rate;
            g {
                title { (point.1.name) ": " (format::spread(rate)) }
                line.reach x1=(percent(x)) x2=(percent(x))
                    y1=(em(plot.y(rate.interval.low)))
                        y2=(em(plot.y(rate.interval.high))) {}
                use href=(marker(index)) x=(percent(x)) y=(em(y)) {}
            }
        }
    }
}

fn class(index: usize) -> String {
    format!("series-{}", index % MARKERS.len())
}

fn marker(index: usize) -> String {
    format!("#marker-{}", index % MARKERS.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_that_have_no_room_are_left_out() {
        let all = [(97.0, "4k"), (2.0, "1"), (90.0, "2k"), (4.0, "2"), (30.0, "16"), (2.0, "1")];
        let kept = labels(all.into_iter().map(|(x, label)| (x, label.to_owned())));
        let kept: Vec<&str> = kept.iter().map(|(_, label)| label.as_str()).collect();
        assert_eq!(kept, ["1", "16", "4k"]);
    }
}
