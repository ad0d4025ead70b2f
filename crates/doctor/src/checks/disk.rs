//! Checks the disks: the file system that the file is on, and whether there is space to vacuum.

use indicatif::DecimalBytes;

use crate::catalogue::finding_code::FindingCode;
use crate::environment::file_environment::FileEnvironment;
use crate::file::schema::quote_for_shell;
use crate::report::CheckResults;
use crate::report::finding::{DoctorFinding, Fix};

/// The minimum file size. The vacuum of a smaller file finds enough space.
const FILE_BYTES_MIN: u64 = 1_000_000;

pub(crate) fn check(environment: &FileEnvironment, log: &mut CheckResults) {
    if let Some(kind) = environment.file_system.as_deref().filter(|_| environment.is_networked()) {
        let what = format!("the file is on a network file system ({kind})");
        let fix = "Move the file to a local disk, and let other machines access it through one \
                    server.";
        let finding =
            DoctorFinding::new(FindingCode::NetworkFileSystem, what, Fix::Advice(fix.to_owned()))
                .evidence(format!("type of the mount: {kind}"))
                .detail("file_system", kind)
                .impact("Locks may not work between machines: two writers then corrupt the file.");
        log.add(finding);
    }
    let size = environment.stamp.bytes;
    if size < FILE_BYTES_MIN {
        return;
    }
    let (size_text, needed) = (DecimalBytes(size), 2 * size);
    if let Some(free) = environment.free_bytes.filter(|free| *free < needed) {
        let what = format!(
            "the disk of the file has {} free; VACUUM may need {}",
            DecimalBytes(free),
            DecimalBytes(needed)
        );
        let fix = "Free up space on this disk, or VACUUM INTO a file on another disk.";
        let finding = DoctorFinding::new(
            FindingCode::DiskTooSmall,
            what,
            Fix::Advice(fix.to_owned()),
        )
        .evidence(format!("file size: {size_text}; the journal or WAL may become as large"))
        .detail("free_bytes", free)
        .detail("needed_bytes", needed)
        .impact("A VACUUM, or a large transaction, would fail with \"database or disk is full\".");
        log.add(finding);
    }
    if let Some(temp) = environment.temp.as_ref().filter(|temp| temp.free_bytes < size) {
        let (free, place) = (DecimalBytes(temp.free_bytes), temp.path.display());
        let whose = if temp.is_told { "program's settings" } else { "environment of this command" };
        let what = format!("{place} has {free} free; VACUUM may need {size_text}");
        let directory =
            environment.path.parent().unwrap_or(&environment.path).display().to_string();
        let fix = format!("export SQLITE_TMPDIR={}", quote_for_shell(&directory));
        let finding = DoctorFinding::new(FindingCode::TempTooSmall, what, Fix::Shell(fix))
            .evidence(format!("SQLite puts temporary files into {place}, according to the {whose}"))
            .detail("temp_directory", place.to_string())
            .detail("free_bytes", temp.free_bytes)
            .detail("needed_bytes", size)
            .impact("VACUUM, or creating a large index, would fail for lack of space.");
        log.add(finding);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::environment::file_environment::TempSpace;

    fn codes(change: impl FnOnce(&mut FileEnvironment)) -> Vec<FindingCode> {
        let mut environment = FileEnvironment::sample(10_000_000);
        change(&mut environment);
        let mut log = CheckResults::default();
        check(&environment, &mut log);
        log.findings.iter().map(|finding| finding.code).collect()
    }

    #[test]
    fn network_file_systems_are_found() {
        assert_eq!(
            codes(|environment| environment.file_system = Some("nfs4".into())),
            [FindingCode::NetworkFileSystem]
        );
        assert!(codes(|environment| environment.file_system = Some("ext4".into())).is_empty());
    }

    #[test]
    fn disks_without_room_for_vacuum_are_found() {
        let temp = |free_bytes| Some(TempSpace { path: "/tmp".into(), free_bytes, is_told: false });
        assert_eq!(
            codes(|environment| environment.free_bytes = Some(19_999_999)),
            [FindingCode::DiskTooSmall]
        );
        assert_eq!(
            codes(|environment| environment.temp = temp(9_999_999)),
            [FindingCode::TempTooSmall]
        );
        let mut environment = FileEnvironment::sample(10_000_000);
        environment.temp = Some(TempSpace { path: "/tmp".into(), free_bytes: 1, is_told: true });
        let mut log = CheckResults::default();
        check(&environment, &mut log);
        let evidence = &log.findings[0].evidence[0];
        assert!(evidence.ends_with("/tmp, according to the program's settings"), "{evidence}");
        let enough = codes(|environment| {
            environment.free_bytes = Some(20_000_000);
            environment.temp = temp(10_000_000);
        });
        assert!(enough.is_empty());
        assert!(
            codes(
                |environment| (environment.stamp.bytes, environment.free_bytes) = (1_000, Some(0))
            )
            .is_empty()
        );
    }
}
