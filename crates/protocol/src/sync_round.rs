//! Implements the sync round as a state machine: it decides which request a device makes next, and
//! when the round is done.
//!
//! ```text
//!          ┌─ stale cursor ────┐
//!   start ─┴► Pull ─► Push ────┴─► in sync? ─yes─► Done
//!              ▲                     │ no, first time
//!              └───── Reconcile ◄────┘
//! ```
//! With the cursor, a common round is one pull and one push. The fingerprint, which every answer
//! contains, shows whether the two sets are then equal. If they are not (a restored server, a lost
//! file), the sides compare their sets ([`crate::SetReconciler`]), and the round continues.
//!
//! # Invariants
//! - No I/O: the device passes in its state, the round returns the next step (`replica::sync` takes
//!   it).
//! - A round terminates: a page that does not move the cursor counts as the last one, and the sets
//!   are reconciled only once.

use crdt::Fingerprint;

/// The state of the device before a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceState {
    /// The sequence number up to which the device has everything of the server.
    pub cursor: u64,
    /// Whether the device has messages that the server has not acknowledged.
    pub has_unsent: bool,
    /// The fingerprint of all its messages, sent or not.
    pub fingerprint: Fingerprint,
}

/// The content of a [`crate::PullResponse`], without its messages.
#[derive(Clone, Copy, Debug)]
pub struct PullOutcome {
    /// The cursor in the response.
    pub cursor: u64,
    /// Whether more messages follow.
    pub more: bool,
    /// The fingerprint of the server's set.
    pub fingerprint: Fingerprint,
}

/// The content of a [`crate::PushResponse`].
#[derive(Clone, Copy, Debug)]
pub struct PushOutcome {
    /// The number of messages that were new to the server.
    pub stored: u64,
    /// The server's newest sequence number.
    pub cursor: u64,
    /// The fingerprint of the server's set.
    pub fingerprint: Fingerprint,
}

impl PushOutcome {
    /// Returns the device's cursor after this answer. The device need not pull its own messages,
    /// unless another device's messages arrived before them.
    pub fn cursor_after(&self, device_cursor: u64) -> u64 {
        let nobody_between = self.cursor.checked_sub(self.stored) == Some(device_cursor);
        if nobody_between { self.cursor } else { device_cursor }
    }
}

/// The next step of a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SyncStep {
    /// Request the messages that arrived after the device's cursor.
    Pull,
    /// Send a page of unsent messages.
    Push,
    /// Find the differences of the sets: take what the device lacks, mark as unsent what the server
    /// lacks, and continue.
    Reconcile,
    /// There is nothing more to exchange.
    Done(SyncOutcome),
}

/// The result of a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SyncOutcome {
    /// Whether device and server have the same set.
    pub in_sync: bool,
    /// Whether the sets had to be compared.
    pub reconciled: bool,
    /// The fingerprint of the server's set.
    pub server: Fingerprint,
}

/// One sync, from the first pull to equal sets.
#[derive(Clone, Copy, Debug, Default)]
pub struct SyncRound {
    server: Option<PullOutcome>,
    reconciled: bool,
}

impl SyncRound {
    /// Creates a round that begins with a pull.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the step that follows from the state of the device.
    pub fn next(&mut self, device: &DeviceState) -> SyncStep {
        let Some(server) = self.server else { return SyncStep::Pull };
        if server.more || server.cursor > device.cursor {
            return SyncStep::Pull;
        }
        if device.has_unsent {
            return SyncStep::Push;
        }
        let in_sync = server.cursor == device.cursor && server.fingerprint == device.fingerprint;
        if in_sync || self.reconciled {
            let (reconciled, server) = (self.reconciled, server.fingerprint);
            return SyncStep::Done(SyncOutcome { in_sync, reconciled, server });
        }
        *self = Self { server: None, reconciled: true };
        SyncStep::Reconcile
    }

    /// Handles an answer to [`SyncStep::Pull`]; `device_cursor` is the cursor of the request.
    pub fn handle_pull(&mut self, answer: PullOutcome, device_cursor: u64) {
        let moved = answer.cursor > device_cursor;
        self.server = Some(PullOutcome { more: answer.more && moved, ..answer });
    }

    /// Handles the refusal of a push because other devices have pushed since the last pull.
    pub fn handle_stale_cursor(&mut self) {
        self.server = None;
    }

    /// Handles an answer to [`SyncStep::Push`].
    pub fn handle_push(&mut self, answer: PushOutcome) {
        let PushOutcome { cursor, fingerprint, .. } = answer;
        self.server = Some(PullOutcome { cursor, more: false, fingerprint });
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use proptest::prelude::*;

    use super::*;

    /// A model of the server: messages are numbers, kept in order of arrival.
    #[derive(Default, Clone)]
    struct ModelServer(Vec<u64>);

    #[derive(Default)]
    struct ModelDevice {
        messages: BTreeMap<u64, bool>,
        cursor: u64,
    }

    fn fingerprint<'a>(messages: impl Iterator<Item = &'a u64>) -> Fingerprint {
        let mut total = Fingerprint::default();
        for message in messages {
            total +=
                Fingerprint { count: 1, digest: u128::from(*message).wrapping_mul(1 << 77 | 5) };
        }
        total
    }

    const PAGE: usize = 3;

    impl ModelServer {
        fn pull(&self, cursor: u64) -> (Vec<u64>, PullOutcome) {
            let newer = self.0.get(usize::try_from(cursor).unwrap()..).unwrap_or(&[]);
            let page = &newer[..newer.len().min(PAGE)];
            let newest =
                if page.is_empty() { self.0.len() as u64 } else { cursor + page.len() as u64 };
            let more = newer.len() > PAGE;
            (
                page.to_vec(),
                PullOutcome { cursor: newest, more, fingerprint: fingerprint(self.0.iter()) },
            )
        }

