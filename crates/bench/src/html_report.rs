//! Renders measured tables as one HTML page with charts, for screens of any width and for paper.
//!
//! The charts are SVG of our own: the SVG of `plotters` has its colors as attributes and scales
//! its text with the picture, so it neither follows a dark page nor is legible on a phone. Here
//! every horizontal position is a percentage, every vertical position an `em`, and the colors come
//! from `page.css`.
//!
//! # Invariants
//! - The page is self-contained: it needs no script, font, picture or address.
//! - The same input gives the same bytes.
//! - Everything that a chart shows is in the table below it.
//! - `maud` escapes every text and closes every element. In SVG write `line {}`, never `line;`: an
//!   HTML parser nests everything that follows an SVG element that is not closed.
//!
//! # Not here
//! - Digits and columns → `format`.

mod axis;
mod bars;
mod lines;
mod markup;
mod matrix;
#[cfg(test)]
pub(crate) mod sample;
mod series;
#[cfg(test)]
mod tests;

use maud::{DOCTYPE, Markup, PreEscaped, html};

use self::markup::heading;
use crate::format::{self, MetricColumn, NONE};
use crate::goals::{self, GoalResult};
use crate::machine::MachineInfo;
use crate::matrix::ReportMatrix;
use crate::report_setting::ReportSetting;
use crate::sqlite_bench::EffectiveConfiguration;
use crate::suite::ResultTable;
use crate::summary;

const STYLE: &str = include_str!("html_report/page.css");
/// This policy forbids what the page does not do anyway, so that a hole in the page stays
/// harmless.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'";
/// This many tables fit on a screen or two; a page with more gets a list of links.
const TABLES_WITHOUT_CONTENTS_MAX: usize = 2;

/// The content of a page.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HtmlPage<'a> {
    pub(crate) title: &'a str,
    /// One introductory paragraph.
    pub(crate) lead: &'a str,
    pub(crate) machine: &'a MachineInfo,
    /// The command line that created the report.
    pub(crate) command: &'a str,
    /// The settings of the benchmark.
    pub(crate) settings: &'a [ReportSetting],
    pub(crate) configurations: &'a [EffectiveConfiguration],
    /// The matrices, which come before all other charts.
    pub(crate) matrices: &'a [ReportMatrix],
    pub(crate) tables: &'a [ResultTable],
    pub(crate) goals: &'a [GoalResult],
    pub(crate) notes: &'a [String],
}

/// Renders the whole file.
pub(crate) fn render(page: &HtmlPage<'_>) -> String {
    let head = html! {
        meta charset="utf-8";
        meta name="viewport" content="width=device-width, initial-scale=1";
        meta name="color-scheme" content="light dark";
        meta http-equiv="Content-Security-Policy" content=(POLICY);
        title { (page.title) }
        style { (PreEscaped(STYLE)) }
    };
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head { (head) }
            body {
                (lines::markers())
                (bars::hatch())
                header {
                    h1 { (page.title) }
                    p.lead { (page.lead) }
                    (setup(page))
                    @if page.tables.len() > TABLES_WITHOUT_CONTENTS_MAX { (contents(page)) }
                }
                @for matrix in page.matrices { "\n" (matrix::section(matrix, page.tables)) }
                (goals_section(page.goals))
                (in_short(page.tables))
                (configurations(page.configurations))
                main { @for table in page.tables { "\n" (section(table)) } }
                @if !page.notes.is_empty() {
                    footer {
                        h2 { "Notes" }
                        ul { @for note in page.notes { li { (note) } } }
                    }
                }
            }
        }
        "\n"
    };
    page.into_string()
}

fn setup(page: &HtmlPage<'_>) -> Markup {
    let machine = page.machine.to_string();
    html! {
        dl.setup {
            div { dt { "Machine" } dd { @for line in machine.lines() { div { (line) } } } }
            div { dt { "Command" } dd { (command(page.command)) } }
            @for one in page.settings { div { dt { (one.name) } dd { (one.value) } } }
        }
    }
}

