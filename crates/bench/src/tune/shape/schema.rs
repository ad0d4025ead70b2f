//! Reads the parts of a file's schema that a load needs.

use rusqlite::Connection;
use sqlite_schema::{
    ColumnKind, ColumnSchema, IndexSchema, TableEntry, TableKind, TableSchema, is_sqlite_name,
    quote_identifier,
};

/// An ordinary table that has rows.
#[derive(Clone, Debug)]
pub(super) struct LoadTable {
    pub(super) name: String,
    /// The number of rows: counted in small files, estimated in large ones.
    pub(super) rows: i64,
    /// The name of the rowid: an INTEGER PRIMARY KEY or `rowid`; `None` for a table WITHOUT ROWID,
    /// or if other columns have all of the rowid's names.
    pub(super) rowid: Option<String>,
    /// The columns of the primary key, or the rowid.
    pub(super) key: Vec<String>,
    /// The columns that are stored or computed.
    pub(super) columns: Vec<ColumnSchema>,
    /// Columns that refer to other rows.
    foreign: Vec<String>,
    pub(super) indexes: Vec<IndexSchema>,
}

impl LoadTable {
    fn read(db: &Connection, entry: TableEntry) -> rusqlite::Result<Self> {
        let table = entry.read(db)?;
        let rowid = table.rowid_alias().map(|column| column.name.as_str());
        let rowid = rowid.or_else(|| table.rowid_name()).map(str::to_owned);
        let mut key: Vec<String> =
            table.key_columns().into_iter().map(|column| column.name.clone()).collect();
        if key.is_empty() {
            key.extend(rowid.clone());
        }
        let foreign = sqlite_schema::foreign_keys(db, &table.name)?.into_iter();
        let foreign = foreign.flat_map(|reference| reference.columns).collect();
        let TableSchema { name, mut columns, indexes, .. } = table;
        columns.retain(|column| column.kind != ColumnKind::Hidden);
        Ok(Self { name, rows: 0, rowid, key, columns, foreign, indexes })
    }

    /// Returns whether a column refers to other rows.
    pub(super) fn is_foreign(&self, column: &ColumnSchema) -> bool {
        self.foreign.iter().any(|name| name.eq_ignore_ascii_case(&column.name))
    }
}

/// The largest file whose rows are counted.
const COUNTED_BYTES_MAX: i64 = 256 << 20;

/// Returns the tables that have rows, and notes on the tables that are left out.
pub(super) fn read(db: &Connection) -> anyhow::Result<(Vec<LoadTable>, Vec<String>)> {
    let is_small = {
        let sql = "SELECT page_size * page_count FROM pragma_page_size, pragma_page_count";
        db.query_row(sql, [], |row| row.get::<_, i64>(0))? <= COUNTED_BYTES_MAX
    };
    let (mut tables, mut notes, mut empty) = (Vec::new(), Vec::new(), 0);
    let all = sqlite_schema::tables(db)?.into_iter();
    for table in all.filter(|table| !is_sqlite_name(&table.name)) {
        match table.kind {
            TableKind::Ordinary => {
                let mut table = LoadTable::read(db, table)?;
                table.rows = rows(db, &table, is_small)?;
                if table.rows > 0 { tables.push(table) } else { empty += 1 }
            }
            TableKind::Virtual => {
                notes.push(format!("{}: virtual tables are left out", table.name));
            }
            TableKind::Shadow | TableKind::View => {}
        }
    }
    match empty {
        0 => {}
        1 => notes.push("1 empty table is left out".to_owned()),
        many => notes.push(format!("{many} empty tables are left out")),
    }
    Ok((tables, notes))
}

fn rows(db: &Connection, table: &LoadTable, is_small: bool) -> anyhow::Result<i64> {
    let name = quote_identifier(&table.name);
    let sql = match &table.rowid {
        _ if is_small => format!("SELECT count(*) FROM {name}"),
        Some(rowid) => {
            let rowid = quote_identifier(rowid);
            let end = |end: &str| format!("(SELECT {end}({rowid}) FROM {name})");
            // This is more than the rows if keys are missing, which does not matter for a weight.
            format!("SELECT coalesce({} - {} + 1.0, 0)", end("max"), end("min"))
        }
        None => format!("SELECT count(*) FROM (SELECT 1 FROM {name} LIMIT 1000000)"),
    };
    #[expect(clippy::cast_possible_truncation, reason = "an estimate")]
    let rows = db.query_row(&sql, [], |row| row.get::<_, f64>(0)).map(|rows| rows as i64);
    Ok(rows?)
}

/// Returns the largest rowid; new rows get rowids above it.
pub(super) fn largest_rowid(db: &Connection, tables: &[LoadTable]) -> anyhow::Result<i64> {
    let mut largest = 1;
    for table in tables {
        let Some(rowid) = &table.rowid else { continue };
        let sql = format!(
            "SELECT max({}) FROM {}",
            quote_identifier(rowid),
            quote_identifier(&table.name)
        );
        let max: Option<i64> = db.query_row(&sql, [], |row| row.get(0))?;
        // A table whose rowids end near the maximum gets no inserts (`operations.rs`).
        largest = largest.max(max.filter(|max| *max < ROWID_MAX).unwrap_or(1));
    }
    Ok(largest)
}

/// The limit of existing rowids, which leaves space for the inserted rows.
pub(super) const ROWID_MAX: i64 = 1 << 62;
