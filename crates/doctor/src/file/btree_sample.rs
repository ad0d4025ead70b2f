//! Estimates the size and shape of a B-tree from a sample of its pages.
//!
//! A small tree is read completely. In a large one, random paths from the root to a leaf are taken.
//! A leaf that was reached with probability p represents 1/p leaves, which makes the estimates
//! unbiased (Knuth, "Estimating the efficiency of backtrack programs", 1975). They are also
//! precise, because the pages of a B-tree have about equally many children: a hundred paths
//! estimate the rows of a billion within a few percent.
//!
//! # Invariants
//! - A path has at most `DEPTH_MAX` pages: it ends even in a damaged file whose pages form a cycle.

use super::btree_page::{BtreePage, BtreePageKind, MalformedPage};
use super::check_error::CheckError;
use super::record::{RecordField, fields};
use crate::format::to_f64;

/// SQLite's own limit (`BTCURSOR_MAX_DEPTH`).
const DEPTH_MAX: usize = 20;
/// The maximum number of pages of a tree that is read completely.
const WALK_PAGES_MAX: usize = 64;
/// The maximum number of rows that are sampled per leaf: neighbors are alike.
const ROWS_PER_LEAF_MAX: usize = 8;

/// A function that reads one page of the file.
pub(crate) type ReadPage<'a> = dyn Fn(u32) -> Result<BtreePage, CheckError> + 'a;

/// The sample of one tree.
#[derive(Clone, Debug, Default)]
pub(crate) struct TreeSample {
    /// Whether every page was read, except overflow pages.
    pub(crate) is_whole: bool,
    ways: Vec<TreePath>,
}

/// One path from the root to a leaf.
#[derive(Clone, Debug)]
struct TreePath {
    /// The number of leaves that this one represents.
    weight: f64,
    /// The number of entries on these leaves; in an index with their share of the interior pages'
    /// entries.
    entries: f64,
    fill: f64,
    overflow_pages: f64,
    rows: Vec<SampledRow>,
}

/// The sampled facts about one row.
#[derive(Clone, Debug)]
pub(crate) struct SampledRow {
    pub(crate) rowid: i64,
    /// The number of rows that this one represents.
    pub(crate) weight: f64,
    /// The size of the part of the payload that is on the page itself.
    pub(crate) local_size: u64,
    pub(crate) payload_size: u64,
    pub(crate) fields: Vec<RecordField>,
}

impl TreeSample {
    /// Reads a small tree completely. For a large tree, returns an empty sample.
    pub(crate) fn from_root(root: u32, read: &ReadPage<'_>) -> Result<Self, CheckError> {
        let mut sample = Self::default();
        let mut pages = vec![(read(root)?, 0.0)];
        let mut seen = 1;
        while let Some((page, inherited)) = pages.pop() {
            if page.is_leaf() {
                sample.ways.push(TreePath::from_leaf(&page, 1.0, inherited)?);
                continue;
            }
            seen += page.children_count();
            if seen > WALK_PAGES_MAX {
                return Ok(Self::default());
            }
            let share = inner_share(&page, inherited);
            for index in 0..page.children_count() {
                pages.push((child(&page, index, read)?, share));
            }
        }
        sample.is_whole = true;
        Ok(sample)
    }

    /// Adds one more random path.
    pub(crate) fn add_random_path(
        &mut self,
        root: u32,
        read: &ReadPage<'_>,
        random: &mut SampleRng,
    ) -> Result<(), CheckError> {
        let (mut page, mut weight, mut inherited) = (read(root)?, 1.0, 0.0);
        for _ in 0..DEPTH_MAX {
            if page.is_leaf() {
                self.ways.push(TreePath::from_leaf(&page, weight, inherited)?);
                return Ok(());
            }
            inherited = inner_share(&page, inherited);
            weight *= to_f64(page.children_count().try_into().expect("pages are small"));
            page = child(&page, random.below(page.children_count()), read)?;
        }
        Err(MalformedPage { page: root, what: "the tree is deeper than SQLite allows" }.into())
    }

    pub(crate) fn leaves_seen(&self) -> usize {
        self.ways.len()
    }

    /// Estimates the number of rows of a table, or of entries of an index.
    pub(crate) fn entries(&self) -> f64 {
        self.mean(|way| way.entries)
    }

    pub(crate) fn leaves(&self) -> f64 {
        self.mean(|way| way.weight)
    }

    /// Estimates the number of leaves and overflow pages. Interior pages are few and not counted.
    pub(crate) fn pages(&self) -> f64 {
        self.mean(|way| way.weight + way.overflow_pages)
    }

