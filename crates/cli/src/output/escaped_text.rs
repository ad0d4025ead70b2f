//! Escapes text from elsewhere, so that it is safe to print: device names, cell values, file names,
//! arguments and servers' messages may contain control characters, which a terminal obeys.
//!
//! # Invariants
//! - No control character (Unicode category Cc: C0, DEL, C1) and no character that changes the
//!   direction of writing (property `Bidi_Control`) passes. It is shown as in a Rust literal:
//!   `\u{1b}`.
//!
//! # Not here
//! - Printing → [`Printer`](super::Printer), which passes everything through this module.

use std::fmt::{Display, Formatter, Result, Write};

/// The form of the output, which decides which characters stay.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PrintFormat {
    /// One line, which only Warren ends.
    Line,
    /// A text whose line breaks and indentation come from Warren.
    Text,
    /// JSON, in which only strings contain such characters: JSON escapes keep the value the same.
    Json,
}

/// Shows a value with its control characters escaped.
pub(crate) struct EscapedText<T> {
    value: T,
    format: PrintFormat,
}

impl<T: Display> EscapedText<T> {
    /// Escapes a value for one line: newlines and tabs, too.
    pub(crate) fn line(value: T) -> Self {
        Self { value, format: PrintFormat::Line }
    }

    /// Escapes a value in a text that Warren composed: newlines and tabs stay.
    pub(crate) fn text(value: T) -> Self {
        Self { value, format: PrintFormat::Text }
    }

    /// Escapes a value that is already JSON.
    pub(crate) fn json(value: T) -> Self {
        Self { value, format: PrintFormat::Json }
    }
}

impl<T: Display> Display for EscapedText<T> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        write!(EscapingWriter { to: f, format: self.format }, "{}", self.value)
    }
}

struct EscapingWriter<'a, 'b> {
    to: &'a mut Formatter<'b>,
    format: PrintFormat,
}

impl Write for EscapingWriter<'_, '_> {
    fn write_str(&mut self, text: &str) -> Result {
        let is_kept = |c: char| self.format == PrintFormat::Text && matches!(c, '\n' | '\t');
        let mut rest = text;
        while let Some(at) = rest.find(|c| is_control(c) && !is_kept(c)) {
            let (before, after) = rest.split_at(at);
            self.to.write_str(before)?;
            let mut characters = after.chars();
            let control = characters.next().expect("one was found here");
            match self.format {
                PrintFormat::Json => write!(self.to, "\\u{:04x}", u32::from(control))?,
                PrintFormat::Line | PrintFormat::Text => {
                    write!(self.to, "{}", control.escape_default())?;
                }
            }
            rest = characters.as_str();
        }
        self.to.write_str(rest)
    }
}

/// Returns whether a terminal acts on a character instead of showing it.
fn is_control(c: char) -> bool {
    let is_bidi_control = matches!(
        c,
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
    );
    c.is_control() || is_bidi_control
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, line: &str) {
        assert_eq!(EscapedText::line(text).to_string(), line, "{text:?}");
    }

    #[test]
    fn what_a_terminal_would_obey_is_shown() {
        check("plain ☂ Zürich \\ \"quoted\" 日本", "plain ☂ Zürich \\ \"quoted\" 日本");
        check("\u{1b}[2J", "\\u{1b}[2J");
        check("a\0b\u{7}c\u{8}\u{7f}", "a\\u{0}b\\u{7}c\\u{8}\\u{7f}");
        check("\u{9b}31m\u{80}", "\\u{9b}31m\\u{80}");
        check("\u{202e}txt.exe\u{2066}\u{2069}", "\\u{202e}txt.exe\\u{2066}\\u{2069}");
        check("\u{61c}\u{200e}\u{200f}", "\\u{61c}\\u{200e}\\u{200f}");
        check("one\ntwo\r\tthree", "one\\ntwo\\r\\tthree");
    }

    #[test]
    fn a_text_keeps_its_lines_and_nothing_else() {
        assert_eq!(EscapedText::text("a\n\tb\r\u{1b}").to_string(), "a\n\tb\\r\\u{1b}");
    }

    #[test]
    fn json_stays_the_same_value() {
        let text = "\u{1b}\u{7f}\u{9b}\u{202e}\"\n";
        let json = EscapedText::json(serde_json::to_string(text).unwrap()).to_string();
        assert_eq!(json, r#""\u001b\u007f\u009b\u202e\"\n""#);
        assert_eq!(serde_json::from_str::<String>(&json).unwrap(), text);
    }
}
