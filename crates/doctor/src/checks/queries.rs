//! The missing index of a query, with SQLite's own planner as the judge.
//!
//! The schema and its statistics are copied into memory, without rows. There, indexes on the
//! columns that the query reads are made, in every order of up to three, with statistics as `ANALYZE`
//! would write them, estimated from sampled rows. Whichever the planner takes is kept, shortened to
//! the columns that it uses, and tried again alone.
//!
//! # Not here
//! - Indexes on expressions, partial and descending ones.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::Connection;
use rusqlite::config::DbConfig;
use rusqlite::hooks::{AuthAction, AuthContext, Authorization};

use crate::checks::cardinality::Cardinality;
use crate::finding::{Finding, Mend};
use crate::report::Log;
use crate::schema::{Table, quoted};
use crate::subject::{Subject, Trouble};

/// Columns of one table that are tried.
const COLUMNS_MAX: usize = 6;
/// So many rows are read at once: an index need not find fewer.
const FOUND_ROWS: f64 = 10.0;
/// Columns of one index that are tried.
const KEYS_MAX: usize = 3;

/// An index that is tried.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Candidate {
    table: String,
    columns: Vec<String>,
}

pub(crate) fn check(subject: &Subject, log: &mut Log) -> Result<(), Trouble> {
    for (index, sql) in subject.queries.iter().enumerate() {
        if subject.budget.is_spent() {
            log.skip(format!("query {} and those after it", index + 1), "the time was over");
            break;
        }
        check_query(subject, sql, log)?;
        log.check(format!("query {}", index + 1));
    }
    Ok(())
}

fn check_query(subject: &Subject, sql: &str, log: &mut Log) -> Result<(), Trouble> {
    let before = plan(&copy(subject)?, sql)?;
    if faults(&before) == 0 {
        return Ok(());
    }
    let candidates = candidates(subject, sql, columns_read(copy(subject)?, sql)?);
    let known = Cardinality::of(subject, candidates.iter().map(|it| it.table.as_str()))?;
    let chosen = chosen(subject, sql, &candidates, &known)?;
    let chosen = fewest(subject, sql, chosen, &known)?;
    let chosen = shortened(subject, sql, chosen, &known)?;
    let after = plan_with(subject, sql, &chosen, &known)?;
    if chosen.is_empty() || faults(&after) >= faults(&before) {
        log.find(scans(sql, &before));
    } else {
        log.find(missing(subject, sql, &chosen, &before, &after));
    }
    Ok(())
}

/// What the planner takes of all candidates.
fn chosen(
    subject: &Subject,
    sql: &str,
    candidates: &[Candidate],
    known: &Cardinality,
) -> Result<Vec<Candidate>, Trouble> {
    let after = plan_with(subject, sql, candidates, known)?;
    let is_used = |index: usize| {
        let name = candidate_name(index);
        after.iter().any(|line| line.split(' ').any(|word| word == name))
    };
    let used = candidates.iter().enumerate().filter(|(index, _)| is_used(*index));
    Ok(used.map(|(_, candidate)| candidate.clone()).collect())
}

/// Leaves out indexes without which the plan has no more scans and sorts than with them.
fn fewest(
    subject: &Subject,
    sql: &str,
    mut chosen: Vec<Candidate>,
    known: &Cardinality,
) -> Result<Vec<Candidate>, Trouble> {
    let least = faults(&plan_with(subject, sql, &chosen, known)?);
    for index in (0..chosen.len()).rev() {
        let candidate = chosen.remove(index);
        if faults(&plan_with(subject, sql, &chosen, known)?) > least {
            chosen.insert(index, candidate);
        }
    }
    Ok(chosen)
}

/// Takes away columns that the plan does not use, or that do not tell rows apart.
fn shortened(
    subject: &Subject,
    sql: &str,
    mut chosen: Vec<Candidate>,
    known: &Cardinality,
) -> Result<Vec<Candidate>, Trouble> {
    let shape = |plan: &[String]| -> Vec<String> {
        plan.iter().map(|line| line.replace("COVERING ", "")).collect()
    };
    let full = plan_with(subject, sql, &chosen, known)?;
    for index in 0..chosen.len() {
        let Candidate { table, columns } = chosen[index].clone();
        let found = |columns: &[String]| known.rows_per_value(&table, columns);
        for fewer in parts(&columns) {
            let is_as_good = found(&fewer)
                .zip(found(&columns))
                .is_some_and(|(fewer, all)| fewer <= f64::max(2.0 * all, FOUND_ROWS));
            chosen[index].columns = fewer;
            let plan = plan_with(subject, sql, &chosen, known)?;
            let is_same = shape(&plan) == shape(&full);
            if is_same || (is_as_good && faults(&plan) <= faults(&full)) {
                break;
            }
            chosen[index].columns.clone_from(&columns);
        }
    }
    Ok(chosen)
}

