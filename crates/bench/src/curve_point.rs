//! The position of a benchmark's row on a curve of its report.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A row's place on a curve: the series, and the x value at which the row was measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct CurvePoint {
    /// The name of the curve that the point is on.
    pub series: String,
    /// The x value at which the row was measured, in `unit`.
    pub x: f64,
    /// The unit that `x` counts, such as `callers`.
    #[schema(value_type = String)]
    pub unit: Cow<'static, str>,
}
