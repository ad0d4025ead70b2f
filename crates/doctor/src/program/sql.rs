//! Splits the text of a statement into tokens. It does not parse: their meaning is left to SQLite.
//!
//! # Invariants
//! - The tokens' texts, in their order, are the text without space and comments, for any text.

/// A token of an SQL text, such as a word, a value or a single character.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SqlToken<'a> {
    pub(crate) kind: SqlTokenKind,
    /// The text of the token, including quotes.
    pub(crate) text: &'a str,
    /// The offset in the statement.
    pub(crate) start: usize,
}

/// The kind of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SqlTokenKind {
    /// A keyword, or a name without quotes.
    Word,
    /// A name in quotes.
    Quoted,
    /// A text, a blob, or a number.
    Value,
    /// A parameter: `?`, `?1`, `:name`, `@name` or `$name`.
    Parameter,
    /// Any other character.
    Sign,
}

impl<'a> SqlToken<'a> {
    /// Checks whether the token is this keyword, in any case.
    pub(crate) fn is(&self, keyword: &str) -> bool {
        self.kind != SqlTokenKind::Quoted && self.text.eq_ignore_ascii_case(keyword)
    }

    /// Returns the name without quotes, if the token can be a name. A doubled quote within the name
    /// stays doubled, so such a name is not found.
    pub(crate) fn name(&self) -> Option<&'a str> {
        match self.kind {
            SqlTokenKind::Word => Some(self.text),
            SqlTokenKind::Quoted => self.text.get(1..self.text.len().saturating_sub(1)),
            _ => None,
        }
    }

    pub(crate) fn end(&self) -> usize {
        self.start + self.text.len()
    }
}

/// Returns the tokens of a statement, without space and comments.
pub(crate) fn tokens(sql: &str) -> Vec<SqlToken<'_>> {
    let mut tokens = Vec::new();
    let mut start = 0;
    while start < sql.len() {
        let (kind, size) = next(&sql[start..]);
        if let Some(kind) = kind {
            tokens.push(SqlToken { kind, text: &sql[start..start + size], start });
        }
        start += size;
    }
    tokens
}

/// Returns the kind of the first token and its size. The kind of space and comments is `None`.
fn next(rest: &str) -> (Option<SqlTokenKind>, usize) {
    let mut characters = rest.chars();
    let first = characters.next().unwrap_or(' ');
    let second = characters.next().unwrap_or(' ');
    let until = |end: &str| rest[2..].find(end).map_or(rest.len(), |at| at + 2 + end.len());
    let while_word =
        |from: usize| rest[from..].find(|c| !is_word(c)).map_or(rest.len(), |at| from + at);
    match (first, second) {
        ('-', '-') => (None, until("\n")),
        ('/', '*') => (None, until("*/")),
        (c, _) if c.is_whitespace() => (None, c.len_utf8()),
        ('\'', _) => (Some(SqlTokenKind::Value), quoted_size(rest, '\'')),
        ('x' | 'X', '\'') => (Some(SqlTokenKind::Value), 1 + quoted_size(&rest[1..], '\'')),
        ('"' | '`', _) => (Some(SqlTokenKind::Quoted), quoted_size(rest, first)),
        ('[', _) => (Some(SqlTokenKind::Quoted), rest.find(']').map_or(rest.len(), |at| at + 1)),
        ('?', _) => (Some(SqlTokenKind::Parameter), while_word(1)),
        (':' | '@' | '$', c) if is_word(c) => (Some(SqlTokenKind::Parameter), while_word(1)),
        (c, _) if c.is_ascii_digit() => (Some(SqlTokenKind::Value), number_size(rest)),
        ('.', c) if c.is_ascii_digit() => (Some(SqlTokenKind::Value), number_size(rest)),
        (c, _) if is_word(c) => (Some(SqlTokenKind::Word), while_word(0)),
        (c, _) => (Some(SqlTokenKind::Sign), c.len_utf8()),
    }
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || "_$".contains(c) || !(c.is_ascii() || c.is_whitespace())
}

