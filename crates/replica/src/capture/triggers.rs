//! Records the changes of any SQLite program by triggers that need nothing but SQLite.
//!
//! A trigger writes one row to the outbox for each changed row of the table: the time (SQLite's
//! clock), the key, and the changed columns. Values are not copied: timestamping reads them from
//! the table.
//!
//! ```text
//! changed_columns, written by                 meaning
//! *         INSERT, UPDATE of the key (new)   the whole row
//! 0110      UPDATE                            these columns, in order of `warren_column.position`
//! 0002      a column that was added           as 1; its author had not seen what is known of it
//!           (`tracking/added_columns.rs`)
//! -         DELETE, UPDATE of the key (old)   gone
//! ?         before INSERT and UPDATE          may be gone: it cannot stand next to the new row
//!                                             (`schema/unique.rs`), and OR REPLACE deletes it
//! +         before INSERT without a key       SQLite is about to choose this key for a new row
//! ```
//!
//! When a BEFORE trigger fires, SQLite has not chosen a key yet, and reports -1 (3.0 and later; the
//! page on triggers calls it undefined). If a future version reports another value, no key counts
//! as an auto key. A program may insert -1 explicitly, and an upsert may find that row: so `+`
//! records the key that SQLite is going to choose, and the row that gets it is the new one.
//!
//! # Invariants
//! - The triggers use no function that an older SQLite or another program lacks (3.24 and later).
//! - Comparison is by bytes and storage class, whatever the column's collation and affinity.

use crdt::Value;
use rusqlite::{Connection, params_from_iter};
use sqlite_schema::{ROWID_NAMES, SchemaObjectKind, quote_identifier};

use crate::error::Result;
use crate::schema::tracked_table::TrackedTable;
use crate::sql_value::BoundValue;

/// SQLite's clock in milliseconds since 1970. `julianday` has whole milliseconds, and rounding
/// restores them. (`unixepoch('subsec')` needs SQLite 3.42.)
const NOW_MS: &str = "CAST((julianday('now') - 2440587.5) * 86400000.0 + 0.5 AS INTEGER)";

/// The `changed_columns` of a key that SQLite is about to choose for a new row.
pub(crate) const NEXT_KEY_AUTO_ASSIGNED: &str = "+";
/// The mask of a written column whose known value the author had not seen.
pub(crate) const UNSEEN: u8 = b'2';

const TRIGGER_KINDS: [&str; 9] = [
    "insert",
    "update",
    "update_key",
    "delete",
    "replace_insert",
    "replace_update",
    "rowid_insert",
    "rowid_update",
    "auto_key",
];

fn trigger_name(kind: &str, table: &str) -> String {
    format!("warren_{kind}_{table}")
}

/// Installs the triggers of a table, replacing older ones.
pub(crate) fn install(db: &Connection, table: &TrackedTable) -> Result<()> {
    remove(db, &table.name)?;
    widen_outbox(db, table.key.len())?;
    for (_, sql) in triggers(table) {
        db.execute_batch(&sql)?;
    }
    Ok(())
}

/// Removes the triggers of a table.
pub(crate) fn remove(db: &Connection, table: &str) -> Result<()> {
    for kind in TRIGGER_KINDS {
        let name = quote_identifier(&trigger_name(kind, table));
        db.execute_batch(&format!("DROP TRIGGER IF EXISTS {name}"))?;
    }
    Ok(())
}

