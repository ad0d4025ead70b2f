//! How many rows share a value, estimated from sampled rows: what `ANALYZE` would find of an index
//! that is not there.
//!
//! The number of distinct values is estimated by GEE (Charikar and others, "Towards estimation error
//! guarantees for distinct values", PODS 2000): values seen once in a sample of n of N rows count
//! sqrt(N/n) times, the others once.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use crate::figure::{float, whole};
use crate::schema::{Table, quoted};
use crate::subject::{Subject, Trouble};

/// Rows looked at per table.
const ROWS_MAX: usize = 1_000;
/// Of a value, this much is compared.
const VALUE_CHARACTERS_MAX: usize = 100;

/// The sampled rows of some tables.
#[derive(Default)]
pub(crate) struct Cardinality(BTreeMap<String, Rows>);

struct Rows {
    /// In the whole table.
    total: f64,
    columns: Vec<String>,
    values: Vec<Vec<String>>,
}

impl Cardinality {
    pub(crate) fn of<'a>(
        subject: &Subject,
        tables: impl Iterator<Item = &'a str>,
    ) -> Result<Self, Trouble> {
        let mut known = Self::default();
        for name in tables {
            let table = subject.user_tables().find(|table| table.name == name);
            if let Some(table) =
                table.filter(|table| table.has_rowid && !known.0.contains_key(name))
            {
                let rows = read(subject, table)?;
                known.0.extend(rows.map(|rows| (name.to_owned(), rows)));
            }
        }
        Ok(known)
    }

    /// What `sqlite_stat1` would say of an index on these columns.
    pub(crate) fn stat(&self, table: &str, columns: &[String]) -> Option<String> {
        let rows = self.0.get(table)?;
        let places: Option<Vec<usize>> = columns
            .iter()
            .map(|column| rows.columns.iter().position(|name| name == column))
            .collect();
        let places = places?;
        let mut stat = whole(rows.total).to_string();
        for length in 1..=places.len() {
            let per_value = rows.total / rows.distinct(&places[..length]).max(1.0);
            stat = format!("{stat} {}", whole(per_value.ceil()).max(1));
        }
        Some(stat)
    }
}

impl Rows {
    fn distinct(&self, places: &[usize]) -> f64 {
        let mut seen = HashMap::<Vec<&str>, u64>::new();
        for row in &self.values {
            *seen.entry(places.iter().map(|place| row[*place].as_str()).collect()).or_default() +=
                1;
        }
        let once = seen.values().filter(|count| **count == 1).count();
        let (once, all) = (as_float(once), as_float(seen.len()));
        (once * (self.total / as_float(self.values.len())).max(1.0).sqrt() + all - once)
            .min(self.total)
    }
}

fn as_float(count: usize) -> f64 {
    float(count.try_into().unwrap_or(u64::MAX))
}

/// `None` of a table without rows.
fn read(subject: &Subject, table: &Table) -> Result<Option<Rows>, Trouble> {
    let Some(sample) = subject.sample_of(table.root) else { return Ok(None) };
    let columns: Vec<String> = table.columns.iter().map(|column| column.name.clone()).collect();
    let shortened = columns.iter().map(|column| {
        let column = quoted(column);
        format!("typeof({column}) || substr({column}, 1, {VALUE_CHARACTERS_MAX})")
    });
    let list = shortened.collect::<Vec<_>>().join(", ");
    let sql = format!("SELECT {list} FROM {} WHERE rowid = ?1", quoted(&table.name));
    let mut select = subject.db.prepare(&sql)?;
    let mut values = Vec::new();
    let stride = (sample.rows().count() / ROWS_MAX).max(1);
    for row in sample.rows().step_by(stride) {
        subject.allow(Duration::MAX);
        let mut found = select.query([row.rowid])?;
        if let Some(row) = found.next()? {
            let text = |index| row.get::<_, Option<String>>(index).map(Option::unwrap_or_default);
            values.push((0..columns.len()).map(text).collect::<Result<Vec<_>, _>>()?);
        }
    }
    let total = sample.entries();
    Ok((!values.is_empty()).then_some(Rows { total, columns, values }))
}