/// What is left of these when some are taken away, the shorter first; all of them last.
fn parts(columns: &[String]) -> Vec<Vec<String>> {
    let mut parts: Vec<Vec<String>> = vec![Vec::new()];
    for column in columns {
        let longer: Vec<Vec<String>> =
            parts.iter().map(|part| part.iter().chain([column]).cloned().collect()).collect();
        parts.extend(longer);
    }
    parts.retain(|part| !part.is_empty());
    parts.sort_by_key(Vec::len);
    parts
}

/// The plan on a copy with these indexes.
fn plan_with(
    subject: &Subject,
    sql: &str,
    candidates: &[Candidate],
    known: &Cardinality,
) -> Result<Vec<String>, Trouble> {
    let copy = copy(subject)?;
    for (index, candidate) in candidates.iter().enumerate() {
        let Candidate { table, columns } = candidate;
        let name = candidate_name(index);
        copy.execute_batch(&create_index(&name, table, columns))?;
        if let Some(stat) = known.stat(table, columns) {
            copy.execute("INSERT INTO sqlite_stat1 VALUES (?1, ?2, ?3)", (table, &name, stat))?;
        }
    }
    copy.execute_batch("ANALYZE sqlite_schema")?;
    plan(&copy, sql)
}

fn candidate_name(index: usize) -> String {
    format!("warren_candidate_{index}")
}

fn create_index(name: &str, table: &str, columns: &[String]) -> String {
    let columns: Vec<String> = columns.iter().map(|column| quoted(column)).collect();
    format!("CREATE INDEX {} ON {} ({});", quoted(name), quoted(table), columns.join(", "))
}

/// The schema and its statistics in memory. What cannot be made there, such as a table of a module
/// that is not compiled in, is not in it.
fn copy(subject: &Subject) -> rusqlite::Result<Connection> {
    let copy = Connection::open_in_memory()?;
    copy.set_db_config(DbConfig::SQLITE_DBCONFIG_DQS_DDL, true)?;
    copy.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    let sql = "SELECT sql FROM sqlite_schema
               WHERE sql IS NOT NULL AND type IN ('table', 'index', 'view')
                 AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'
               ORDER BY CASE type WHEN 'table' THEN 1 WHEN 'index' THEN 2 ELSE 3 END, rowid";
    let objects: Vec<String> = subject.rows(sql, [], |row| row.get(0))?;
    for object in objects {
        drop(copy.execute_batch(&object));
    }
    copy.execute_batch("ANALYZE; DELETE FROM sqlite_stat1; DELETE FROM sqlite_stat4")?;
    let has = |name: &str| subject.tables.iter().any(|table| table.name == name);
    for (name, columns) in [("sqlite_stat1", 3), ("sqlite_stat4", 6)] {
        if has(name) {
            copy_table(subject, &copy, name, columns)?;
        }
    }
    copy.execute_batch("ANALYZE sqlite_schema")?;
    Ok(copy)
}

fn copy_table(
    subject: &Subject,
    to: &Connection,
    name: &str,
    columns: usize,
) -> rusqlite::Result<()> {
    let marks = vec!["?"; columns].join(", ");
    let mut insert = to.prepare(&format!("INSERT INTO {name} VALUES ({marks})"))?;
    let values = subject.rows(&format!("SELECT * FROM {name}"), [], |row| {
        (0..columns).map(|index| row.get(index)).collect::<rusqlite::Result<Vec<_>>>()
    })?;
    for values in values {
        let values: Vec<rusqlite::types::Value> = values;
        insert.execute(rusqlite::params_from_iter(values))?;
    }
    Ok(())
}

/// The plan, a line each.
fn plan(db: &Connection, sql: &str) -> Result<Vec<String>, Trouble> {
    let mut statement = db.prepare(&format!("EXPLAIN QUERY PLAN {sql}"))?;
    let lines = statement.raw_query().mapped(|row| row.get(3)).collect::<Result<_, _>>()?;
    Ok(lines)
}

/// Whole tables read, sorts, and indexes made for the time of the query.
fn faults(plan: &[String]) -> usize {
    let is_fault = |line: &&String| {
        (line.starts_with("SCAN ") && !line.contains("CONSTANT ROW") && !line.contains("VIRTUAL"))
            || line.starts_with("USE TEMP B-TREE")
            || line.contains(" AUTOMATIC ")
    };
    plan.iter().filter(is_fault).count()
}