/// Returns whether all of the table's triggers exist as this version writes them.
pub(crate) fn is_installed(db: &Connection, table: &TrackedTable) -> Result<bool> {
    for (name, expected) in triggers(table) {
        let found = sqlite_schema::object_sql(db, SchemaObjectKind::Trigger, &name)?;
        if found.as_ref() != Some(&expected) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Returns the number of pending changes: changes in the outbox that no message contains yet.
pub(crate) fn pending_count(db: &Connection) -> Result<u64> {
    let sql = "SELECT count(*) FROM warren_outbox WHERE changed_columns <> ?1";
    let count: i64 =
        db.prepare_cached(sql)?.query_row([NEXT_KEY_AUTO_ASSIGNED], |row| row.get(0))?;
    Ok(count.cast_unsigned())
}

/// Returns the number of the last outbox row.
pub(crate) fn last_note(db: &Connection) -> Result<i64> {
    let sql = "SELECT coalesce(max(seq), 0) FROM warren_outbox";
    Ok(db.prepare_cached(sql)?.query_row([], |row| row.get(0))?)
}

/// Replaces the key in outbox row `seq`, because its row has another key now.
pub(crate) fn change_key(
    db: &Connection,
    table: &TrackedTable,
    seq: i64,
    key: &[Value],
) -> Result<()> {
    let assignments = each_key_column(table, 2, "=", ", ");
    let sql = format!("UPDATE warren_outbox SET {assignments} WHERE seq = ?1");
    let seq = Value::Integer(seq);
    let values = std::iter::once(&seq).chain(key).map(BoundValue);
    db.prepare_cached(&sql)?.execute(params_from_iter(values))?;
    Ok(())
}

/// Restores the key `old` in all outbox rows with `new`, because the row kept its key.
pub(crate) fn change_key_back(
    db: &Connection,
    table: &TrackedTable,
    (old, new): (&[Value], &[Value]),
) -> Result<()> {
    let sql = format!(
        "UPDATE warren_outbox SET {} WHERE table_id = ?1 AND {}",
        each_key_column(table, 2, "=", ", "),
        each_key_column(table, 2 + old.len(), "IS", " AND "),
    );
    let id = Value::Integer(table.id);
    let values = std::iter::once(&id).chain(old).chain(new).map(BoundValue);
    db.prepare_cached(&sql)?.execute(params_from_iter(values))?;
    Ok(())
}

/// Returns `key1 = ?2, key2 = ?3`, with parameters from number `first` on.
fn each_key_column(table: &TrackedTable, first: usize, operator: &str, separator: &str) -> String {
    let one = |index| format!("key{} {operator} ?{}", index + 1, first + index);
    (0..table.key.len()).map(one).collect::<Vec<_>>().join(separator)
}

/// Deletes the outbox rows after `last` that the triggers wrote when a row's key changed.
pub(crate) fn forget_key_update(
    db: &Connection,
    table: &TrackedTable,
    (old, new): (&[Value], &[Value]),
    last: i64,
) -> Result<()> {
    let sql = format!(
        "DELETE FROM warren_outbox WHERE seq > ?1 AND table_id = ?2
         AND (changed_columns = '-' AND {} OR changed_columns = '*' AND {})",
        each_key_column(table, 3, "IS", " AND "),
        each_key_column(table, 3 + table.key.len(), "IS", " AND "),
    );
    let note = [Value::Integer(last), Value::Integer(table.id)];
    let values = note.iter().chain(old).chain(new).map(BoundValue);
    db.prepare_cached(&sql)?.execute(params_from_iter(values))?;
    Ok(())
}

/// Returns whether the table has triggers that are not Warren's.
pub(crate) fn has_foreign_triggers(db: &Connection, table: &TrackedTable) -> Result<bool> {
    let sql = "SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE type = 'trigger'
               AND tbl_name = ?1 COLLATE NOCASE AND name NOT LIKE 'warren\\_%' ESCAPE '\\')";
    Ok(db.prepare_cached(sql)?.query_row([&table.name], |row| row.get(0))?)
}

/// Returns the outbox's columns for the key of a table.
pub(crate) fn outbox_key_columns(table: &TrackedTable) -> String {
    let columns: Vec<_> = (1..=table.key.len()).map(|number| format!("key{number}")).collect();
    columns.join(",")
}

/// Adds an outbox row as a trigger would, with this time (milliseconds since 1970).
pub(crate) fn add_note(
    db: &Connection,
    table: &TrackedTable,
    key: &[Value],
    changed_columns: &str,
    at_ms: u64,
) -> Result<()> {
    let values: Vec<_> = (1..=key.len()).map(|number| format!("?{number}")).collect();
    let sql = format!(
        "INSERT INTO warren_outbox (at_ms, table_id, changed_columns, {})
         VALUES ({at_ms}, {}, '{changed_columns}', {})",
        outbox_key_columns(table),
        table.id,
        values.join(", ")
    );
    db.prepare_cached(&sql)?.execute(params_from_iter(key.iter().map(BoundValue)))?;
    Ok(())
}

/// Adds columns to the outbox, so that it has one for each column of the widest key.
fn widen_outbox(db: &Connection, key_length: usize) -> Result<()> {
    let sql = "SELECT count(*) FROM pragma_table_info('warren_outbox') WHERE name LIKE 'key%'";
    let present: i64 = db.query_row(sql, [], |row| row.get(0))?;
    for number in (1..=key_length).skip(usize::try_from(present).unwrap_or(0)) {
        db.execute_batch(&format!("ALTER TABLE warren_outbox ADD COLUMN key{number}"))?;
    }
    Ok(())
}

/// Returns the name and SQL of each trigger that the table needs.
fn triggers(table: &TrackedTable) -> Vec<(String, String)> {
    let on = quote_identifier(&table.name);
    let trigger = |kind: &str, when: &str, body: &str| {
        let name = trigger_name(kind, &table.name);
        let sql = format!("CREATE TRIGGER {} {when} BEGIN {body} END", quote_identifier(&name));
        (name, sql)
    };
    let same_key = all_equal_sql(table.key.iter());
    let inserted = outbox_insert(table, "'*'", "new");
    let key_updated =
        format!("{}{}", outbox_insert(table, "'-'", "old"), outbox_insert(table, "'*'", "new"));
    let mut all = vec![
        trigger("insert", &format!("AFTER INSERT ON {on}"), &inserted),
        trigger("delete", &format!("AFTER DELETE ON {on}"), &outbox_insert(table, "'-'", "old")),
        trigger("update_key", &format!("AFTER UPDATE ON {on} WHEN NOT ({same_key})"), &key_updated),
    ];
    if !table.columns.is_empty() {
        let names = || table.columns.iter().map(|column| &column.name);
        let mask: Vec<_> =
            names().map(|name| format!("({})", is_distinct_sql("old.", "new.", name))).collect();
        let same = all_equal_sql(names());
        let when = format!("AFTER UPDATE ON {on} WHEN ({same_key}) AND NOT ({same})");
        all.push(trigger("update", &when, &outbox_insert(table, &mask.join("||"), "new")));
    }
    if table.has_auto_key {
        let key = quote_identifier(&table.key[0]);
        let when = format!("BEFORE INSERT ON {on} WHEN new.{key} = -1");
        let next = format!(
            "INSERT INTO warren_outbox (at_ms,table_id,changed_columns,key1) VALUES ({NOW_MS},{},'{NEXT_KEY_AUTO_ASSIGNED}',{}); ",
            table.id,
            next_key(table),
        );
        all.push(trigger("auto_key", &when, &next));
    }
    let uniques = &table.uniques;
    if !uniques.conditions.is_empty() {
        let insert = outbox_insert_collisions(table, "new", &uniques.conditions);
        all.push(trigger("replace_insert", &format!("BEFORE INSERT ON {on}"), &insert));
        let columns = uniques.columns.iter().map(String::as_str).chain(ROWID_NAMES);
        let columns = columns.map(quote_identifier).collect::<Vec<_>>().join(",");
        let mut update = outbox_insert_collisions(table, "old", &uniques.conditions);
        update.insert_str(0, uniques.before_update.as_deref().unwrap_or_default());
        let when = format!("BEFORE UPDATE OF {columns} ON {on}");
        all.push(trigger("replace_update", &when, &update));
    }
    if let Some(rowid) = uniques.rowid {
        let same = [format!("{rowid} = new.{rowid}")];
        let when = format!("BEFORE INSERT ON {on} WHEN new.{rowid} <> -1");
        all.push(trigger("rowid_insert", &when, &outbox_insert_collisions(table, "new", &same)));
        let rowids = ROWID_NAMES.join(",");
        let when = format!("BEFORE UPDATE OF {rowids} ON {on} WHEN new.{rowid} <> old.{rowid}");
        all.push(trigger("rowid_update", &when, &outbox_insert_collisions(table, "old", &same)));
    }
    all
}

/// Returns the SQL of the key that SQLite assigns to the next row without one
/// (<https://sqlite.org/autoinc.html>).
fn next_key(table: &TrackedTable) -> String {
    let (key, name) = (quote_identifier(&table.key[0]), quote_identifier(&table.name));
    let largest = format!("coalesce((SELECT max({key}) FROM {name}),0)");
    if !table.autoincrement {
        return format!("{largest}+1");
    }
    let name = table.name.replace('\'', "''");
    let given = format!("SELECT seq FROM sqlite_sequence WHERE name='{name}'");
    format!("max({largest},coalesce(({given}),0))+1")
}

/// Returns an SQL condition that bytes or storage classes differ: `IS` alone compares by collation,
/// and treats 1 as 1.0. `one` and `other` are prefixes of rows (`old.`, `new.` or empty).
fn is_distinct_sql(one: &str, other: &str, column: &str) -> String {
    let c = quote_identifier(column);
    format!("{one}{c} IS NOT {other}{c} COLLATE BINARY OR typeof({one}{c}) <> typeof({other}{c})")
}

fn all_equal_sql<'a>(columns: impl Iterator<Item = &'a String>) -> String {
    let same = |column: &String| format!("NOT ({})", is_distinct_sql("old.", "new.", column));
    columns.map(same).collect::<Vec<_>>().join(" AND ")
}

