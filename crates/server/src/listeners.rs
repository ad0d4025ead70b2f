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
//! - At most `account_max` listeners of one account and `total_max` of all are there.
//! - A set without listeners has no entry.
//! - The state that is heard never goes back, in whatever order pushes are answered.
//!
//! # Not here
//! - What a listener is sent → `handlers/events.rs`.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};

use accounts::{AccountId, Session};
use protocol::ErrorCode;
use sync_store::State;
use tokio::sync::watch;

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
    total_max: usize,
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
    /// Closed when the server stops.
    pub(crate) news: watch::Receiver<News>,
}

impl Listeners {
    pub(crate) fn new(account_max: usize, total_max: usize) -> Self {
        Self { account_max, total_max, registry: Mutex::default() }
    }

    /// Takes a place. What is pushed from here on is heard.
    pub(crate) fn listen(self: &Arc<Self>, set: ListenedSet) -> Result<Listener, Refusal> {
        let mut registry = self.registry();
        if registry.is_closed {
            return Err(Refusal::new(ErrorCode::Unavailable, "the server is stopping"));
        }
        if registry.count >= self.total_max {
            return Err(Refusal::new(ErrorCode::Busy, "too many devices listen here"));
        }
        let of_account = registry.channels.get(&set).map_or(0, |channel| channel.count);
        if of_account >= self.account_max {
            let message = format!("at most {} devices of an account listen", self.account_max);
            return Err(Refusal::new(ErrorCode::Busy, message));
        }
        registry.count += 1;
        let channel = registry
            .channels
            .entry(set)
            .or_insert_with(|| Channel { news: watch::Sender::default(), count: 0 });
        channel.count += 1;
        let news = channel.news.subscribe();
        Ok(Listener { listeners: Arc::clone(self), set, news })
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

impl Drop for Listener {
    fn drop(&mut self) {
        self.listeners.leave(self.set);
    }
}

#[cfg(test)]
mod tests {
    use ::accounts::{Accounts, KdfCost, Login, Password};
    use crdt::Fingerprint;

    use super::*;

    fn accounts() -> [AccountId; 2] {
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

    #[test]
    fn what_is_heard_is_the_newest_and_never_goes_back() {
        let [ada, bob] = accounts();
        let listeners = Arc::new(Listeners::new(9, 9));
        let mut listener = listeners.listen(plain(ada)).unwrap();
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

    #[test]
    fn places_are_counted_and_nothing_is_left_behind() {
        let [ada, bob] = accounts();
        let listeners = Arc::new(Listeners::new(2, 3));
        let held = [ada, ada, bob].map(|account| listeners.listen(plain(account)).unwrap());
        let refused = |account| listeners.listen(plain(account)).map(drop).unwrap_err().code;
        assert_eq!((refused(ada), refused(bob)), (ErrorCode::Busy, ErrorCode::Busy));
        drop(held);
        assert_eq!(listeners.count(), 0);
        assert!(listeners.registry().channels.is_empty());

        let listener = listeners.listen(plain(bob)).unwrap();
        listeners.close();
        assert!(listener.news.has_changed().is_err());
        assert_eq!(refused(bob), ErrorCode::Unavailable);
        drop(listener);
        assert_eq!(listeners.count(), 0);
    }
}