/// The columns that the query reads, as SQLite resolves them.
fn columns_read(
    mut db: Connection,
    sql: &str,
) -> rusqlite::Result<BTreeMap<String, BTreeSet<String>>> {
    let read = Arc::new(Mutex::new(BTreeMap::<String, BTreeSet<String>>::new()));
    let noted = Arc::clone(&read);
    db.authorizer(Some(move |context: AuthContext<'_>| {
        if let AuthAction::Read { table_name, column_name } = context.action {
            let mut noted = noted.lock().unwrap_or_else(PoisonError::into_inner);
            noted.entry(table_name.to_owned()).or_default().insert(column_name.to_owned());
        }
        Authorization::Allow
    }))?;
    drop(db.prepare(sql)?);
    let read = read.lock().unwrap_or_else(PoisonError::into_inner).clone();
    Ok(read)
}

/// Every order of up to three of the columns, as far as there is no such index.
fn candidates(
    subject: &Subject,
    sql: &str,
    read: BTreeMap<String, BTreeSet<String>>,
) -> Vec<Candidate> {
    let words: BTreeSet<String> =
        sql.split(|c: char| !(c.is_alphanumeric() || c == '_')).map(str::to_lowercase).collect();
    let mut candidates = Vec::new();
    for (name, columns) in read {
        let Some(table) = subject.user_tables().find(|table| table.name == name) else { continue };
        let rowid = table.rowid_column().map(|column| column.name.as_str());
        let columns = columns.into_iter().filter(|column| {
            let is_stored = table.columns.iter().any(|of_table| of_table.name == *column);
            is_stored && Some(column.as_str()) != rowid
        });
        // `SELECT *` reads all columns; those that the query names are those that it asks by.
        let (named, others): (Vec<_>, Vec<_>) =
            columns.partition(|column| words.contains(&column.to_lowercase()));
        let mut tried = if named.is_empty() { others } else { named };
        tried.truncate(COLUMNS_MAX);
        for columns in orders(&tried) {
            if !has_index(table, &columns) {
                candidates.push(Candidate { table: name.clone(), columns });
            }
        }
    }
    candidates
}

fn has_index(table: &Table, columns: &[String]) -> bool {
    table.indexes.iter().filter(|index| !index.is_partial).any(|index| {
        index.columns.len() >= columns.len()
            && index
                .columns
                .iter()
                .zip(columns)
                .all(|(key, column)| key.column.as_ref() == Some(column))
    })
}

/// Every ordered choice of one to `KEYS_MAX` of these, the shorter first.
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

fn missing(
    subject: &Subject,
    sql: &str,
    chosen: &[Candidate],
    before: &[String],
    after: &[String],
) -> Finding {
    let name = |candidate: &Candidate| {
        let plain = format!("{}_{}", candidate.table, candidate.columns.join("_"));
        let is_taken = |name: &str| {
            subject.tables.iter().flat_map(|table| &table.indexes).any(|index| index.name == name)
        };
        if is_taken(&plain) { format!("{plain}_2") } else { plain }
    };
    let create: Vec<String> =
        chosen.iter().map(|it| create_index(&name(it), &it.table, &it.columns)).collect();
    let mut after = after.to_vec();
    for (index, candidate) in chosen.iter().enumerate() {
        let (from, to) = (candidate_name(index), name(candidate));
        for line in &mut after {
            *line = line.replace(&from, &to);
        }
    }
    with_plan("query_index_missing", "a query would use an index that is not there", sql, before)
        .evidence(format!("with it:  {}", after.join("; ")))
        .field("plan_after", after)
        .field("indexes", create.clone())
        .cost("It reads whole tables, or sorts, each time; the index costs room and each write.")
        .mend(Mend::Sql(create.join("\n")))
}

fn scans(sql: &str, before: &[String]) -> Finding {
    let what = "a query reads a whole table or sorts, and no index that was tried helps";
    with_plan("query_scans", what, sql, before).cost("Its time grows with the table.")
}

fn with_plan(code: &'static str, what: &str, sql: &str, before: &[String]) -> Finding {
    let advice = "Ask for fewer rows, or by a column; see whether an index on an expression, or a \
                  partial or descending one, fits the query.";
    Finding::new(code, what, Mend::Advice(advice.to_owned()))
        .evidence(sql.trim())
        .evidence(format!("now:      {}", before.join("; ")))
        .field("query", sql)
        .field("plan", before.to_vec())
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
