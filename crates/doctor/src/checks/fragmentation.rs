//! Pages that hold nothing.

use crate::figure::{bytes, count, percent, ratio};
use crate::finding::{Finding, Mend};
use crate::report::Log;
use crate::subject::Subject;

/// The share of free pages from which they are worth a word.
const FREE_SHARE_MIN: f64 = 0.15;
/// Below this, nobody gains anything.
const FREE_BYTES_MIN: u64 = 1_000_000;

pub(crate) fn check(subject: &Subject, log: &mut Log) {
    let header = &subject.header;
    let (free, pages) = (u64::from(header.free_pages_count), subject.pages_count());
    let free_bytes = free * u64::from(header.page_size);
    let share = ratio(free, pages);
    log.check(format!("free pages: {} of {}", count(free), count(pages)));
    // More free pages than pages is a fault, which the integrity check tells.
    if free >= pages || share < FREE_SHARE_MIN || free_bytes < FREE_BYTES_MIN {
        return;
    }
    let mend = if header.is_incremental { "PRAGMA incremental_vacuum;" } else { "VACUUM;" };
    let what = format!("{} of the file is free pages, {}", percent(share), bytes(free_bytes));
    let finding = Finding::new("fragmented", what, Mend::Sql(mend.to_owned()))
        .evidence(format!("{} of {} pages are free", count(free), count(pages)))
        .field("free_pages_count", free)
        .field("pages_count", pages)
        .field("free_bytes", free_bytes)
        .cost(format!("{} that backups and copies carry along", bytes(free_bytes)));
    log.find(finding);
    if !header.has_auto_vacuum {
        log.find(auto_vacuum_off(free_bytes));
    }
}

fn auto_vacuum_off(free_bytes: u64) -> Finding {
    let mend = "PRAGMA auto_vacuum = INCREMENTAL;\nVACUUM;".to_owned();
    let what = "auto_vacuum is off, so only VACUUM gives room back";
    Finding::new("auto_vacuum_off", what, Mend::Sql(mend))
        .evidence("the header says: no auto_vacuum")
        .field("free_bytes", free_bytes)
        .cost("To shrink, the whole file is written anew, and locked meanwhile.")
}
