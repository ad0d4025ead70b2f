//! Tests that apply revocations to older copies of the accounts file.

use std::fs;

use accounts::{AppliedRevocations, RESTORING, REVOCATIONS_FILE};

use super::*;

/// Returns the result of applying a list when neither the list nor the file is damaged.
fn applied(applied_count: u64) -> AppliedRevocations {
    AppliedRevocations { applied_count, ..AppliedRevocations::default() }
}

impl AccountsFixture {
    /// Returns a copy of the current accounts file.
    pub(crate) fn copy(&self) -> Vec<u8> {
        let copy = TempDir::new().unwrap();
        let path = copy.path().join("copy.sqlite");
        self.sql().execute("VACUUM INTO ?1", [path.to_str().unwrap()]).unwrap();
        fs::read(path).unwrap()
    }

    /// Returns the revocation list.
    pub(crate) fn list(&self) -> Vec<u8> {
        fs::read(self.data.path().join(REVOCATIONS_FILE)).unwrap()
    }

    /// Creates a data directory with this accounts file and this list.
    pub(crate) fn of_files(accounts: &[u8], list: &[u8]) -> Self {
        let data = TempDir::new().unwrap();
        fs::write(data.path().join("accounts.sqlite"), accounts).unwrap();
        fs::write(data.path().join(REVOCATIONS_FILE), list).unwrap();
        let (accounts, databases) = open(data.path(), KDF);
        Self { accounts, databases, data }
    }

    fn has_password(&self, name: &str, password: &str) -> bool {
        match self.accounts.unlock(&login(name), &secret(password)) {
            Ok(_) => true,
            Err(Error::WrongPassword) => false,
            Err(error) => panic!("{error}"),
        }
    }
}

#[test]
fn an_older_copy_gets_what_was_revoked_since() {
    let fixture = AccountsFixture::new();
    let [ada, bob] = ["ada", "bob"].map(|name| fixture.add(name));
    let [lost, kept] = [(); 2].map(|()| fixture.register(&ada, None));
    let of_bob = fixture.register(&bob, None);
    let further = ada.sub_vault_id("budget");
    fixture.accounts.add_sub_vault(bob.account, &further).unwrap();
    let mail = bob.mail_vault().vault;
    fixture.accounts.record_mail_vault(&bob.mail_vault(), MAIL_KEY).unwrap();
    fixture.add_address("bob", "bob@example.org").unwrap();
    fixture.accounts.record_mail_vault(&ada.mail_vault(), MAIL_KEY).unwrap();
    let phones = [(); 2].map(|()| fixture.accounts.add_mail_password(&ada, "phone", NOW).unwrap());
    let copy = fixture.copy();
    fixture.accounts.revoke(ada.account, &lost.device_id).unwrap();
    let [old, first, second] = ["ada's secret password", "the first new one", "the second new one"];
    for (old, new) in [(old, first), (first, second)] {
        fixture.accounts.change_password(&login("ada"), &secret(old), &secret(new)).unwrap();
    }
    fixture.accounts.remove_mail_password(ada.account, &phones[0].id).unwrap();
    fixture.accounts.remove(&login("bob")).unwrap();

    let older = AccountsFixture::of_files(&copy, &fixture.list());
    assert!(!is_unknown(&older, &lost.token));
    let found = older.accounts.apply_revocations().unwrap();
    let removed_vaults = vec![bob.vault, further, mail];
    // The changes are the device, the last of the passwords, a mail password and the account.
    assert_eq!(found, AppliedRevocations { removed_vaults, ..applied(4) });
    let opens = phones.map(|phone| older.accounts.unlock_mail(&ada.login, &phone.password).is_ok());
    assert_eq!(opens, [false, true]);
    assert!(is_unknown(&older, &lost.token) && is_unknown(&older, &of_bob.token));
    assert_eq!(older.accounts.find_recipient("bob@example.org").unwrap(), None);
    assert!(!is_unknown(&older, &kept.token));
    let opens = [old, first, second].map(|password| older.has_password("ada", password));
    assert_eq!(opens, [false, false, true]);
    assert_eq!(older.accounts.apply_revocations().unwrap(), applied(0));
    // The accounts file itself had all of these changes already.
    assert_eq!(fixture.accounts.apply_revocations().unwrap(), applied(0));
}

