//! Checks the file itself: whether all of it is present, and whether it has other names.

use indicatif::DecimalBytes;

use crate::catalogue::finding_code::FindingCode;
use crate::environment::file_environment::FileEnvironment;
use crate::file::unreadable::recover_command;
use crate::format::counted;
use crate::report::CheckResults;
use crate::report::finding::{DoctorFinding, Fix};

pub(crate) fn check_size(environment: &FileEnvironment, log: &mut CheckResults) {
    let size = environment.stamp.bytes;
    if size == 0 {
        let fix = "Find the file that the program should use, or restore a backup.";
        let mut finding = DoctorFinding::new(
            FindingCode::FileEmpty,
            "the file has no content (0 bytes)",
            Fix::Advice(fix.to_owned()),
        )
        .evidence("its size is 0 bytes")
        .detail("file_bytes", size)
        .impact("Any content that it had is gone.");
        if let Some(journal) = environment.journal.as_ref().filter(|journal| journal.bytes > 0) {
            let journal = DecimalBytes(journal.bytes);
            finding =
                finding.evidence(format!("next to it is a journal of {journal}: copy it now"));
        }
        log.add(finding);
        return;
    }
    let Some(header) = environment.header.as_ref().filter(|header| header.has_valid_page_count())
    else {
        return;
    };
    let expected = u64::from(header.pages_count) * u64::from(header.page_size);
    // A WAL may contain the missing pages, or a writer may be about to write them.
    if size >= expected || environment.has_wal_content() || !environment.watch.held.is_empty() {
        return;
    }
    let missing = (expected - size).div_ceil(header.page_size.into());
    let finding = truncated(environment, expected, missing);
    log.add(finding.evidence(format!(
        "the header counts {} of {} bytes, but the file has {}",
        counted(header.pages_count.into(), "page", "pages"),
        header.page_size,
        counted(size, "byte", "bytes")
    )));
}

/// Creates the finding for a file that lacks this number of pages of the size that it should have.
pub(crate) fn truncated(
    environment: &FileEnvironment,
    expected: u64,
    missing: u64,
) -> DoctorFinding {
    let size = environment.stamp.bytes;
    let fix = format!(
        "Copy the file again from an intact original, restore a backup, or save what is left: {}",
        recover_command(environment)
    );
    let what = format!(
        "{} of {} are missing",
        DecimalBytes(expected.saturating_sub(size)),
        DecimalBytes(expected)
    );
    DoctorFinding::new(FindingCode::FileTruncated, what, Fix::Advice(fix))
        .detail("file_bytes", size)
        .detail("expected_bytes", expected)
        .impact(format!("The content of {} is lost.", counted(missing, "page", "pages")))
}

/// Reports other names of the same file: its journals are next to the name by which it was opened.
pub(crate) fn check_links(environment: &FileEnvironment, log: &mut CheckResults) {
    if environment.links_count < 2 {
        return;
    }
    let names: Vec<String> =
        environment.other_names.iter().map(|name| name.path.display().to_string()).collect();
    let what = format!("the file has {} names (hard links)", environment.links_count);
    let fix = "Close the file in all programs, so that no journal remains next to any of its \
                names. Then delete all names but one, and open the file only by that name.";
    let mut finding =
        DoctorFinding::new(FindingCode::HardLinked, what, Fix::Advice(fix.to_owned()))
            .evidence(format!("its link count is {}", environment.links_count))
            .detail("links_count", environment.links_count)
            .detail("other_names", names)
            .impact(
                "A program that opens another name does not use the journal and WAL of this one.",
            );
    for name in &environment.other_names {
        let path = name.path.display();
        let journal = if name.has_journal { ", with a journal or a WAL next to it" } else { "" };
        finding = finding.evidence(format!("{path}{journal}"));
    }
    log.add(finding);
}

/// Reports companions that have the name of a journal, a WAL or a shm file, but are not regular
/// files.
pub(crate) fn check_companions(environment: &FileEnvironment, log: &mut CheckResults) {
    for path in &environment.irregular {
        let path = path.display().to_string();
        let what = format!("{path} is not a regular file");
        let fix = "Find out which program created it, and remove it.".to_owned();
        let finding = DoctorFinding::new(FindingCode::CompanionIrregular, what, Fix::Advice(fix))
            .evidence("it is a pipe, a device, a socket or a directory")
            .detail("companion", path)
            .impact("A program that opens the database may wait for it forever, or fail.");
        log.add(finding);
    }
}
