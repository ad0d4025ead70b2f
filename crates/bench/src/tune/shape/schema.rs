//! What a file's schema says of its tables, as far as a load needs it.

use rusqlite::Connection;

/// An ordinary table that has rows.
#[derive(Clone, Debug)]
pub(super) struct LoadTable {
    pub(super) name: String,
    /// Counted in small files, estimated in large ones.
    pub(super) rows: i64,
    /// What reaches the rowid: an INTEGER PRIMARY KEY, `rowid`; nothing WITHOUT ROWID, or where
    /// other columns have all of its names.
    pub(super) rowid: Option<String>,
    /// The columns of the primary key, or the rowid.
    pub(super) key: Vec<String>,
    pub(super) columns: Vec<LoadColumn>,
    pub(super) indexes: Vec<LoadIndex>,
}

/// One that is stored or computed.
#[derive(Clone, Debug)]
pub(super) struct LoadColumn {
    pub(super) name: String,
    pub(super) is_generated: bool,
    /// It refers to another row.
    pub(super) is_foreign: bool,
}

/// One that is no rowid.
#[derive(Clone, Debug)]
pub(super) struct LoadIndex {
    pub(super) name: String,
    /// An expression has no name.
    pub(super) columns: Vec<Option<String>>,
    pub(super) is_unique: bool,
    pub(super) is_partial: bool,
    pub(super) is_primary: bool,
}

/// Up to this size of a file, rows are counted.
const COUNTED_BYTES_MAX: i64 = 256 << 20;

/// A name as SQL writes it.
pub(super) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// The tables that have rows, and a note of what is left out.
pub(super) fn read(db: &Connection) -> anyhow::Result<(Vec<LoadTable>, Vec<String>)> {
    let sql = "SELECT name, type, wr FROM pragma_table_list WHERE schema = 'main' \
               AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY name";
    let mut list = db.prepare(sql)?;
    let list = list.query_map([], |row| {
        Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?, row.get(2)?))
    })?;
    let is_small = {
        let sql = "SELECT page_size * page_count FROM pragma_page_size, pragma_page_count";
        db.query_row(sql, [], |row| row.get::<_, i64>(0))? <= COUNTED_BYTES_MAX
    };
    let (mut tables, mut notes, mut empty) = (Vec::new(), Vec::new(), 0);
    for (name, kind, is_without_rowid) in list.collect::<rusqlite::Result<Vec<_>>>()? {
        match kind.as_str() {
            "table" => {
                let mut table = table(db, name, is_without_rowid)?;
                table.rows = rows(db, &table, is_small)?;
                if table.rows > 0 { tables.push(table) } else { empty += 1 }
            }
            "virtual" => notes.push(format!("{name}: virtual tables are left out")),
            _ => {}
        }
    }
    match empty {
        0 => {}
        1 => notes.push("1 empty table is left out".to_owned()),
        many => notes.push(format!("{many} empty tables are left out")),
    }
    Ok((tables, notes))
}

