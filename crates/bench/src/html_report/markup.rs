//! Parts of the page that its tables and charts share.

use crate::suite::ResultTable;
/// What `--only` calls the table, as words.
pub(crate) fn heading(table: &ResultTable) -> String {
    let mut name = table.name.chars();
    let first = name.next().map(char::to_uppercase).into_iter().flatten();
    first.chain(name).map(|c| if c == '-' || c == '_' { ' ' } else { c }).collect()
}

/// How often each row was measured.
pub(crate) fn rounds(table: &ResultTable) -> String {
    let rounds = table.rows.first().map_or(0, |row| row.rate.samples.len());
    if rounds == 1 { "one round".to_owned() } else { format!("{rounds} rounds") }
}

/// A place down a chart.
pub(crate) fn em(value: f64) -> String {
    format!("{value:.2}em")
}

/// A place across a chart.
pub(crate) fn percent(value: f64) -> String {
    format!("{value:.2}%")
}
