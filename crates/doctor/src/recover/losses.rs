//! Finds the unreachable parts of a damaged file's trees: which pages and rows of which table.
//!
//! Every tree in the schema is walked page by page. A referenced page that is missing, or is not a
//! page of such a tree, is lost with everything below it. An index may reveal how many rows that
//! were, because it has an entry for each.
//!
//! # Invariants
//! - Each page of a tree is visited once, regardless of the pointers.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use rusqlite::{Connection, OptionalExtension};

use crate::file::btree_page::{BtreeCell, BtreePage};
use crate::file::database_header::u32_at;

/// An object of the schema that was found.
#[derive(Clone, Debug)]
pub(super) struct FoundObject {
    pub(super) kind: String,
    pub(super) name: String,
    pub(super) table: String,
    pub(super) root: u32,
    pub(super) sql: Option<String>,
}

/// The schema, as far as it was found.
#[derive(Default)]
pub(super) struct FoundSchema {
    pub(super) objects: Vec<FoundObject>,
}

impl FoundSchema {
    pub(super) fn read(workspace: &Connection) -> rusqlite::Result<Self> {
        let sql = "SELECT type, name, tbl_name, rootpage, sql FROM recovery.schema";
        let mut statement = workspace.prepare(sql)?;
        let mut rows = statement.query([])?;
        let mut objects = Vec::new();
        while let Some(row) = rows.next()? {
            // A damaged row may contain anything in any column.
            let text = |column| row.get::<_, String>(column).ok();
            let (Some(kind), Some(name), Some(table)) = (text(0), text(1), text(2)) else {
                continue;
            };
            let root = row.get(3).unwrap_or(0);
            objects.push(FoundObject { kind, name, table, root, sql: text(4) });
        }
        Ok(Self { objects })
    }

    pub(super) fn tables(&self) -> impl Iterator<Item = &FoundObject> {
        self.objects.iter().filter(|object| object.kind == "table" && object.root > 0)
    }

    /// Returns the indexes of a table that have an entry for each row.
    fn whole_indexes(&self, table: &str) -> impl Iterator<Item = &FoundObject> {
        let is_partial = |object: &FoundObject| {
            object.sql.as_ref().is_some_and(|sql| sql.to_ascii_lowercase().contains("where"))
        };
        self.objects.iter().filter(move |object| {
            object.kind == "index"
                && object.table == table
                && object.root > 0
                && !is_partial(object)
        })
    }
}

/// The losses in one tree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct TreeLoss {
    /// The number of entries on the pages that could be read.
    pub(super) entries: u64,
    /// The number of pages that are referenced, but are not pages of such a tree.
    pub(super) pages: u64,
    /// The number of entries of which a part cannot be reached.
    pub(super) torn: u64,
}

/// The losses in one table.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct TableLoss {
    pub(super) tree: TreeLoss,
    /// The number of rows that the table had, according to its own tree and its indexes.
    pub(super) rows_known: u64,
}

/// The losses by table, and those in the schema's own tree.
#[derive(Default)]
pub(super) struct TreeLosses {
    pub(super) schema: TreeLoss,
    /// Whether at least one page of the file certainly belongs to a database. If the schema
    /// contains any object, this is not checked.
    pub(super) has_tree_page: bool,
    pub(super) tables: BTreeMap<String, TableLoss>,
}

impl TreeLosses {
    pub(super) fn find(
        workspace: &Connection,
        unreadable: &BTreeSet<u32>,
        schema: &FoundSchema,
    ) -> rusqlite::Result<Self> {
        let pages = PageReader::new(workspace, unreadable)?;
        let mut losses = Self { schema: pages.walk(1)?, ..Self::default() };
        losses.has_tree_page = !schema.objects.is_empty() || pages.has_tree_page()?;
        for table in schema.tables() {
            let tree = pages.walk(table.root)?;
            let mut rows_known = tree.entries;
            for index in schema.whole_indexes(&table.name) {
                rows_known = rows_known.max(pages.walk(index.root)?.entries);
            }
            losses.tables.insert(table.name.clone(), TableLoss { tree, rows_known });
        }
        Ok(losses)
    }
}