fn table(db: &Connection, name: String, is_without_rowid: bool) -> anyhow::Result<LoadTable> {
    let sql = "SELECT name, hidden, pk, upper(type) = 'INTEGER' FROM pragma_table_xinfo(?1)";
    let mut statement = db.prepare_cached(sql)?;
    let all = statement.query_map([&name], |row| {
        Ok((row.get::<_, String>(0)?, row.get::<_, i64>(1)?, row.get::<_, i64>(2)?, row.get(3)?))
    })?;
    let all: Vec<(String, i64, i64, bool)> = all.collect::<rusqlite::Result<_>>()?;
    let mut foreign = db.prepare_cached("SELECT \"from\" FROM pragma_foreign_key_list(?1)")?;
    let foreign = foreign.query_map([&name], |row| row.get(0))?;
    let foreign: Vec<String> = foreign.collect::<rusqlite::Result<_>>()?;
    let mut keys: Vec<(i64, &str, bool)> =
        all.iter().filter(|one| one.2 > 0).map(|one| (one.2, one.0.as_str(), one.3)).collect();
    keys.sort_unstable();
    let indexes = indexes(db, &name)?;
    // An INTEGER PRIMARY KEY is the rowid, and has no index of its own.
    let alias = match keys.as_slice() {
        [(_, name, true)] if !indexes.iter().any(|index| index.is_primary) => {
            Some((*name).to_owned())
        }
        _ => None,
    };
    let is_free = |wanted: &&str| !all.iter().any(|one| one.0.eq_ignore_ascii_case(wanted));
    let unnamed = ["rowid", "_rowid_", "oid"].into_iter().find(is_free).map(str::to_owned);
    let rowid = if is_without_rowid { None } else { alias.or(unnamed) };
    let mut key: Vec<String> = keys.iter().map(|(_, name, _)| (*name).to_owned()).collect();
    if key.is_empty() {
        key.extend(rowid.clone());
    }
    let columns = all.into_iter().filter(|one| one.1 != 1).map(|(name, hidden, ..)| LoadColumn {
        is_foreign: foreign.iter().any(|of| of.eq_ignore_ascii_case(&name)),
        is_generated: hidden > 1,
        name,
    });
    Ok(LoadTable { columns: columns.collect(), name, rows: 0, rowid, key, indexes })
}

fn indexes(db: &Connection, table: &str) -> anyhow::Result<Vec<LoadIndex>> {
    let sql = "SELECT name, \"unique\", origin = 'pk', partial FROM pragma_index_list(?1)";
    let mut list = db.prepare_cached(sql)?;
    let list = list.query_map([table], |row| {
        Ok(LoadIndex {
            name: row.get(0)?,
            columns: Vec::new(),
            is_unique: row.get(1)?,
            is_primary: row.get(2)?,
            is_partial: row.get(3)?,
        })
    })?;
    let mut indexes: Vec<LoadIndex> = list.collect::<rusqlite::Result<_>>()?;
    let mut columns = db.prepare_cached("SELECT name FROM pragma_index_info(?1) ORDER BY seqno")?;
    for index in &mut indexes {
        let names = columns.query_map([&index.name], |row| row.get(0))?;
        index.columns = names.collect::<rusqlite::Result<_>>()?;
    }
    Ok(indexes)
}

fn rows(db: &Connection, table: &LoadTable, is_small: bool) -> anyhow::Result<i64> {
    let name = quoted(&table.name);
    let sql = match &table.rowid {
        _ if is_small => format!("SELECT count(*) FROM {name}"),
        Some(rowid) => {
            let rowid = quoted(rowid);
            let end = |end: &str| format!("(SELECT {end}({rowid}) FROM {name})");
            // More than the rows if keys are missing, which is of no matter for a weight.
            format!("SELECT coalesce({} - {} + 1.0, 0)", end("max"), end("min"))
        }
        None => format!("SELECT count(*) FROM (SELECT 1 FROM {name} LIMIT 1000000)"),
    };
    #[expect(clippy::cast_possible_truncation, reason = "an estimate")]
    let rows = db.query_row(&sql, [], |row| row.get::<_, f64>(0)).map(|rows| rows as i64);
    Ok(rows?)
}

/// Above it, new rows get their rowids.
pub(super) fn largest_rowid(db: &Connection, tables: &[LoadTable]) -> anyhow::Result<i64> {
    let mut largest = 1;
    for table in tables {
        let Some(rowid) = &table.rowid else { continue };
        let sql = format!("SELECT max({}) FROM {}", quoted(rowid), quoted(&table.name));
        let max: Option<i64> = db.query_row(&sql, [], |row| row.get(0))?;
        // One that ends where numbers end gets no inserts (`operations.rs`).
        largest = largest.max(max.filter(|max| *max < ROWID_MAX).unwrap_or(1));
    }
    Ok(largest)
}

/// Leaves room for what is inserted.
pub(super) const ROWID_MAX: i64 = 1 << 62;
