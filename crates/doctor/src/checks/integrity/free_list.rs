//! The list of free pages, of which the check of one table knows nothing: each of its trunk pages
//! has the next one's number and its own leaves (<https://sqlite.org/fileformat.html#the_freelist>).

use std::collections::HashSet;
use std::time::Duration;

use crate::file::btree_page::MalformedPage;
use crate::file::check_error::CheckError;
use crate::file::database_header::u32_at;
use crate::file::opened_file::OpenedFile;

/// Free pages that are remembered, to be compared with those that are in use.
const PAGES_MAX: usize = 1 << 22;

/// Walks the list, and sees whether a page of it is in use: writing to such a file breaks it.
pub(super) fn check(subject: &OpenedFile) -> Result<(), CheckError> {
    // Others may wait until the snapshot ends.
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
