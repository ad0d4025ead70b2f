//! Decodes where each column of a stored row begins and how long it is
//! (<https://sqlite.org/fileformat.html#record_format>).

use super::btree_page::{BtreeCell, varint};

/// The position of a column in one row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RecordField {
    /// The offset from the start of the payload.
    pub(crate) start: u64,
    pub(crate) size: u64,
}

/// Returns the fields of a row. Rows that are older than the last columns of their table have
/// fewer. Returns `None` if the row's header is too long for its page, or invalid.
pub(crate) fn fields(cell: &BtreeCell<'_>) -> Option<Vec<RecordField>> {
    let (header_size, mut at) = varint(cell.local, 0)?;
    let header_end = usize::try_from(header_size).ok()?;
    let header = cell.local.get(..header_end)?;
    let (mut fields, mut start) = (Vec::new(), header_size);
    while at < header_end {
        let (kind, length) = varint(header, at)?;
        let size = match kind {
            0 | 8 | 9 => 0,
            1..=4 => kind,
            5 => 6,
            6 | 7 => 8,
            10 | 11 => return None,
            _ => (kind - 12) / 2,
        };
        fields.push(RecordField { start, size });
        start = start.checked_add(size)?;
        at += length;
    }
    (start <= cell.payload_size).then_some(fields)
}
