//! Implements just enough of Rust's lexical rules to separate code, comments and literals.
//!
//! Rules search for words in code or in comments; without this lexer they would find themselves in
//! their own tables and tests. It supports line and nested block comments, strings, raw strings,
//! characters and lifetimes, but no grammar.
//!
//! # Invariants
//! - Each line of the text has one `SourceLine`, in order.
//! - The inside of a literal appears as `MASK`, so its lines still count as code.

/// Replaces each visible character of a literal; no identifier contains it.
const MASK: char = '·';

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct SourceLine {
    pub(super) code: String,
    /// The comment with its `//`, `///`, `//!` or `/*`.
    pub(super) comment: String,
    /// The insides of the string literals, as they are written. Each end of a literal is a line
    /// feed.
    pub(super) literals: String,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum LexerState {
    Code,
    LineComment,
    BlockComment { depth: usize },
    String,
    RawString { hashes: usize },
}

impl LexerState {
    fn is_comment(self) -> bool {
        matches!(self, LexerState::LineComment | LexerState::BlockComment { .. })
    }
}

impl SourceLine {
    pub(super) fn is_blank(&self) -> bool {
        self.code.trim().is_empty() && self.comment.trim().is_empty()
    }
}

pub(super) fn lines(text: &str) -> Vec<SourceLine> {
    let mut lines = Vec::new();
    let mut state = LexerState::Code;
    for source in text.lines() {
        let mut line = SourceLine::default();
        let mut rest = source;
        while let Some(first) = rest.chars().next() {
            let (next, length) = match state {
                LexerState::Code => in_code(rest, &line.code),
                LexerState::LineComment => (state, rest.len()),
                LexerState::BlockComment { depth } => in_block_comment(rest, depth),
                LexerState::String => in_string(rest),
                LexerState::RawString { hashes } => in_raw_string(rest, hashes),
            };
            let taken = &rest[..length];
            if state.is_comment() || next.is_comment() {
                line.comment.push_str(taken);
            } else if state == LexerState::Code && !(first == '\'' && length > 1) {
                line.code.push_str(taken);
            } else {
                line.code.extend(taken.chars().map(|c| if c.is_whitespace() { c } else { MASK }));
                match (state, next) {
                    (LexerState::Code, _) => {}
                    (_, LexerState::Code) => line.literals.push('\n'),
                    _ => line.literals.push_str(taken),
                }
            }
            state = next;
            rest = &rest[length..];
        }
        if state == LexerState::LineComment {
            state = LexerState::Code;
        }
        lines.push(line);
    }
    lines
}

/// Returns the state after the next token of code, and the token's length.
fn in_code(rest: &str, before: &str) -> (LexerState, usize) {
    if rest.starts_with("//") {
        return (LexerState::LineComment, 2);
    }
    if rest.starts_with("/*") {
        return (LexerState::BlockComment { depth: 1 }, 2);
    }
    if rest.starts_with('"') {
        return (LexerState::String, 1);
    }
    let in_word = before.ends_with(is_word_character);
    let raw = ["br", "cr", "r"].into_iter().find_map(|prefix| rest.strip_prefix(prefix));
    if let Some(raw) = raw.filter(|_| !in_word) {
        let hashes = raw.len() - raw.trim_start_matches('#').len();
        if raw[hashes..].starts_with('"') {
            return (LexerState::RawString { hashes }, rest.len() - raw.len() + hashes + 1);
        }
    }
    if let Some(character) = rest.strip_prefix('\'') {
        return (LexerState::Code, 1 + character_literal_length(character));
    }
    (LexerState::Code, rest.chars().next().map_or(0, char::len_utf8))
}

/// Returns the length of a character after its opening quote, or 0 after the quote of a lifetime.
fn character_literal_length(rest: &str) -> usize {
    let mut characters = rest.char_indices();
    match characters.next() {
        Some((_, '\\')) => {
            characters.next();
            rest[2..].find('\'').map_or(0, |quote| 2 + quote + 1)
        }
        Some(_) => characters.next().filter(|(_, c)| *c == '\'').map_or(0, |(at, _)| at + 1),
        None => 0,
    }
}

fn in_block_comment(rest: &str, depth: usize) -> (LexerState, usize) {
    if rest.starts_with("/*") {
        return (LexerState::BlockComment { depth: depth + 1 }, 2);
    }
    if rest.starts_with("*/") {
        let state = if depth == 1 {
            LexerState::Code
        } else {
            LexerState::BlockComment { depth: depth - 1 }
        };
        return (state, 2);
    }
    (LexerState::BlockComment { depth }, rest.chars().next().map_or(0, char::len_utf8))
}

fn in_string(rest: &str) -> (LexerState, usize) {
    let mut characters = rest.chars();
    match characters.next() {
        Some('"') => (LexerState::Code, 1),
        Some('\\') => (LexerState::String, 1 + characters.next().map_or(0, char::len_utf8)),
        other => (LexerState::String, other.map_or(0, char::len_utf8)),
    }
}

fn in_raw_string(rest: &str, hashes: usize) -> (LexerState, usize) {
    let end = rest.strip_prefix('"').is_some_and(|rest| rest.starts_with(&"#".repeat(hashes)));
    if end {
        (LexerState::Code, 1 + hashes)
    } else {
        (LexerState::RawString { hashes }, rest.chars().next().map_or(0, char::len_utf8))
    }
}

fn is_word_character(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}

/// Splits code into identifiers, numbers and single punctuation marks.
pub(super) fn tokens(code: &str) -> Vec<&str> {
    let mut tokens = Vec::new();
    let mut rest = code.trim_start();
    while let Some(first) = rest.chars().next() {
        let word = rest.find(|c| !is_word_character(c)).unwrap_or(rest.len());
        let (token, after) = rest.split_at(if word > 0 { word } else { first.len_utf8() });
        tokens.push(token);
        rest = after.trim_start();
    }
    tokens
}

/// Returns whether `text` contains `needle` as a whole word or path.
pub(super) fn has_word(text: &str, needle: &str) -> bool {
    text.match_indices(needle).any(|(at, _)| {
        !text[..at].ends_with(is_word_character)
            && !text[at + needle.len()..].starts_with(is_word_character)
    })
}

/// Returns the lines, numbered from 1, outside every `#[cfg(test)] mod … { … }`.
pub(super) fn outside_test_modules(lines: &[SourceLine]) -> Vec<(usize, &SourceLine)> {
    let mut kept = Vec::new();
    let mut index = 0;
    while index < lines.len() {
        if let Some(length) = test_module_end(&lines[index..]) {
            index += length;
        } else {
            kept.push((index + 1, &lines[index]));
            index += 1;
        }
    }
    kept
}

/// Returns the number of lines of the inline test module that starts at the first line, if one
/// does.
fn test_module_end(lines: &[SourceLine]) -> Option<usize> {
    let attribute = lines.first()?.code.trim();
    if !(attribute.starts_with("#[cfg(test)]") || attribute.starts_with("#[cfg(all(test")) {
        return None;
    }
    let item = lines.iter().position(|line| {
        let code = line.code.trim();
        !code.is_empty() && !code.starts_with("#[")
    })?;
    let code = &lines[item].code;
    if !has_word(code, "mod") || !code.contains('{') {
        return None;
    }
    let mut depth = 0_usize;
    for (index, line) in lines.iter().enumerate().skip(item) {
        depth += line.code.matches('{').count();
        depth = depth.saturating_sub(line.code.matches('}').count());
        if depth == 0 {
            return Some(index + 1);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &[(&str, &str)]) {
        let found = lines(text);
        let found: Vec<_> = found.iter().map(|l| (l.code.as_str(), l.comment.as_str())).collect();
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn comments_are_cut_from_code() {
        check("let a = 1; // one", &[("let a = 1; ", "// one")]);
        check("a /* b /* c */ d */ e", &[("a  e", "/* b /* c */ d */")]);
        check("a /* b\nc */ d", &[("a ", "/* b"), (" d", "c */")]);
        check("//! doc\nx", &[("", "//! doc"), ("x", "")]);
    }

    #[test]
    fn literals_are_masked() {
        check(r#"f("// no", b"\"x") // yes"#, &[("f(\"·· ···, b\"····) ", "// yes")]);
        check(r##"f(r#"a " b"#)"##, &[("f(r#\"· · ···)", "")]);
        check("f(\"a\nb\")", &[("f(\"·", ""), ("··)", "")]);
        check("f('\"', '\\'', '{', x)", &[("f(···, ····, ···, x)", "")]);
        check("fn f<'a>(x: &'a str) {}", &[("fn f<'a>(x: &'a str) {}", "")]);
        check("let bar\"x\"", &[("let bar\"··", "")]);
    }

    #[test]
    fn the_insides_of_strings_are_kept() {
        let literals = |text: &str| -> Vec<String> {
            lines(text).into_iter().map(|line| line.literals).collect()
        };
        assert_eq!(literals(r#"f("// a", b"\"b", 'c') // "d""#), ["// a\n\\\"b\n"]);
        assert_eq!(
            literals(
                r###"f("a \
            b", r##"c " d"##)"###
            ),
            ["a \\", "            b\nc \" d\n"]
        );
    }

    #[test]
    fn words_are_whole() {
        assert!(has_word("use std::fs;", "std::fs"));
        assert!(!has_word("use std::fsx;", "std::fs"));
        assert!(!has_word("mystd::fs", "std::fs"));
    }

    #[test]
    fn tokens_are_words_and_marks() {
        assert_eq!(tokens("pub mod a_1; x::y"), ["pub", "mod", "a_1", ";", "x", ":", ":", "y"]);
    }

    #[test]
    fn only_inline_test_modules_are_left_out() {
        let count = |text| outside_test_modules(&lines(text)).len();
        let last = |text| outside_test_modules(&lines(text)).last().map(|(number, _)| *number);
        assert_eq!(count("fn a() {}\n#[cfg(test)]\nmod tests {\n  fn b() {}\n}\nfn c() {}"), 2);
        assert_eq!(last("#[cfg(test)]\nmod tests {\n}\nfn c() {}"), Some(4));
        assert_eq!(count("#[cfg(test)]\nmod tests;\nfn c() {}"), 3);
        assert_eq!(count("#[cfg(test)]\nfn only_in_tests() {\n}"), 3);
    }
}
