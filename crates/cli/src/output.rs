//! What the commands print: text for people or one JSON value for programs, and errors with a code.
//!
//! # Invariants
//! - Everything that is printed passes through [`EscapedText`], so that no name, cell or message
//!   from elsewhere can command a terminal. What is formatted in needs no care where it comes from.

mod escaped_text;
pub(crate) mod time_span;

use std::fmt::{Arguments, Display};
use std::io::Write;
use std::process::ExitCode;
use std::time::Duration;

use clap::Command;
use clap::builder::Styles;
use clap::error::ErrorKind;
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;
use serde_json::json;
use time::OffsetDateTime;

pub(crate) use self::escaped_text::EscapedText;
use crate::serve::settings::{InvalidSettings, mention_variable};

/// Below the list of commands: the way from nothing to two files in step.
pub(crate) const START: &str = "Example:
  warren serve &
  warren account add ada
  warren track a.db --all
  warren sync  a.db --server http://127.0.0.1:4600 --login ada
  warren clone b.db --server http://127.0.0.1:4600 --login ada

From then on `warren sync FILE`, after any program has written to it.";

/// A command that did its work, with an exit status that tells what it saw. Not an error: nothing
/// is printed for it.
#[derive(Debug, thiserror::Error)]
#[error("exit status {0}")]
pub(crate) struct NonZeroExit(pub(crate) u8);

/// How to print.
#[derive(Clone, Copy)]
pub(crate) struct Printer {
    pub(crate) json: bool,
}

impl Printer {
    /// A line for people; nothing with `--json`. Newlines and tabs in what is formatted in are shown
    /// as `\n` and `\t`: it stays one line.
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
    pub(crate) fn json(self, value: &impl Serialize) -> anyhow::Result<()> {
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
        let template = "{msg:10} [{bar:30}] {human_pos}/{human_len} {per_sec} {eta} left";
        let style = ProgressStyle::with_template(template).expect("the template is valid");
        ProgressBar::new(0).with_style(style.progress_chars("=> "))
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

    /// Reports how the command ended: 0, or the error and the status of its code, or the status of
    /// its verdict.
    pub(crate) fn exit(self, result: anyhow::Result<()>) -> ExitCode {
        let Err(error) = result else { return ExitCode::SUCCESS };
        if let Some(NonZeroExit(status)) = error.downcast_ref() {
            return ExitCode::from(*status);
        }
        let code = code(&error);
        if self.json {
            let message = message(&error);
            print(&EscapedText::json(json!({"error": {"code": code, "message": message}})));
        } else {
            let message = message(&error);
            print_error(&EscapedText::line(format_args!("warren: {message} [{code}]")));
        }
        ExitCode::from(exit_status(code))
    }
}

/// Prints why the arguments are not understood, or the help that they ask for; `command` is what
/// they were for.
pub(crate) fn report_usage(error: &clap::Error, command: Command) -> ExitCode {
    use ErrorKind::{DisplayHelp, DisplayHelpOnMissingArgumentOrSubcommand, DisplayVersion};
    let status = ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(u8::MAX));
    let kind = error.kind();
    if [DisplayHelp, DisplayVersion, DisplayHelpOnMissingArgumentOrSubcommand].contains(&kind) {
        // Nothing of it is from the arguments. Where the output is closed, nobody reads it.
        drop(error.print());
        return status;
    }
    // An error repeats arguments, whose escape sequences could not be told from those of its own
    // colours. So it is made again without colours.
    let command = command.styles(Styles::plain());
    if let Err(plain) = command.try_get_matches_from(std::env::args_os()) {
        let plain = mention_variable(plain);
        print_error(&EscapedText::text(plain.render().ansi().to_string().trim_end()));
    }
    status
}

/// On standard error. Where that is closed, there is nobody to tell.
fn print_error<T: Display>(line: &EscapedText<T>) {
    drop(writeln!(std::io::stderr(), "{line}"));
}

/// A line on standard output. A reader that has gone away (`| head`) is no fault of ours.
fn print<T: Display>(line: &EscapedText<T>) {
    drop(writeln!(std::io::stdout(), "{line}"));
}

