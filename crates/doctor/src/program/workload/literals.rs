//! Parses lists of values in the syntax of Python (`('a', 1, None)`) and Ruby
//! (`[["id", 1], ["name", nil]]`).

use rusqlite::types::Value;

/// The maximum number of values of one statement; a longer list is not read.
const VALUES_MAX: usize = 1_000;
/// The maximum nesting of lists.
const DEPTH_MAX: usize = 3;

/// A value, or a list of values.
#[derive(Debug)]
enum LoggedLiteral {
    Value(Value),
    List(Vec<LoggedLiteral>),
}

/// Returns the values of a statement's parameters, in their order, and the number of such lists
/// with which it ran. Returns `None` if one of the values is not understood.
pub(super) fn read(text: &str) -> Option<(Vec<Value>, u64)> {
    let mut reader = LiteralReader { rest: text, count: 0 };
    let LoggedLiteral::List(items) = reader.literal(0)? else { return None };
    if items.is_empty() || !items.iter().all(|item| matches!(item, LoggedLiteral::List(_))) {
        return Some((values(items, LoggedLiteral::value)?, 1));
    }
    // Ruby puts the name of a column before each value.
    if text.starts_with("[[") {
        return Some((values(items, LoggedLiteral::named)?, 1));
    }
    let lists_count = items.len().try_into().ok()?;
    match items.into_iter().next()? {
        LoggedLiteral::List(first) => Some((values(first, LoggedLiteral::value)?, lists_count)),
        LoggedLiteral::Value(_) => None,
    }
}

fn values(items: Vec<LoggedLiteral>, of: fn(LoggedLiteral) -> Option<Value>) -> Option<Vec<Value>> {
    items.into_iter().map(of).collect()
}

impl LoggedLiteral {
    fn value(self) -> Option<Value> {
        match self {
            Self::Value(value) => Some(value),
            Self::List(_) => None,
        }
    }

    fn named(self) -> Option<Value> {
        match self {
            Self::List(mut pair) if pair.len() == 2 => pair.pop()?.value(),
            Self::List(_) | Self::Value(_) => None,
        }
    }
}

struct LiteralReader<'a> {
    rest: &'a str,
    count: usize,
}

impl LiteralReader<'_> {
    fn literal(&mut self, depth: usize) -> Option<LoggedLiteral> {
        self.rest = self.rest.trim_start();
        self.count += 1;
        if self.count > VALUES_MAX || depth > DEPTH_MAX {
            return None;
        }
        match self.rest.chars().next()? {
            '(' => self.list(')', depth),
            '[' => self.list(']', depth),
            quote @ ('\'' | '"') => {
                self.text(quote).map(|text| LoggedLiteral::Value(Value::Text(text)))
            }
            _ => self.word().map(LoggedLiteral::Value),
        }
    }

    fn list(&mut self, end: char, depth: usize) -> Option<LoggedLiteral> {
        self.rest = &self.rest[1..];
        let mut items = Vec::new();
        loop {
            self.rest = self.rest.trim_start();
            if let Some(rest) = self.rest.strip_prefix(end) {
                self.rest = rest;
                return Some(LoggedLiteral::List(items));
            }
            items.push(self.literal(depth + 1)?);
            self.rest = self.rest.trim_start();
            match self.rest.strip_prefix(',') {
                Some(rest) => self.rest = rest,
                None if self.rest.starts_with(end) => {}
                None => return None,
            }
        }
    }

    fn text(&mut self, quote: char) -> Option<String> {
        let mut text = String::new();
        let mut characters = self.rest.char_indices().skip(1);
        while let Some((at, c)) = characters.next() {
            match c {
                '\\' => text.push(match characters.next()?.1 {
                    'n' => '\n',
                    't' => '\t',
                    'r' => '\r',
                    c @ ('\\' | '\'' | '"') => c,
                    _ => return None,
                }),
                c if c == quote => {
                    self.rest = &self.rest[at + 1..];
                    return Some(text);
                }
                c => text.push(c),
            }
        }
        None
    }

    fn word(&mut self) -> Option<Value> {
        let end = self.rest.find([',', ')', ']']).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        match word.trim() {
            "None" | "nil" | "NULL" | "null" => Some(Value::Null),
            "True" | "true" => Some(Value::Integer(1)),
            "False" | "false" => Some(Value::Integer(0)),
            number => {
                let whole = number.parse().map(Value::Integer);
                whole.or_else(|_| number.parse().map(Value::Real)).ok()
            }
        }
    }
}
