//! The file as such: is all of it there?

use super::integrity::recover_command;
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
    let finding = truncated(outside, expected, missing);
    log.find(finding.evidence(format!(
        "the header tells of {} pages of {}; the file has {} bytes",
        count(header.pages_count.into()),
        header.page_size,
        count(size)
    )));
}

/// A file that lacks so many pages of the bytes that it should have.
pub(crate) fn truncated(outside: &Outside, expected: u64, missing: u64) -> Finding {
    let size = outside.stamp.bytes;
    let mend = format!(
        "Copy it again from where it is whole, or restore a backup; or save what is left: {}",
        recover_command(outside)
    );
    let what =
        format!("{} of {} are missing", bytes(expected.saturating_sub(size)), bytes(expected));
    Finding::new("file_truncated", what, Mend::Advice(mend))
        .field("file_bytes", size)
        .field("expected_bytes", expected)
        .cost(format!("What was on {} pages is gone.", count(missing)))
}

/// The same file by another name: its journals stand beside the name by which it was opened.
pub(crate) fn check_links(outside: &Outside, log: &mut Log) {
    if outside.links_count < 2 {
        return;
    }
    let names: Vec<String> =
        outside.other_names.iter().map(|name| name.path.display().to_string()).collect();
    let what = format!("the file has {} names (hard links)", outside.links_count);
    let mend = "Open it by one name only, in all programs, and delete the others; first close it \
                everywhere, so that no journal is left beside any of them.";
    let mut finding = Finding::new("hard_linked", what, Mend::Advice(mend.to_owned()))
        .evidence(format!("its link count is {}", outside.links_count))
        .field("links_count", outside.links_count)
        .field("other_names", names)
        .cost("A program that opens another name sees no journal and no WAL of this one.");
    for name in &outside.other_names {
        let path = name.path.display();
        let journal = if name.has_journal { ", with a journal or a WAL beside it" } else { "" };
        finding = finding.evidence(format!("{path}{journal}"));
    }
    log.find(finding);
}

/// What has the name of a journal, and is none.
pub(crate) fn check_companions(outside: &Outside, log: &mut Log) {
    for path in &outside.irregular {
        let path = path.display().to_string();
        let what = format!("{path} is no file");
        let mend = "See who made it, and remove it.".to_owned();
        let finding = Finding::new("companion_irregular", what, Mend::Advice(mend))
            .evidence("a pipe, a device, a socket or a directory")
            .field("companion", path)
            .cost("A program that opens the database may wait for it without end, or fail.");
        log.find(finding);
    }
}