/// A reader of pages as the extension sees them: those that cannot be read are zeros.
struct PageReader<'a> {
    workspace: &'a Connection,
    unreadable: &'a BTreeSet<u32>,
    pages_count: u32,
}

impl<'a> PageReader<'a> {
    fn new(workspace: &'a Connection, unreadable: &'a BTreeSet<u32>) -> rusqlite::Result<Self> {
        let pages_count = workspace.query_row("SELECT getpage(0)", [], |row| row.get(0))?;
        Ok(Self { workspace, unreadable, pages_count })
    }

    fn bytes(&self, number: u32) -> rusqlite::Result<Option<Vec<u8>>> {
        if number == 0 || number > self.pages_count {
            return Ok(None);
        }
        // The statement is not cached, because the extension closes this connection.
        let mut statement = self.workspace.prepare("SELECT getpage(?1)")?;
        Ok(statement.query_row([number], |row| row.get(0)).optional()?.flatten())
    }

    fn page(&self, number: u32) -> rusqlite::Result<Option<BtreePage>> {
        let Some(bytes) = self.bytes(number)? else { return Ok(None) };
        let usable = bytes.len();
        Ok(BtreePage::parse(number, bytes, usable).ok())
    }

    fn has_tree_page(&self) -> rusqlite::Result<bool> {
        for number in 1..=self.pages_count {
            let page = self.page(number)?;
            if page.is_some_and(|page| page.cells_count > 0 && page.check().is_ok()) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn walk(&self, root: u32) -> rusqlite::Result<TreeLoss> {
        let mut loss = TreeLoss::default();
        let mut seen = HashSet::from([root]);
        let mut pending = vec![root];
        let mut is_index = None;
        while let Some(number) = pending.pop() {
            let page = self.page(number)?;
            let page =
                page.filter(|page| is_index.is_none_or(|is_index| is_index == page.is_index()));
            let Some(page) = page else {
                loss.pages += 1;
                continue;
            };
            is_index = Some(page.is_index());
            for index in 0..page.children_count() {
                match page.child(index) {
                    Ok(child) if seen.insert(child) => pending.push(child),
                    // The child is already below another page, or its number is invalid.
                    _ => loss.pages += 1,
                }
            }
            let is_inner_of_table = page.children_count() > 0 && !page.is_index();
            for index in 0..if is_inner_of_table { 0 } else { page.cells_count } {
                loss.entries += 1;
                let is_whole = match page.cell(index) {
                    Ok(cell) => self.is_whole(&page, &cell)?,
                    Err(_) => false,
                };
                loss.torn += u64::from(!is_whole);
            }
        }
        Ok(loss)
    }

    /// Checks whether each page of the cell's overflow chain exists.
    fn is_whole(&self, page: &BtreePage, cell: &BtreeCell<'_>) -> rusqlite::Result<bool> {
        let Some(mut next) = cell.overflow else { return Ok(true) };
        let local = u64::try_from(cell.local.len()).unwrap_or(u64::MAX);
        let each = u64::try_from(page.overflow_size()).unwrap_or(1);
        let mut left = cell.payload_size.saturating_sub(local).div_ceil(each);
        if left > u64::from(self.pages_count) {
            return Ok(false);
        }
        let mut seen = HashSet::new();
        loop {
            let bytes = if seen.insert(next) { self.bytes(next)? } else { None };
            // A page that cannot be read is zeros, so it would look like the last one.
            let Some(bytes) = bytes.filter(|_| !self.unreadable.contains(&next)) else {
                return Ok(false);
            };
            left -= 1;
            next = u32_at(&bytes, 0).unwrap_or(0);
            if left == 0 {
                return Ok(next == 0);
            }
        }
    }
}
