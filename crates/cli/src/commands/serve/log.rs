//! Writes a server's log to standard error: for each event a line for people or, with `--json`, an
//! object.
//!
//! # Invariants
//! - An event is one line, and sends no control sequences to a terminal, whatever its fields
//!   contain.
//! - Colors are used only on a terminal.

use std::fmt::{Debug, Result};
use std::io::{IsTerminal, stderr};

use tracing::Subscriber;
use tracing::field::{Field, Visit};
use tracing_subscriber::Layer;
use tracing_subscriber::field::RecordFields;
use tracing_subscriber::filter::{LevelFilter, ParseError, Targets};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{self, FormatFields, MakeWriter};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt;

use crate::output::{EscapedText, Printer};

/// Parses a filter: a level, or `module=level`, or several of these, separated by commas. The
/// parser of [`Targets`] would accept any other word as a module.
pub(super) fn parse_filter(text: &str) -> std::result::Result<Targets, String> {
    // The parser of a level also accepts the empty text.
    let is_level = |level: &str| !level.is_empty() && level.parse::<LevelFilter>().is_ok();
    let is_module = |module: &str| {
        let is_of_name = |byte: u8| byte.is_ascii_alphanumeric() || b"_:-".contains(&byte);
        !module.is_empty() && module.bytes().all(is_of_name)
    };
    let is_known = |part: &str| match part.split_once('=') {
        Some((module, level)) => is_module(module) && is_level(level),
        None => is_level(part),
    };
    if !text.split(',').all(is_known) {
        return Err(
            "expected a level (error, warn, info, debug, trace, off), module=level, or several of \
             these, separated by commas"
                .to_owned(),
        );
    }
    text.parse().map_err(|error: ParseError| error.to_string())
}

/// Starts to log events to standard error.
pub(super) fn start(filter: Targets, output: Printer) {
    let log = tracing_subscriber::registry().with(filter);
    if output.json {
        log.with(fmt::layer().json().with_writer(stderr)).init();
    } else {
        log.with(lines(stderr, stderr().is_terminal())).init();
    }
}

/// Formats events for people.
fn lines<S, W>(writer: W, has_colors: bool) -> impl Layer<S>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    W: for<'a> MakeWriter<'a> + 'static,
{
    let layer = fmt::layer().with_writer(writer).fmt_fields(EscapedFields);
    // On a terminal, the variable NO_COLOR decides.
    if has_colors { layer } else { layer.with_ansi(false) }
}

/// Formats the message, then `name=value`. The library's own formatter escapes only some control
/// characters, in some fields.
struct EscapedFields;

impl<'a> FormatFields<'a> for EscapedFields {
    fn format_fields<R: RecordFields>(&self, writer: Writer<'a>, fields: R) -> Result {
        let mut visitor = FieldWriter { writer, is_first: true, result: Ok(()) };
        fields.record(&mut visitor);
        visitor.result
    }
}

struct FieldWriter<'a> {
    writer: Writer<'a>,
    is_first: bool,
    result: Result,
}

impl FieldWriter<'_> {
    fn write(&mut self, name: &str, value: &dyn Debug) -> Result {
        if !std::mem::take(&mut self.is_first) {
            self.writer.write_char(' ')?;
        }
        if name != "message" {
            write!(self.writer, "{name}=")?;
        }
        write!(self.writer, "{}", EscapedText::line(format_args!("{value:?}")))
    }
}

impl Visit for FieldWriter<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        // Libraries that use the crate `log` add their source location in such fields.
        if self.result.is_ok() && !field.name().starts_with("log.") {
            self.result = self.write(field.name(), value);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::{Arc, Mutex};

    use super::*;

    #[derive(Clone, Default)]
    struct LogBuffer(Arc<Mutex<Vec<u8>>>);

    impl io::Write for LogBuffer {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_filter_names_levels() {
        for text in ["info", "off", "WARN", "warn,server=debug", "sync_store::sqlite=trace,error"] {
            parse_filter(text).unwrap();
        }
        for text in ["", "???", "loud", "server", "server=loud", "info,", "=info", "a b=info"] {
            assert!(parse_filter(text).is_err(), "{text}");
        }
    }

    #[test]
    fn an_event_is_one_line_without_control_characters() {
        let written = LogBuffer::default();
        let writer = written.clone();
        let lines = lines(move || writer.clone(), false);
        let hostile = "\u{1b}[2J\n2026 INFO all is well\u{9b}\u{202e}\u{7}";
        let error = io::Error::other(hostile);
        tracing::subscriber::with_default(tracing_subscriber::registry().with(lines), || {
            let span = tracing::info_span!("request", path = %hostile);
            let _entered = span.enter();
            tracing::warn!(%error, path = hostile, cause = ?error, "it says {hostile}");
        });
        let text = String::from_utf8(written.0.lock().unwrap().clone()).unwrap();
        let line = text.strip_suffix('\n').unwrap();
        assert_eq!(line.find(|c: char| c.is_control() || c == '\u{202e}'), None, "{line:?}");
        assert_eq!(line.matches("[2J\\n2026 INFO all is well").count(), 5, "{line}");
        assert!(line.contains("error=\\u{1b}[2J"), "{line}");
    }
}
