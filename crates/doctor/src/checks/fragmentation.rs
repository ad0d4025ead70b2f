//! Checks how many pages of the file are free.

use indicatif::{DecimalBytes, HumanCount};

use crate::catalogue::finding_code::FindingCode;
use crate::file::opened_file::OpenedFile;
use crate::format::{format_percent, ratio};
use crate::report::CheckResults;
use crate::report::finding::{DoctorFinding, Fix};

/// The minimum share of free pages that is reported.
const FREE_SHARE_MIN: f64 = 0.15;
/// The minimum size of the free pages. Below it, a vacuum gains nothing noticeable.
const FREE_BYTES_MIN: u64 = 1_000_000;

pub(crate) fn check(subject: &OpenedFile, log: &mut CheckResults) {
    let header = &subject.header;
    let (free, pages) = (u64::from(header.free_pages_count), subject.pages_count());
    let free_bytes = free * u64::from(header.page_size);
    let share = ratio(free, pages);
    log.add_checked(format!("free pages: {} of {}", HumanCount(free), HumanCount(pages)));
    // More free pages than pages is damage, which the integrity check reports.
    if free >= pages || share < FREE_SHARE_MIN || free_bytes < FREE_BYTES_MIN {
        return;
    }
    let fix = if header.is_incremental { "PRAGMA incremental_vacuum;" } else { "VACUUM;" };
    let what =
        format!("{} of the pages are free, {}", format_percent(share), DecimalBytes(free_bytes));
    let finding = DoctorFinding::new(FindingCode::Fragmented, what, Fix::Sql(fix.to_owned()))
        .evidence(format!("{} of {} pages are free", HumanCount(free), HumanCount(pages)))
        .detail("free_pages_count", free)
        .detail("pages_count", pages)
        .detail("free_bytes", free_bytes)
        .impact(format!(
            "Backups and copies of the file contain {} of free pages.",
            DecimalBytes(free_bytes)
        ));
    log.add(finding);
    if !header.has_auto_vacuum {
        log.add(auto_vacuum_off(free_bytes));
    }
}

fn auto_vacuum_off(free_bytes: u64) -> DoctorFinding {
    let fix = "PRAGMA auto_vacuum = INCREMENTAL;\nVACUUM;".to_owned();
    let what = "auto_vacuum is off, so only VACUUM returns free pages to the disk";
    DoctorFinding::new(FindingCode::AutoVacuumOff, what, Fix::Sql(fix))
        .evidence("according to its header, the file has no auto_vacuum")
        .detail("free_bytes", free_bytes)
        .impact("VACUUM rewrites the whole file, and locks it until it is done.")
}
