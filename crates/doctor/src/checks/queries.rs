//! Finds the missing index of a query: SQLite's own planner decides, and its virtual machine
//! measures where the query can be run.
//!
//! Of the indexes that are tried (`queries/candidate.rs`), those that the planner uses
//! (`queries/planner.rs`) are shortened to the keys that it needs. If the values of a query are
//! known and no process has the file open, the query then runs in memory (`queries/query_cost.rs`)
//! with these indexes, with all their keys, with the columns that make them covering, and with
//! partial ones. The cheapest variant is advised.

mod advise;
mod analyzed_query;
mod candidate;
mod load;
mod planner;
mod query_advice;
mod query_cost;
mod shapes;

use self::advise::advise;
use self::analyzed_query::AnalyzedQuery;
use self::planner::QueryPlanner;
use crate::file::check_error::CheckError;
use crate::file::opened_file::OpenedFile;
use crate::file::unreadable::TIME_LIMIT_REACHED;
use crate::report::CheckResults;

pub(crate) fn check(subject: &OpenedFile, log: &mut CheckResults) -> Result<(), CheckError> {
    let mut planner = QueryPlanner::for_file(subject)?;
    for (index, sql) in subject.queries.iter().enumerate() {
        if subject.time_limit.is_spent() {
            log.add_skipped(format!("query {} and later queries", index + 1), TIME_LIMIT_REACHED);
            break;
        }
        let query = AnalyzedQuery { sql, values: Some(&[]), is_verbatim: true };
        if let Some(advice) = advise(subject, &mut planner, &query)? {
            for index in &advice.indexes {
                log.advise(&index.table, index.columns());
            }
            log.add(advice.finding(subject, sql));
        }
        log.add_checked(format!("query {}", index + 1));
    }
    match &subject.workload {
        Some(workload) => load::check(subject, &mut planner, workload, log),
        None => Ok(()),
    }
}