/// The error and what it comes from, each part once: some errors repeat their source in their own
/// text.
fn message(error: &anyhow::Error) -> String {
    let mut message = String::new();
    for part in error.chain().map(ToString::to_string) {
        if message.is_empty() {
            message = part;
        } else if !message.contains(&part) {
            message = format!("{message}: {part}");
        }
    }
    message
}

/// What scripts branch on: the numbers of `sysexits.h` where one fits (`docs/formats/4-errors.md`).
fn exit_status(code: &str) -> u8 {
    match code {
        "intermediary" | "server_damaged" | "unavailable" | "unreachable" | "untrusted" => 69,
        "disk_full" | "no_room" | "quota_exceeded" | "storage_failed" | "storage_full" => 74,
        "busy" | "timeout" | "too_many_attempts" => 75,
        "admin_disabled"
        | "invalid_token"
        | "read_only"
        | "registration_closed"
        | "wrong_password" => 77,
        _ => 1,
    }
}

/// The error's code: the closed list's where it has one (`docs/formats/4-errors.md`).
fn code(error: &anyhow::Error) -> &'static str {
    if let Some(error) = error.downcast_ref::<replica::Error>() {
        return error.code();
    }
    if let Some(error) = error.downcast_ref::<::doctor::Error>() {
        return error.code();
    }
    #[cfg(feature = "bench")]
    if error.is::<::bench::sqlite_bench::runtime::NotSetUp>() {
        return "not_set_up";
    }
    if error.is::<InvalidSettings>() {
        return "invalid_settings";
    }
    if let Some(error) = error.downcast_ref::<::actual::inventory::InventoryError>() {
        return error.code();
    }
    if let Some(error) = error.downcast_ref::<::actual::export::ExportError>() {
        return error.code();
    }
    if let Some(server::Error::Tls(_)) = error.downcast_ref() {
        return "invalid_certificate";
    }
    let stored = match error.downcast_ref::<server::Error>() {
        Some(server::Error::Store(error)) => Some(error),
        _ => error.downcast_ref::<sync_store::Error>(),
    };
    match stored {
        Some(sync_store::Error::Busy(_)) => return "busy",
        Some(sync_store::Error::DataInUse { .. }) => return "data_in_use",
        Some(sync_store::Error::Unavailable(_)) => return "unavailable",
        _ => {}
    }
    match error.downcast_ref::<engine::Error>() {
        Some(engine::Error::Busy | engine::Error::CopyOvertaken { .. }) => return "busy",
        Some(engine::Error::DiskFull { .. }) => return "disk_full",
        Some(engine::Error::NotEnoughSpace { .. }) => return "no_room",
        Some(engine::Error::WrongKey { .. } | engine::Error::NotEncrypted { .. }) => {
            return "wrong_key";
        }
        _ => {}
    }
    let of_accounts = match error.downcast_ref::<server::Error>() {
        Some(server::Error::Accounts(error)) => Some(error),
        _ => error.downcast_ref::<accounts::Error>(),
    };
    let Some(error) = of_accounts else { return "failed" };
    match error {
        accounts::Error::AccountExists => "account_exists",
        accounts::Error::InvalidLogin => "invalid_login",
        accounts::Error::InvalidPassword => "invalid_password",
        accounts::Error::NotFound => "not_found",
        accounts::Error::UnfinishedRestore { .. } => "unfinished_restore",
        accounts::Error::WrongPassword => "wrong_password",
        _ => "failed",
    }
}

/// Bytes for people: `12.3 MB`.
pub(crate) fn format_bytes(bytes: u64) -> impl Display {
    indicatif::DecimalBytes(bytes)
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
/// of 1970 (`docs/formats/1-timestamp.md`).
pub(crate) fn format_change_time(ms: u64) -> String {
    const BASELINE_MS_END: u64 = 86_400_000;
    if ms < BASELINE_MS_END { "before it was tracked".to_owned() } else { format_time(ms) }
}
