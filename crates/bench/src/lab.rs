//! What settings and drivers cost: plans for a database file, carried out.

pub mod runtime;
