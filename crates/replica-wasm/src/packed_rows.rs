//! Packs rows for a tab into few large arrays instead of many small values, because each value that
//! crosses from wasm to JavaScript, and from worker to tab, has a fixed cost.

use js_sys::{BigInt64Array, Float64Array, Uint8Array, Uint32Array};
use rusqlite::types::ValueRef;
use rusqlite::{Params, Row, Statement};
use wasm_bindgen::prelude::wasm_bindgen;

use crate::wasm_error::Result;

/// The largest integer that a JavaScript number represents exactly.
const SAFE_INTEGER_MAX: i64 = (1 << 53) - 1;

const NULL: u8 = 0;
const NUMBER: u8 = 1;
const TEXT: u8 = 2;
const BLOB: u8 = 3;
const INTEGER: u8 = 4;

/// A collector of cells, row by row.
#[derive(Default)]
pub(crate) struct RowPacker {
    columns: Vec<String>,
    kinds: Vec<u8>,
    numbers: Vec<f64>,
    integers: Vec<i64>,
    texts: String,
    text_lengths: Vec<u32>,
    blobs: Vec<u8>,
    blob_lengths: Vec<u32>,
}

impl RowPacker {
    /// Runs the statement. Its columns are read after its first step, because a cached statement
    /// may be older than the schema, and is prepared again then.
    pub(crate) fn run(statement: &mut Statement<'_>, parameters: impl Params) -> Result<Self> {
        let mut packer = None;
        let mut rows = statement.query(parameters)?;
        while let Some(row) = rows.next()? {
            packer.get_or_insert_with(|| Self::new(row.as_ref())).add(row)?;
        }
        drop(rows);
        Ok(packer.unwrap_or_else(|| Self::new(statement)))
    }

    fn new(statement: &Statement<'_>) -> Self {
        let columns = statement.column_names().map(str::to_owned).collect();
        Self { columns, ..Self::default() }
    }

    fn add(&mut self, row: &Row<'_>) -> Result<()> {
        for column in 0..self.columns.len() {
            let kind = match row.get_ref(column)? {
                ValueRef::Null => NULL,
                ValueRef::Integer(integer) => self.integer(integer),
                ValueRef::Real(real) => {
                    self.numbers.push(real);
                    NUMBER
                }
                ValueRef::Text(bytes) => {
                    self.text(&String::from_utf8_lossy(bytes));
                    TEXT
                }
                ValueRef::Blob(bytes) => {
                    self.blobs.extend_from_slice(bytes);
                    self.blob_lengths.push(length(bytes.len()));
                    BLOB
                }
            };
            self.kinds.push(kind);
        }
        Ok(())
    }

    #[expect(clippy::cast_precision_loss, reason = "within 53 bits")]
    fn integer(&mut self, integer: i64) -> u8 {
        if integer.unsigned_abs() <= SAFE_INTEGER_MAX.unsigned_abs() {
            self.numbers.push(integer as f64);
            NUMBER
        } else {
            self.integers.push(integer);
            INTEGER
        }
    }

    fn text(&mut self, text: &str) {
        self.texts.push_str(text);
        // JavaScript counts UTF-16 code units.
        let units = if text.is_ascii() { text.len() } else { text.encode_utf16().count() };
        self.text_lengths.push(length(units));
    }

    pub(crate) fn finish(self, changes: u64) -> PackedRows {
        PackedRows {
            columns: self.columns,
            kinds: self.kinds.as_slice().into(),
            numbers: self.numbers.as_slice().into(),
            integers: self.integers.as_slice().into(),
            texts: self.texts,
            text_lengths: self.text_lengths.as_slice().into(),
            blobs: self.blobs.as_slice().into(),
            blob_lengths: self.blob_lengths.as_slice().into(),
            #[expect(clippy::cast_precision_loss, reason = "a count of rows")]
            changes: changes as f64,
        }
    }
}

fn length(length: usize) -> u32 {
    u32::try_from(length).expect("memory has 32 bits here")
}

#[wasm_bindgen(getter_with_clone)]
pub struct PackedRows {
    pub columns: Vec<String>,
    pub kinds: Uint8Array,
    pub numbers: Float64Array,
    pub integers: BigInt64Array,
    pub texts: String,
    #[wasm_bindgen(js_name = textLengths)]
    pub text_lengths: Uint32Array,
    pub blobs: Uint8Array,
    #[wasm_bindgen(js_name = blobLengths)]
    pub blob_lengths: Uint32Array,
    pub changes: f64,
}
