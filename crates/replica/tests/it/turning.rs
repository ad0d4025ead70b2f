//! Tests of an account that changes from plain to end-to-end encrypted: whichever device is
//! interrupted, everything is in the e2ee set at the end, and nowhere in plain.

use crdt::{EncryptionMode, Message, sealing_key_id};
use proptest::prelude::*;
use protocol::ErrorCode;
use replica::{RecoveryPhrase, Replica};

use crate::support::{MemoryServer, TestDevice};

const SCHEMA: &str = "CREATE TABLE note (id INTEGER PRIMARY KEY, text TEXT)";

fn phrase() -> RecoveryPhrase {
    RecoveryPhrase::parse(&("abandon ".repeat(23) + "art")).unwrap()
}

fn rows(device: &TestDevice) -> Vec<String> {
    device.texts("SELECT id || text FROM note ORDER BY id")
}

/// Creates two devices in sync, each with an edit that it has not sent.
fn two() -> (TestDevice, TestDevice, MemoryServer) {
    let mut server = MemoryServer::default();
    let mut a = TestDevice::tracked(SCHEMA, &mut server);
    let mut b = TestDevice::tracked(SCHEMA, &mut server);
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
    let made = a.replica().create_recovery_phrase().unwrap();
    assert_eq!(*a.replica().create_recovery_phrase().unwrap().words(), *made.words());
    let report = a.sync(&mut server);
    assert!(report.in_sync && report.rejected.count() == 0, "{report:?}");
    assert!(matches!(server.form, Some(EncryptionMode::EndToEnd(_))));
    assert!(!is_plain(&server.messages) && is_plain(server.plain.as_ref().unwrap()));

    let error = b.try_sync(&mut server, false).unwrap_err();
    assert_eq!(error.code(), ErrorCode::RecoveryPhraseRequired);
    assert_eq!(
        b.replica().set_recovery_phrase(&phrase()).unwrap_err().code(),
        ErrorCode::WrongRecoveryPhrase
    );
    let error = b.replica().create_recovery_phrase().err().unwrap();
    assert_eq!(error.code(), ErrorCode::RecoveryPhraseRequired);
    b.replica().set_recovery_phrase(&made).unwrap();
    let c = TestDevice::new("");
    Replica::create(&c.path).unwrap().set_recovery_phrase(&made).unwrap();
    c.sign_in(&mut server);
    for device in [&b, &a, &c, &b] {
        let report = device.sync(&mut server);
        assert!(report.in_sync && report.rejected.count() == 0, "{report:?}");
        assert!(!report.registered_copy);
    }
    assert_eq!(rows(&a), ["1secret unsent b", "2secret b", "3secret unsent a"]);
    assert_eq!((rows(&b), rows(&c)), (rows(&a), rows(&a)));
    assert!(!is_plain(&server.messages));
}

#[test]
fn a_device_that_was_behind_takes_the_rest_of_the_plain_set_first() {
    let (mut a, b, mut server) = two();
    b.sync(&mut server);
    // The device has not received b's edit, nor sent the first of its own edits.
    a.write("INSERT INTO note VALUES (4, 'secret, later')").unwrap();
    a.replica().create_recovery_phrase().unwrap();
    let report = a.sync(&mut server);
    assert!(report.in_sync && report.rejected.count() == 0, "{report:?}");
    let expected = ["1secret unsent b", "2secret b", "3secret unsent a", "4secret, later"];
    assert_eq!(rows(&a), expected);
}

