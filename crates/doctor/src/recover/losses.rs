//! What of a damaged file's trees is out of reach: which pages of which table, which rows.
//!
//! Every tree that the schema names is walked page by page. A page that is asked for and is not there,
//! or is no page of such a tree, is lost with all below it; how many rows that were, an index may
//! know, which has an entry for each.
//!
//! # Invariants
//! - Each page of a tree is visited once, however the pointers go.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use rusqlite::{Connection, OptionalExtension};

use crate::file::btree_page::{BtreeCell, BtreePage};
use crate::file::database_header::u32_at;

/// A part of the schema that was found.
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
            // A damaged row may have anything in any column.
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

    /// The indexes of a table that have an entry for each row.
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

/// What is known of a tree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct TreeLoss {
    /// Entries on the pages that could be read.
    pub(super) entries: u64,
    /// Pages that something points to, and that are no pages of such a tree.
    pub(super) pages: u64,
    /// Entries of which a part is out of reach.
    pub(super) torn: u64,
}

/// What is known of a table.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct TableLoss {
    pub(super) tree: TreeLoss,
    /// Rows that the table had, as far as its own tree and its indexes tell.
    pub(super) rows_known: u64,
}

/// By table; of the schema's own tree apart.
#[derive(Default)]
pub(super) struct TreeLosses {
    pub(super) schema: TreeLoss,
    /// Some page of the file is one of a database's, beyond doubt. (If there are tables, that was not
    /// asked.)
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

/// Pages as the extension sees them: those that cannot be read are zeros.
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
        // Not kept: the extension closes this connection.
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
                    // Below another page already, or nowhere.
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

    /// Is each page of its overflow chain there?
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
            // One that cannot be read is zeros, and so seems to be the last.
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
