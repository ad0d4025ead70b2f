//! Tests that files that cannot be examined are refused with a reason.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use doctor::{Error, ExamineOptions, FindingCode, examine};
use engine::FileEncryption;

use crate::findings::healthy;
use crate::fixture::{DoctorFixture, codes, report};

fn refusal(path: &Path) -> Error {
    examine(path, &FileEncryption::None, &ExamineOptions::default()).unwrap_err()
}

#[test]
fn what_is_no_database_is_refused() {
    let fixture = DoctorFixture::new();
    assert!(matches!(refusal(&fixture.at("missing.db")), Error::FileNotFound { .. }));
    fs::create_dir(fixture.at("folder")).unwrap();
    assert!(matches!(refusal(&fixture.at("folder")), Error::NotAFile { .. }));
    assert!(matches!(refusal(Path::new("/dev/null")), Error::NotAFile { .. }));
    for (name, bytes) in [("text", b"hello".repeat(2000)), ("random", noise(100_000))] {
        fs::write(fixture.at(name), bytes).unwrap();
        assert!(matches!(refusal(&fixture.at(name)), Error::NotADatabase { .. }), "{name}");
    }
    let locked = fixture.at("locked.db");
    healthy(&locked);
    fs::set_permissions(&locked, Permissions::from_mode(0o000)).unwrap();
    // Root may read everything.
    if fs::File::open(&locked).is_err() {
        assert!(matches!(refusal(&locked), Error::NoPermission { .. }));
    }
}

#[test]
fn a_file_that_was_cut_off_or_emptied_is_told_as_such() {
    let fixture = DoctorFixture::new();
    for (size, code) in [(0, None), (10, None), (5_000, Some(FindingCode::FileTruncated))] {
        let path = fixture.at(&format!("{size}.db"));
        healthy(&path);
        fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(size).unwrap();
        match code {
            Some(code) => assert_eq!(codes(&report(&path)), [code], "{size}"),
            None if size == 0 => assert_eq!(codes(&report(&path)), [FindingCode::FileEmpty]),
            None => assert!(matches!(refusal(&path), Error::NotADatabase { .. })),
        }
    }
}

#[test]
fn a_list_of_free_pages_that_is_wrong_is_found() {
    let fixture = DoctorFixture::new();
    let (count_at, first_at) = (36, 32);
    for (name, at, value) in
        [("many", count_at, 60), ("few", count_at, 3), ("lost", first_at, 9_999)]
    {
        let path = fixture.at(name);
        healthy(&path);
        crate::fixture::sql_on(&path, "DELETE FROM book");
        assert!(codes(&report(&path)).iter().all(|code| *code != FindingCode::PageBroken));
        let mut bytes = fs::read(&path).unwrap();
        bytes[at..][..4].copy_from_slice(&u32::to_be_bytes(value));
        fs::write(&path, bytes).unwrap();
        assert!(codes(&report(&path)).contains(&FindingCode::PageBroken), "{name}");
    }
}

/// Returns pseudorandom bytes.
fn noise(count: usize) -> Vec<u8> {
    let mut state = 0x1234_5678_u32;
    let next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state.to_be_bytes()[0]
    };
    std::iter::repeat_with(next).take(count).collect()
}
