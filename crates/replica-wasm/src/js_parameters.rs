//! Converts JavaScript's values to SQLite's, for the parameters of statements.

use js_sys::{Array, BigInt, Uint8Array};
use protocol::ErrorCode;
use rusqlite::ToSql;
use rusqlite::types::{ToSqlOutput, Value};
use wasm_bindgen::{JsCast, JsValue};

use crate::wasm_error::{Result, WasmError};

/// The largest safe integer: a greater number may represent several integers.
const SAFE_INTEGER_MAX: f64 = 9_007_199_254_740_991.0;

/// A parameter of a statement.
pub(crate) struct JsParameter(Value);

impl ToSql for JsParameter {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        self.0.to_sql()
    }
}

/// Converts the parameters of a statement, in order.
pub(crate) fn read(values: &Array) -> Result<Vec<JsParameter>> {
    values.iter().map(|value| one(&value).map(JsParameter)).collect()
}

/// Converts the value of a cell.
pub(crate) fn value(value: &JsValue) -> Result<replica::Value> {
    Ok(match one(value)? {
        Value::Null => replica::Value::Null,
        Value::Integer(integer) => replica::Value::Integer(integer),
        Value::Real(real) => replica::Value::Real(real),
        Value::Text(text) => replica::Value::Text(text),
        Value::Blob(blob) => replica::Value::Blob(blob),
    })
}

fn one(value: &JsValue) -> Result<Value> {
    if value.is_null() {
        return Ok(Value::Null);
    }
    if let Some(text) = value.as_string() {
        return Ok(Value::Text(text));
    }
    if let Some(number) = value.as_f64() {
        return Ok(from_number(number));
    }
    if let Some(is_true) = value.as_bool() {
        return Ok(Value::Integer(is_true.into()));
    }
    if let Some(integer) = value.dyn_ref::<BigInt>() {
        let integer = i64::try_from(integer.clone());
        let too_large = |_| {
            WasmError::new(ErrorCode::InvalidArgument, "SQLite integers are limited to 64 bits")
        };
        return integer.map(Value::Integer).map_err(too_large);
    }
    if let Some(bytes) = value.dyn_ref::<Uint8Array>() {
        return Ok(Value::Blob(bytes.to_vec()));
    }
    let what = value.js_typeof().as_string().unwrap_or_default();
    Err(WasmError::new(
        ErrorCode::InvalidArgument,
        format!("SQLite cannot store a value of type {what}"),
    ))
}

/// Converts a number. JavaScript has only one kind of number: whole ones become integers, as people
/// mean them.
fn from_number(number: f64) -> Value {
    #[expect(clippy::cast_possible_truncation, reason = "whole, and within 53 bits")]
    if number.fract() == 0.0 && number.abs() <= SAFE_INTEGER_MAX {
        Value::Integer(number as i64)
    } else {
        Value::Real(number)
    }
}
