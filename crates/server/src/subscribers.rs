//! Subscribers per account. They receive the vault's current state, never a history.
//!
//! ```text
//! push ─► stored(set) ─────► watch ─┬─► subscriber
//! revoke ─► revoked(account) ───────┴─► subscriber
//! ```
//! Each set with subscribers has one `watch`: a slow subscriber skips outdated states, and nothing
//! queues. No subscriber has a task of its own, and none keeps a vault open.
//!
//! # Invariants
//! - There are at most `account_max` subscribers of one account and `total_max` of all. At the
//!   total limit, a newcomer replaces a subscriber of the network that has the most, as with
//!   connections.
//! - A set without subscribers has no entry.
//! - The state that subscribers receive never goes back, whatever the order in which pushes are
//!   answered.
//!
//! # Not here
//! - The events that are sent to a subscriber → `handlers/events.rs`.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard};

use accounts::{AccountId, DeviceSession};
use protocol::ErrorCode;
use sync_store::VaultSummary;
use tokio::sync::watch;

use crate::admission::connections::{ConnectionLimiter, ConnectionPermit};
use crate::error::ApiError;

/// A key for one set of an account's messages: the plain ones, or those of its e2ee set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct MessageSetKey {
    pub(crate) account: AccountId,
    pub(crate) is_e2ee: bool,
}

impl MessageSetKey {
    /// Returns the key of the set that a device uses.
    pub(crate) fn for_session(session: &DeviceSession) -> Self {
        Self { account: session.account, is_e2ee: session.message_set.e2ee_vault.is_some() }
    }
}

/// The subscribers of a server.
pub(crate) struct Subscribers {
    account_max: usize,
    places: ConnectionLimiter,
    registry: Mutex<SubscriberRegistry>,
}

#[derive(Default)]
struct SubscriberRegistry {
    channels: HashMap<MessageSetKey, UpdateChannel>,
    count: usize,
    is_closed: bool,
}

struct UpdateChannel {
    updates: watch::Sender<VaultUpdate>,
    count: usize,
}

/// The update that an account's subscribers receive.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct VaultUpdate {
    /// The vault's state after the newest push since the first subscriber came.
    pub(crate) state: Option<VaultSummary>,
    /// The number of revocations. When it changes, each subscriber checks whether its own device
    /// is revoked.
    revocations: u64,
}

/// A device that holds an event stream open. Dropping this frees its permit.
pub(crate) struct Subscriber {
    subscribers: Arc<Subscribers>,
    set: MessageSetKey,
    place: ConnectionPermit,
    /// The updates. The channel is closed when the server stops.
    pub(crate) updates: watch::Receiver<VaultUpdate>,
}

impl Subscribers {
    pub(crate) fn new(account_max: usize, total_max: usize) -> Self {
        let places = ConnectionLimiter::new(total_max);
        Self { account_max, places, registry: Mutex::default() }
    }

    /// Acquires a permit for a client. The subscriber receives all pushes from here on.
    pub(crate) async fn subscribe(
        self: &Arc<Self>,
        set: MessageSetKey,
        client: IpAddr,
    ) -> Result<Subscriber, ApiError> {
        // Check first, before another subscriber is closed to free its permit.
        self.check(&self.registry(), set)?;
        let place = self.places.acquire_for_client(Some(client)).await;
        let busy = || ApiError::new(ErrorCode::Busy, "too many event streams are open");
        let place = place.ok_or_else(busy)?;
        place.connection.waits_for_event();
        let mut registry = self.registry();
        self.check(&registry, set)?;
        registry.count += 1;
        let channel = registry
            .channels
            .entry(set)
            .or_insert_with(|| UpdateChannel { updates: watch::Sender::default(), count: 0 });
        channel.count += 1;
        let update = channel.updates.subscribe();
        Ok(Subscriber { subscribers: Arc::clone(self), set, place, updates: update })
    }

    /// Checks whether an account may have one more subscriber.
    fn check(&self, registry: &SubscriberRegistry, set: MessageSetKey) -> Result<(), ApiError> {
        if registry.is_closed {
            return Err(ApiError::new(ErrorCode::Unavailable, "the server is stopping"));
        }
        let of_account = registry.channels.get(&set).map_or(0, |channel| channel.count);
        if of_account >= self.account_max {
            let message = format!("an account can have at most {} event streams", self.account_max);
            return Err(ApiError::new(ErrorCode::Busy, message));
        }
        Ok(())
    }

    /// Notifies the subscribers of a set of the vault's state after a push.
    pub(crate) fn notify_stored(&self, set: MessageSetKey, after: VaultSummary) {
        self.notify(set, |update| {
            let is_newer = update.state.is_none_or(|known| known.cursor < after.cursor);
            if is_newer {
                update.state = Some(after);
            }
            is_newer
        });
    }

    /// Notifies an account's subscribers that devices were revoked or moved to the e2ee set.
    pub(crate) fn notify_revoked(&self, account: AccountId) {
        for is_e2ee in [false, true] {
            self.notify(MessageSetKey { account, is_e2ee }, |update| {
                update.revocations += 1;
                true
            });
        }
    }

    /// Ends every subscriber's stream and accepts no further ones.
    pub(crate) fn close(&self) {
        let mut registry = self.registry();
        registry.is_closed = true;
        registry.channels.clear();
    }

    pub(crate) fn count(&self) -> usize {
        self.registry().count
    }

