//! A memory budget for the data that clients make the server hold: bodies as they arrive, and
//! responses until they have been sent.
//!
//! Every byte is counted three times: against its account, if it is known, against its network, and
//! against the total. The promised size of a request is reserved only in its account's share, so
//! that the account's own requests wait for each other; it counts against the other shares only as
//! it arrives.
//!
//! # Invariants
//! - All reservations together have at most the bytes that were given to [`MemoryBudget::new`].
//! - One account has at most an eighth of them, and one network half.
//! - A request that holds memory waits for more for at most [`GROWTH_WAIT_MAX`]: of requests that
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

/// The time that a request waits for its first memory: half as long as a device waits for a
/// response.
const WAIT_MAX: Duration = Duration::from_mins(1);
const GROWTH_WAIT_MAX: Duration = Duration::from_secs(10);

/// The memory of a page relative to its size: it briefly exists both as messages and encoded, which
/// takes a third more in JSON.
const PAGE_COST: usize = 3;
/// The memory of a message apart from its content: its timestamp, pointers and the syntax around
/// it.
pub const MESSAGE_BYTES: usize = 128;

const BUSY: OverloadError = OverloadError::Busy("too many requests are in progress");

/// The memory that can be reserved, counted in KiB.
pub(crate) struct MemoryBudget {
    total: Arc<Semaphore>,
    total_size: usize,
    networks: KeyedSemaphores<PeerNetwork>,
    accounts: KeyedSemaphores<AccountId>,
}

/// The network and the account against which bytes count.
#[derive(Clone, Copy, Debug)]
pub struct MemoryOwner {
    network: PeerNetwork,
    account: Option<AccountId>,
}

impl MemoryOwner {
    /// Creates an owner for a client that has not authenticated.
    pub fn anonymous(address: IpAddr) -> Self {
        Self { network: PeerNetwork::from_address(address), account: None }
    }

    /// Creates an owner for a device of an account.
    pub fn for_account(account: AccountId, address: IpAddr) -> Self {
        Self { network: PeerNetwork::from_address(address), account: Some(account) }
    }
}

/// Reserved memory, which is released when this is dropped.
pub struct MemoryReservation {
    /// The shares in the network and in the total.
    common: [ReservationShare; 2],
    /// The share in the account. It may be larger than the others, because it covers the promised
    /// bytes.
    account: Option<ReservationShare>,
}

/// Reserved memory in one of the counts.
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

    /// Creates a reservation of no bytes.
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
    /// Waits until the account has memory for the bytes that a request promises to send.
    pub(crate) async fn reserve_for_account(&mut self, bytes: usize) -> Result<(), OverloadError> {
        let until = Instant::now() + WAIT_MAX;
        match &mut self.account {
            Some(account) => account.grow_to(to_kib(bytes), until).await,
            None => Ok(()),
        }
    }

    /// Waits until this many bytes are reserved in all.
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

    /// Reserves memory for a page of messages and returns its maximum size in bytes
    /// ([`page_bytes`]): `most` if it is free now, or else `least`, for which this waits.
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

    /// Reserves memory for a page that its last message has made larger than its limit. Returns
    /// false if there is not enough now: then call [`Self::wait_for_page`] and read the page again.
    pub(crate) fn try_grow_to_page(&mut self, bytes: usize) -> bool {
        self.try_grow_to(PAGE_COST * bytes)
    }

    /// Waits for memory for such a page while the page stays in memory.
    pub async fn grow_to_page(&mut self, bytes: usize) -> Result<(), OverloadError> {
        self.grow_to(PAGE_COST * bytes).await
    }

    /// Releases all memory, then waits until there is enough for such a page.
    pub(crate) async fn wait_for_page(&mut self, bytes: usize) -> Result<(), OverloadError> {
        self.shrink_to(0);
        self.grow_to(PAGE_COST * bytes).await
    }

    /// Releases all but this many bytes.
    fn shrink_to(&mut self, bytes: usize) {
        let kib = to_kib(bytes);
        for part in self.account.iter_mut().chain(&mut self.common) {
            part.shrink_to(kib);
        }
    }

    /// Turns the reservation into bytes that keep their memory reserved until they have been sent
    /// and dropped.
    pub fn into_bytes(mut self, bytes: impl AsRef<[u8]> + Send + 'static) -> Bytes {
        self.shrink_to(bytes.as_ref().len());
        Bytes::from_owner(ReservedBytes { bytes, _room: self })
    }
}

/// Returns the approximate memory of messages in bytes.
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
    /// Returns how much is needed beyond the held memory. A request larger than the share takes all
    /// of it.
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
        // Arriving bytes then take no more of the account's share.
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
