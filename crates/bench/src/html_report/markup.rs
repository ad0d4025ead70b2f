//! Contains parts of the page that its tables and charts share.

use crate::suite::ResultTable;
/// Returns the table's `--only` name as words.
pub(crate) fn heading(table: &ResultTable) -> String {
    let mut name = table.name.chars();
    let first = name.next().map(char::to_uppercase).into_iter().flatten();
    first.chain(name).map(|c| if c == '-' || c == '_' { ' ' } else { c }).collect()
}

/// Returns the number of rounds as text.
pub(crate) fn rounds(table: &ResultTable) -> String {
    let rounds = table.rows.first().map_or(0, |row| row.rate.samples.len());
    if rounds == 1 { "one round".to_owned() } else { format!("{rounds} rounds") }
}

/// Formats a vertical position.
pub(crate) fn em(value: f64) -> String {
    format!("{value:.2}em")
}

/// Formats a horizontal position.
pub(crate) fn percent(value: f64) -> String {
    format!("{value:.2}%")
}
