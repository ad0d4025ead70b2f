//! Room in memory for what clients make the server hold: bodies as they arrive, answers until they
//! have left.
//!
//! Every byte is counted three times: against its account, if it is known, against its network,
//! and against the whole. What a request promises to send takes room in its account's share
//! alone, so that the account's own requests wait for each other; the room of others it takes only
//! as it arrives.
//!
//! # Invariants
//! - All rooms together have at most the bytes that were given to [`MemoryBudget::new`].
//! - One account has at most an eighth of them, and one network half.
//! - Nobody who holds something waits for more for longer than [`GROWTH_WAIT_MAX`]: of those who
//!   keep each other waiting, some give up.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use accounts::AccountId;
use bytes::Bytes;
use crdt::Message;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout_at};

use crate::admission::keyed_semaphores::KeyedSemaphores;
use crate::admission::peer_network::PeerNetwork;
use crate::error::OverloadError;

const SHARES_OF_ACCOUNT: usize = 8;
const SHARES_OF_NETWORK: usize = 2;

/// How long a request waits for its first room: half as long as a device waits for an answer.
const WAIT_MAX: Duration = Duration::from_mins(1);
const GROWTH_WAIT_MAX: Duration = Duration::from_secs(10);

/// A page is there as messages, then encoded, which for JSON takes a third more, both for a moment.
const PAGE_COST: usize = 3;
/// Of a message, beside its contents: its timestamp, pointers, the syntax around it.
pub const MESSAGE_BYTES: usize = 128;

const BUSY: OverloadError = OverloadError::Busy("too many requests are in progress");

/// What there is room for. Counted in KiB.
pub(crate) struct MemoryBudget {
    total: Arc<Semaphore>,
    total_size: usize,
    networks: KeyedSemaphores<PeerNetwork>,
    accounts: KeyedSemaphores<AccountId>,
}

/// On whose account bytes are held.
#[derive(Clone, Copy, Debug)]
pub struct MemoryOwner {
    network: PeerNetwork,
    account: Option<AccountId>,
}

impl MemoryOwner {
    /// Somebody who has proven nothing yet.
    pub fn anonymous(address: IpAddr) -> Self {
        Self { network: PeerNetwork::from_address(address), account: None }
    }

    /// A device of an account.
    pub fn for_account(account: AccountId, address: IpAddr) -> Self {
        Self { network: PeerNetwork::from_address(address), account: Some(account) }
    }
}

/// Room that somebody has; given back when it is dropped.
pub struct MemoryReservation {
    /// Of the whole, of the network.
    common: [ReservationShare; 2],
    /// Of the account. It may have more than the others: what is promised.
    account: Option<ReservationShare>,
}

/// Room in one of the counts.
struct ReservationShare {
    of: Arc<Semaphore>,
    size: usize,
    held: Option<OwnedSemaphorePermit>,
}

impl MemoryBudget {
    pub(crate) fn new(bytes: usize) -> Self {
        let total_size = to_kib(bytes);
        Self {
            total: Arc::new(Semaphore::new(total_size)),
            total_size,
            networks: KeyedSemaphores::new(total_size / SHARES_OF_NETWORK),
            accounts: KeyedSemaphores::new(total_size / SHARES_OF_ACCOUNT),
        }
    }

    /// An empty room.
    pub(crate) fn reservation(&self, holder: MemoryOwner) -> MemoryReservation {
        let part = |of, size| ReservationShare { of, size, held: None };
        let total = part(Arc::clone(&self.total), self.total_size);
        let network = part(self.networks.for_key(holder.network), self.networks.size);
        let account =
            holder.account.map(|key| part(self.accounts.for_key(key), self.accounts.size));
        MemoryReservation { common: [network, total], account }
    }
}

impl MemoryReservation {
    /// Waits until the account has room for what a request promises to send.
    pub(crate) async fn reserve_for_account(&mut self, bytes: usize) -> Result<(), OverloadError> {
        let until = Instant::now() + WAIT_MAX;
        match &mut self.account {
            Some(account) => account.grow_to(to_kib(bytes), until).await,
            None => Ok(()),
        }
    }

    /// Waits until there is room for so many bytes in all.
    pub async fn grow_to(&mut self, bytes: usize) -> Result<(), OverloadError> {
        let is_first = self.common.iter().all(|part| part.held.is_none());
        let until = Instant::now() + if is_first { WAIT_MAX } else { GROWTH_WAIT_MAX };
        for part in self.account.iter_mut().chain(&mut self.common) {
            part.grow_to(to_kib(bytes), until).await?;
        }
        Ok(())
    }

    fn try_grow_to(&mut self, bytes: usize) -> bool {
        let kib = to_kib(bytes);
        let mut parts = self.account.iter_mut().chain(&mut self.common);
        parts.all(|part| part.try_grow_to(kib))
    }

    /// Takes room for a page of messages; returns how many bytes it may have ([`page_bytes`]): the
    /// most if they are there at once, or else the least, for which it waits.
    pub async fn reserve_page(
        &mut self,
        most: usize,
        least: usize,
    ) -> Result<usize, OverloadError> {
        if self.try_grow_to(PAGE_COST * most) {
            return Ok(most);
        }
        self.shrink_to(0);
        self.grow_to(PAGE_COST * least).await?;
        Ok(least)
    }

    /// Takes room for a page that has become larger than it might, by its one last message. False
    /// if there is none now: then [`Self::wait_for_page`], and read it again.
    pub(crate) fn try_grow_to_page(&mut self, bytes: usize) -> bool {
        self.try_grow_to(PAGE_COST * bytes)
    }

    /// Waits until there is room for such a page, which is kept meanwhile.
    pub async fn grow_to_page(&mut self, bytes: usize) -> Result<(), OverloadError> {
        self.grow_to(PAGE_COST * bytes).await
    }

