//! Who listens to which set of messages, and what they hear: how it stands, never how it came so.
//!
//! ```text
//! push ─► stored(set) ─────► watch ─┬─► listener
//! revoke ─► revoked(account) ───────┴─► listener
//! ```
//! Each set with listeners has one `watch`: a slow listener skips what is out of date, and
//! nothing queues. No listener has a task of its own, and none keeps a vault open.
//!
//! # Invariants
//! - At most `account_max` listeners of one account and `total_max` of all are there. When there are
//!   as many, a newcomer gets the place of one of the network that has the most, as with connections.
//! - A set without listeners has no entry.
//! - The state that is heard never goes back, in whatever order pushes are answered.
//!
//! # Not here
//! - What a listener is sent → `handlers/events.rs`.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard};

use accounts::{AccountId, Session};
use protocol::ErrorCode;
use sync_store::State;
use tokio::sync::watch;

use crate::admission::connections::{ConnectionPlace, Connections};
use crate::error::Refusal;

/// The messages of an account: its plain ones, or those of its sealed set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ListenedSet {
    pub(crate) account: AccountId,
    pub(crate) is_sealed: bool,
}

impl ListenedSet {
    /// That of a device.
    pub(crate) fn of(session: &Session) -> Self {
        Self { account: session.account, is_sealed: session.set.sealed.is_some() }
    }
}

/// The listeners of a server.
pub(crate) struct Listeners {
    account_max: usize,
    places: Connections,
    registry: Mutex<Registry>,
}

#[derive(Default)]
struct Registry {
    channels: HashMap<ListenedSet, Channel>,
    count: usize,
    is_closed: bool,
}

struct Channel {
    news: watch::Sender<News>,
    count: usize,
}

/// What an account's listeners hear.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct News {
    /// After the newest push since somebody listens.
    pub(crate) state: Option<State>,
    /// Counts revocations: each listener then looks whether it was the one.
    revocations: u64,
}

/// One listener's place; dropping it makes room.
pub(crate) struct Listener {
    listeners: Arc<Listeners>,
    set: ListenedSet,
    place: ConnectionPlace,
    /// Closed when the server stops.
    pub(crate) news: watch::Receiver<News>,
}

impl Listeners {
    pub(crate) fn new(account_max: usize, total_max: usize) -> Self {
        let places = Connections::new(total_max);
        Self { account_max, places, registry: Mutex::default() }
    }

    /// Takes a place for a client. What is pushed from here on is heard.
    pub(crate) async fn listen(
        self: &Arc<Self>,
        set: ListenedSet,
        client: IpAddr,
    ) -> Result<Listener, Refusal> {
        // Before somebody has to go for it.
        self.check(&self.registry(), set)?;
        let place = self.places.admit_client(Some(client)).await;
        let busy = || Refusal::new(ErrorCode::Busy, "too many devices listen here");
        let place = place.ok_or_else(busy)?;
        place.connection.waits_for_event();
        let mut registry = self.registry();
        self.check(&registry, set)?;
        registry.count += 1;
        let channel = registry
            .channels
            .entry(set)
            .or_insert_with(|| Channel { news: watch::Sender::default(), count: 0 });
        channel.count += 1;
        let news = channel.news.subscribe();
        Ok(Listener { listeners: Arc::clone(self), set, place, news })
    }

    /// Whether an account may have one more.
    fn check(&self, registry: &Registry, set: ListenedSet) -> Result<(), Refusal> {
        if registry.is_closed {
            return Err(Refusal::new(ErrorCode::Unavailable, "the server is stopping"));
        }
        let of_account = registry.channels.get(&set).map_or(0, |channel| channel.count);
        if of_account >= self.account_max {
            let message = format!("at most {} devices of an account listen", self.account_max);
            return Err(Refusal::new(ErrorCode::Busy, message));
        }
        Ok(())
    }

    /// Tells that a push has left the vault like this.
    pub(crate) fn stored(&self, set: ListenedSet, after: State) {
        self.tell(set, |news| {
            let is_newer = news.state.is_none_or(|known| known.cursor < after.cursor);
            if is_newer {
                news.state = Some(after);
            }
            is_newer
        });
    }

    /// Tells that devices were revoked, or went over to the sealed set.
    pub(crate) fn revoked(&self, account: AccountId) {
        for is_sealed in [false, true] {
            self.tell(ListenedSet { account, is_sealed }, |news| {
                news.revocations += 1;
                true
            });
        }
    }

    /// Ends every listener's stream, and takes no more of them.
    pub(crate) fn close(&self) {
        let mut registry = self.registry();
        registry.is_closed = true;
        registry.channels.clear();
    }

    pub(crate) fn count(&self) -> usize {
        self.registry().count
    }

