//! Tests of accounts and their passwords.

use std::sync::Barrier;
use std::thread;

use super::*;

#[test]
fn the_password_opens_the_account_and_another_does_not() {
    let fixture = AccountsFixture::new();
    let added = fixture.add("ada");
    let unlocked = fixture.unlock("ada");
    assert_eq!(unlocked.account, added.account);
    assert_eq!(unlocked.login, login("ADA"));
    assert_eq!(unlocked.vault, added.vault);
    assert_eq!(unlocked.key.as_bytes(), added.key.as_bytes());

    let wrong = fixture.accounts.unlock(&login("ada"), &password("bob"));
    assert!(matches!(wrong, Err(Error::WrongPassword)), "{wrong:?}");
}

#[test]
fn an_unknown_login_is_answered_like_a_known_one() {
    let fixture = AccountsFixture::new();
    fixture.add("ada");
    let answer = |name| fixture.accounts.unlock(&login(name), &secret("not the one"));
    let [known, unknown] = ["ada", "nobody"].map(|name| answer(name).unwrap_err());
    assert!(matches!((known, unknown), (Error::WrongPassword, Error::WrongPassword)));
}

#[test]
fn an_account_takes_another_login_with_all_that_it_has() {
    let fixture = AccountsFixture::new();
    fixture.add("bob");
    let ada = fixture.add("ada");
    let device = fixture.accounts.register(&ada, None, NOW).unwrap();
    let taken = fixture.accounts.rename(&ada, &login("bob"));
    assert!(matches!(taken, Err(Error::AccountExists)), "{taken:?}");
    fixture.accounts.rename(&ada, &login("eve")).unwrap();
    let lost = fixture.accounts.unlock(&login("ada"), &password("ada"));
    assert!(matches!(lost, Err(Error::WrongPassword)), "{lost:?}");
    let unlocked = fixture.accounts.unlock(&login("eve"), &password("ada")).unwrap();
    assert_eq!(unlocked.vault, ada.vault);
    assert_eq!(fixture.accounts.authenticate(&device.token).unwrap().login, login("eve"));
    // An account that was created since then is not affected.
    fixture.accounts.remove(&login("eve")).unwrap();
    fixture.add("ida");
    let gone = fixture.accounts.rename(&ada, &login("eve"));
    assert!(matches!(gone, Err(Error::NotFound)), "{gone:?}");
    assert!(fixture.accounts.find(&login("ida")).is_ok());
}

#[test]
fn a_login_exists_once_whatever_its_case() {
    let fixture = AccountsFixture::new();
    let ada = fixture.add("ada");
    let again = fixture.accounts.add(&login("Ada"), &password("bob"), NOW);
    assert!(matches!(again, Err(Error::AccountExists)), "{again:?}");
    assert_eq!(fixture.unlock("ada").key.as_bytes(), ada.key.as_bytes());
}