    fn notify(&self, set: MessageSetKey, change: impl FnOnce(&mut VaultUpdate) -> bool) {
        if let Some(channel) = self.registry().channels.get(&set) {
            channel.updates.send_if_modified(change);
        }
    }

    fn unsubscribe(&self, set: MessageSetKey) {
        let mut registry = self.registry();
        registry.count -= 1;
        // A server that stops has dropped the channels already.
        if let Some(channel) = registry.channels.get_mut(&set) {
            channel.count -= 1;
            if channel.count == 0 {
                registry.channels.remove(&set);
            }
        }
    }

    fn registry(&self) -> MutexGuard<'_, SubscriberRegistry> {
        self.registry.lock().expect("no code panics while it holds this lock")
    }
}

impl Subscriber {
    /// Waits for an update. Returns `None` if the server stops or another client got the permit.
    pub(crate) async fn hear(&mut self) -> Option<()> {
        tokio::select! {
            changed = self.updates.changed() => changed.ok(),
            () = self.place.connection.closed() => None,
        }
    }
}

impl Drop for Subscriber {
    fn drop(&mut self) {
        self.subscribers.unsubscribe(self.set);
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use ::accounts::{Accounts, KdfCost, Login, Password};
    use crdt::Fingerprint;

    use super::*;

    async fn accounts() -> [AccountId; 2] {
        tokio::task::spawn_blocking(make_accounts).await.unwrap()
    }

    fn make_accounts() -> [AccountId; 2] {
        let data = tempfile::tempdir().unwrap();
        let databases = engine::Databases::start(engine::EngineLimits::default()).unwrap();
        let cost = KdfCost::insecure_for_tests(1);
        let accounts = Accounts::open(&databases, data.path(), cost).unwrap();
        let password = Password::parse("correct horse battery".to_owned()).unwrap();
        let add = |login| accounts.add(&Login::parse(login).unwrap(), &password, 0).unwrap();
        ["ada", "bob"].map(|login| add(login).account)
    }

    fn plain(account: AccountId) -> MessageSetKey {
        MessageSetKey { account, is_e2ee: false }
    }

    fn state(cursor: u64) -> VaultSummary {
        VaultSummary { cursor, bytes: 0, fingerprint: Fingerprint { count: cursor, digest: 0 } }
    }

    const HOME: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));

    #[tokio::test]
    async fn what_is_heard_is_the_newest_and_never_goes_back() {
        let [ada, bob] = accounts().await;
        let subscribers = Arc::new(Subscribers::new(9, 9));
        let mut listener = subscribers.subscribe(plain(ada), HOME).await.unwrap();
        let mut heard = || {
            let has_changed = listener.updates.has_changed().unwrap();
            let update = listener.updates.borrow_and_update();
            has_changed.then(|| update.state.map_or(0, |state| state.cursor))
        };
        assert_eq!(heard(), None);
        subscribers.notify_stored(plain(bob), state(7));
        assert_eq!(heard(), None, "of another account");
        subscribers.notify_stored(plain(ada), state(2));
        subscribers.notify_stored(plain(ada), state(3));
        assert_eq!(heard(), Some(3));
        // Two pushes were answered in reverse order.
        subscribers.notify_stored(plain(ada), state(1));
        assert_eq!(heard(), None);
        subscribers.notify_revoked(ada);
        assert_eq!(heard(), Some(3));
    }

    #[tokio::test]
    async fn places_are_counted_and_nothing_is_left_behind() {
        let [ada, bob] = accounts().await;
        let subscribers = Arc::new(Subscribers::new(2, 3));
        let mut held = Vec::new();
        for account in [ada, ada, bob] {
            held.push(subscribers.subscribe(plain(account), HOME).await.unwrap());
        }
        let refused = async |account| {
            subscribers.subscribe(plain(account), HOME).await.map(drop).unwrap_err().code
        };
        assert_eq!((refused(ada).await, refused(bob).await), (ErrorCode::Busy, ErrorCode::Busy));
        drop(held);
        assert_eq!(subscribers.count(), 0);
        assert!(subscribers.registry().channels.is_empty());

        let listener = subscribers.subscribe(plain(bob), HOME).await.unwrap();
        subscribers.close();
        assert!(listener.updates.has_changed().is_err());
        assert_eq!(refused(bob).await, ErrorCode::Unavailable);
        drop(listener);
        assert_eq!(subscribers.count(), 0);
    }

    #[tokio::test]
    async fn a_newcomer_gets_the_place_of_a_listener_of_the_network_that_has_most() {
        let [ada, bob] = accounts().await;
        let subscribers = Arc::new(Subscribers::new(9, 4));
        let mut tasks = Vec::new();
        for client in [[192, 0, 2, 1], [192, 0, 2, 1], [192, 0, 2, 1], [198, 51, 100, 1]] {
            let mut listener = subscribers.subscribe(plain(ada), client.into()).await.unwrap();
            tasks.push(tokio::spawn(async move { listener.hear().await }));
        }
        let elsewhere = subscribers.subscribe(plain(bob), [203, 0, 113, 1].into()).await.unwrap();
        tokio::task::yield_now().await;
        let ended: Vec<_> = tasks.iter().map(tokio::task::JoinHandle::is_finished).collect();
        assert_eq!(ended, [true, false, false, false]);
        let refused = subscribers.subscribe(plain(ada), HOME).await.map(drop).unwrap_err();
        assert_eq!(refused.code, ErrorCode::Busy, "of the network that has most");
        assert_eq!(subscribers.count(), 4);
        drop(elsewhere);
    }
}