    fn tell(&self, set: ListenedSet, change: impl FnOnce(&mut News) -> bool) {
        if let Some(channel) = self.registry().channels.get(&set) {
            channel.news.send_if_modified(change);
        }
    }

    fn leave(&self, set: ListenedSet) {
        let mut registry = self.registry();
        registry.count -= 1;
        // A server that stops has forgotten the channels already.
        if let Some(channel) = registry.channels.get_mut(&set) {
            channel.count -= 1;
            if channel.count == 0 {
                registry.channels.remove(&set);
            }
        }
    }

    fn registry(&self) -> MutexGuard<'_, Registry> {
        self.registry.lock().expect("no code panics while it holds this lock")
    }
}

impl Listener {
    /// Waits for news. `None`: the server stops, or the place was given to another.
    pub(crate) async fn hear(&mut self) -> Option<()> {
        tokio::select! {
            changed = self.news.changed() => changed.ok(),
            () = self.place.connection.closed() => None,
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.listeners.leave(self.set);
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
        let databases = engine::Databases::start(engine::Limits::default()).unwrap();
        let cost = KdfCost::insecure_for_tests(1);
        let accounts = Accounts::open(&databases, data.path(), cost).unwrap();
        let password = Password::parse("correct horse battery".to_owned()).unwrap();
        let add = |login| accounts.add(&Login::parse(login).unwrap(), &password, 0).unwrap();
        ["ada", "bob"].map(|login| add(login).account)
    }

    fn plain(account: AccountId) -> ListenedSet {
        ListenedSet { account, is_sealed: false }
    }

    fn state(cursor: u64) -> State {
        State { cursor, bytes: 0, fingerprint: Fingerprint { count: cursor, digest: 0 } }
    }

    const HOME: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));

    #[tokio::test]
    async fn what_is_heard_is_the_newest_and_never_goes_back() {
        let [ada, bob] = accounts().await;
        let listeners = Arc::new(Listeners::new(9, 9));
        let mut listener = listeners.listen(plain(ada), HOME).await.unwrap();
        let mut heard = || {
            let has_changed = listener.news.has_changed().unwrap();
            let news = listener.news.borrow_and_update();
            has_changed.then(|| news.state.map_or(0, |state| state.cursor))
        };
        assert_eq!(heard(), None);
        listeners.stored(plain(bob), state(7));
        assert_eq!(heard(), None, "of another account");
        listeners.stored(plain(ada), state(2));
        listeners.stored(plain(ada), state(3));
        assert_eq!(heard(), Some(3));
        // Two pushes were answered in the other order.
        listeners.stored(plain(ada), state(1));
        assert_eq!(heard(), None);
        listeners.revoked(ada);
        assert_eq!(heard(), Some(3));
    }

    #[tokio::test]
    async fn places_are_counted_and_nothing_is_left_behind() {
        let [ada, bob] = accounts().await;
        let listeners = Arc::new(Listeners::new(2, 3));
        let mut held = Vec::new();
        for account in [ada, ada, bob] {
            held.push(listeners.listen(plain(account), HOME).await.unwrap());
        }
        let refused = async |account| {
            listeners.listen(plain(account), HOME).await.map(drop).unwrap_err().code
        };
        assert_eq!((refused(ada).await, refused(bob).await), (ErrorCode::Busy, ErrorCode::Busy));
        drop(held);
        assert_eq!(listeners.count(), 0);
        assert!(listeners.registry().channels.is_empty());

        let listener = listeners.listen(plain(bob), HOME).await.unwrap();
        listeners.close();
        assert!(listener.news.has_changed().is_err());
        assert_eq!(refused(bob).await, ErrorCode::Unavailable);
        drop(listener);
        assert_eq!(listeners.count(), 0);
    }

    #[tokio::test]
    async fn a_newcomer_gets_the_place_of_a_listener_of_the_network_that_has_most() {
        let [ada, bob] = accounts().await;
        let listeners = Arc::new(Listeners::new(9, 4));
        let mut tasks = Vec::new();
        for client in [[192, 0, 2, 1], [192, 0, 2, 1], [192, 0, 2, 1], [198, 51, 100, 1]] {
            let mut listener = listeners.listen(plain(ada), client.into()).await.unwrap();
            tasks.push(tokio::spawn(async move { listener.hear().await }));
        }
        let elsewhere = listeners.listen(plain(bob), [203, 0, 113, 1].into()).await.unwrap();
        tokio::task::yield_now().await;
        let ended: Vec<_> = tasks.iter().map(tokio::task::JoinHandle::is_finished).collect();
        assert_eq!(ended, [true, false, false, false]);
        let refused = listeners.listen(plain(ada), HOME).await.map(drop).unwrap_err();
        assert_eq!(refused.code, ErrorCode::Busy, "of the network that has most");
        assert_eq!(listeners.count(), 4);
        drop(elsewhere);
    }
}