    /// Waits until there is room for such a page, and for nothing else.
    pub(crate) async fn wait_for_page(&mut self, bytes: usize) -> Result<(), OverloadError> {
        self.shrink_to(0);
        self.grow_to(PAGE_COST * bytes).await
    }

    /// Gives back all but so many bytes.
    fn shrink_to(&mut self, bytes: usize) {
        let kib = to_kib(bytes);
        for part in self.account.iter_mut().chain(&mut self.common) {
            part.shrink_to(kib);
        }
    }

    /// Bytes that keep their room until they are dropped, which is when they have been sent.
    pub fn into_bytes(mut self, bytes: impl AsRef<[u8]> + Send + 'static) -> Bytes {
        self.shrink_to(bytes.as_ref().len());
        Bytes::from_owner(ReservedBytes { bytes, _room: self })
    }
}

/// What messages take, about.
pub fn page_bytes(messages: &[Message]) -> usize {
    messages.iter().map(|message| message.content.len() + MESSAGE_BYTES).sum()
}

struct ReservedBytes<T> {
    bytes: T,
    _room: MemoryReservation,
}

impl<T: AsRef<[u8]>> AsRef<[u8]> for ReservedBytes<T> {
    fn as_ref(&self) -> &[u8] {
        self.bytes.as_ref()
    }
}

impl ReservationShare {
    /// What is wanted beyond what is held. What is larger than the whole share takes all of it.
    fn missing(&self, kib: usize) -> u32 {
        let held = self.held.as_ref().map_or(0, OwnedSemaphorePermit::num_permits);
        let missing = kib.min(self.size).saturating_sub(held);
        u32::try_from(missing).expect("a share has less than 4 TiB")
    }

    async fn grow_to(&mut self, kib: usize, until: Instant) -> Result<(), OverloadError> {
        let missing = self.missing(kib);
        if missing > 0 {
            let taking = Arc::clone(&self.of).acquire_many_owned(missing);
            let taken = timeout_at(until, taking).await.map_err(|_elapsed| BUSY)?;
            self.add(taken.expect("the semaphore is never closed"));
        }
        Ok(())
    }

    fn try_grow_to(&mut self, kib: usize) -> bool {
        let missing = self.missing(kib);
        if missing == 0 {
            return true;
        }
        let taken = Arc::clone(&self.of).try_acquire_many_owned(missing);
        taken.map(|taken| self.add(taken)).is_ok()
    }

    fn add(&mut self, taken: OwnedSemaphorePermit) {
        match &mut self.held {
            Some(held) => held.merge(taken),
            None => self.held = Some(taken),
        }
    }

    fn shrink_to(&mut self, kib: usize) {
        if let Some(held) = &mut self.held {
            drop(held.split(held.num_permits().saturating_sub(kib)));
        }
    }
}

fn to_kib(bytes: usize) -> usize {
    bytes.div_ceil(1 << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: usize = 1 << 20;

    fn holder(last: u8) -> MemoryOwner {
        MemoryOwner::anonymous(IpAddr::from([192, 0, 2, last]))
    }

    fn free(memory: &MemoryBudget) -> usize {
        memory.total.available_permits() >> 10
    }

    #[tokio::test(start_paused = true)]
    async fn one_network_leaves_room_for_others() {
        let memory = MemoryBudget::new(64 * MIB);
        let (mut greedy, mut more) = (memory.reservation(holder(1)), memory.reservation(holder(1)));
        greedy.grow_to(32 * MIB).await.unwrap();
        assert_eq!(more.grow_to(MIB).await, Err(BUSY));
        let mut other = memory.reservation(holder(2));
        other.grow_to(16 * MIB).await.unwrap();
        assert_eq!(free(&memory), 16);
        drop((greedy, more, other));
        assert_eq!(free(&memory), 64);
    }

    #[tokio::test(start_paused = true)]
    async fn a_promise_takes_nothing_from_others() {
        let memory = MemoryBudget::new(64 * MIB);
        let account = AccountId::for_tests(1);
        let ada = MemoryOwner { account: Some(account), ..holder(1) };
        let (mut promised, mut second) = (memory.reservation(ada), memory.reservation(ada));
        promised.reserve_for_account(8 * MIB).await.unwrap();
        assert_eq!(free(&memory), 64);
        assert_eq!(second.reserve_for_account(MIB).await, Err(BUSY), "the account has an eighth");
        // What arrives then takes no more of the account's.
        promised.grow_to(4 * MIB).await.unwrap();
        assert_eq!(free(&memory), 60);
        drop(promised);
        second.reserve_for_account(MIB).await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn a_page_is_as_large_as_there_is_room_for() {
        let memory = MemoryBudget::new(64 * MIB);
        let mut first = memory.reservation(holder(1));
        assert_eq!(first.reserve_page(8 * MIB, MIB).await, Ok(8 * MIB));
        let mut second = memory.reservation(holder(1));
        assert_eq!(second.reserve_page(8 * MIB, MIB).await, Ok(MIB));
        assert!(!second.try_grow_to_page(4 * MIB));
        let sent = first.into_bytes(vec![0; 5]);
        assert!(second.try_grow_to_page(4 * MIB));
        assert_eq!(second.reserve_page(8 * MIB, MIB).await, Ok(8 * MIB));
        drop((sent, second));
        assert_eq!(free(&memory), 64);
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_larger_than_a_share_takes_all_of_it() {
        let memory = MemoryBudget::new(64 * MIB);
        let mut large = memory.reservation(holder(1));
        large.grow_to(100 * MIB).await.unwrap();
        assert_eq!(free(&memory), 0);
        drop(large);
        assert_eq!(free(&memory), 64);
    }
}
