//! Rows that are held back: live, and not shown, since they collide with newer ones or do not fit
//! their table. Somebody gives one another value, and it is shown; or joins it with the row that has
//! its place; or lets it go. Deleted rows that others refer to and that cannot be shown are listed
//! with them, so that what refers to them can be made to refer to another row.

mod join;

pub use join::JoinedRow;

use crdt::{Change, Row, Value};
use rusqlite::Connection;

use crate::error::{Error, Result};
use crate::exception::{self, Kind};
use crate::replica::Replica;
use crate::rules::{Rules, set_triggers};
use crate::schema_change;
use crate::show::{self, Placed, Values};
use crate::stamp::{self, Now};
use crate::state::{self, Names, RowId};
use crate::table::Table;
use crate::value::{literal, literals};

/// A row that is held back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldRow {
    /// The same on every device that holds it.
    pub id: String,
    /// Its table.
    pub table: String,
    /// Its key as SQL literals.
    pub key: String,
    /// `displaced`, `constraint`, `key` or `incomplete`; `missing`: deleted, and referred to.
    pub kind: &'static str,
    /// The same in words, often SQLite's.
    pub reason: String,
    /// Columns and their values as SQL literals, as far as they are known.
    pub cells: Vec<(String, String)>,
    /// The key of a visible row that has a value which only one may have, as SQL literals: what
    /// [`Replica::join`] joins it with.
    pub same_as: Option<String>,
}

const ID_DIGITS: usize = 8;

struct Found {
    row: HeldRow,
    digest: String,
    id: RowId,
    rival: Option<RowId>,
}

impl Replica {
    /// The rows that are held back.
    pub fn held_rows(&self) -> Result<Vec<HeldRow>> {
        if !exception::is_any(&self.db)? {
            return Ok(Vec::new());
        }
        // What has a row's place is found by trying.
        let found = self.transaction(find)?;
        Ok(found.into_iter().map(|found| found.row).collect())
    }

    /// Shows a row that is held back with another value in one column, as any program would write it.
    /// `id` may be shortened. [`Error::NotRestored`] if that does not make it fit.
    pub fn give(&self, id: &str, column: &str, value: &str, now_ms: u64) -> Result<HeldRow> {
        // It is a user's write, so the table's rules are the user's.
        self.transaction_under(Rules { triggers: false, foreign_keys: true }, |db| {
            schema_change::follow_schema(db, now_ms)?;
            let found = pick(find(db)?, id)?;
            set_triggers(db, true)?;
            let shown = show_with(db, &found, column, value);
            set_triggers(db, false)?;
            shown?;
            // What is written now has seen what the row was.
            exception::clear(db, &found.id)?;
            Ok(found.row)
        })
    }

    /// Deletes a row that is held back, on all devices. `id` may be shortened.
    /// [`Error::Referenced`] if other rows refer to it.
    pub fn let_go(&self, id: &str, now_ms: u64) -> Result<HeldRow> {
        self.transaction(|db| {
            let Picked { found, tables, now } = pick_after_changes(db, id, now_ms)?;
            let endings = join::endings(db, &tables, &found.id, found.rival.as_ref())?;
            let count = endings.len() as u64;
            if count > 0 {
                let HeldRow { id, table, key, same_as, .. } = found.row;
                let has_same = same_as.is_some();
                return Err(Error::Referenced { table, key, count, same: has_same.then_some(id) });
            }
            delete(db, now, &found.row.table, &found.id)?;
            exception::clear(db, &found.id)?;
            Ok(found.row)
        })
    }
}