/// Returns the SQL that inserts one outbox row for the row `row` (`new` or `old`). A row with NULL
/// in its primary key, where SQLite allows that, has no id and stays on this device.
fn outbox_insert(table: &TrackedTable, changed_columns: &str, row: &str) -> String {
    let key: Vec<_> =
        table.key.iter().map(|column| format!("{row}.{}", quote_identifier(column))).collect();
    let (key_columns, key, id) = (outbox_key_columns(table), key.join(","), table.id);
    let values = format!("{NOW_MS},{id},{changed_columns},{key}");
    let values = if table.nullable.is_empty() {
        format!("VALUES ({values})")
    } else {
        format!("SELECT {values} WHERE {}", table.key_not_null_sql(&format!("{row}.")))
    };
    format!("INSERT INTO warren_outbox (at_ms,table_id,changed_columns,{key_columns}) {values}; ")
}

/// Returns the SQL that inserts one outbox row for each row that meets any of the conditions,
/// except the one with the key of `own` (`new` or `old`), which is recorded in any case.
fn outbox_insert_collisions(table: &TrackedTable, own: &str, conditions: &[String]) -> String {
    let key: Vec<_> = table.key.iter().map(|column| quote_identifier(column)).collect();
    let is_other = |column: &String| is_distinct_sql(&format!("{own}."), "", column);
    let is_other: Vec<_> = table.key.iter().map(is_other).collect();
    let collides: Vec<_> = conditions.iter().map(|condition| format!("({condition})")).collect();
    format!(
        "INSERT INTO warren_outbox (at_ms,table_id,changed_columns,{}) SELECT {NOW_MS},{},'?',{} FROM {} WHERE ({}) AND ({}) AND {}; ",
        outbox_key_columns(table),
        table.id,
        key.join(","),
        quote_identifier(&table.name),
        collides.join(" OR "),
        is_other.join(" OR "),
        table.key_not_null_sql(""),
    )
}
