//! The disks: what kind the file is on, and whether there is room to vacuum.

use crate::figure::bytes;
use crate::finding::{Finding, Mend};
use crate::outside::Outside;
use crate::report::Log;

/// Who vacuums less finds room.
const FILE_BYTES_MIN: u64 = 1_000_000;

pub(crate) fn check(outside: &Outside, log: &mut Log) {
    if let Some(kind) = outside.file_system.as_deref().filter(|_| outside.is_networked()) {
        let what = format!("the file is on a network file system, {kind}");
        let mend = "Move the file to a local disk, and let one server answer for it.";
        let finding = Finding::new("network_file_system", what, Mend::Advice(mend.to_owned()))
            .evidence(format!("the mount that holds it is of type {kind}"))
            .field("file_system", kind)
            .cost("Locks may not hold between machines: two writers then spoil the file.");
        log.find(finding);
    }
    let size = outside.stamp.bytes;
    if size < FILE_BYTES_MIN {
        return;
    }
    let (size_text, needed) = (bytes(size), 2 * size);
    if let Some(free) = outside.free_bytes.filter(|free| *free < needed) {
        let what = format!(
            "{} are free on the file's disk; VACUUM may need {}",
            bytes(free),
            bytes(needed)
        );
        let mend = "Make room on that disk; or VACUUM INTO a file on another one.";
        let finding = Finding::new("disk_too_small", what, Mend::Advice(mend.to_owned()))
            .evidence(format!("the file has {size_text}; its journal or WAL may become as large"))
            .field("free_bytes", free)
            .field("needed_bytes", needed)
            .cost(
                "A VACUUM, or a large transaction, would fail with \"database or disk is full\".",
            );
        log.find(finding);
    }
    if let Some(temp) = outside.temp.as_ref().filter(|temp| temp.free_bytes < size) {
        let (free, place) = (bytes(temp.free_bytes), temp.path.display());
        let whose = if temp.is_told { ", as the program says" } else { ", as this is called" };
        let what = format!("{free} are free in {place}; VACUUM may need {size_text}");
        let directory = outside.path.parent().unwrap_or(&outside.path).display().to_string();
        let mend = format!("export SQLITE_TMPDIR={}", crate::schema::shell_word(&directory));
        let finding = Finding::new("temp_too_small", what, Mend::Shell(mend))
            .evidence(format!("{place} is where SQLite puts temporary files{whose}"))
            .field("temp_directory", place.to_string())
            .field("free_bytes", temp.free_bytes)
            .field("needed_bytes", size)
            .cost("VACUUM and the building of a large index would fail there.");
        log.find(finding);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outside::Temp;

    fn codes(change: impl FnOnce(&mut Outside)) -> Vec<&'static str> {
        let mut outside = Outside::sample(10_000_000);
        change(&mut outside);
        let mut log = Log::default();
        check(&outside, &mut log);
        log.findings.iter().map(|finding| finding.code).collect()
    }

    #[test]
    fn network_file_systems_are_found() {
        assert_eq!(
            codes(|outside| outside.file_system = Some("nfs4".into())),
            ["network_file_system"]
        );
        assert!(codes(|outside| outside.file_system = Some("ext4".into())).is_empty());
    }

    #[test]
    fn disks_without_room_for_vacuum_are_found() {
        let temp = |free_bytes| Some(Temp { path: "/tmp".into(), free_bytes, is_told: false });
        assert_eq!(codes(|outside| outside.free_bytes = Some(19_999_999)), ["disk_too_small"]);
        assert_eq!(codes(|outside| outside.temp = temp(9_999_999)), ["temp_too_small"]);
        let mut outside = Outside::sample(10_000_000);
        outside.temp = Some(Temp { path: "/tmp".into(), free_bytes: 1, is_told: true });
        let mut log = Log::default();
        check(&outside, &mut log);
        let evidence = &log.findings[0].evidence[0];
        assert!(evidence.ends_with("temporary files, as the program says"), "{evidence}");
        let enough = codes(|outside| {
            outside.free_bytes = Some(20_000_000);
            outside.temp = temp(10_000_000);
        });
        assert!(enough.is_empty());
        assert!(
            codes(|outside| (outside.stamp.bytes, outside.free_bytes) = (1_000, Some(0)))
                .is_empty()
        );
    }
}
