//! Decodes one page of a B-tree (<https://sqlite.org/fileformat.html#b_tree_pages>).
//!
//! # Invariants
//! - The bytes of a damaged page never cause a panic: a reference outside the page is an error that
//!   describes the problem.

use super::database_header::{HEADER_SIZE, u32_at};

/// An error that describes the problem of a page.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("page {page}: {what}")]
pub(crate) struct MalformedPage {
    pub(crate) page: u32,
    pub(crate) what: &'static str,
}

/// The four kinds of B-tree pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BtreePageKind {
    IndexInterior,
    TableInterior,
    IndexLeaf,
    TableLeaf,
}

/// A page of a B-tree.
#[derive(Clone)]
pub(crate) struct BtreePage {
    pub(crate) number: u32,
    bytes: Vec<u8>,
    /// The size of the page without the bytes that a cipher reserves at its end.
    usable: usize,
    start: usize,
    pub(crate) kind: BtreePageKind,
    pub(crate) cells_count: usize,
}

/// An entry of a leaf, or of an index's interior page.
#[derive(Clone, Debug)]
pub(crate) struct BtreeCell<'a> {
    /// The row id, in a table's leaf.
    pub(crate) rowid: Option<i64>,
    /// The size of the whole payload.
    pub(crate) payload_size: u64,
    /// The part of the payload on this page; the rest is in a chain of overflow pages.
    pub(crate) local: &'a [u8],
    /// The first page of that chain.
    pub(crate) overflow: Option<u32>,
}

/// The minimum size of a free block, which contains the offset of the next block and its own size.
/// Smaller free areas are fragments (File Format, §1.6).
const BLOCK_BYTES_MIN: usize = 4;

impl BtreePage {
    pub(crate) fn parse(number: u32, bytes: Vec<u8>, usable: usize) -> Result<Self, MalformedPage> {
        let wrong = |what| MalformedPage { page: number, what };
        let start = if number == 1 { HEADER_SIZE } else { 0 };
        let kind = match bytes.get(start) {
            Some(2) => BtreePageKind::IndexInterior,
            Some(5) => BtreePageKind::TableInterior,
            Some(10) => BtreePageKind::IndexLeaf,
            Some(13) => BtreePageKind::TableLeaf,
            _ => return Err(wrong("not a B-tree page")),
        };
        if usable > bytes.len() || usable < 480 {
            return Err(wrong("invalid page size"));
        }
        let cells_count = u16_at(&bytes, start + 3).ok_or_else(|| wrong("too short"))?;
        let page = Self { number, bytes, usable, start, kind, cells_count: cells_count.into() };
        if page.pointers_end() > usable {
            return Err(wrong("more cells than fit on it"));
        }
        Ok(page)
    }

    pub(crate) const fn is_leaf(&self) -> bool {
        matches!(self.kind, BtreePageKind::IndexLeaf | BtreePageKind::TableLeaf)
    }

    pub(crate) const fn is_index(&self) -> bool {
        matches!(self.kind, BtreePageKind::IndexLeaf | BtreePageKind::IndexInterior)
    }

    /// Returns the number of child pages of an interior page.
    pub(crate) const fn children_count(&self) -> usize {
        if self.is_leaf() { 0 } else { self.cells_count + 1 }
    }

    /// Returns the page number of a child. That of the last one is in the page's header.
    pub(crate) fn child(&self, index: usize) -> Result<u32, MalformedPage> {
        let at = if index < self.cells_count { self.cell_start(index)? } else { self.start + 8 };
        match u32_at(&self.bytes, at) {
            Some(child) if child >= 2 => Ok(child),
            _ => Err(self.malformed("invalid number of a child page")),
        }
    }

