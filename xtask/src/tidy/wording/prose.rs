//! Finds the prose in a file: the paragraphs of documents and comments, and the string literals.
//!
//! Except in Rust, comments are found by the marks at the start of a line, or after a space, which
//! is enough for formatted code.
//!
//! # Invariants
//! - Code in backticks and addresses are blanked out, so no habit is found in them.
//!
//! # Not here
//! - Strings of Python, JavaScript and shell scripts, which are for tests and benchmarks.

use std::mem;
use std::sync::LazyLock;

use regex::{Captures, Regex};

use super::super::markdown::prose_lines;
use super::super::rust_lexer::outside_test_modules;
use super::super::source_tree::SourceFile;

/// Code in backticks, the target of a link, an address, or the end of a line in a string.
static NOT_PROSE: LazyLock<Regex> =
    LazyLock::new(|| compile(r"`[^`]*`|\]\([^)]*\)|https?://\S+|\\n"));

/// The parts of code that are not text; backticks enclose texts there.
static NOT_TEXT: LazyLock<Regex> = LazyLock::new(|| compile(r"\$\{[^}]*\}|https?://\S+|\\n"));

/// The start of an item of a list, a row of a table, or a heading.
static NEW_PARAGRAPH: LazyLock<Regex> = LazyLock::new(|| compile(r"^(?:\||(?:[-*]|#+|\d+\.)\s)"));

/// The marks before the text of an item, a quotation or a heading.
static MARKS: LazyLock<Regex> = LazyLock::new(|| compile(r"^(?:[-*>|#]+|\d+\.)\s+"));

/// The start of a comment: at the start of a line, or after a space or the brace of JSX.
static SLASH_COMMENT: LazyLock<Regex> = LazyLock::new(|| compile(r"(?:^|[\s{])(//|/\*)"));
static HASH_COMMENT: LazyLock<Regex> = LazyLock::new(|| compile(r"\s#+\s"));

/// Files with comments after `//` and in `/* … */`, after `--`, or after `#`.
const SLASH_COMMENTS: &[&str] =
    &[".ts", ".tsx", ".js", ".mjs", ".css", ".proto", ".c", ".go", ".java"];
const SQL_COMMENTS: &[&str] = &[".sql"];
const HASH_COMMENTS: &[&str] =
    &[".py", ".sh", ".toml", ".yml", "Makefile", "Dockerfile", ".ci/run"];

const PAGE: &str = ".html";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ProseKind {
    Heading,
    Paragraph,
    /// The first paragraph of a doc comment, which an editor shows alone.
    Summary,
    /// Code with the texts of a page.
    Code,
}

/// A paragraph, joined into one line.
pub(super) struct Prose {
    pub(super) kind: ProseKind,
    pub(super) text: String,
    /// Where each line of the file begins in `text`, and the line's number.
    line_starts: Vec<(usize, usize)>,
}

impl Prose {
    fn new(kind: ProseKind, lines: &[(usize, &str)]) -> Prose {
        let mut text = String::new();
        let mut line_starts = Vec::new();
        for (number, line) in lines {
            line_starts.push((text.len(), *number));
            text.push_str(line.trim());
            text.push(' ');
        }
        let not_prose = if kind == ProseKind::Code { &NOT_TEXT } else { &NOT_PROSE };
        // A byte for each byte: the starts of the lines stay valid.
        let blank = |code: &Captures| {
            let blank = if code[0].starts_with('\\') { " " } else { "_" };
            blank.repeat(code[0].len())
        };
        let text = not_prose.replace_all(text.trim_end(), blank).into_owned();
        Prose { kind, text, line_starts }
    }

    /// Returns the number of the file's line that contains a byte of the text.
    pub(super) fn line(&self, offset: usize) -> usize {
        let before = self.line_starts.iter().take_while(|(start, _)| *start <= offset);
        before.last().map_or(1, |(_, number)| *number)
    }
}

/// Returns the prose of a file, or nothing if the kind of file is unknown.
pub(super) fn find(file: &SourceFile) -> Vec<Prose> {
    let ends_with = |ends: &[&str]| ends.iter().any(|end| file.path.ends_with(end));
    if file.is_markdown() {
        let mut found = Vec::new();
        push_paragraphs(&mut found, &prose_lines(file), false);
        found
    } else if file.is_rust() {
        rust(file)
    } else if ends_with(SLASH_COMMENTS) {
        slash_comments(file)
    } else if file.path.ends_with(PAGE) {
        let lines: Vec<_> = file.numbered_lines().collect();
        vec![Prose::new(ProseKind::Code, &lines)]
    } else if ends_with(HASH_COMMENTS) {
        hash_comments(file)
    } else if ends_with(SQL_COMMENTS) {
        sql_comments(file)
    } else {
        Vec::new()
    }
}

/// Splits lines into paragraphs at empty lines, headings, items and code.
fn push_paragraphs(found: &mut Vec<Prose>, lines: &[(usize, &str)], is_doc: bool) {
    let mut kind = if is_doc { ProseKind::Summary } else { ProseKind::Paragraph };
    let mut paragraph = Vec::new();
    let mut is_code = false;
    let mut end = |paragraph: &mut Vec<(usize, &str)>, kind: &mut ProseKind| {
        if !paragraph.is_empty() {
            found.push(Prose::new(*kind, &mem::take(paragraph)));
            *kind = ProseKind::Paragraph;
        }
    };
    for (index, &(number, line)) in lines.iter().enumerate() {
        let line = line.trim();
        let next = lines.get(index + 1).map_or("", |(_, next)| next.trim_start());
        let is_heading = line.starts_with("# ")
            || line.starts_with("##")
            || line.starts_with('|') && next.starts_with("|-");
        let is_fence = line.starts_with("```");
        is_code ^= is_fence;
        if is_code || is_fence || line.is_empty() || NEW_PARAGRAPH.is_match(line) {
            end(&mut paragraph, &mut kind);
        }
        if is_code || is_fence || line.is_empty() {
            continue;
        }
        let text = &line[MARKS.find(line).map_or(0, |marks| marks.end())..];
        paragraph.push((number, text));
        if is_heading {
            kind = ProseKind::Heading;
            end(&mut paragraph, &mut kind);
        }
    }
    end(&mut paragraph, &mut kind);
}