#[test]
fn a_server_that_was_restored_to_before_it_is_turned_again() {
    let (a, b, mut server) = two();
    a.sync(&mut server);
    let backup = server.messages.clone();
    let made = a.replica().create_recovery_phrase().unwrap();
    a.sync(&mut server);
    b.try_sync(&mut server, false).unwrap_err();
    b.replica().set_recovery_phrase(&made).unwrap();
    b.sync(&mut server);
    a.sync(&mut server);

    let form = Some(EncryptionMode::Plain);
    let mut server = MemoryServer { messages: backup, form, ..MemoryServer::default() };
    for device in [&a, &b] {
        let error = device.try_sync(&mut server, false).unwrap_err();
        assert_eq!(error.code(), ErrorCode::AccountNotEncrypted);
    }
    assert_eq!(*a.replica().create_recovery_phrase().unwrap().words(), *made.words());
    for device in [&a, &b, &a] {
        assert!(device.sync(&mut server).in_sync);
    }
    assert_eq!(rows(&a), ["1secret unsent b", "2secret b", "3secret unsent a"]);
    assert_eq!(rows(&a), rows(&b));
    assert!(!is_plain(&server.messages));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Answers are lost, and the first device may disappear permanently after some of its pages.
    #[test]
    fn whoever_is_interrupted_nothing_is_lost(
        lost in prop::collection::vec(1u64..12, 0..4),
        pages in 1usize..6,
        first_returns: bool,
    ) {
        let (a, b, mut server) = two();
        b.sync(&mut server);
        let made = a.replica().create_recovery_phrase().unwrap();
        server.messages_count_max = pages;
        for lost in lost {
            server.lose_answer = Some(server.requests + lost);
            drop(a.try_sync(&mut server, false));
        }
        server.lose_answer = None;
        let has_begun = matches!(server.form, Some(EncryptionMode::EndToEnd(_)));
        if !has_begun {
            a.sync(&mut server);
        }
        // `b` gets as far as the first device has sent by now; the others have the phrase on paper.
        drop(b.try_sync(&mut server, false));
        b.replica().set_recovery_phrase(&made).unwrap();
        let report = b.sync(&mut server);
        prop_assert!(report.in_sync && report.rejected.count() == 0, "{:?}", report);
        if first_returns {
            for device in [&a, &b] {
                let report = device.sync(&mut server);
                prop_assert!(report.in_sync && report.rejected.count() == 0, "{:?}", report);
                prop_assert!(!report.registered_copy);
            }
            prop_assert_eq!(rows(&a), rows(&b));
            prop_assert_eq!(rows(&b), ["1secret unsent b", "2secret b", "3secret unsent a"]);
        }
        prop_assert_eq!(&rows(&b)[..2], ["1secret unsent b", "2secret b"]);
        prop_assert!(!is_plain(&server.messages));
    }
}

/// Event in a history with a server that is backed up and restored at any moment.
#[derive(Clone, Debug)]
enum RestoreEvent {
    Edit(usize),
    Sync(usize),
    /// One answer of the next sync is lost.
    Lose(u64),
    /// The user of this device enables encryption, or has the phrase and enters it.
    Turn(usize),
    Backup,
    Restore,
}

const DEVICES_COUNT: usize = 4;

fn event() -> impl Strategy<Value = RestoreEvent> {
    let device = || 0..DEVICES_COUNT;
    prop_oneof![
        4 => device().prop_map(RestoreEvent::Edit),
        6 => device().prop_map(RestoreEvent::Sync),
        1 => (1u64..6).prop_map(RestoreEvent::Lose),
        2 => device().prop_map(RestoreEvent::Turn),
        1 => Just(RestoreEvent::Backup),
        1 => Just(RestoreEvent::Restore),
    ]
}

/// Copies the server, as a backup does.
fn copy(server: &MemoryServer) -> MemoryServer {
    MemoryServer {
        messages: server.messages.clone(),
        form: server.form,
        plain: server.plain.clone(),
        in_sealed: server.in_sealed.clone(),
        sealed_id: server.sealed_id,
        clients: server.clients,
        now_ms: server.now_ms.clone(),
        ..MemoryServer::default()
    }
}

struct RestoredServerWorld {
    server: MemoryServer,
    backup: MemoryServer,
    devices: Vec<TestDevice>,
    /// The account's only phrase, once a user has created it.
    phrase: Option<RecoveryPhrase>,
    inserted: Vec<String>,
}

impl RestoredServerWorld {
    fn new() -> Self {
        let mut server = MemoryServer::default();
        let devices =
            (0..DEVICES_COUNT).map(|_| TestDevice::tracked(SCHEMA, &mut server)).collect();
        let backup = copy(&server);
        Self { server, backup, devices, phrase: None, inserted: Vec::new() }
    }

