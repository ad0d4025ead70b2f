//! Prints the commands' output: text for people or one JSON value for programs, and errors with a
//! code.
//!
//! # Invariants
//! - All output passes through [`EscapedText`], so that no name, cell or message from elsewhere can
//!   control a terminal. Callers may format in text from any source.

mod command_error;
mod error_codes;
mod error_hints;
mod escaped_text;
pub(crate) mod exit_status;
mod failure;
pub(crate) mod time_span;
pub(crate) mod usage;

use std::fmt::{Arguments, Display};
use std::io::Write;
use std::time::Duration;

use indicatif::{
    HumanCount, HumanDuration, HumanFloatCount, ProgressBar, ProgressState, ProgressStyle,
};
use serde::Serialize;
use time::OffsetDateTime;
use utoipa::ToSchema;

pub(crate) use self::command_error::CommandError;
pub(crate) use self::escaped_text::EscapedText;
pub(crate) use self::exit_status::NonZeroExit;
pub(crate) use self::failure::{ErrorDetails, ErrorOutput};

/// The example below the list of commands: the steps from nothing to two files in sync.
pub(crate) const START: &str = "Example:
  warren serve &
  warren account add ada
  warren track a.db --all
  warren sync  a.db --server http://127.0.0.1:4600 --login ada
  warren clone b.db --server http://127.0.0.1:4600 --login ada

After that, run `warren sync FILE` whenever a program has changed the file, or keep
`warren sync FILE --watch` running.
See `warren COMMAND --help` for the options and examples of a command.";

/// Prints output in the chosen format.
#[derive(Clone, Copy)]
pub(crate) struct Printer {
    pub(crate) json: bool,
}

impl Printer {
    /// Prints a line for people; nothing with `--json`. Newlines and tabs in the arguments are
    /// shown as `\n` and `\t`, so the output stays one line.
    pub(crate) fn line(self, line: Arguments<'_>) {
        if !self.json {
            print(&EscapedText::line(line));
        }
    }

    /// Prints several lines that Warren composed, for people; nothing with `--json`. Newlines and
    /// tabs stay.
    pub(crate) fn text(self, text: Arguments<'_>) {
        if !self.json {
            print(&EscapedText::text(text));
        }
    }

    /// Prints the value for programs; nothing without `--json`.
    pub(crate) fn json(self, value: &(impl Serialize + ToSchema)) -> anyhow::Result<()> {
        if self.json {
            print(&EscapedText::json(serde_json::to_string(value)?));
        }
        Ok(())
    }

    /// Returns a progress bar; hidden with `--json`, and without a terminal. Its messages are
    /// Warren's own words, and do not pass through [`EscapedText`].
    pub(crate) fn progress(self) -> ProgressBar {
        if self.json {
            return ProgressBar::hidden();
        }
        let template = "{msg:10} [{bar:30}] {counts}";
        let style = ProgressStyle::with_template(template).expect("the template is valid");
        let style = style.progress_chars("=> ").with_key("counts", write_counts);
        ProgressBar::no_length().with_style(style)
    }

    /// Returns a spinner for work that cannot report its progress; hidden like the progress bar.
    pub(crate) fn spinner(self, message: Arguments<'_>) -> ProgressBar {
        if self.json {
            return ProgressBar::hidden();
        }
        let message = EscapedText::line(message).to_string();
        let spinner = ProgressBar::new_spinner().with_message(message);
        spinner.enable_steady_tick(Duration::from_millis(100));
        spinner
    }
}

/// Writes the figures next to a progress bar.
fn write_counts(state: &ProgressState, to: &mut dyn std::fmt::Write) {
    let text = progress_figures(state.pos(), state.len(), state.per_sec(), state.eta());
    to.write_str(&text).expect("a string accepts any text");
}

/// Formats the figures of a task that are known: `1,200/5,000  850/s  4s left`.
fn progress_figures(done: u64, total: Option<u64>, rate: f64, remaining: Duration) -> String {
    let mut figures = Vec::new();
    match total {
        Some(total) if total > done => {
            figures.push(format!("{}/{}", HumanCount(done), HumanCount(total)));
        }
        _ if done > 0 => figures.push(HumanCount(done).to_string()),
        _ => {}
    }
    if rate.is_finite() && rate >= 1.0 {
        figures.push(format!("{:.0}/s", HumanFloatCount(rate)));
    }
    if remaining >= Duration::from_secs(1) {
        figures.push(format!("{:#} left", HumanDuration(remaining)));
    }
    figures.join("  ")
}

/// Prints a line to standard error. If that is closed, the error cannot be reported.
fn print_error<T: Display>(line: &EscapedText<T>) {
    drop(writeln!(std::io::stderr(), "{line}"));
}

/// Prints a line to standard output. A reader that closes the pipe (`| head`) is not an error.
fn print<T: Display>(line: &EscapedText<T>) {
    drop(writeln!(std::io::stdout(), "{line}"));
}

/// Formats a time for people: `2026-11-21 06:30:00Z`, or `never` for 0.
pub(crate) fn format_time(ms: u64) -> String {
    let Ok(moment) = OffsetDateTime::from_unix_timestamp((ms / 1000).cast_signed()) else {
        return format!("{ms} ms");
    };
    if ms == 0 {
        return "never".to_owned();
    }
    let (date, (hour, minute, second)) = (moment.date(), moment.to_hms());
    format!("{date} {hour:02}:{minute:02}:{second:02}Z")
}

/// Formats the time of a change for people. Rows that existed before tracking have timestamps on
/// the first day of 1970 (`docs/reference/formats/1-timestamp.md`).
pub(crate) fn format_change_time(ms: u64) -> String {
    const BASELINE_MS_END: u64 = 86_400_000;
    if ms < BASELINE_MS_END { "before it was tracked".to_owned() } else { format_time(ms) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_progress_bar_shows_only_the_figures_that_are_known() {
        let (none, four) = (Duration::ZERO, Duration::from_secs(4));
        assert_eq!(progress_figures(0, None, 0.0, none), "");
        assert_eq!(progress_figures(1_200, None, f64::NAN, none), "1,200");
        let known = progress_figures(1_200, Some(5_000), 1_272.556_3, four);
        assert_eq!(known, "1,200/5,000  1,273/s  4s left");
        assert_eq!(progress_figures(5_000, Some(5_000), 0.2, none), "5,000");
    }
}
