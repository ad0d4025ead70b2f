//! Parses the default of a column from the text in its table's SQL.

use crdt::{ColumnDefault, Value};

/// Parses a default in the form in which SQLite reports it.
pub(crate) fn parse(text: &str) -> ColumnDefault {
    match text.to_ascii_uppercase().as_str() {
        "CURRENT_TIME" => ColumnDefault::Time,
        "CURRENT_DATE" => ColumnDefault::Date,
        "CURRENT_TIMESTAMP" => ColumnDefault::Timestamp,
        "NULL" => ColumnDefault::Literal(Value::Null),
        "TRUE" => ColumnDefault::Literal(Value::Integer(1)),
        "FALSE" => ColumnDefault::Literal(Value::Integer(0)),
        _ => {
            let literal = number(text).or_else(|| quoted(text));
            literal.map_or(ColumnDefault::Computed, ColumnDefault::Literal)
        }
    }
}

fn number(text: &str) -> Option<Value> {
    let digits = text.trim_start_matches(['+', '-', ' ']);
    let is_number = digits.starts_with(|c: char| c.is_ascii_digit() || c == '.');
    let compact: String = text.chars().filter(|c| *c != ' ').collect();
    let integer = || compact.parse().ok().map(Value::Integer);
    let real = || compact.parse().ok().map(Value::Real);
    if is_number { integer().or_else(real) } else { None }
}

/// Parses `'it''s'` or `x'00ff'`. A name in double quotes is a text, too, where SQLite allows it.
fn quoted(text: &str) -> Option<Value> {
    let inner = |quote: char| {
        let inner = text.strip_prefix(quote)?.strip_suffix(quote)?;
        let twice = [quote, quote].iter().collect::<String>();
        let is_one = !inner.replace(&twice, "").contains(quote);
        is_one.then(|| Value::Text(inner.replace(&twice, &quote.to_string())))
    };
    let hex = || {
        let digits = text.strip_prefix(['x', 'X'])?.strip_prefix('\'')?.strip_suffix('\'')?;
        let is_hex = digits.len() % 2 == 0 && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        let byte = |place| u8::from_str_radix(&digits[place..place + 2], 16).ok();
        let bytes = || (0..digits.len()).step_by(2).map(byte).collect::<Option<_>>();
        is_hex.then(bytes).flatten().map(Value::Blob)
    };
    inner('\'').or_else(|| inner('"')).or_else(hex)
}