    fn run(&mut self, event: &RestoreEvent) {
        match *event {
            RestoreEvent::Edit(device) => self.edit(device),
            RestoreEvent::Sync(device) => {
                drop(self.devices[device].try_sync(&mut self.server, false));
            }
            RestoreEvent::Lose(after) => {
                self.server.lose_answer = Some(self.server.requests + after);
            }
            RestoreEvent::Turn(device) => self.turn(device),
            RestoreEvent::Backup => self.backup = copy(&self.server),
            RestoreEvent::Restore => self.server = copy(&self.backup),
        }
        self.check_secrets();
    }

    fn edit(&mut self, device: usize) {
        let id = self.inserted.len() + 1;
        let replica = self.devices[device].replica();
        let is_sealed =
            replica.recovery_phrase().unwrap().is_some() && !replica.is_enabling_e2ee().unwrap();
        let text = format!("secret {}{id}", if is_sealed { "sealed " } else { "" });
        let (other, again) = (id / 2, format!("{text} again"));
        let sql = format!(
            "INSERT INTO note VALUES ({id}, '{text}');
             UPDATE note SET text = '{again}' WHERE id = {other}"
        );
        self.devices[device].write(&sql).unwrap();
        self.inserted.push(id.to_string());
    }

    /// Acts as a user would: enters the phrase if it exists, and creates one otherwise.
    fn turn(&mut self, device: usize) {
        let replica = self.devices[device].replica();
        match &self.phrase {
            Some(phrase) if replica.recovery_phrase().unwrap().is_none() => {
                drop(replica.set_recovery_phrase(phrase));
            }
            _ => self.phrase = replica.create_recovery_phrase().ok().or_else(|| self.phrase.take()),
        }
    }

    /// Checks that text written in an encrypted file is nowhere in plain.
    fn check_secrets(&self) {
        let sets = self.server.plain.iter().chain([&self.server.messages]);
        for message in sets.flatten() {
            let is_secret = message.content.windows(6).any(|part| part == b"sealed");
            assert!(!is_secret, "{message:?}");
        }
    }

    /// Syncs until all devices are in sync in the e2ee set; their users do what the devices ask
    /// for.
    fn meet(&mut self) {
        self.server.lose_answer = None;
        self.turn(0);
        for round in 0..6 {
            let mut is_done = true;
            for device in 0..DEVICES_COUNT {
                let synced = self.devices[device].try_sync(&mut self.server, false);
                self.check_secrets();
                match synced {
                    Ok(report) => {
                        assert_eq!(report.rejected.count(), 0, "{report:?}");
                        is_done &= report.in_sync && report.received_count + report.sent_count == 0;
                        is_done &= matches!(self.server.form, Some(EncryptionMode::EndToEnd(_)));
                        if self.server.form == Some(EncryptionMode::Plain) {
                            self.turn(device);
                        }
                        continue;
                    }
                    Err(error) => match error.code() {
                        ErrorCode::RecoveryPhraseRequired | ErrorCode::AccountNotEncrypted => {
                            self.turn(device);
                        }
                        // The device has the phrase before any device has sent a message under it.
                        ErrorCode::RecoveryPhraseUnverified if round > 2 => {
                            self.devices[device].replica().confirm_new_account().unwrap();
                        }
                        ErrorCode::RecoveryPhraseUnverified => {}
                        _ => panic!("device {device} in round {round}: {error:?}"),
                    },
                }
                is_done = false;
            }
            if is_done {
                return;
            }
        }
        panic!("they never meet");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn whenever_the_server_is_restored_all_meet_in_the_sealed_set(
        events in prop::collection::vec(event(), 1..40),
    ) {
        let mut world = RestoredServerWorld::new();
        for event in &events {
            world.run(event);
        }
        world.meet();
        let RestoredServerWorld { server, devices, inserted, .. } = &world;
        let key = match server.form {
            Some(EncryptionMode::EndToEnd(key)) => key,
            ref form => panic!("{form:?}"),
        };
        for message in &server.messages {
            prop_assert_eq!(sealing_key_id(&message.content), Some(key));
        }
        prop_assert!(server.plain.is_none() || server.in_sealed.len() == DEVICES_COUNT);
        for device in devices {
            prop_assert_eq!(rows(device), rows(&devices[0]));
            let ids = device.texts("SELECT CAST(id AS TEXT) FROM note ORDER BY id");
            prop_assert_eq!(&ids, inserted);
        }
    }
}
