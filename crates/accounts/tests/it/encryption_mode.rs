//! Tests of an account's encryption mode, and of devices that move to the e2ee set.

use accounts::MessageSet;
use crdt::EncryptionMode;

use super::*;

const KEY: [u8; 8] = [7; 8];

fn set(fixture: &AccountsFixture, device: &DeviceCredentials) -> MessageSet {
    fixture.accounts.authenticate(&device.token).unwrap().message_set
}

#[test]
fn the_first_form_stays() {
    let fixture = AccountsFixture::new();
    let (ada, bob) = (fixture.add("ada"), fixture.add("bob"));
    let device = fixture.register(&ada, None);
    let sealed = EncryptionMode::EndToEnd(KEY);
    assert_eq!(fixture.accounts.encryption_mode(ada.account).unwrap(), None);
    for wanted in [EncryptionMode::Plain, sealed] {
        let settled = fixture.accounts.fix_encryption_mode(ada.account, wanted).unwrap();
        assert_eq!(settled, EncryptionMode::Plain);
    }
    assert_eq!(fixture.accounts.fix_encryption_mode(bob.account, sealed).unwrap(), sealed);
    let set = set(&fixture, &device);
    assert_eq!(
        (set.encryption_mode, set.e2ee_vault, set.has_plaintext),
        (Some(EncryptionMode::Plain), None, false)
    );
}

#[test]
fn devices_go_over_one_by_one_and_new_ones_begin_there() {
    let fixture = AccountsFixture::new();
    let ada = fixture.add("ada");
    let (one, two) = (fixture.register(&ada, None), fixture.register(&ada, None));
    fixture.accounts.fix_encryption_mode(ada.account, EncryptionMode::Plain).unwrap();
    let before = set(&fixture, &one);
    let moved = fixture.accounts.enable_e2ee(&ada, &one.device_id, KEY).unwrap();
    let sealed = moved.e2ee_vault.clone().unwrap();
    assert_eq!(fixture.accounts.sub_vaults(ada.account).unwrap(), std::slice::from_ref(&sealed));
    assert_eq!(ada.message_vault(&moved).vault, sealed);
    assert_eq!(set(&fixture, &one), moved);
    assert_eq!(
        (moved.encryption_mode, moved.has_plaintext),
        (Some(EncryptionMode::EndToEnd(KEY)), true)
    );
    // The other device still reads the plain set and gets the new encryption mode.
    let left = set(&fixture, &two);
    assert_eq!((left.encryption_mode, left.e2ee_vault.clone()), (moved.encryption_mode, None));
    assert_eq!(ada.message_vault(&left).vault, ada.vault);
    assert!((left.id == before.id && moved.id != before.id) && left.is_in_plain());
    let other_key = fixture.accounts.enable_e2ee(&ada, &two.device_id, [8; 8]);
    assert!(matches!(other_key, Err(Error::KeyMismatch)));

    let three = fixture.register(&ada, Some(&one.device_id));
    assert_eq!(set(&fixture, &three), moved);
    assert!(!fixture.accounts.has_unread_plaintext(ada.account).unwrap());
    fixture.accounts.enable_e2ee(&ada, &two.device_id, KEY).unwrap();
    assert!(fixture.accounts.has_unread_plaintext(ada.account).unwrap());
    fixture.accounts.record_plaintext_removed(ada.account).unwrap();
    assert!(!fixture.accounts.has_unread_plaintext(ada.account).unwrap());
    assert!(!set(&fixture, &two).has_plaintext);
}

#[test]
fn a_revoked_device_is_not_waited_for() {
    let fixture = AccountsFixture::new();
    let ada = fixture.add("ada");
    let (one, two) = (fixture.register(&ada, None), fixture.register(&ada, None));
    fixture.accounts.fix_encryption_mode(ada.account, EncryptionMode::Plain).unwrap();
    fixture.accounts.enable_e2ee(&ada, &one.device_id, KEY).unwrap();
    fixture.accounts.revoke(ada.account, &two.device_id).unwrap();
    assert!(fixture.accounts.has_unread_plaintext(ada.account).unwrap());
    let gone = fixture.accounts.enable_e2ee(&ada, &two.device_id, KEY);
    assert!(matches!(gone, Err(Error::NotFound)));
}
