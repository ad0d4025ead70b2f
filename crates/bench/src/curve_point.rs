//! The position of a benchmark's row on a curve of its report.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A row's place on a curve: the series, and the x that the row was measured at.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct CurvePoint {
    /// The curve that the point is on.
    pub series: String,
    /// The number that the row was measured at, in `unit`.
    pub x: f64,
    /// What `x` counts: `callers`.
    #[schema(value_type = String)]
    pub unit: Cow<'static, str>,
}
