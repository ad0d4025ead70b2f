//! Decides which key values a column stores without changing them.
//!
//! A row's id consists of its key's values with their storage classes. SQLite converts some values
//! before it stores them (<https://sqlite.org/datatype3.html>, section 3): a row with such a key
//! would not be found again under its id. Every device decides this the same way, by the declared
//! type alone.

use crdt::Value;

/// The conversion of values that a column's declared type causes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Affinity {
    /// Numbers become text.
    Text,
    /// Text that is a number, and whole reals, become integers.
    Numeric,
    /// Text that is a number, and integers, become reals.
    Real,
    /// Values stay unchanged.
    None,
}

impl Affinity {
    /// Applies the rules of section 3.1 in their order. `strict` means that the table is declared
    /// STRICT, where ANY changes nothing.
    pub(crate) fn from_declared_type(declared_type: &str, strict: bool) -> Self {
        let declared = declared_type.to_ascii_uppercase();
        let has = |part: &str| declared.contains(part);
        if strict && declared == "ANY" {
            Self::None
        } else if has("INT") {
            Self::Numeric
        } else if has("CHAR") || has("CLOB") || has("TEXT") {
            Self::Text
        } else if has("BLOB") || declared.is_empty() {
            Self::None
        } else if has("REAL") || has("FLOA") || has("DOUB") {
            Self::Real
        } else {
            Self::Numeric
        }
    }

    /// Returns whether a key column stores the value, and stores it unchanged.
    pub(crate) fn preserves(self, value: &Value) -> bool {
        match (self, value) {
            // No device gives a row such a key.
            (_, Value::Null | Value::Large(_) | Value::Erased) => false,
            // SQLite stores NaN as NULL, and does not distinguish the two zeros.
            (_, Value::Real(real)) if real.is_nan() || is_negative_zero(*real) => false,
            (_, Value::Blob(_) | Value::TextBytes(_)) | (Self::None, _) => true,
            (Self::Text, Value::Text(_)) => true,
            (Self::Numeric, Value::Integer(_)) => true,
            (Self::Numeric, Value::Real(real)) => !is_whole(*real),
            (Self::Numeric | Self::Real, Value::Text(text)) => !is_number(text),
            (Self::Real, Value::Real(_)) => true,
            (Self::Text, _) | (Self::Real, Value::Integer(_)) => false,
        }
    }
}

fn is_negative_zero(real: f64) -> bool {
    real == 0.0 && real.is_sign_negative()
}

/// Returns whether a real is an integer of 64 bits other than the smallest and the largest
/// (`sqlite3VdbeIntegerAffinity`).
#[expect(clippy::cast_possible_truncation, clippy::cast_precision_loss, reason = "compared after")]
#[expect(clippy::float_cmp, reason = "the very same number is meant")]
fn is_whole(real: f64) -> bool {
    let integer = real as i64;
    integer as f64 == real && integer != i64::MIN && integer != i64::MAX
}

/// Returns whether SQLite treats all of a text as a number: spaces, a sign, digits with or without
/// a point, an exponent, spaces.
fn is_number(text: &str) -> bool {
    let is_space = |c: char| matches!(c, ' ' | '\t' | '\n' | '\x0b' | '\x0c' | '\r');
    let text = text.trim_matches(is_space);
    let text = text.strip_prefix(['+', '-']).unwrap_or(text);
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (text, None),
    };
    let is_digits = |digits: &str| digits.bytes().all(|byte| byte.is_ascii_digit());
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let is_exponent = |exponent: &str| {
        let digits = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
        !digits.is_empty() && is_digits(digits)
    };
    is_digits(whole)
        && is_digits(fraction)
        && !(whole.is_empty() && fraction.is_empty())
        && exponent.is_none_or(is_exponent)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rusqlite::Connection;

    use super::*;
    use crate::sql_value::{BoundValue, read};

    const TYPES: &[&str] = &[
        "INTEGER",
        "INT",
        "BIGINT",
        "TEXT",
        "VARCHAR(30)",
        "CLOB",
        "BLOB",
        "",
        "REAL",
        "DOUBLE",
        "FLOAT",
        "NUMERIC",
        "DECIMAL(10,2)",
        "BOOLEAN",
        "DATE",
        "ANY",
        "CHARINT",
        "FLOATING POINT",
    ];

    fn any_value() -> impl Strategy<Value = Value> {
        let number = "[ \t\n]{0,2}[+-]?[0-9]{0,4}[.]?[0-9]{0,3}([eE][+-]?[0-9]{0,3})?[ \r]{0,2}";
        let edges = prop::sample::select(vec![
            0.0,
            -0.0,
            1.0,
            -1.5,
            9.3e18,
            -9.3e18,
            9_223_372_036_854_775_807.0,
            4.5e15,
            1e300,
            f64::NAN,
            f64::INFINITY,
            f64::NEG_INFINITY,
        ]);
        prop_oneof![
            Just(Value::Null),
            any::<i64>().prop_map(Value::Integer),
            prop_oneof![any::<f64>(), edges, (-1000i32..1000).prop_map(f64::from)]
                .prop_map(Value::Real),
            prop_oneof![number.prop_map(String::from), "[a-z0-9. +e-]{0,5}".prop_map(String::from)]
                .prop_map(Value::Text),
            prop::collection::vec(any::<u8>(), 0..4)
                .prop_map(|bytes| Value::from_text_bytes(&bytes)),
            prop::collection::vec(any::<u8>(), 0..4).prop_map(Value::Blob),
        ]
    }

    proptest! {
        #[test]
        fn what_is_kept_is_what_sqlite_stores_as_it_is(
            declared_type in prop::sample::select(TYPES), value in any_value(),
        ) {
            let db = Connection::open_in_memory().unwrap();
            db.execute_batch(&format!("CREATE TABLE t (a {declared_type})")).unwrap();
            db.execute("INSERT INTO t VALUES (?1)", [BoundValue(&value)]).unwrap();
            let stored = db.query_row("SELECT a FROM t", [], |row| read(row, 0, 1)).unwrap();
            let kept = Affinity::from_declared_type(declared_type, false).preserves(&value);
            let is_nameable = stored[0] != Value::Null;
            let is_same = Value::encode_key(&stored) == Value::encode_key(std::slice::from_ref(&value));
            let is_zero = matches!(value, Value::Real(real) if is_negative_zero(real));
            prop_assert_eq!(kept, is_nameable && is_same && !is_zero, "stored {:?}", stored);
        }
    }

    #[test]
    fn any_changes_nothing_in_a_strict_table_only() {
        assert_eq!(Affinity::from_declared_type("any", true), Affinity::None);
        assert_eq!(Affinity::from_declared_type("ANY", false), Affinity::Numeric);
    }
}
