//! An account that turns from plain to end-to-end encryption: whoever dies when, everything is in the
//! sealed set at the end, and in plain nowhere.

use crdt::{ContentForm, Message};
use proptest::prelude::*;
use replica::{Phrase, Replica};

use crate::support::{Device, MemoryServer};

const SCHEMA: &str = "CREATE TABLE note (id INTEGER PRIMARY KEY, text TEXT)";

fn phrase() -> Phrase {
    Phrase::parse(&("abandon ".repeat(23) + "art")).unwrap()
}

fn rows(device: &Device) -> Vec<String> {
    device.texts("SELECT id || text FROM note ORDER BY id")
}

/// Two devices in step, each of which has then made an edit that it has not sent.
fn two() -> (Device, Device, MemoryServer) {
    let mut server = MemoryServer::default();
    let mut a = Device::tracked(SCHEMA, &mut server);
    let mut b = Device::tracked(SCHEMA, &mut server);
    a.write("INSERT INTO note VALUES (1, 'secret a')").unwrap();
    b.write("INSERT INTO note VALUES (2, 'secret b')").unwrap();
    for device in [&a, &b, &a] {
        device.sync(&mut server);
    }
    a.write("INSERT INTO note VALUES (3, 'secret unsent a')").unwrap();
    b.write("UPDATE note SET text = 'secret unsent b' WHERE id = 1").unwrap();
    (a, b, server)
}

fn is_plain(messages: &[Message]) -> bool {
    messages.iter().any(|message| message.content.windows(6).any(|part| part == b"secret"))
}

#[test]
fn everything_is_sent_again_sealed_and_the_others_follow_with_the_phrase() {
    let (a, b, mut server) = two();
    let made = a.replica().make_phrase().unwrap();
    assert_eq!(*a.replica().make_phrase().unwrap().words(), *made.words());
    let report = a.sync(&mut server);
    assert!(report.equal && report.refused.count() == 0, "{report:?}");
    assert!(matches!(server.form, Some(ContentForm::Sealed(_))));
    assert!(!is_plain(&server.messages) && is_plain(server.plain.as_ref().unwrap()));

    let error = b.try_sync(&mut server, false).unwrap_err();
    assert_eq!(error.code(), "sealed");
    assert_eq!(b.replica().set_phrase(&phrase()).unwrap_err().code(), "wrong_phrase");
    let error = b.replica().make_phrase().err().unwrap();
    assert_eq!(error.code(), "sealed");
    b.replica().set_phrase(&made).unwrap();
    let c = Device::new("");
    Replica::create(&c.path).unwrap().set_phrase(&made).unwrap();
    c.sign_in(&mut server);
    for device in [&b, &a, &c, &b] {
        let report = device.sync(&mut server);
        assert!(report.equal && report.refused.count() == 0, "{report:?}");
        assert!(!report.became_device);
    }
    assert_eq!(rows(&a), ["1secret unsent b", "2secret b", "3secret unsent a"]);
    assert_eq!((rows(&b), rows(&c)), (rows(&a), rows(&a)));
    assert!(!is_plain(&server.messages));
}

#[test]
fn a_device_that_was_behind_takes_the_rest_of_the_plain_set_first() {
    let (mut a, b, mut server) = two();
    b.sync(&mut server);
    // It has neither that, nor the first of its own edits sent.
    a.write("INSERT INTO note VALUES (4, 'secret, later')").unwrap();
    a.replica().make_phrase().unwrap();
    let report = a.sync(&mut server);
    assert!(report.equal && report.refused.count() == 0, "{report:?}");
    let expected = ["1secret unsent b", "2secret b", "3secret unsent a", "4secret, later"];
    assert_eq!(rows(&a), expected);
}

#[test]
fn a_server_that_was_restored_to_before_it_is_turned_again() {
    let (a, b, mut server) = two();
    a.sync(&mut server);
    let backup = server.messages.clone();
    let made = a.replica().make_phrase().unwrap();
    a.sync(&mut server);
    b.try_sync(&mut server, false).unwrap_err();
    b.replica().set_phrase(&made).unwrap();
    b.sync(&mut server);
    a.sync(&mut server);

    let form = Some(ContentForm::Plain);
    let mut server = MemoryServer { messages: backup, form, ..MemoryServer::default() };
    for device in [&a, &b] {
        let error = device.try_sync(&mut server, false).unwrap_err();
        assert_eq!(error.code(), "account_plain");
    }
    assert_eq!(*a.replica().make_phrase().unwrap().words(), *made.words());
    for device in [&a, &b, &a] {
        assert!(device.sync(&mut server).equal);
    }
    assert_eq!(rows(&a), ["1secret unsent b", "2secret b", "3secret unsent a"]);
    assert_eq!(rows(&a), rows(&b));
    assert!(!is_plain(&server.messages));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Answers are lost, and the first device is gone for good after some of its pages.
    #[test]
    fn whoever_is_interrupted_nothing_is_lost(
        lost in prop::collection::vec(1u64..12, 0..4),
        pages in 1usize..6,
        first_returns: bool,
    ) {
        let (a, b, mut server) = two();
        b.sync(&mut server);
        let made = a.replica().make_phrase().unwrap();
        server.messages_count_max = pages;
        for lost in lost {
            server.lose_answer = Some(server.requests + lost);
            drop(a.try_sync(&mut server, false));
        }
        server.lose_answer = None;
        let has_begun = matches!(server.form, Some(ContentForm::Sealed(_)));
        if !has_begun {
            a.sync(&mut server);
        }
        // As far as the first has sent by now; the others have the phrase on paper.
        drop(b.try_sync(&mut server, false));
        b.replica().set_phrase(&made).unwrap();
        let report = b.sync(&mut server);
        prop_assert!(report.equal && report.refused.count() == 0, "{:?}", report);
        if first_returns {
            for device in [&a, &b] {
                let report = device.sync(&mut server);
                prop_assert!(report.equal && report.refused.count() == 0, "{:?}", report);
                prop_assert!(!report.became_device);
            }
            prop_assert_eq!(rows(&a), rows(&b));
            prop_assert_eq!(rows(&b), ["1secret unsent b", "2secret b", "3secret unsent a"]);
        }
        prop_assert_eq!(&rows(&b)[..2], ["1secret unsent b", "2secret b"]);
        prop_assert!(!is_plain(&server.messages));
    }
}
