//! Drivers against Format 12, and reports of drivers that do it well and badly.

mod drivers;
mod reports;
