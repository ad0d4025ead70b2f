//! Where a row of a table has its place among others, if their order is that of a number.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A row's point on a curve: what was measured for one of several numbers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct CurvePoint {
    /// The curve that the point is on.
    pub series: String,
    /// The number that was chosen for this row, in `unit`.
    pub x: f64,
    /// What `x` counts: `callers`.
    #[schema(value_type = String)]
    pub unit: Cow<'static, str>,
}
