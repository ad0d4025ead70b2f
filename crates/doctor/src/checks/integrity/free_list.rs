//! Checks the list of free pages, which the check of one table does not cover: each of its trunk
//! pages contains the number of the next one and the numbers of its own leaves
//! (<https://sqlite.org/fileformat.html#the_freelist>).

use std::collections::HashSet;
use std::time::Duration;

use crate::file::btree_page::MalformedPage;
use crate::file::check_error::CheckError;
use crate::file::database_header::u32_at;
use crate::file::opened_file::OpenedFile;

/// The maximum number of free pages that are remembered, to be compared with the pages in use.
const PAGES_MAX: usize = 1 << 22;

/// Walks the list and checks whether one of its pages is in use: writing to such a file damages it.
pub(super) fn check(subject: &OpenedFile) -> Result<(), CheckError> {
    // Other processes may have to wait until the snapshot ends.
    let time = subject.grant_time(Duration::MAX);
    let end = subject.time_limit.elapsed() + time;
    let free = subject.in_snapshot(|| walk(subject, end))?;
    let used = subject.pages_read.borrow();
    match used.iter().find(|page| free.contains(*page)) {
        Some(page) => Err(malformed(*page, "in use, and also in the list of free pages")),
        None => Ok(()),
    }
}

fn walk(subject: &OpenedFile, end: Duration) -> Result<HashSet<u32>, CheckError> {
    let first = subject.page_bytes(1)?;
    let at = |bytes: &[u8], offset| u32_at(bytes, offset).unwrap_or_default();
    let (mut trunk, count) = (at(&first, 32), at(&first, 36));
    let (mut seen, mut free) = (0, HashSet::new());
    while trunk != 0 && subject.time_limit.elapsed() < end {
        let bytes = subject.page_bytes(trunk)?;
        let leaves = at(&bytes, 4);
        seen += 1 + leaves;
        if leaves > subject.header.page_size / 4 || seen > count {
            return Err(malformed(trunk, "the list of free pages is longer than the header says"));
        }
        let leaves = (0..usize::try_from(leaves).unwrap_or(0)).map(|leaf| at(&bytes, 8 + 4 * leaf));
        for page in leaves.chain([trunk]) {
            if free.len() < PAGES_MAX && !free.insert(page) {
                return Err(malformed(page, "twice in the list of free pages"));
            }
        }
        trunk = at(&bytes, 0);
    }
    if trunk == 0 && seen < count {
        return Err(malformed(1, "the list of free pages is shorter than the header says"));
    }
    Ok(free)
}

fn malformed(page: u32, what: &'static str) -> CheckError {
    MalformedPage { page, what }.into()
}
