//! The form of an account's messages, and devices that go over to the sealed set.

use accounts::MessageSet;
use crdt::ContentForm;

use super::*;

const KEY: [u8; 8] = [7; 8];

fn set(fixture: &Fixture, device: &Registered) -> MessageSet {
    fixture.accounts.authenticate(&device.token).unwrap().set
}

#[test]
fn the_first_form_stays() {
    let fixture = Fixture::new();
    let (ada, bob) = (fixture.add("ada"), fixture.add("bob"));
    let device = fixture.register(&ada, None);
    let sealed = ContentForm::Sealed(KEY);
    assert_eq!(fixture.accounts.form(ada.account).unwrap(), None);
    for wanted in [ContentForm::Plain, sealed] {
        let settled = fixture.accounts.settle_form(ada.account, wanted).unwrap();
        assert_eq!(settled, ContentForm::Plain);
    }
    assert_eq!(fixture.accounts.settle_form(bob.account, sealed).unwrap(), sealed);
    let set = set(&fixture, &device);
    assert_eq!((set.form, set.sealed, set.keeps_plain), (Some(ContentForm::Plain), None, false));
}

#[test]
fn devices_go_over_one_by_one_and_new_ones_begin_there() {
    let fixture = Fixture::new();
    let ada = fixture.add("ada");
    let (one, two) = (fixture.register(&ada, None), fixture.register(&ada, None));
    fixture.accounts.settle_form(ada.account, ContentForm::Plain).unwrap();
    let before = set(&fixture, &one);
    let moved = fixture.accounts.encrypt(&ada, &one.client_id, KEY).unwrap();
    let sealed = moved.sealed.clone().unwrap();
    assert_eq!(fixture.accounts.children(ada.account).unwrap(), std::slice::from_ref(&sealed));
    assert_eq!(ada.messages(&moved).vault, sealed);
    assert_eq!(set(&fixture, &one), moved);
    assert_eq!((moved.form, moved.keeps_plain), (Some(ContentForm::Sealed(KEY)), true));
    // The other reads what it did, and is told.
    let left = set(&fixture, &two);
    assert_eq!((left.form, left.sealed.clone()), (moved.form, None));
    assert_eq!(ada.messages(&left).vault, ada.vault);
    assert!((left.id == before.id && moved.id != before.id) && left.is_in_plain());
    let other_key = fixture.accounts.encrypt(&ada, &two.client_id, [8; 8]);
    assert!(matches!(other_key, Err(Error::OtherKey)));

    let three = fixture.register(&ada, Some(&one.client_id));
    assert_eq!(set(&fixture, &three), moved);
    assert!(!fixture.accounts.has_left_plain(ada.account).unwrap());
    fixture.accounts.encrypt(&ada, &two.client_id, KEY).unwrap();
    assert!(fixture.accounts.has_left_plain(ada.account).unwrap());
    fixture.accounts.forget_plain(ada.account).unwrap();
    assert!(!fixture.accounts.has_left_plain(ada.account).unwrap());
    assert!(!set(&fixture, &two).keeps_plain);
}

#[test]
fn a_revoked_device_is_not_waited_for() {
    let fixture = Fixture::new();
    let ada = fixture.add("ada");
    let (one, two) = (fixture.register(&ada, None), fixture.register(&ada, None));
    fixture.accounts.settle_form(ada.account, ContentForm::Plain).unwrap();
    fixture.accounts.encrypt(&ada, &one.client_id, KEY).unwrap();
    fixture.accounts.revoke(ada.account, &two.client_id).unwrap();
    assert!(fixture.accounts.has_left_plain(ada.account).unwrap());
    let gone = fixture.accounts.encrypt(&ada, &two.client_id, KEY);
    assert!(matches!(gone, Err(Error::NotFound)));
}