    /// Estimates the mean fill of the leaves, 0 to 1.
    pub(crate) fn fill(&self) -> f64 {
        self.mean(|way| way.weight * way.fill) / self.leaves().max(1.0)
    }

    /// Returns the standard error of the estimated number of entries, relative to that number.
    pub(crate) fn error(&self) -> f64 {
        let (count, mean) = (self.count(), self.entries());
        if self.is_whole || count < 2.0 || mean <= 0.0 {
            return 0.0;
        }
        let squares: f64 = self.ways.iter().map(|way| (way.entries - mean).powi(2)).sum();
        (squares / (count * (count - 1.0))).sqrt() / mean
    }

    /// Returns the sampled rows, each with the number of rows that it represents.
    pub(crate) fn rows(&self) -> impl Iterator<Item = &SampledRow> {
        self.ways.iter().flat_map(|way| &way.rows)
    }

    fn count(&self) -> f64 {
        to_f64(self.ways.len().try_into().unwrap_or(u64::MAX))
    }

    /// Sums the leaves of a tree that was read completely, or averages random paths, which each
    /// represent the whole tree.
    fn mean(&self, value: impl Fn(&TreePath) -> f64) -> f64 {
        let sum: f64 = self.ways.iter().map(value).sum();
        if self.is_whole || self.ways.is_empty() { sum } else { sum / self.count() }
    }
}

impl TreePath {
    fn from_leaf(page: &BtreePage, weight: f64, inherited: f64) -> Result<Self, CheckError> {
        page.check()?;
        let count = page.cells_count;
        let cells = to_f64(count.try_into().expect("pages are small"));
        let taken = count.min(ROWS_PER_LEAF_MAX);
        let (mut rows, mut overflow) = (Vec::new(), 0.0);
        for index in 0..taken {
            let cell = page.cell(index * count / taken)?;
            let local_size = u64::try_from(cell.local.len()).expect("pages are small");
            let each = u64::try_from(page.overflow_size()).expect("pages are small");
            let weight = weight * cells / to_f64(taken.try_into().expect("few"));
            overflow += weight * to_f64((cell.payload_size - local_size).div_ceil(each));
            if let (Some(rowid), Some(fields)) = (cell.rowid, fields(&cell)) {
                let payload_size = cell.payload_size;
                rows.push(SampledRow { rowid, weight, local_size, payload_size, fields });
            }
        }
        let entries = weight * (cells + inherited);
        Ok(Self { weight, entries, fill: page.fill()?, overflow_pages: overflow, rows })
    }
}

/// Distributes the entries that an index stores on interior pages: each child gets its share.
fn inner_share(page: &BtreePage, inherited: f64) -> f64 {
    let children = to_f64(page.children_count().try_into().expect("pages are small"));
    let own = if page.kind == BtreePageKind::IndexInterior { children - 1.0 } else { 0.0 };
    (inherited + own) / children
}

fn child(page: &BtreePage, index: usize, read: &ReadPage<'_>) -> Result<BtreePage, CheckError> {
    let child = read(page.child(index)?)?;
    if child.is_index() == page.is_index() {
        Ok(child)
    } else {
        Err(page.malformed("a child page of another kind").into())
    }
}

/// A random number generator that is good enough for a sample, and reproducible (Steele and others,
/// "Fast splittable pseudorandom number generators", 2014).
pub(crate) struct SampleRng(u64);

impl SampleRng {
    /// Creates a generator whose sequence depends on the seed.
    pub(crate) const fn from_seed(seed: u64) -> Self {
        Self(seed)
    }

    /// Returns a number from 0 to `count` - 1.
    pub(crate) fn below(&mut self, count: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let random = u128::from(z ^ (z >> 31));
        let count = u128::try_from(count.max(1)).expect("it is wider");
        usize::try_from((random * count) >> 64).expect("below a usize")
    }
}

#[cfg(test)]
mod tests {
    use rusqlite::Connection;

    use super::*;

    fn database(sql: &str) -> Connection {
        let db = Connection::open_in_memory().unwrap();
        db.execute_batch(sql).unwrap();
        db
    }

    fn number(db: &Connection, sql: &str) -> f64 {
        db.query_row(sql, [], |row| row.get(0)).unwrap()
    }

    fn bytes(db: &Connection, number: u32) -> Vec<u8> {
        let sql = "SELECT data FROM sqlite_dbpage WHERE pgno = ?1";
        db.query_row(sql, [number], |row| row.get(0)).unwrap()
    }