#[test]
fn a_list_that_is_older_than_the_accounts_changes_nothing() {
    let fixture = AccountsFixture::new();
    fixture.add("ada");
    let [old, first, second] = ["ada's secret password", "the first new one", "the second new one"];
    let change = |old, new| {
        fixture.accounts.change_password(&login("ada"), &secret(old), &secret(new)).unwrap();
    };
    change(old, first);
    let list = fixture.list();
    change(first, second);
    let copy = fixture.copy();

    let newer = AccountsFixture::of_files(&copy, &list);
    assert_eq!(newer.accounts.apply_revocations().unwrap(), applied(0));
    assert!(newer.has_password("ada", second) && !newer.has_password("ada", first));
}

#[test]
fn a_password_keeps_the_cost_at_which_it_was_hashed_again() {
    let fixture = AccountsFixture::new();
    fixture.add("ada");
    let (old, new) = (password("ada"), secret("the new one"));
    fixture.accounts.change_password(&login("ada"), &old, &new).unwrap();
    let dearer = KdfCost::insecure_for_tests(2);
    let (accounts, _databases) = open(fixture.data.path(), dearer);
    accounts.unlock(&login("ada"), &new).unwrap();
    assert_eq!(accounts.apply_revocations().unwrap(), applied(0));
}

#[test]
fn the_device_that_set_a_new_password_stays_although_another_registered_it() {
    let fixture = AccountsFixture::new();
    let ada = fixture.add("ada");
    let first = fixture.register(&ada, None);
    let staying = fixture.register(&ada, Some(&first.device_id));
    let copy = fixture.copy();
    let new = secret("the new one");
    let revoked = fixture.accounts.replace_password(&ada, &new, Some(&staying.device_id)).unwrap();
    assert_eq!(revoked, [first.device_id]);

    let older = AccountsFixture::of_files(&copy, &fixture.list());
    assert_eq!(older.accounts.apply_revocations().unwrap(), applied(2));
    assert!(is_unknown(&older, &first.token) && !is_unknown(&older, &staying.token));
    assert!(older.has_password("ada", "the new one"));
}

#[test]
fn a_torn_line_keeps_no_other_from_being_applied() {
    let fixture = AccountsFixture::new();
    let ada = fixture.add("ada");
    let [first, torn, last] = [(); 3].map(|()| fixture.register(&ada, None));
    let copy = fixture.copy();
    let list = fixture.data.path().join(REVOCATIONS_FILE);
    fixture.accounts.revoke(ada.account, &first.device_id).unwrap();
    fixture.accounts.revoke(ada.account, &torn.device_id).unwrap();
    let content = fixture.list();
    fs::write(&list, &content[..content.len() - 9]).unwrap();
    fixture.accounts.revoke(ada.account, &last.device_id).unwrap();

    let older = AccountsFixture::of_files(&copy, &fixture.list());
    let found = older.accounts.apply_revocations().unwrap();
    // The first line of the file is empty.
    assert_eq!(found, AppliedRevocations { damaged_lines: vec![3], ..applied(2) });
    assert!(is_unknown(&older, &first.token) && is_unknown(&older, &last.token));
    assert!(!is_unknown(&older, &torn.token));
}

#[test]
fn a_damaged_accounts_file_is_reported_and_no_reason_to_stop() {
    let fixture = AccountsFixture::new();
    let ada = fixture.add("ada");
    let device = fixture.register(&ada, None);
    fixture.accounts.revoke(ada.account, &device.device_id).unwrap();
    fixture
        .accounts
        .change_password(&login("ada"), &password("ada"), &secret("a new one"))
        .unwrap();

    let mut damaged = fixture.copy();
    let sql = "SELECT rootpage FROM sqlite_schema WHERE name = 'sqlite_autoindex_device_1'";
    let path = fixture.data.path().join("copy.sqlite");
    fs::write(&path, &damaged).unwrap();
    let copy = Connection::open(&path).unwrap();
    let page: u32 = copy.query_row(sql, [], |row| row.get(0)).unwrap();
    let page_bytes = usize::from(u16::from_be_bytes([damaged[16], damaged[17]]));
    let start = (usize::try_from(page).unwrap() - 1) * page_bytes;
    damaged[start..start + page_bytes].fill(0xee);
    let fixture = AccountsFixture::of_files(&damaged, &fixture.list());
    let found = fixture.accounts.apply_revocations().unwrap();
    assert_eq!(found, AppliedRevocations { unknown_count: 1, ..applied(0) });
}

#[test]
fn a_directory_whose_restore_has_not_finished_is_not_opened() {
    let fixture = AccountsFixture::new();
    fs::create_dir(fixture.data.path().join(RESTORING)).unwrap();
    let databases = Databases::start(EngineLimits::default()).unwrap();
    let opened = Accounts::open(&databases, fixture.data.path(), KDF);
    assert!(matches!(opened, Err(Error::UnfinishedRestore { .. })));
}