fn find(db: &Connection) -> Result<Vec<Found>> {
    let sql = "SELECT table_id, key, kind, reason FROM warren_exception ORDER BY table_id, key";
    let (tables, mut names) = (Table::all(db)?, Names::new(db)?);
    let mut statement = db.prepare(sql)?;
    let mut rows = statement.query([])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        let id = RowId { table: row.get(0)?, key: row.get(1)? };
        let kind = row.get_ref(2)?.as_str().ok().and_then(Kind::named);
        let table = tables.iter().find(|table| table.id == id.table);
        let (Some(kind), Some(table)) = (kind.filter(|kind| !kind.is_visible()), table) else {
            continue;
        };
        let state = state::load(db, &id)?.unwrap_or_default();
        let values = state::values(&mut names, &state)?;
        let cells = table
            .columns
            .iter()
            .filter_map(|column| Some((column.name.clone(), literal(values.get(&column.id)?))));
        let mut hasher = blake3::Hasher::new();
        hasher.update(table.name.to_ascii_lowercase().as_bytes()).update(&[0]).update(&id.key);
        let digest = hasher.finalize().to_hex().to_string();
        let rival = match Values::load(&mut names, table, &id, &state)? {
            Ok(values) => show::rival(db, table, &values)?,
            Err(_) => None,
        };
        let same_as = rival.as_ref().map(|rival| Ok::<_, Error>(literals(&rival.key_values()?)));
        let row = HeldRow {
            id: digest[..ID_DIGITS].to_owned(),
            table: table.name.clone(),
            key: literals(&id.key_values()?),
            kind: kind.name(),
            reason: row.get(3)?,
            cells: cells.collect(),
            same_as: same_as.transpose()?,
        };
        found.push(Found { row, digest, id, rival });
    }
    Ok(found)
}

fn pick(found: Vec<Found>, id: &str) -> Result<Found> {
    let id = id.to_ascii_lowercase();
    let mut fitting = found.into_iter().filter(|one| !id.is_empty() && one.digest.starts_with(&id));
    match (fitting.next(), fitting.next()) {
        (Some(one), None) => Ok(one),
        (Some(_), Some(_)) => Err(Error::AmbiguousConflict { id }),
        (None, _) => Err(Error::NoConflict { id }),
    }
}

/// A row that somebody decides about, and when.
struct Picked {
    found: Found,
    tables: Vec<Table>,
    now: Now,
}

/// What was changed here so far gets its time first, so that the decision is later.
fn pick_after_changes(db: &Connection, id: &str, now_ms: u64) -> Result<Picked> {
    schema_change::follow_schema(db, now_ms)?;
    let now = Now { device_ms: now_ms, offset_ms: 0 };
    let tables = Table::all(db)?;
    stamp::stamp(db, &tables, now)?;
    Ok(Picked { found: pick(find(db)?, id)?, tables, now })
}

/// Deletes a live row on all devices, as one who has seen all of it.
fn delete(db: &Connection, now: Now, table: &str, id: &RowId) -> Result<()> {
    let Some(row) = state::load(db, id)?.filter(Row::is_live) else { return Ok(()) };
    let seen = row.cells().iter().map(|cell| cell.1).chain([row.written()]).collect();
    let (table, key) = (table.to_owned(), id.key_values()?);
    stamp::add(db, now, &Change::Delete { table, key, seen })
}

fn show_with(db: &Connection, found: &Found, column: &str, value: &str) -> Result<()> {
    let refused = |why: String| Error::NotRestored { why };
    let tables = Table::all(db)?;
    let table = tables.iter().find(|table| table.id == found.id.table).expect("found among them");
    let named = table.columns.iter().find(|known| known.name.eq_ignore_ascii_case(column));
    let named = named.ok_or_else(|| refused(format!("it has no column {column}")))?;
    let row = state::load(db, &found.id)?.unwrap_or_default();
    let values = Values::load(&mut Names::new(db)?, table, &found.id, &row)?;
    let mut values = values.map_err(|unfit| refused(unfit.reason))?;
    // The column's affinity makes of it what the column holds.
    values.set(&named.name, Value::Text(value.to_owned()));
    match show::place(db, table, &values)? {
        Placed::Yes => Ok(()),
        Placed::Refused(why) => Err(refused(why)),
        Placed::Beside(rival) => {
            let rival = literals(&rival.key_values()?);
            Err(refused(format!("the row with key {rival} still has the same value")))
        }
    }
}