    fn root(db: &Connection, name: &str) -> u32 {
        let sql = "SELECT rootpage FROM sqlite_schema WHERE name = ?1";
        db.query_row(sql, [name], |row| row.get(0)).unwrap()
    }

    fn page(db: &Connection, number: u32) -> Result<BtreePage, CheckError> {
        Ok(BtreePage::parse(number, bytes(db, number), 4_096)?)
    }

    #[test]
    fn a_small_tree_is_known_as_dbstat_knows_it() {
        // Rows and keys have from a few bytes to several pages, which covers each way to store a
        // payload.
        let db = database(
            "CREATE TABLE t (id INTEGER PRIMARY KEY, x);
             CREATE INDEX i ON t (x);
             WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 60)
             INSERT INTO t SELECT i, zeroblob(700 + i * 197) FROM n",
        );
        for name in ["t", "i"] {
            let root = root(&db, name);
            let sample = TreeSample::from_root(root, &|number| page(&db, number)).unwrap();
            assert!(sample.is_whole);
            let count = |kind: &str| {
                let of = format!("FROM dbstat WHERE name = '{name}' AND pagetype = '{kind}'");
                (
                    number(&db, &format!("SELECT count(*) {of}")),
                    number(&db, &format!("SELECT coalesce(avg(1.0 - unused / 4096.0), 0) {of}")),
                )
            };
            let ((leaves, fill), (overflow, _)) = (count("leaf"), count("overflow"));
            assert!((sample.entries() - 60.0).abs() < 1e-6, "{name}: {}", sample.entries());
            assert!((sample.leaves() - leaves).abs() < 1e-6);
            assert!((sample.fill() - fill).abs() < 1e-6, "{name}: {} {fill}", sample.fill());
            if name == "t" {
                assert!((sample.pages() - leaves - overflow).abs() < 1e-6, "{}", sample.pages());
            }
        }
    }

    #[test]
    fn a_large_tree_is_estimated_within_its_error() {
        let db = database(
            "CREATE TABLE t (id INTEGER PRIMARY KEY, x);
             CREATE INDEX i ON t (x);
             WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100000)
             INSERT INTO t SELECT i, zeroblob(i % 90) FROM n",
        );
        for name in ["t", "i"] {
            let (root, mut random) = (root(&db, name), SampleRng::from_seed(0));
            let read = |number| page(&db, number);
            let mut sample = TreeSample::from_root(root, &read).unwrap();
            assert!(!sample.is_whole && sample.leaves_seen() == 0);
            for _ in 0..100 {
                sample.add_random_path(root, &read, &mut random).unwrap();
            }
            assert!(sample.error() < 0.2, "{name}: {}", sample.error());
            let off = (sample.entries() / 100_000.0 - 1.0).abs();
            assert!(
                off < 4.0 * sample.error(),
                "{name}: {} ± {}",
                sample.entries(),
                sample.error()
            );
        }
    }

    #[test]
    fn broken_pages_are_told_and_do_no_harm() {
        let db = database(
            "CREATE TABLE t (id INTEGER PRIMARY KEY, x);
             WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 900)
             INSERT INTO t SELECT i, zeroblob(i % 200) FROM n; DELETE FROM t WHERE id % 5 = 0",
        );
        let (root, mut random, mut told) = (root(&db, "t"), SampleRng::from_seed(7), 0);
        let pages_count: u32 = db.query_row("PRAGMA page_count", [], |row| row.get(0)).unwrap();
        for _ in 0..3_000 {
            let leaf = page(&db, root).unwrap().child(0).unwrap();
            let spoilt = if random.below(2) == 0 { root } else { leaf };
            let mut bytes = bytes(&db, spoilt);
            for _ in 0..=random.below(4) {
                let end = if random.below(2) == 0 { 40 } else { 4_096 };
                let at = random.below(end);
                bytes[at] = u8::try_from(random.below(256)).unwrap();
            }
            let read = |number| {
                let is_spoilt = number == spoilt;
                match is_spoilt {
                    true => Ok(BtreePage::parse(number, bytes.clone(), 4_096)?),
                    false if number > pages_count => {
                        Err(MalformedPage { page: number, what: "none" }.into())
                    }
                    false => page(&db, number),
                }
            };
            told += usize::from(TreeSample::from_root(root, &read).is_err());
            drop(TreeSample::default().add_random_path(root, &read, &mut random));
        }
        assert!(told > 300, "{told}");
    }
}
