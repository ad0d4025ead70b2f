//! Defines the interface of a library that can run the plan.

use crate::plan::{About, Plan, Request, Settings};

/// A library that can run the plan.
pub trait Competitor: Sized + Send + Sync + 'static {
    /// Returns the versions of the driver, its library and its SQLite.
    fn about() -> impl Future<Output = anyhow::Result<About>>;
    /// Opens the plan's database with the plan's settings.
    fn open(plan: &Plan) -> impl Future<Output = anyhow::Result<Self>>;
    /// Returns the settings of the connection that writes.
    fn settings(&self) -> impl Future<Output = anyhow::Result<Settings>>;
    /// Reads the balance, then runs the transaction; returns after its commit.
    fn run(&self, request: Request) -> impl Future<Output = anyhow::Result<()>> + Send;
    /// Closes every connection, so that the last one moves the WAL into the file.
    fn close(self) -> impl Future<Output = anyhow::Result<()>>;
}
