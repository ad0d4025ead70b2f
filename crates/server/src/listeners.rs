//! Who listens to which account's vault, and what they hear: how it stands, never how it came so.
//!
//! ```text
//! push ─► stored(account) ─► watch ─┬─► listener
//! revoke ─► revoked(account) ───────┴─► listener
//! ```
//! Each account with listeners has one `watch`: a slow listener skips what is out of date, and
//! nothing queues. No listener has a task of its own, and none keeps a vault open.
//!
//! # Invariants
//! - At most `account_max` listeners of one account and `total_max` of all are there.
//! - An account without listeners has no entry.
//! - The state that is heard never goes back, in whatever order pushes are answered.
//!
//! # Not here
//! - What a listener is sent → `handlers/events.rs`.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};

use accounts::AccountId;
use protocol::ErrorCode;
use sync_store::State;
use tokio::sync::watch;

use crate::error::Refusal;

/// The listeners of a server.
pub(crate) struct Listeners {
    account_max: usize,
    total_max: usize,
    registry: Mutex<Registry>,
}

#[derive(Default)]
struct Registry {
    channels: HashMap<AccountId, Channel>,
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
    account: AccountId,
    /// Closed when the server stops.
    pub(crate) news: watch::Receiver<News>,
}

impl Listeners {
    pub(crate) fn new(account_max: usize, total_max: usize) -> Self {
        Self { account_max, total_max, registry: Mutex::default() }
    }

    /// Takes a place. What is pushed from here on is heard.
    pub(crate) fn listen(self: &Arc<Self>, account: AccountId) -> Result<Listener, Refusal> {
        let mut registry = self.registry();
        if registry.is_closed {
            return Err(Refusal::new(ErrorCode::Unavailable, "the server is stopping"));
        }
        if registry.count >= self.total_max {
            return Err(Refusal::new(ErrorCode::Busy, "too many devices listen here"));
        }
        let of_account = registry.channels.get(&account).map_or(0, |channel| channel.count);
        if of_account >= self.account_max {
            let message = format!("at most {} devices of an account listen", self.account_max);
            return Err(Refusal::new(ErrorCode::Busy, message));
        }
        registry.count += 1;
        let channel = registry
            .channels
            .entry(account)
            .or_insert_with(|| Channel { news: watch::Sender::default(), count: 0 });
        channel.count += 1;
        let news = channel.news.subscribe();
        Ok(Listener { listeners: Arc::clone(self), account, news })
    }

    /// Tells that a push has left the vault like this.
    pub(crate) fn stored(&self, account: AccountId, after: State) {
        self.tell(account, |news| {
            let is_newer = news.state.is_none_or(|known| known.cursor < after.cursor);
            if is_newer {
                news.state = Some(after);
            }
            is_newer
        });
    }

    /// Tells that devices were revoked.
    pub(crate) fn revoked(&self, account: AccountId) {
        self.tell(account, |news| {
            news.revocations += 1;
            true
        });
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

    fn tell(&self, account: AccountId, change: impl FnOnce(&mut News) -> bool) {
        if let Some(channel) = self.registry().channels.get(&account) {
            channel.news.send_if_modified(change);
        }
    }

    fn leave(&self, account: AccountId) {
        let mut registry = self.registry();
        registry.count -= 1;
        // A server that stops has forgotten the channels already.
        if let Some(channel) = registry.channels.get_mut(&account) {
            channel.count -= 1;
            if channel.count == 0 {
                registry.channels.remove(&account);
            }
        }
    }

    fn registry(&self) -> MutexGuard<'_, Registry> {
        self.registry.lock().expect("no code panics while it holds this lock")
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.listeners.leave(self.account);
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

    fn state(cursor: u64) -> State {
        State { cursor, bytes: 0, fingerprint: Fingerprint { count: cursor, digest: 0 } }
    }

    #[test]
    fn what_is_heard_is_the_newest_and_never_goes_back() {
        let [ada, bob] = accounts();
        let listeners = Arc::new(Listeners::new(9, 9));
        let mut listener = listeners.listen(ada).unwrap();
        let mut heard = || {
            let has_changed = listener.news.has_changed().unwrap();
            let news = listener.news.borrow_and_update();
            has_changed.then(|| news.state.map_or(0, |state| state.cursor))
        };
        assert_eq!(heard(), None);
        listeners.stored(bob, state(7));
        assert_eq!(heard(), None, "of another account");
        listeners.stored(ada, state(2));
        listeners.stored(ada, state(3));
        assert_eq!(heard(), Some(3));
        // Two pushes were answered in the other order.
        listeners.stored(ada, state(1));
        assert_eq!(heard(), None);
        listeners.revoked(ada);
        assert_eq!(heard(), Some(3));
    }

    #[test]
    fn places_are_counted_and_nothing_is_left_behind() {
        let [ada, bob] = accounts();
        let listeners = Arc::new(Listeners::new(2, 3));
        let held = [ada, ada, bob].map(|account| listeners.listen(account).unwrap());
        let refused = |account| listeners.listen(account).map(drop).unwrap_err().code;
        assert_eq!((refused(ada), refused(bob)), (ErrorCode::Busy, ErrorCode::Busy));
        drop(held);
        assert_eq!(listeners.count(), 0);
        assert!(listeners.registry().channels.is_empty());

        let listener = listeners.listen(bob).unwrap();
        listeners.close();
        assert!(listener.news.has_changed().is_err());
        assert_eq!(refused(bob), ErrorCode::Unavailable);
        drop(listener);
        assert_eq!(listeners.count(), 0);
    }
}
