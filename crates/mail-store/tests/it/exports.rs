//! Tests of exports: they stay in their folder, and write every message.

use mail_store::{Error, export_maildir, export_mbox, import_maildir};

use super::*;

fn export(fixture: &VaultFixture) -> PathBuf {
    let path = fixture.path("exports/maildir");
    export_maildir(&fixture.vault, &path, &mut |_| ()).unwrap();
    path
}

#[test]
fn no_name_of_a_mailbox_leads_out_of_the_maildir() {
    let fixture = VaultFixture::new();
    let names = ["..", ".", "../x", "...", "a/../b", ".ssh", "cur", "&AC4-", "\\", "~root", "-rf"];
    for name in names {
        let mailbox = fixture.vault.find_or_create_mailbox(name).unwrap();
        fixture.store(mailbox, &[name.as_bytes()]);
    }
    let maildir = export(&fixture);
    assert_eq!(fs::read_dir(fixture.path("exports")).unwrap().count(), 1);
    for entry in fs::read_dir(&maildir).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(name.starts_with('.') || ["cur", "new", "tmp"].contains(&&*name), "{name}");
    }
    let to = VaultFixture::new();
    import_maildir(&to.vault, &maildir, &mut |_| ()).unwrap();
    for name in names {
        assert_eq!(to.texts(name), [name]);
    }
}

#[test]
fn a_mailbox_whose_name_is_too_long_for_a_folder_is_exported() {
    let fixture = VaultFixture::new();
    let levels = ["é".repeat(100), "x".repeat(200), "日".repeat(80)];
    let paths = [levels.join("/"), levels[..2].join("/"), vec!["long"; 20].join("/") + &levels[1]];
    for path in &paths {
        let mailbox = fixture.vault.find_or_create_mailbox(path).unwrap();
        fixture.store(mailbox, &[path.as_bytes()]);
    }
    let maildir = export(&fixture);
    let to = VaultFixture::new();
    let report = import_maildir(&to.vault, &maildir, &mut |_| ()).unwrap();
    assert_eq!((report.stored_count, report.refused.len()), (3, 0));
}

#[test]
fn an_export_replaces_nothing_and_other_users_cannot_read_it() {
    let fixture = VaultFixture::new();
    fixture.store(fixture.inbox(), &[b"text"]);
    let maildir = export(&fixture);
    let error = export_maildir(&fixture.vault, &maildir, &mut |_| ()).unwrap_err();
    assert!(matches!(error, Error::NotEmpty { .. }), "{error}");
    let mbox = fixture.path("mbox");
    export_mbox(&fixture.vault, INBOX, &mbox, &mut |_| ()).unwrap();
    let error = export_mbox(&fixture.vault, INBOX, &mbox, &mut |_| ()).unwrap_err();
    assert!(matches!(error, Error::NotEmpty { .. }), "{error}");

    #[cfg(unix)]
    for path in fs::read_dir(maildir.join("cur")).unwrap().map(|entry| entry.unwrap().path()) {
        use std::os::unix::fs::PermissionsExt as _;
        assert_eq!(fs::metadata(path).unwrap().permissions().mode() & 0o077, 0);
        assert_eq!(fs::metadata(&mbox).unwrap().permissions().mode() & 0o077, 0);
    }
}

#[test]
fn a_time_that_no_file_can_have_does_not_stop_an_export() {
    let fixture = VaultFixture::new();
    for unix_s in [i64::MIN, i64::MAX] {
        let message = fixture.new_message(b"text", &[], unix_s);
        fixture.vault.store(fixture.inbox(), vec![message]).unwrap();
    }
    let maildir = export(&fixture);
    assert_eq!(fs::read_dir(maildir.join("cur")).unwrap().count(), 2);
    export_mbox(&fixture.vault, INBOX, &fixture.path("mbox"), &mut |_| ()).unwrap();
}
