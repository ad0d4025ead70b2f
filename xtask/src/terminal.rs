//! Wraps standard output and the clock, each of which is used only here.

use std::fmt::Display;
use std::io::{self, Write};
use std::time::Instant;

use anyhow::{Context, Result};

/// Prints a line; no other code writes to stdout.
pub(crate) fn print_line(line: impl Display) -> Result<()> {
    writeln!(io::stdout(), "{line}").context("writing to stdout")
}

#[expect(clippy::disallowed_methods, reason = "a tool for people may time what it does")]
pub(crate) fn now() -> Instant {
    Instant::now()
}