/// Renders a command that breaks between words, never after the hyphens of a flag.
fn command(command: &str) -> Markup {
    html! { code { @for word in command.split(' ') { span { (word) } " " } } }
}

/// Renders the goals and whether each was met.
fn goals_section(goals: &[GoalResult]) -> Markup {
    html! {
        @if !goals.is_empty() {
            section.summary aria-labelledby="goals" {
                h2 id="goals" { "Goals" }
                dl { @for summary in goals::summaries(goals) { div {
                    dt { (summary.goal) }
                    dd { @for (reached, goals) in summary.reached { @for goal in goals { div {
                        a href={ "#" (goal.table) } { (goals::describe(goal)) } " " b { (reached.as_str()) }
                    } } } }
                } } }
            }
        }
    }
}

/// Renders a summary of the differences, one entry per name of a row.
fn in_short(tables: &[ResultTable]) -> Markup {
    let findings = summary::findings(tables);
    let baseline = summary::baseline(tables).unwrap_or("the baseline of each table");
    html! {
        @if !findings.is_empty() {
            section.summary aria-labelledby="in-short" {
                h2 id="in-short" { "Summary" }
                p { "Compared with " b { (baseline) } "." }
                dl { @for finding in &findings { div {
                    dt { (finding.name) }
                    dd {
                        @for (table, text) in &finding.differs {
                            div { a href={ "#" (table.name) } { (heading(table)) } " " (text) }
                        }
                        @if let Some(same) = finding.same() { div { small { (same) } } }
                    }
                } } }
            }
        }
    }
}

/// Renders the settings behind the rows' names, in an element that opens on click.
fn configurations(all: &[EffectiveConfiguration]) -> Markup {
    html! {
        @if !all.is_empty() {
            details.configurations {
                summary { "Settings of each configuration" }
                dl { @for one in all {
                    dt { (one.name) }
                    dd {
                        (one.description)
                        ul { @for setting in &one.settings { li { (format::setting(setting)) } } }
                    }
                } }
            }
        }
    }
}

fn contents(page: &HtmlPage<'_>) -> Markup {
    html! {
        nav aria-label="Contents" {
            ul {
                @for matrix in page.matrices {
                    li { a href={ "#" (matrix::id(matrix)) } { b { (matrix.title) } } }
                }
                @for table in page.tables {
                    li { a href={ "#" (table.name) } { (heading(table)) } }
                }
            }
        }
    }
}

fn section(table: &ResultTable) -> Markup {
    let chart = match series::from_table(table) {
        Some(series) => lines::chart(table, &series),
        None => bars::chart(table),
    };
    html! {
        section id=(table.name) aria-labelledby={ (table.name) "-heading" } {
            h2 id={ (table.name) "-heading" } { (heading(table)) }
            p { (table.title) }
            (chart)
            (figures_of(table))
        }
    }
}

/// Renders a table's figures. Wide tables scroll within the page, also by keyboard, while the
/// names stay in view.
fn figures_of(table: &ResultTable) -> Markup {
    let columns = format::columns(table);
    html! {
        div.scroll tabindex="0" role="region" aria-label={ "Figures: " (heading(table)) } {
            table {
                thead { tr {
                    th scope="col" { "Measured" }
                    @for column in &columns {
                        th scope="col" { (column.heading) " " small { (column.detail) } }
                    }
                } }
                tbody {
                    @for (index, row) in table.rows.iter().enumerate() {
                        "\n"
                        tr {
                            th scope="row" {
                                (row.name)
                                @if index == 0 { " " small { "baseline" } }
                            }
                            @for column in &columns { td { (cell(column, index)) } }
                        }
                    }
                }
            }
        }
    }
}

fn cell(column: &MetricColumn, row: usize) -> Markup {
    let Some(figure) = &column.cells[row] else { return html! { (NONE) } };
    html! {
        (figure.value)
        @if let Some(range) = &figure.range { " " small { (range) } }
    }
}
