//! Serializes fields for JSON, identically for `warren --json` and a browser.

use std::fmt::{Display, LowerHex};

use serde::Serializer;
use serde::ser::{SerializeMap, SerializeSeq};

/// Serializes a value as its text.
pub(crate) fn text<S: Serializer>(value: &impl Display, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(value)
}

/// Serializes each value as its text.
pub(crate) fn texts<S: Serializer>(values: &[impl Display], to: S) -> Result<S::Ok, S::Error> {
    let mut list = to.serialize_seq(Some(values.len()))?;
    values.iter().try_for_each(|value| list.serialize_element(&value.to_string()))?;
    list.end()
}

/// Serializes a number as 32 hex digits.
pub(crate) fn hex128<S: Serializer>(value: &impl LowerHex, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(&format_args!("{value:032x}"))
}

/// Serializes columns and their values as one object, in the order of the columns.
pub(crate) fn object<S: Serializer>(cells: &[(String, String)], to: S) -> Result<S::Ok, S::Error> {
    let mut object = to.serialize_map(Some(cells.len()))?;
    cells.iter().try_for_each(|(column, value)| object.serialize_entry(column, value))?;
    object.end()
}
