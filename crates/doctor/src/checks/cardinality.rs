//! Estimates from sampled rows how many rows share a value, as `ANALYZE` would for an index that
//! does not exist.
//!
//! The number of distinct values is estimated by GEE (Charikar and others, "Towards estimation
//! error guarantees for distinct values", PODS 2000): values seen once in a sample of n of N rows
//! count sqrt(N/n) times, the others once.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use sqlite_schema::TableSchema;

use crate::file::check_error::CheckError;
use crate::file::opened_file::OpenedFile;
use crate::file::schema::quote_if_needed;
use crate::format::{round_to_u64, to_f64};

/// The maximum number of sampled rows per table.
const ROWS_MAX: usize = 1_000;
/// The number of characters of each value that are compared.
const VALUE_CHARACTERS_MAX: usize = 100;

/// The sampled rows of some tables.
#[derive(Default)]
pub(crate) struct TableCardinality(BTreeMap<String, TableSample>);

struct TableSample {
    /// The number of rows in the whole table.
    total: f64,
    columns: Vec<String>,
    values: Vec<Vec<Vec<u8>>>,
}

impl TableCardinality {
    pub(crate) fn from_samples<'a>(
        subject: &OpenedFile,
        tables: impl Iterator<Item = &'a str>,
    ) -> Result<Self, CheckError> {
        let mut known = Self::default();
        for name in tables {
            let table = subject.user_tables().find(|table| table.name == name);
            if let Some(table) =
                table.filter(|table| table.has_rowid && !known.0.contains_key(name))
            {
                let rows = sample_table(subject, table)?;
                known.0.extend(rows.map(|rows| (name.to_owned(), rows)));
            }
        }
        Ok(known)
    }

    /// Returns the row that `sqlite_stat1` would have for an index on these columns.
    pub(crate) fn stat(&self, table: &str, columns: &[String]) -> Option<String> {
        let mut stat = round_to_u64(self.0.get(table)?.total).to_string();
        for length in 1..=columns.len() {
            let per_value = self.rows_per_value(table, &columns[..length])?;
            stat = format!("{stat} {}", round_to_u64(per_value.ceil()).max(1));
        }
        Some(stat)
    }

    /// Returns the names of the sampled tables.
    pub(crate) fn tables(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// Estimates how many distinct values this column has.
    pub(crate) fn distinct(&self, table: &str, column: &str) -> Option<f64> {
        let rows = self.0.get(table)?;
        Some(rows.distinct(&[rows.columns.iter().position(|name| name == column)?]))
    }

    /// Estimates how many rows have the same values in these columns, on average.
    pub(crate) fn rows_per_value(&self, table: &str, columns: &[String]) -> Option<f64> {
        let rows = self.0.get(table)?;
        let place = |column| rows.columns.iter().position(|name| name == column);
        let places: Option<Vec<usize>> = columns.iter().map(place).collect();
        Some(rows.total / rows.distinct(&places?).max(1.0))
    }
}

impl TableSample {
    fn distinct(&self, places: &[usize]) -> f64 {
        let mut seen = HashMap::<Vec<&[u8]>, u64>::new();
        for row in &self.values {
            *seen
                .entry(places.iter().map(|place| row[*place].as_slice()).collect())
                .or_default() += 1;
        }
        let once = seen.values().filter(|count| **count == 1).count();
        let (once, all) = (as_float(once), as_float(seen.len()));
        (once * (self.total / as_float(self.values.len())).max(1.0).sqrt() + all - once)
            .min(self.total)
    }
}

fn as_float(count: usize) -> f64 {
    to_f64(count.try_into().unwrap_or(u64::MAX))
}

/// Samples the rows of a table. Returns `None` for a table without rows.
fn sample_table(
    subject: &OpenedFile,
    table: &TableSchema,
) -> Result<Option<TableSample>, CheckError> {
    let Some(sample) = subject.sample_of(&table.name) else { return Ok(None) };
    let columns: Vec<String> = table.columns.iter().map(|column| column.name.clone()).collect();
    let shortened = columns.iter().map(|column| {
        let column = quote_if_needed(column);
        format!("quote(substr({column}, 1, {VALUE_CHARACTERS_MAX}))")
    });
    let list = shortened.collect::<Vec<_>>().join(", ");
    let sql = format!("SELECT {list} FROM {} WHERE rowid = ?1", quote_if_needed(&table.name));
    let mut select = subject.db.prepare(&sql)?;
    let mut values = Vec::new();
    let stride = (sample.rows().count() / ROWS_MAX).max(1);
    for row in sample.rows().step_by(stride) {
        subject.grant_time(Duration::MAX);
        let mut found = select.query([row.rowid])?;
        if let Some(row) = found.next()? {
            // Text values need not be UTF-8.
            let bytes = |index| {
                let bytes = row.get_ref(index)?.as_bytes();
                Ok(bytes.map_err(rusqlite::Error::from)?.to_vec())
            };
            values.push((0..columns.len()).map(bytes).collect::<Result<Vec<_>, CheckError>>()?);
        }
    }
    let total = sample.entries();
    Ok((!values.is_empty()).then_some(TableSample { total, columns, values }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_seen_once_stands_for_others() {
        let value = |index: usize| index.max(50).to_string().into_bytes();
        let values = (0..100).map(|index| vec![value(index), b"same".to_vec()]).collect();
        let columns = vec!["a".to_owned(), "b".to_owned()];
        let rows = TableSample { total: 10_000.0, columns: columns.clone(), values };
        // 49 values occur once, times sqrt(10000 / 100), and one value occurs 51 times.
        assert!((rows.distinct(&[0]) - 491.0).abs() < 1e-9, "{}", rows.distinct(&[0]));
        assert!((rows.distinct(&[1]) - 1.0).abs() < 1e-9);
        let known = TableCardinality(BTreeMap::from([("t".to_owned(), rows)]));
        assert_eq!(known.stat("t", &columns).as_deref(), Some("10000 21 21"));
        assert_eq!(known.stat("t", &["c".to_owned()]), None);
    }
}
