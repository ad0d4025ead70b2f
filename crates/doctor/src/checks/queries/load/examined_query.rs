//! Defines a query shape of the log that can be examined on the file.

use crate::checks::queries::analyzed_query::AnalyzedQuery;
use crate::checks::queries::planner::{StatementAccess, candidate_name, uses};
use crate::checks::queries::query_cost::QueryCost;
use crate::format::to_f64;
use crate::program::workload::LoggedShape;

/// A query shape of the log that can be examined on the file.
pub(crate) struct ExaminedQuery<'a> {
    pub(crate) logged: &'a LoggedShape,
    pub(crate) query: AnalyzedQuery<'a>,
    pub(crate) touched: StatementAccess,
    pub(crate) plan: Vec<String>,
    /// The cost without new indexes, if the query could be run.
    pub(crate) before: Option<QueryCost>,
    /// The cost with the indexes that are kept.
    pub(crate) after: Option<QueryCost>,
    pub(crate) plan_after: Vec<String>,
}

impl ExaminedQuery<'_> {
    pub(crate) fn calls(&self) -> f64 {
        to_f64(self.logged.calls)
    }

    /// Returns the time of all calls in microseconds, from the log or else as measured.
    pub(crate) fn us(&self) -> f64 {
        let measured = || self.before.map_or(0.0, |taken| taken.us * self.calls());
        self.logged.us.unwrap_or_else(measured)
    }

    pub(crate) fn uses(&self, place: usize) -> bool {
        uses(&self.plan_after, &candidate_name(place))
    }
}