    pub(crate) fn cell(&self, index: usize) -> Result<BtreeCell<'_>, MalformedPage> {
        let mut at = self.cell_start(index)?;
        if self.kind == BtreePageKind::IndexInterior {
            at += 4;
        }
        let environment = || self.malformed("a cell extends beyond the page");
        let (size, length) = varint(&self.bytes[..self.usable], at).ok_or_else(environment)?;
        at += length;
        let rowid = if self.kind == BtreePageKind::TableLeaf {
            let (rowid, length) = varint(&self.bytes[..self.usable], at).ok_or_else(environment)?;
            at += length;
            Some(rowid.cast_signed())
        } else {
            None
        };
        let local_size = self.local_size(size);
        let local = self.bytes[..self.usable].get(at..at + local_size).ok_or_else(environment)?;
        let mut overflow = None;
        if u64::try_from(local_size).expect("pages are small") < size {
            let next =
                u32_at(&self.bytes[..self.usable], at + local_size).ok_or_else(environment)?;
            if next < 2 {
                return Err(self.malformed("invalid number of an overflow page"));
            }
            overflow = Some(next);
        }
        Ok(BtreeCell { rowid, payload_size: size, local, overflow })
    }

    /// Counts the unused bytes: between pointers and cells, in freed cells, in fragments.
    fn free_size(&self) -> Result<usize, MalformedPage> {
        let wrong = || self.malformed("invalid list of free blocks");
        let at = |offset| u16_at(&self.bytes, offset).map(usize::from).ok_or_else(wrong);
        let content = match at(self.start + 5)? {
            0 => 65_536,
            content => content,
        };
        let gap = content.checked_sub(self.pointers_end()).ok_or_else(wrong)?;
        let mut free = gap + usize::from(self.bytes[self.start + 7]);
        let mut block = at(self.start + 1)?;
        while block != 0 {
            let (next, size) = (at(block)?, at(block + 2)?);
            free += size;
            // Blocks are in order, and never closer to each other than the size of the smallest
            // one.
            let end = block + size;
            let is_last = next == 0;
            if size < BLOCK_BYTES_MIN
                || end > self.usable
                || (!is_last && next < end + BLOCK_BYTES_MIN)
            {
                return Err(wrong());
            }
            block = next;
        }
        if free > self.usable { Err(wrong()) } else { Ok(free) }
    }

    /// Returns the fill of the page, 0 to 1.
    pub(crate) fn fill(&self) -> Result<f64, MalformedPage> {
        let free = crate::format::to_f64(self.free_size()?.try_into().expect("pages are small"));
        let usable = crate::format::to_f64(self.usable.try_into().expect("pages are small"));
        Ok(1.0 - free / usable)
    }

    /// Returns how much of a payload is stored on its page; the rest is in overflow pages.
    pub(crate) fn local_size(&self, payload: u64) -> usize {
        let u = self.usable;
        let max = if self.is_index() { (u - 12) * 64 / 255 - 23 } else { u - 35 };
        let min = (u - 12) * 32 / 255 - 23;
        match usize::try_from(payload) {
            Ok(payload) if payload <= max => payload,
            _ => {
                let each = u64::try_from(u - 4).expect("pages are small");
                let min_u64 = u64::try_from(min).expect("pages are small");
                let rest = usize::try_from((payload - min_u64) % each).expect("below a page");
                if min + rest <= max { min + rest } else { min }
            }
        }
    }

    /// Checks everything that can be wrong within this page alone.
    pub(crate) fn check(&self) -> Result<(), MalformedPage> {
        self.free_size()?;
        for index in 0..self.children_count() {
            self.child(index)?;
        }
        let has_payload = self.kind != BtreePageKind::TableInterior;
        let mut rowid_before = None;
        for index in 0..if has_payload { self.cells_count } else { 0 } {
            let rowid = self.cell(index)?.rowid;
            if rowid.is_some() && rowid <= rowid_before {
                return Err(self.malformed("row ids out of order"));
            }
            rowid_before = rowid;
        }
        Ok(())
    }

    /// Returns the number of payload bytes that each overflow page stores.
    pub(crate) const fn overflow_size(&self) -> usize {
        self.usable - 4
    }

    fn cell_start(&self, index: usize) -> Result<usize, MalformedPage> {
        let pointer = u16_at(&self.bytes, self.pointers_start() + 2 * index);
        let start = pointer
            .map(usize::from)
            .filter(|at| (self.pointers_end()..self.usable.saturating_sub(3)).contains(at));
        start.ok_or_else(|| self.malformed("a cell outside the page"))
    }

    const fn pointers_start(&self) -> usize {
        self.start + if self.is_leaf() { 8 } else { 12 }
    }

    const fn pointers_end(&self) -> usize {
        self.pointers_start() + 2 * self.cells_count
    }

    pub(crate) const fn malformed(&self, what: &'static str) -> MalformedPage {
        MalformedPage { page: self.number, what }
    }
}

/// Reads a variable-length integer of 1 to 9 bytes. Returns its value and its length.
pub(crate) fn varint(bytes: &[u8], at: usize) -> Option<(u64, usize)> {
    let mut value: u64 = 0;
    for length in 1..=8 {
        let byte = *bytes.get(at + length - 1)?;
        value = value << 7 | u64::from(byte & 0x7f);
        if byte < 0x80 {
            return Some((value, length));
        }
    }
    Some((value << 8 | u64::from(*bytes.get(at + 8)?), 9))
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(bytes.get(at..at + 2)?.try_into().expect("two bytes")))
}