/// Collects the lines of a comment until another kind of line ends it.
#[derive(Default)]
struct CommentBlock<'a> {
    lines: Vec<(usize, &'a str)>,
    is_doc: bool,
}

impl<'a> CommentBlock<'a> {
    fn push(&mut self, found: &mut Vec<Prose>, number: usize, line: &'a str, is_doc: bool) {
        if self.is_doc != is_doc {
            self.end(found);
            self.is_doc = is_doc;
        }
        self.lines.push((number, line));
    }

    fn end(&mut self, found: &mut Vec<Prose>) {
        push_paragraphs(found, &mem::take(&mut self.lines), self.is_doc);
    }
}

fn rust(file: &SourceFile) -> Vec<Prose> {
    let lines = file.rust_lines();
    let mut found = Vec::new();
    let mut block = CommentBlock::default();
    for (index, line) in lines.iter().enumerate() {
        let comment = line.comment.trim();
        let is_own_line = line.code.trim().is_empty();
        if comment.is_empty() || !is_own_line {
            block.end(&mut found);
        }
        let is_doc = comment.starts_with("///") || comment.starts_with("//!");
        if !comment.is_empty() {
            let text = comment.trim_start_matches(['/', '!', '*']).trim_end_matches("*/");
            block.push(&mut found, index + 1, text, is_doc);
        }
        if !is_own_line {
            block.end(&mut found);
        }
    }
    block.end(&mut found);
    if !is_test(&file.path) {
        let mut literal = Vec::new();
        for (number, line) in outside_test_modules(&lines) {
            for (index, part) in line.literals.split('\n').enumerate() {
                if index > 0 {
                    found.push(Prose::new(ProseKind::Paragraph, &mem::take(&mut literal)));
                }
                literal.push((number, part.trim_end_matches('\\')));
            }
            literal.retain(|(_, part)| !part.trim().is_empty());
        }
    }
    found
}

/// Finds comments, and in TypeScript also the code between them: it contains the texts of pages.
fn slash_comments(file: &SourceFile) -> Vec<Prose> {
    let mut found = Vec::new();
    let mut block = CommentBlock::default();
    let mut code = Vec::new();
    let mut is_inside = false;
    for (number, line) in file.numbered_lines() {
        let start = SLASH_COMMENT.captures(line).and_then(|found| found.get(1));
        let start = start.map_or(line.len(), |start| start.start());
        let (statement, comment) = line.split_at(if is_inside { 0 } else { start });
        let is_own_line = statement.trim().trim_matches('{').is_empty();
        if !is_own_line || comment.is_empty() {
            block.end(&mut found);
            code.push((number, statement));
        }
        let is_doc = comment.starts_with("/**") || is_inside && block.is_doc;
        let (text, _) = comment.split_once("*/").unwrap_or((comment, ""));
        if !comment.is_empty() {
            block.push(&mut found, number, text.trim().trim_start_matches(['/', '*']), is_doc);
        }
        is_inside = (is_inside || comment.starts_with("/*")) && !comment.contains("*/");
        if comment.contains("*/") || !is_own_line && !is_inside {
            block.end(&mut found);
        }
    }
    block.end(&mut found);
    if file.is_typescript() && !is_test(&file.path) {
        found.push(Prose::new(ProseKind::Code, &code));
    }
    found
}

/// Finds comments and, in Python, docstrings.
fn hash_comments(file: &SourceFile) -> Vec<Prose> {
    let mut found = Vec::new();
    let mut block = CommentBlock::default();
    let mut is_inside = false;
    for (number, line) in file.numbered_lines() {
        let line = line.trim();
        let quotes = line.matches("\"\"\"").count();
        if !is_inside && line.starts_with('#') {
            block.push(&mut found, number, line.trim_start_matches(['#', '!']), false);
        } else if is_inside || quotes > 0 {
            block.push(&mut found, number, line.trim_matches('"'), false);
            is_inside ^= quotes == 1;
        } else {
            block.end(&mut found);
            let comment = HASH_COMMENT.find(line).map_or("", |mark| &line[mark.end()..]);
            block.push(&mut found, number, comment, false);
            block.end(&mut found);
        }
    }
    block.end(&mut found);
    found
}

fn sql_comments(file: &SourceFile) -> Vec<Prose> {
    let mut found = Vec::new();
    let mut block = CommentBlock::default();
    for (number, line) in file.numbered_lines() {
        match line.split_once("--") {
            Some((code, comment)) => {
                if !code.trim().is_empty() {
                    block.end(&mut found);
                }
                block.push(&mut found, number, comment, false);
            }
            None => block.end(&mut found),
        }
    }
    block.end(&mut found);
    found
}

/// Returns whether a path is one of a test, whose strings are input and not text for people.
fn is_test(path: &str) -> bool {
    path.starts_with("tests/") || path.contains("/tests/") || path.ends_with("/tests.rs")
}

fn compile(expression: &str) -> Regex {
    Regex::new(expression).expect("a constant expression")
}
