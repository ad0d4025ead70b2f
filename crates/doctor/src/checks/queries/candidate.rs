//! Generates the indexes that are tried for a query: on the columns that it reads, in every order
//! of up to three, and those that its text suggests (`shapes.rs`).

use std::collections::{BTreeMap, BTreeSet};

use sqlite_schema::TableSchema;

use super::shapes;
use crate::checks::cardinality::TableCardinality;
use crate::checks::queries::shapes::CandidateKey;
use crate::file::opened_file::OpenedFile;
use crate::file::schema::quote_if_needed;
use crate::program::sql;

/// The maximum number of columns of one table that are tried.
const COLUMNS_MAX: usize = 6;
/// The maximum number of columns of one tried index.
const KEYS_MAX: usize = 3;
/// The maximum number of distinct values in a column that counts as a flag or a state.
const FLAG_VALUES_MAX: f64 = 6.0;
/// The maximum number of columns of a covering index, which has everything that a query reads of a
/// table.
const COVERING_COLUMNS_MAX: usize = 5;

/// An index that is tried.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CandidateIndex {
    pub(super) table: String,
    pub(super) keys: Vec<CandidateKey>,
    /// The condition of a partial index, such as `published = 0`; `None` if it covers all rows.
    pub(super) rows: Option<String>,
}

/// The names of columns, by table.
pub(super) type ColumnsByTable = BTreeMap<String, BTreeSet<String>>;

impl CandidateIndex {
    fn new(table: &str, keys: Vec<CandidateKey>) -> Self {
        Self { table: table.to_owned(), keys, rows: None }
    }

    /// Returns the columns of the keys, for which statistics can be estimated. Returns `None` if a
    /// key is an expression, or if the index is partial.
    pub(super) fn columns(&self) -> Option<Vec<String>> {
        let columns = self.keys.iter().map(|key| key.column.clone()).collect::<Option<_>>();
        columns.filter(|_| self.rows.is_none())
    }

    pub(super) fn create(&self, name: &str) -> String {
        let keys: Vec<&str> = self.keys.iter().map(|key| key.sql.as_str()).collect();
        let (name, table, keys) =
            (quote_if_needed(name), quote_if_needed(&self.table), keys.join(", "));
        let rows = self.rows.as_ref().map(|rows| format!(" WHERE {rows}")).unwrap_or_default();
        format!("CREATE INDEX {name} ON {table} ({keys}){rows};")
    }

    /// Returns the statement that analyzes the table, so that the planner has statistics of the
    /// index.
    pub(super) fn analyze(&self) -> String {
        format!("ANALYZE {};", quote_if_needed(&self.table))
    }

    /// Returns a name made of the table and the columns, which no index in the file has.
    pub(super) fn name(&self, subject: &OpenedFile) -> String {
        let keys = self.keys.iter().map(|key| match &key.column {
            Some(column) => column.clone(),
            None => key.sql.split('(').next().unwrap_or_default().to_owned(),
        });
        let plain = format!("{}_{}", self.table, keys.collect::<Vec<_>>().join("_"));
        let is_taken = |name: &str| {
            let tables = subject.schema.tables.iter();
            tables.flat_map(|table| &table.indexes).any(|index| index.name == name)
        };
        if is_taken(&plain) { format!("{plain}_2") } else { plain }
    }

    /// Checks whether the longer index serves every query that this one serves.
    pub(super) fn is_start_of(&self, longer: &Self) -> bool {
        self.table == longer.table
            && self.rows.is_none()
            && longer.rows.is_none()
            && longer.keys.starts_with(&self.keys)
    }

    /// Adds all columns that the query reads of the table, if they are few and the query names each
    /// of them.
    pub(super) fn covering(
        &self,
        sql: &str,
        table: &TableSchema,
        read: &ColumnsByTable,
    ) -> Option<Self> {
        let is_key = |name: &str| self.keys.iter().any(|key| key.column.as_deref() == Some(name));
        let rowid = table.rowid_alias().map(|column| column.name.as_str());
        let others: Vec<&str> = read
            .get(&self.table)?
            .iter()
            .map(String::as_str)
            .filter(|name| !is_key(name) && Some(*name) != rowid)
            .collect();
        let words = words(sql);
        let is_named = |name: &&str| words.contains(&name.to_lowercase());
        // An index with all columns would be a second table.
        let stored = table.columns.iter().filter(|it| Some(it.name.as_str()) != rowid).count();
        let is_small =
            self.keys.len() + others.len() <= COVERING_COLUMNS_MAX.min(stored.saturating_sub(1));
        let keys = others.iter().map(|column| CandidateKey::column(column));
        let keys: Vec<CandidateKey> = self.keys.iter().cloned().chain(keys).collect();
        let is_wanted = is_small && !others.is_empty() && others.iter().all(is_named);
        is_wanted.then(|| Self { keys, ..self.clone() })
    }