        fn push(&mut self, page: &[u64]) -> PushOutcome {
            let before = self.0.len();
            for message in page {
                if !self.0.contains(message) {
                    self.0.push(*message);
                }
            }
            let stored = (self.0.len() - before) as u64;
            PushOutcome {
                stored,
                cursor: self.0.len() as u64,
                fingerprint: fingerprint(self.0.iter()),
            }
        }
    }

    impl ModelDevice {
        fn store_page(&mut self, page: Vec<u64>) {
            self.messages.extend(page.into_iter().map(|message| (message, true)));
        }

        fn device(&self) -> DeviceState {
            DeviceState {
                cursor: self.cursor,
                has_unsent: self.messages.values().any(|sent| !sent),
                fingerprint: fingerprint(self.messages.keys()),
            }
        }

        /// Runs one round. Returns `None` if the answer of step number `lost` does not arrive.
        fn sync(&mut self, server: &mut ModelServer, lost: Option<usize>) -> Option<SyncOutcome> {
            let mut round = SyncRound::new();
            for step in 0..1_000 {
                match round.next(&self.device()) {
                    SyncStep::Pull => {
                        let (page, answer) = server.pull(self.cursor);
                        if lost == Some(step) {
                            return None;
                        }
                        self.store_page(page);
                        round.handle_pull(answer, self.cursor);
                        self.cursor = self.cursor.max(answer.cursor);
                    }
                    SyncStep::Push => {
                        let unsent = self.messages.iter().filter(|(_, sent)| !**sent);
                        let page: Vec<u64> = unsent.map(|(m, _)| *m).take(PAGE).collect();
                        let answer = server.push(&page);
                        if lost == Some(step) {
                            return None;
                        }
                        self.store_page(page);
                        self.cursor = answer.cursor_after(self.cursor);
                        round.handle_push(answer);
                    }
                    SyncStep::Reconcile => {
                        self.cursor = 0;
                        self.messages.values_mut().for_each(|sent| *sent = false);
                    }
                    SyncStep::Done(outcome) => return Some(outcome),
                }
            }
            unreachable!("the round does not end")
        }
    }

    #[test]
    fn nothing_to_do_is_one_pull() {
        let mut round = SyncRound::new();
        let device =
            DeviceState { cursor: 4, has_unsent: false, fingerprint: fingerprint([1, 2].iter()) };
        assert_eq!(round.next(&device), SyncStep::Pull);
        round.handle_pull(
            PullOutcome { cursor: 4, more: false, fingerprint: device.fingerprint },
            4,
        );
        assert!(matches!(round.next(&device), SyncStep::Done(SyncOutcome { in_sync: true, .. })));
    }

    #[test]
    fn own_messages_do_not_come_back_unless_others_came_between() {
        let pushed = PushOutcome { stored: 3, cursor: 10, fingerprint: Fingerprint::default() };
        assert_eq!(pushed.cursor_after(7), 10);
        assert_eq!(pushed.cursor_after(6), 6);
    }

    #[test]
    fn a_server_that_never_moves_does_not_hold_the_device() {
        let mut round = SyncRound::new();
        let device =
            DeviceState { cursor: 4, has_unsent: false, fingerprint: Fingerprint::default() };
        let stuck = PullOutcome { cursor: 4, more: true, fingerprint: fingerprint([9].iter()) };
        let mut steps = Vec::new();
        for _ in 0..10 {
            steps.push(round.next(&device));
            round.handle_pull(stuck, 4);
        }
        let done = SyncOutcome { in_sync: false, reconciled: true, server: stuck.fingerprint };
        assert_eq!(
            steps[..4],
            [SyncStep::Pull, SyncStep::Reconcile, SyncStep::Done(done), SyncStep::Done(done)]
        );
    }

    #[test]
    fn a_restored_server_and_a_newer_device_heal_each_other() {
        let mut server = ModelServer::default();
        let messages = (0..8).map(|m| (m, false)).collect();
        let mut device = ModelDevice { messages, cursor: 0 };
        assert!(device.sync(&mut server, None).unwrap().in_sync);
        server.0.truncate(2);
        server.0.extend([100, 101]);
        let outcome = device.sync(&mut server, None).unwrap();
        assert_eq!((outcome.in_sync, outcome.reconciled), (true, true));
        assert_eq!(server.0.len(), 10);
    }

    proptest! {
        #[test]
        fn rounds_converge_whatever_is_lost(
            edits in prop::collection::vec((0usize..3, 0u64..60, prop::option::of(0usize..4)), 1..60),
        ) {
            let mut server = ModelServer::default();
            let mut devices: [ModelDevice; 3] = Default::default();
            for (device, message, lost) in edits {
                // A message's number contains its device, so no two devices create the same one.
                devices[device].messages.entry(message * 3 + device as u64).or_insert(false);
                devices[device].sync(&mut server, lost);
            }
            for device in [0, 1, 2, 0, 1, 2] {
                let outcome = devices[device].sync(&mut server, None).unwrap();
                prop_assert!(outcome.in_sync && !outcome.reconciled);
            }
            let all: BTreeSet<u64> = server.0.iter().copied().collect();
            prop_assert_eq!(all.len(), server.0.len());
            for device in &devices {
                prop_assert!(device.messages.keys().eq(all.iter()));
            }
        }
    }
}
