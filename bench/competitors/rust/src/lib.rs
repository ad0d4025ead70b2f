//! Contains the code that the Rust drivers share: reading the plan, the callers that each wait for
//! their transaction, and the answer.
//!
//! A driver is a type that implements [`Competitor`] and a `main` that calls [`drive`]. The plan
//! and the answer are Warren's Format 7.
//!
//! # Invariants
//! - A transaction counts when its commit has returned, and only if that was within the plan's
//!   seconds.
//!
//! # Not here
//! - How a library runs a transaction → the driver of that library, next to this crate.

mod callers;
mod competitor;
mod plan;

use std::io::Write;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context;
use callers::CallerResult;
pub use competitor::Competitor;
use plan::Answer;
pub use plan::{About, Plan, Request, Settings, Synchronous};

pub const BEGIN_SQL: &str = "BEGIN IMMEDIATE";
pub const CREDIT_SQL: &str = "UPDATE account SET balance = balance + 1 WHERE id = ?";
pub const DEBIT_SQL: &str = "UPDATE account SET balance = balance - 1 WHERE id = ?";
pub const BALANCE_SQL: &str = "SELECT balance FROM account WHERE id = ?";

/// Runs the whole program of a driver.
pub fn drive<R: Competitor>() -> ExitCode {
    let (line, code) = match answer::<R>() {
        Ok(answer) => (answer, ExitCode::SUCCESS),
        Err(error) => {
            (serde_json::json!({ "error": format!("{error:#}") }).to_string(), ExitCode::FAILURE)
        }
    };
    match writeln!(std::io::stdout(), "{line}") {
        Ok(()) => code,
        Err(_) => ExitCode::FAILURE,
    }
}

/// Returns the version of a library that the driver's lock file names.
pub fn locked_version(lock: &str, library: &str) -> anyhow::Result<String> {
    let name = format!("name = \"{library}\"");
    let after = lock.lines().skip_while(|line| *line != name).nth(1);
    let version = after.and_then(|line| line.strip_prefix("version = \""));
    let version = version.and_then(|rest| rest.strip_suffix('"'));
    Ok(version.with_context(|| format!("the lock file has no {library}"))?.to_owned())
}

/// Returns the version of the compiler that built the driver.
pub fn runtime() -> String {
    env!("COMPETITOR_RUNTIME").to_owned()
}

fn answer<R: Competitor>() -> anyhow::Result<String> {
    // This is the runtime that `#[tokio::main]` would start.
    let runtime = tokio::runtime::Runtime::new().context("starting tokio")?;
    runtime.block_on(async {
        if std::env::args().nth(1).as_deref() == Some("about") {
            return Ok(serde_json::to_string(&R::about().await?)?);
        }
        let plan: Plan = serde_json::from_reader(std::io::stdin()).context("reading the plan")?;
        Ok(serde_json::to_string(&measure::<R>(&plan).await?)?)
    })
}

async fn measure<R: Competitor>(plan: &Plan) -> anyhow::Result<Answer> {
    let requests = plan.read_requests()?;
    let competitor = Arc::new(R::open(plan).await.context("opening the database")?);
    let settings = competitor.settings().await.context("reading the settings back")?;
    let CallerResult { transactions, elapsed, latency_us } =
        callers::measure(plan, Arc::clone(&competitor), requests).await?;
    let competitor = Arc::into_inner(competitor).context("a caller still holds the database")?;
    competitor.close().await.context("closing the database")?;
    Ok(Answer {
        about: R::about().await?,
        transactions,
        seconds: elapsed.as_secs_f64(),
        latency_us,
        settings,
    })
}
