//! Tests of devices and their tokens.

use super::*;

#[test]
fn a_token_speaks_for_its_device_and_opens_its_vault() {
    let fixture = AccountsFixture::new();
    let (ada, _bob) = (fixture.add("ada"), fixture.add("bob"));
    let device = fixture.register(&ada, None);
    let token = DeviceToken::parse(&device.token.to_text()).unwrap();

    let session = fixture.accounts.authenticate(&token).unwrap();
    assert_eq!(session.device_id, device.device_id);
    assert_eq!((session.account, &session.login), (ada.account, &ada.login));
    assert_eq!(session.vault, ada.vault);
    let unlocked = fixture.accounts.unlock_by_token(&token).unwrap();
    assert_eq!((unlocked.account, &unlocked.vault), (ada.account, &ada.vault));
    assert_eq!(unlocked.key.as_bytes(), ada.key.as_bytes());

    let unknown = DeviceToken::parse(&format!("warren_{}", "A".repeat(43))).unwrap();
    assert!(is_unknown(&fixture, &unknown));
}

#[test]
fn a_revoked_device_goes_with_those_that_it_registered_and_others_stay() {
    let fixture = AccountsFixture::new();
    let ada = fixture.add("ada");
    let phone = fixture.register(&ada, None);
    let laptop = fixture.register(&ada, None);
    let copy = fixture.register(&ada, Some(&laptop.device_id));
    let copy_of_copy = fixture.register(&ada, Some(&copy.device_id));
    let copy_of_phone = fixture.register(&ada, Some(&phone.device_id));

    let revoked = fixture.accounts.revoke(ada.account, &laptop.device_id).unwrap();
    assert_eq!(revoked, [&laptop, &copy, &copy_of_copy].map(|device| device.device_id.clone()));
    for device in [&laptop, &copy, &copy_of_copy] {
        assert!(is_unknown(&fixture, &device.token));
    }
    for device in [&phone, &copy_of_phone] {
        assert!(!is_unknown(&fixture, &device.token));
    }
    let again = fixture.accounts.revoke(ada.account, &laptop.device_id);
    assert!(matches!(again, Err(Error::NotFound)), "{again:?}");
    // An account that was unlocked with the revoked token while it was valid cannot register
    // devices.
    let registered = fixture.accounts.register(&ada, Some(&laptop.device_id), NOW);
    assert!(matches!(registered, Err(Error::NotFound)));
}

#[test]
fn another_accounts_device_cannot_be_revoked_nor_register() {
    let fixture = AccountsFixture::new();
    let (ada, bob) = (fixture.add("ada"), fixture.add("bob"));
    let device = fixture.register(&ada, None);

    let revoked = fixture.accounts.revoke(bob.account, &device.device_id);
    assert!(matches!(revoked, Err(Error::NotFound)), "{revoked:?}");
    let registered = fixture.accounts.register(&bob, Some(&device.device_id), NOW);
    assert!(matches!(registered, Err(Error::NotFound)));
    assert!(!is_unknown(&fixture, &device.token));
    assert_eq!(fixture.accounts.devices(bob.account).unwrap(), []);
}

#[test]
fn clients_are_listed_in_order_of_registration() {
    let fixture = AccountsFixture::new();
    let (ada, bob) = (fixture.add("ada"), fixture.add("bob"));
    let first = fixture.register(&ada, None);
    fixture.register(&bob, None);
    let second = fixture.accounts.register(&ada, Some(&first.device_id), NOW - 7).unwrap();

    let listed = fixture.accounts.devices(ada.account).unwrap();
    let seen: Vec<_> = listed
        .iter()
        .map(|device| (&device.device_id, device.created_ms, device.registered_by.as_ref()))
        .collect();
    let expected =
        [(&first.device_id, NOW, None), (&second.device_id, NOW - 7, Some(&first.device_id))];
    assert_eq!(seen, expected);
}

#[test]
fn the_number_of_devices_is_limited_and_the_longest_chain_can_be_revoked() {
    let fixture = AccountsFixture::new();
    let ada = fixture.add("ada");
    let first = fixture.register(&ada, None);
    let mut last = first.device_id.clone();
    let devices_max = Some(DEVICES_COUNT_MAX);
    let change = move |limits: &mut AccountLimits| limits.devices_max = devices_max;
    fixture.accounts.change_limits(&ada.login, change).unwrap();
    for _ in 1..DEVICES_COUNT_MAX {
        last = fixture.register(&ada, Some(&last)).device_id;
    }
    let refused = fixture.accounts.register(&ada, None, NOW);
    assert!(matches!(refused, Err(Error::TooManyDevices { devices_max: DEVICES_COUNT_MAX })));
    fixture.register(&fixture.add("bob"), None);

    let revoked = fixture.accounts.revoke(ada.account, &first.device_id).unwrap();
    assert_eq!(fixture.accounts.message_set(&last).unwrap(), None);
    assert_eq!(revoked.len(), usize::try_from(DEVICES_COUNT_MAX).unwrap());
    assert_eq!(revoked.last(), Some(&last));
    assert_eq!(fixture.accounts.devices(ada.account).unwrap(), []);
}

#[test]
fn an_account_has_the_default_s_limits_or_its_own() {
    let fixture = AccountsFixture::new();
    let ada = fixture.add("ada");
    let device = fixture.register(&ada, None);
    let limits = || fixture.accounts.authenticate(&device.token).unwrap().limits;
    assert_eq!(limits(), AccountLimits::default());
    let set = |change: fn(&mut AccountLimits)| {
        fixture.accounts.change_limits(&ada.login, change).unwrap();
    };
    set(|limits| limits.messages_max = Some(7));
    set(|limits| (limits.bytes_max, limits.devices_max) = (Some(u64::MAX), Some(1)));
    let bytes_max = Some(u64::MAX >> 1);
    set(|limits| limits.mail_bytes_max = Some(9));
    let own = AccountLimits {
        messages_max: Some(7),
        bytes_max,
        devices_max: Some(1),
        mail_bytes_max: Some(9),
    };
    assert_eq!(limits(), own);
    assert_eq!(fixture.accounts.find(&ada.login).unwrap().limits, own);
    let refused = fixture.accounts.register(&ada, None, NOW);
    assert!(matches!(refused, Err(Error::TooManyDevices { devices_max: 1 })));
    set(|limits| *limits = AccountLimits::default());
    assert_eq!(limits(), AccountLimits::default());
    fixture.register(&ada, None);

    let (two, _databases) = open(fixture.data.path(), KDF);
    let two = Arc::into_inner(two).unwrap().with_devices_max(2);
    let refused = two.register(&ada, None, NOW);
    assert!(matches!(refused, Err(Error::TooManyDevices { devices_max: 2 })));
    let nobody = fixture.accounts.change_limits(&login("bob"), |_| {});
    assert!(matches!(nobody, Err(Error::NotFound)));
}

#[test]
fn a_device_may_bring_its_token() {
    let fixture = AccountsFixture::new();
    let ada = fixture.add("ada");
    let text = "0d3cb2f4-8b8b-4f3e-a3c9-3d2a7a0f1e55";
    let token = DeviceToken::from_foreign_text(text).unwrap();
    assert!(is_unknown(&fixture, &token));
    let device = fixture.accounts.register_token(&ada, &token, None, NOW).unwrap();
    let again = DeviceToken::from_foreign_text(text).unwrap();
    assert_eq!(fixture.accounts.authenticate(&again).unwrap().device_id, device);
    let unlocked = fixture.accounts.unlock_by_token(&again).unwrap();
    assert_eq!(unlocked.key.as_bytes(), ada.key.as_bytes());
}
