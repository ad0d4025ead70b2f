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
