//! Tests drivers against Format 12, and reports of drivers that work well and badly.

mod drivers;
mod reports;
