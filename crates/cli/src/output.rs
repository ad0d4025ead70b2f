//! What the commands print: text for people or one JSON value for programs, and errors with a code.
//!
//! # Invariants
//! - Everything that is printed passes through [`EscapedText`], so that no name, cell or message
//!   from elsewhere can command a terminal. What is formatted in needs no care where it comes from.

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

/// Below the list of commands: the way from nothing to two files in sync.
pub(crate) const START: &str = "Example:
  warren serve &
  warren account add ada
  warren track a.db --all
  warren sync  a.db --server http://127.0.0.1:4600 --login ada
  warren clone b.db --server http://127.0.0.1:4600 --login ada

After that, run `warren sync FILE` whenever a program has changed the file, or keep
`warren sync FILE --watch` running.
See `warren COMMAND --help` for the options and examples of a command.";

/// How to print.
#[derive(Clone, Copy)]
pub(crate) struct Printer {
    pub(crate) json: bool,
}

impl Printer {
    /// A line for people; nothing with `--json`. Newlines and tabs in what is formatted in are
    /// shown as `\n` and `\t`: it stays one line.
    pub(crate) fn line(self, line: Arguments<'_>) {
        if !self.json {
            print(&EscapedText::line(line));
        }
    }

    /// Several lines for people, composed here; nothing with `--json`. Newlines and tabs stay.
    pub(crate) fn text(self, text: Arguments<'_>) {
        if !self.json {
            print(&EscapedText::text(text));
        }
    }

    /// The value for programs; nothing without `--json`.
    pub(crate) fn json(self, value: &(impl Serialize + ToSchema)) -> anyhow::Result<()> {
        if self.json {
            print(&EscapedText::json(serde_json::to_string(value)?));
        }
        Ok(())
    }

    /// A bar on the terminal; hidden with `--json`, and where no terminal is. Its messages are
    /// Warren's own words: they are not passed through [`EscapedText`].
    pub(crate) fn progress(self) -> ProgressBar {
        if self.json {
            return ProgressBar::hidden();
        }
        let template = "{msg:10} [{bar:30}] {counts}";
        let style = ProgressStyle::with_template(template).expect("the template is valid");
        let style = style.progress_chars("=> ").with_key("counts", write_counts);
        ProgressBar::no_length().with_style(style)
    }

    /// What turns on the terminal while something runs that cannot say how far it is; hidden as the
    /// bar is.
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

/// The figures next to a progress bar, those that are known: `1,200/5,000  850/s  4s left`.
fn write_counts(state: &ProgressState, to: &mut dyn std::fmt::Write) {
    let (done, rate, eta) = (state.pos(), state.per_sec(), state.eta());
    let mut parts = Vec::new();
    match state.len() {
        Some(total) if total > done => {
            parts.push(format!("{}/{}", HumanCount(done), HumanCount(total)));
        }
        _ if done > 0 => parts.push(HumanCount(done).to_string()),
        _ => {}
    }
    if rate.is_finite() && rate >= 1.0 {
        parts.push(format!("{:.0}/s", HumanFloatCount(rate)));
    }
    if eta >= Duration::from_secs(1) {
        parts.push(format!("{:#} left", HumanDuration(eta)));
    }
    to.write_str(&parts.join("  ")).expect("a string takes any text");
}

/// On standard error. Where that is closed, there is nobody to tell.
fn print_error<T: Display>(line: &EscapedText<T>) {
    drop(writeln!(std::io::stderr(), "{line}"));
}

/// A line on standard output. A reader that has gone away (`| head`) is no fault of ours.
fn print<T: Display>(line: &EscapedText<T>) {
    drop(writeln!(std::io::stdout(), "{line}"));
}

/// A moment for people: `2026-11-21 06:30:00Z`, or `never` for 0.
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

/// When a change was made, for people. Rows that were there before are stamped with the first day
/// of 1970 (`docs/reference/formats/1-timestamp.md`).
pub(crate) fn format_change_time(ms: u64) -> String {
    const BASELINE_MS_END: u64 = 86_400_000;
    if ms < BASELINE_MS_END { "before it was tracked".to_owned() } else { format_time(ms) }
}