#[test]
fn of_many_who_add_one_login_at_once_one_succeeds() {
    let fixture = AccountsFixture::new();
    let added: Vec<bool> = thread::scope(|scope| {
        let threads: Vec<_> = (0..8)
            .map(|index| {
                let accounts = &fixture.accounts;
                let add = move || accounts.add(&login("ada"), &secret(&format!("{index:08}")), NOW);
                scope.spawn(move || match add() {
                    Ok(_) => true,
                    Err(Error::AccountExists) => false,
                    Err(error) => panic!("{error}"),
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(added.iter().filter(|&&is_added| is_added).count(), 1);
    assert_eq!(fixture.accounts.list().unwrap().len(), 1);
}

#[test]
fn another_password_keeps_key_and_devices() {
    let fixture = AccountsFixture::new();
    let ada = fixture.add("ada");
    let device = fixture.register(&ada, None);
    let (old, new) = (password("ada"), secret("a better one"));

    let refused = fixture.accounts.change_password(&login("ada"), &new, &new);
    assert!(matches!(refused, Err(Error::WrongPassword)), "{refused:?}");
    fixture.accounts.change_password(&login("ada"), &old, &new).unwrap();

    let by_old = fixture.accounts.unlock(&login("ada"), &old);
    assert!(matches!(by_old, Err(Error::WrongPassword)), "{by_old:?}");
    let by_new = fixture.accounts.unlock(&login("ada"), &new).unwrap();
    let by_token = fixture.accounts.unlock_by_token(&device.token).unwrap();
    for unlocked in [by_new, by_token] {
        assert_eq!(unlocked.key.as_bytes(), ada.key.as_bytes());
        assert_eq!(unlocked.vault, ada.vault);
    }
}

#[test]
fn of_two_changes_at_once_one_wins() {
    let fixture = AccountsFixture::new();
    fixture.add("ada");
    let mut old = password("ada");
    for round in 0..20 {
        let wanted = [0, 1, 2, 3].map(|index| format!("password {round} {index}"));
        let start = Barrier::new(wanted.len());
        let change = |new: &str| {
            start.wait();
            fixture.accounts.change_password(&login("ada"), &old, &secret(new))
        };
        let changed = thread::scope(|scope| {
            wanted
                .each_ref()
                .map(|new| scope.spawn(|| change(new)))
                .map(|thread| thread.join().unwrap())
        });
        let winners: Vec<_> =
            changed.iter().zip(&wanted).filter(|(result, _)| result.is_ok()).collect();
        let [(_, winner)] = winners[..] else { panic!("round {round}: {changed:?}") };
        old = secret(winner);
        fixture.accounts.unlock(&login("ada"), &old).unwrap();
    }
}

#[test]
fn another_cost_is_taken_up_at_the_next_login() {
    let fixture = AccountsFixture::new();
    let ada = fixture.add("ada");
    let stored = || -> (u32, Vec<u8>) {
        let row = "SELECT kdf_passes, wrapped_key FROM account";
        fixture.sql().query_row(row, [], |row| Ok((row.get(0)?, row.get(1)?))).unwrap()
    };
    let before = stored();
    fixture.unlock("ada");
    assert_eq!(stored(), before, "the same cost is left alone");

    let (dearer, _databases) = open(fixture.data.path(), KdfCost::insecure_for_tests(2));
    let wrong = dearer.unlock(&login("ada"), &password("bob"));
    assert!(matches!(wrong, Err(Error::WrongPassword)), "{wrong:?}");
    assert_eq!(stored(), before, "a wrong password changes nothing");

    let unlocked = dearer.unlock(&login("ada"), &password("ada")).unwrap();
    assert_eq!(unlocked.key.as_bytes(), ada.key.as_bytes());
    let after = stored();
    assert_eq!((before.0, after.0), (1, 2));
    assert_ne!(before.1, after.1);
    assert_eq!(fixture.unlock("ada").key.as_bytes(), ada.key.as_bytes());
}

#[test]
fn list_and_find_tell_what_there_is() {
    let fixture = AccountsFixture::new();
    let bob = fixture.add("bob");
    let ada = fixture.accounts.add(&login("ada"), &password("ada"), NOW + 5).unwrap();
    fixture.register(&bob, None);
    fixture.register(&bob, None);

    let listed = fixture.accounts.list().unwrap();
    let seen: Vec<_> = listed
        .iter()
        .map(|a| (a.login.as_str(), &a.vault, a.devices_count, a.created_ms))
        .collect();
    assert_eq!(seen, [("ada", &ada.vault, 0, NOW + 5), ("bob", &bob.vault, 2, NOW)]);
    assert_eq!(fixture.accounts.find(&login("bob")).unwrap(), listed[1]);
    let nobody = fixture.accounts.find(&login("nobody"));
    assert!(matches!(nobody, Err(Error::NotFound)), "{nobody:?}");
}

#[test]
fn a_removed_account_is_gone_and_its_id_is_not_used_again() {
    let fixture = AccountsFixture::new();
    let ada = fixture.add("ada");
    let device = fixture.register(&ada, None);
    assert_eq!(fixture.accounts.remove(&login("ada")).unwrap(), std::slice::from_ref(&ada.vault));

    assert!(is_unknown(&fixture, &device.token));
    let unlocked = fixture.accounts.unlock(&login("ada"), &password("ada"));
    assert!(matches!(unlocked, Err(Error::WrongPassword)), "{unlocked:?}");
    let registered = fixture.accounts.register(&ada, None, NOW);
    assert!(matches!(registered, Err(Error::NotFound)));
    let again = fixture.accounts.remove(&login("ada"));
    assert!(matches!(again, Err(Error::NotFound)), "{again:?}");

    let next = fixture.add("ada");
    assert_ne!(next.account, ada.account);
    assert_ne!(next.vault, ada.vault);
    assert!(matches!(fixture.accounts.register(&ada, None, NOW), Err(Error::NotFound)));
}

#[test]
fn two_processes_on_one_file_agree() {
    let fixture = AccountsFixture::new();
    let (other, _databases) = open(fixture.data.path(), KDF);
    let ada = fixture.add("ada");
    let unlocked = other.unlock(&login("ada"), &password("ada")).unwrap();
    assert_eq!(unlocked.key.as_bytes(), ada.key.as_bytes());

    let device = other.register(&unlocked, None, NOW).unwrap();
    assert!(!is_unknown(&fixture, &device.token));
    other.change_password(&login("ada"), &password("ada"), &password("new")).unwrap();
    let by_old = fixture.accounts.unlock(&login("ada"), &password("ada"));
    assert!(matches!(by_old, Err(Error::WrongPassword)), "{by_old:?}");

    assert_eq!(other.revoke(ada.account, &device.device_id).unwrap(), [device.device_id]);
    assert!(is_unknown(&fixture, &device.token));
    other.remove(&login("ada")).unwrap();
    assert_eq!(fixture.accounts.list().unwrap(), []);
}

#[test]
fn a_device_replaces_the_password_and_all_others_end() {
    let fixture = AccountsFixture::new();
    let (ada, bob) = (fixture.add("ada"), fixture.add("bob"));
    let phone = fixture.register(&ada, None);
    let laptop = fixture.register(&ada, Some(&phone.device_id));
    let of_bob = fixture.register(&bob, None);

    let unlocked = fixture.accounts.unlock_by_token(&laptop.token).unwrap();
    let new = Password::parse_any_length("x".to_owned()).unwrap();
    let staying = &laptop.device_id;
    let revoked = fixture.accounts.replace_password(&unlocked, &new, Some(staying)).unwrap();
    assert_eq!(revoked, [phone.device_id]);
    assert!(is_unknown(&fixture, &phone.token));
    for device in [&laptop, &of_bob] {
        assert!(!is_unknown(&fixture, &device.token));
    }
    let old = fixture.accounts.unlock(&login("ada"), &password("ada"));
    assert!(matches!(old, Err(Error::WrongPassword)), "{old:?}");
    let by_new = fixture.accounts.unlock(&login("ada"), &new).unwrap();
    assert_eq!(by_new.key.as_bytes(), ada.key.as_bytes());

    fixture.accounts.remove(&login("ada")).unwrap();
    let gone = fixture.accounts.replace_password(&unlocked, &new, Some(staying));
    assert!(matches!(gone, Err(Error::NotFound)), "{gone:?}");
}