/// Returns the size up to the closing quote: two quotes stand for one.
fn quoted_size(rest: &str, quote: char) -> usize {
    let mut size = 1;
    while let Some(at) = rest[size..].find(quote) {
        size += at + 1;
        if !rest[size..].starts_with(quote) {
            return size;
        }
        size += 1;
    }
    rest.len()
}

/// Returns the size of a number such as `12`, `1.5e-3` or `0xff`.
fn number_size(rest: &str) -> usize {
    let bytes = rest.as_bytes();
    let is_part = |index: usize| match bytes[index] {
        b'.' => true,
        b'+' | b'-' => index > 0 && matches!(bytes[index - 1], b'e' | b'E') && !is_hex(rest),
        byte => byte.is_ascii_alphanumeric() || byte == b'_',
    };
    (0..bytes.len()).find(|index| !is_part(*index)).unwrap_or(bytes.len())
}

fn is_hex(number: &str) -> bool {
    number.as_bytes().get(1).is_some_and(|byte| matches!(byte, b'x' | b'X'))
}

/// Returns the statement with `?` for each value, and one `?` for each list of values. It is the
/// same for all statements from one place in a program.
pub(crate) fn shape(sql: &str) -> String {
    let mut shape = String::with_capacity(sql.len());
    let mut end = 0;
    for token in tokens(sql) {
        let is_apart = token.start > end && !shape.is_empty();
        end = token.end();
        let is_value = matches!(token.kind, SqlTokenKind::Value | SqlTokenKind::Parameter);
        let text = if is_value { "?" } else { token.text };
        if is_apart && !shape.ends_with('(') && !matches!(text, ")" | "," | ";") {
            shape.push(' ');
        }
        shape.push_str(text);
        // A list such as `(?, ?` or `(?), (?)` is reduced to its first element.
        for (list, one) in [("?, ?", "?"), ("?,?", "?"), ("(?), (?)", "(?)"), ("(?),(?)", "(?)")] {
            if shape.ends_with(list) {
                shape.truncate(shape.len() - list.len() + one.len());
            }
        }
    }
    shape.truncate(shape.trim_end_matches([';', ' ']).len());
    shape
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_text_has_its_tokens() {
        for (sql, expected) in [
            ("SELECT a.b,'x''y'", vec!["SELECT", "a", ".", "b", ",", "'x''y'"]),
            (
                "-- no\nx'ff' /* no */ \"a\"\"b\" [c d] `e`",
                vec!["x'ff'", "\"a\"\"b\"", "[c d]", "`e`"],
            ),
            (
                "?1 :a @b $c ? 1.5e-3 0xff .5",
                vec!["?1", ":a", "@b", "$c", "?", "1.5e-3", "0xff", ".5"],
            ),
            ("a->>'$.b' := 1e+2-3", vec!["a", "-", ">", ">", "'$.b'", ":", "=", "1e+2", "-", "3"]),
            ("'ä", vec!["'ä"]),
            ("/* ", vec![]),
            ("[x", vec!["[x"]),
            ("é\u{a0}ü", vec!["é", "ü"]),
        ] {
            let tokens = tokens(sql);
            let texts: Vec<&str> = tokens.iter().map(|token| token.text).collect();
            assert_eq!(texts, expected, "{sql}");
            assert!(tokens.iter().all(|it| &sql[it.start..it.end()] == it.text), "{sql}");
        }
    }

    #[test]
    fn statements_that_differ_in_values_have_one_shape() {
        for (sql, expected) in [
            ("SELECT * FROM t\n  WHERE a = 'x' AND b=3;", "SELECT * FROM t WHERE a = ? AND b=?"),
            ("SELECT 1 WHERE a IN (1, 2,3)", "SELECT ? WHERE a IN (?)"),
            ("SELECT 1 WHERE a IN ( ? )", "SELECT ? WHERE a IN (?)"),
            ("INSERT INTO t (a, b) VALUES (1, 'x'), (2, 'y')", "INSERT INTO t (a, b) VALUES (?)"),
            ("SELECT a -- why\n, b", "SELECT a, b"),
        ] {
            assert_eq!(shape(sql), expected);
        }
    }
}
