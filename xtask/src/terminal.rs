//! Standard output, and the clock: each used in this one place.

use std::fmt::Display;
use std::io::{self, Write};
use std::time::Instant;

use anyhow::{Context, Result};

/// The one place that writes to stdout.
pub(crate) fn print_line(line: impl Display) -> Result<()> {
    writeln!(io::stdout(), "{line}").context("writing to stdout")
}

#[expect(clippy::disallowed_methods, reason = "a tool for people may time what it does")]
pub(crate) fn now() -> Instant {
    Instant::now()
}
