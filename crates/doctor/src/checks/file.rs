//! The file as such: is all of it there?

use crate::figure::{bytes, count};
use crate::finding::{Finding, Mend};
use crate::outside::Outside;
use crate::report::Log;

pub(crate) fn check_size(outside: &Outside, log: &mut Log) {
    let size = outside.stamp.bytes;
    if size == 0 {
        let mend = "Find the file that was meant, or restore a backup.";
        let mut finding =
            Finding::new("file_empty", "the file has no bytes", Mend::Advice(mend.to_owned()))
                .evidence("its size is 0")
                .field("file_bytes", size)
                .cost("Whatever was in it is not in it now.");
        if let Some(journal) = outside.journal.as_ref().filter(|journal| journal.bytes > 0) {
            let journal = bytes(journal.bytes);
            finding = finding.evidence(format!("a journal of {journal} is beside it: copy it now"));
        }
        log.find(finding);
        return;
    }
    let Some(header) = outside.header.as_ref().filter(|header| header.knows_its_pages()) else {
        return;
    };
    let expected = u64::from(header.pages_count) * u64::from(header.page_size);
    // A WAL may hold what is missing; a writer may be about to.
    if size >= expected || outside.has_wal_content() || !outside.watch.held.is_empty() {
        return;
    }
    let missing = (expected - size).div_ceil(header.page_size.into());
    let mend = "Copy it again from where it is whole, or restore a backup; the shell's .recover \
                saves what is left: sqlite3 FILE .recover | sqlite3 NEW";
    let what = format!("{} of {} are missing", bytes(expected - size), bytes(expected));
    let finding = Finding::new("file_truncated", what, Mend::Advice(mend.to_owned()))
        .evidence(format!(
            "the header tells of {} pages of {}; the file has {} bytes",
            count(header.pages_count.into()),
            header.page_size,
            count(size)
        ))
        .field("file_bytes", size)
        .field("expected_bytes", expected)
        .cost(format!("What was on {} pages is gone.", count(missing)));
    log.find(finding);
}
