//! Erases content of messages: a message's content is replaced by one with less left
//! (`docs/reference/formats/2-message.md`).
//!
//! ```text
//!   01 write note 5 {text 'secret'}  →  01 write note 5 {text erased}     one value is gone
//!                                    →  01 erased                         all of it is gone
//! ```
//! The timestamp, row and columns of a write stay, and with them the winner of each cell and what
//! each author had seen.
//!
//! # Invariants
//! - Of two contents of one message, the one with less left wins: on all devices the same, in
//!   whatever order they arrived ([`Change::common_rest`]).

use crate::Value;
use crate::message::{CellWrite, Change};

impl Change {
    /// Returns the change without the value of a column, or `None` if it has no value for it.
    pub fn without_value(&self, column: &str) -> Option<Self> {
        let mut rest = self.clone();
        let Self::Write { cells, .. } = &mut rest else { return None };
        let is_it = |cell: &&mut CellWrite| {
            cell.column.eq_ignore_ascii_case(column) && cell.value != Value::Erased
        };
        cells.iter_mut().find(is_it)?.value = Value::Erased;
        Some(rest)
    }

    /// Returns what is left of a message for which two sides have these contents, each without what
    /// was erased on that side. Returns `None` if they were never the same message.
    pub fn common_rest(&self, other: &Self) -> Option<Self> {
        match (self, other) {
            (Self::Erased, _) | (_, Self::Erased) => Some(Self::Erased),
            (
                Self::Write { cells, .. },
                Self::Write { cells: others, table, key, replaced_tombstone: deleted },
            ) => {
                let same_row = matches!(self, Self::Write { table: t, key: k, replaced_tombstone: d, .. }
                    if t == table && k == key && d == deleted);
                if !same_row || cells.len() != others.len() {
                    return None;
                }
                let cells: Option<Vec<_>> =
                    cells.iter().zip(others).map(|(one, other)| common_cell(one, other)).collect();
                let (table, key, deleted) = (table.clone(), key.clone(), *deleted);
                Some(Self::Write { table, key, cells: cells?, replaced_tombstone: deleted })
            }
            _ => (self == other).then(|| self.clone()),
        }
    }
}

fn common_cell(one: &CellWrite, other: &CellWrite) -> Option<CellWrite> {
    if one.column != other.column || one.replaced != other.replaced {
        return None;
    }
    match (&one.value, &other.value) {
        (Value::Erased, _) => Some(one.clone()),
        (_, Value::Erased) => Some(other.clone()),
        (value, same) => (value == same).then(|| one.clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(values: [Value; 2]) -> Change {
        let cells = values.into_iter().zip(["a", "b"]);
        let cells = cells.map(|(value, column)| CellWrite::new(column, value)).collect();
        Change::Write {
            table: "t".into(),
            key: vec![Value::Integer(1)],
            cells,
            replaced_tombstone: None,
        }
    }

    fn check(one: &Change, other: &Change, rest: Option<&Change>) {
        assert_eq!(one.common_rest(other).as_ref(), rest);
        assert_eq!(other.common_rest(one).as_ref(), rest, "in the other order, too");
    }

    #[test]
    fn of_two_contents_the_one_that_says_less_stands() {
        let (one, two) = (Value::Integer(1), Value::Integer(2));
        let whole = write([one.clone(), two.clone()]);
        let without_a = whole.without_value("A").unwrap();
        let without_b = whole.without_value("b").unwrap();
        assert_eq!(without_a, write([Value::Erased, two.clone()]));
        let neither = without_a.without_value("b").unwrap();
        check(&whole, &whole, Some(&whole));
        check(&whole, &without_a, Some(&without_a));
        check(&without_b, &without_a, Some(&neither));
        check(&neither, &without_a, Some(&neither));
        for change in [&whole, &without_a, &neither, &Change::Erased] {
            check(change, &Change::Erased, Some(&Change::Erased));
        }
        check(&whole, &write([two, one]), None);
        assert_eq!(without_a.without_value("a"), None, "it is gone already");
        assert_eq!(whole.without_value("c"), None);
    }

    #[test]
    fn other_messages_have_nothing_in_common() {
        let write = write([Value::Null, Value::Null]);
        let Change::Write { table, key, cells, .. } = write.clone() else { unreachable!() };
        let other_key = Change::Write { table, key: vec![], cells, replaced_tombstone: None };
        check(&write, &other_key, None);
        let delete = Change::Delete { table: "t".into(), key, replaced: [].into() };
        check(&write, &delete, None);
        check(&delete, &delete, Some(&delete));
    }
}