    /// Returns partial indexes on the rows that the query selects by a value in its text, if the
    /// column has only few values. A value such as a name would differ from call to call.
    pub(super) fn partial(
        &self,
        sql: &str,
        table: &TableSchema,
        known: &TableCardinality,
    ) -> Vec<Self> {
        let is_one_of_few = |column: &str| {
            known.distinct(&table.name, column).is_some_and(|count| count <= FLAG_VALUES_MAX)
        };
        let mut constants = shapes::constants(sql, table);
        constants.retain(|(column, _)| is_one_of_few(column));
        let constants = constants.into_iter();
        let partial = constants.filter_map(|(column, rows)| {
            let keys = self.keys.iter().filter(|key| key.column.as_ref() != Some(&column));
            let keys: Vec<CandidateKey> = keys.cloned().collect();
            let is_shorter = !keys.is_empty() && keys.len() < self.keys.len();
            is_shorter.then(|| Self { keys, rows: Some(rows), ..self.clone() })
        });
        partial.collect()
    }
}

/// Returns the candidate indexes for the query, except those that already exist.
pub(super) fn candidates(
    subject: &OpenedFile,
    sql: &str,
    read: &ColumnsByTable,
) -> Vec<CandidateIndex> {
    let words = words(sql);
    let is_named = |column: &str| words.contains(&column.to_lowercase());
    let mut candidates = Vec::new();
    for (name, columns) in read {
        let Some(table) = subject.user_tables().find(|table| table.name == *name) else { continue };
        let rowid = table.rowid_alias().map(|column| column.name.as_str());
        // For a generated column, SQLite reports only the columns from which it is computed.
        let generated = table.columns.iter().filter(|it| it.is_generated() && is_named(&it.name));
        let mut columns = columns.clone();
        columns.extend(generated.map(|column| column.name.clone()));
        let columns = columns.into_iter().filter(|column| {
            let is_stored = table.columns.iter().any(|of_table| of_table.name == *column);
            is_stored && Some(column.as_str()) != rowid
        });
        // `SELECT *` reads all columns; the query selects by those that it names.
        let (named, others): (Vec<_>, Vec<_>) = columns.partition(|column| is_named(column));
        let mut tried = if named.is_empty() { others } else { named };
        tried.truncate(COLUMNS_MAX);
        for columns in orders(&tried) {
            if !has_index(table, &columns) {
                let keys = columns.iter().map(|column| CandidateKey::column(column)).collect();
                candidates.push(CandidateIndex::new(name, keys));
            }
        }
        let shapes = shapes::keys(sql, table).into_iter();
        candidates.extend(shapes.map(|keys| CandidateIndex::new(name, keys)));
    }
    candidates
}

/// Returns the keywords and names, in lower case.
fn words(sql: &str) -> BTreeSet<String> {
    sql::tokens(sql).iter().filter_map(|token| token.name().map(str::to_lowercase)).collect()
}

fn has_index(table: &TableSchema, columns: &[String]) -> bool {
    table.indexes.iter().filter(|index| !index.is_partial).any(|index| {
        index.columns.len() >= columns.len()
            && index
                .columns
                .iter()
                .zip(columns)
                .all(|(key, column)| key.column.as_ref() == Some(column))
    })
}

/// Returns every ordered choice of one to `KEYS_MAX` of these columns, the shorter ones first.
fn orders(columns: &[String]) -> Vec<Vec<String>> {
    let mut all: Vec<Vec<String>> = vec![Vec::new()];
    let mut start = 0;
    for _ in 0..KEYS_MAX.min(columns.len()) {
        let end = all.len();
        for index in start..end {
            for column in columns {
                if !all[index].contains(column) {
                    let longer = all[index].iter().chain([column]).cloned().collect();
                    all.push(longer);
                }
            }
        }
        start = end;
    }
    all.split_off(1)
}

/// Returns every non-empty subset of these keys in their order, the shorter ones first.
pub(super) fn parts<T: Clone>(keys: &[T]) -> Vec<Vec<T>> {
    let mut parts: Vec<Vec<T>> = vec![Vec::new()];
    for key in keys {
        let longer: Vec<Vec<T>> =
            parts.iter().map(|part| part.iter().chain([key]).cloned().collect()).collect();
        parts.extend(longer);
    }
    parts.retain(|part| !part.is_empty());
    parts.sort_by_key(Vec::len);
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(lists: &[Vec<String>]) -> Vec<String> {
        lists.iter().map(|list| list.join("")).collect()
    }

    #[test]
    fn columns_are_tried_in_every_order_and_left_out_the_most_first() {
        let columns = ["a", "b", "c"].map(str::to_owned);
        assert_eq!(texts(&orders(&columns[..2])), ["a", "b", "ab", "ba"]);
        assert_eq!(orders(&columns).len(), 3 + 6 + 6);
        assert_eq!(texts(&parts(&columns)), ["a", "b", "c", "ab", "ac", "bc", "abc"]);
    }
}
