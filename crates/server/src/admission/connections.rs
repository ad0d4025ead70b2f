//! Permits for connections and subscribers. When all are taken, a newcomer gets one from the
//! network that has the most.
//!
//! So a client that holds many connections keeps no other out, whatever they are held with: half a
//! head, a body of a byte a second, no data, or a stream of events. No time limit would achieve
//! this, since a closed connection is soon opened again.
//!
//! # Invariants
//! - At most as many connections are open as were given to [`ConnectionLimiter::new`].
//! - A network has at most its share of them. At this limit, its newcomers replace its own
//!   connections.
//! - A connection whose request the server works on is closed only for a network that has fewer.
//!
//! # Not here
//! - The states of a connection → `open.rs`; the bodies that record them → `bodies.rs`.

mod bodies;
mod open;

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::yield_now;

pub(crate) use self::bodies::{request_body, response_body};
pub(crate) use self::open::OpenConnection;
use crate::admission::group_counts::GroupCounts;
use crate::admission::peer_network::PeerNetwork;
use crate::admission::proxies::TrustedProxies;

/// One network may have one in this many of all connections, but at least as many as a household
/// needs.
const SHARES: usize = 8;
const SHARE_MIN: usize = 16;

pub(crate) struct ConnectionLimiter {
    total: Arc<Semaphore>,
    share_max: usize,
    table: Arc<Mutex<ConnectionTable>>,
    displaced_count: AtomicU64,
}

/// The open connections, and their counts per network.
struct ConnectionTable {
    by_network: HashMap<PeerNetwork, HashMap<u64, Arc<OpenConnection>>>,
    counts: GroupCounts<PeerNetwork>,
    next_id: u64,
}

/// The permit of a connection. Dropping it releases it.
pub(crate) struct ConnectionPermit {
    pub(crate) connection: Arc<OpenConnection>,
    /// An entry for the client's network. A trusted proxy's connection has none: it counts for the
    /// clients whose requests it carries.
    _entry: Option<ConnectionEntry>,
    _of_total: OwnedSemaphorePermit,
}

/// An entry that makes a connection count for a network until it is dropped.
pub(crate) struct ConnectionEntry {
    table: Arc<Mutex<ConnectionTable>>,
    network: PeerNetwork,
    id: u64,
}

impl ConnectionLimiter {
    pub(crate) fn new(count_max: usize) -> Self {
        Self {
            total: Arc::new(Semaphore::new(count_max)),
            share_max: (count_max / SHARES).max(SHARE_MIN),
            table: Arc::new(Mutex::new(ConnectionTable::new())),
            displaced_count: AtomicU64::new(0),
        }
    }

    /// Acquires a permit for a peer. It may come from another connection, which closes at once.
    /// Returns `None` if no connection may be closed for this peer.
    pub(crate) async fn acquire(
        &self,
        peer: IpAddr,
        proxies: &TrustedProxies,
    ) -> Option<ConnectionPermit> {
        self.acquire_for_client((!proxies.is_trusted(peer)).then_some(peer)).await
    }

    /// Acquires a permit like [`Self::acquire`], for a client with a known address or for none in
    /// particular.
    pub(crate) async fn acquire_for_client(
        &self,
        client: Option<IpAddr>,
    ) -> Option<ConnectionPermit> {
        let connection = Arc::new(OpenConnection::new());
        let entry = client.map(|client| self.enter(&connection, client));
        let free = Arc::clone(&self.total).try_acquire_owned().ok();
        if free.is_none() || entry.as_ref().is_some_and(|own| own.share() > self.share_max) {
            lock(&self.table).displace(entry.as_ref(), self.share_max)?;
            self.displaced_count.fetch_add(1, Ordering::Relaxed);
            // Otherwise, in a flood of newcomers, all would be closed before any has been read
            // from.
            yield_now().await;
        }
        let of_total = match free {
            Some(free) => free,
            // The closed connection releases its permit as soon as its task runs.
            None => Arc::clone(&self.total)
                .acquire_owned()
                .await
                .expect("the semaphore is never closed"),
        };
        Some(ConnectionPermit { connection, _entry: entry, _of_total: of_total })
    }

    /// Counts a connection for a client's network.
    pub(crate) fn enter(
        &self,
        connection: &Arc<OpenConnection>,
        client: IpAddr,
    ) -> ConnectionEntry {
        let network = PeerNetwork::from_address(client);
        let id = lock(&self.table).add(network, connection);
        ConnectionEntry { table: Arc::clone(&self.table), network, id }
    }

    /// Returns the number of connections that were closed for newcomers.
    pub(crate) fn displaced_count(&self) -> u64 {
        self.displaced_count.load(Ordering::Relaxed)
    }
}

impl ConnectionEntry {
    fn share(&self) -> usize {
        lock(&self.table).counts.share(self.network)
    }
}

impl Drop for ConnectionEntry {
    fn drop(&mut self) {
        // The entry is missing if its permit was given to another connection.
        lock(&self.table).remove(self.network, self.id);
    }
}

fn lock(table: &Mutex<ConnectionTable>) -> MutexGuard<'_, ConnectionTable> {
    table.lock().expect("no code panics while it holds this lock")
}

impl ConnectionTable {
    fn new() -> Self {
        Self { by_network: HashMap::new(), counts: GroupCounts::new(), next_id: 0 }
    }

    fn add(&mut self, network: PeerNetwork, connection: &Arc<OpenConnection>) -> u64 {
        let id = self.next_id;
        self.next_id += 1;
        self.counts.add(network);
        self.by_network.entry(network).or_default().insert(id, Arc::clone(connection));
        id
    }

    fn remove(&mut self, network: PeerNetwork, id: u64) -> Option<Arc<OpenConnection>> {
        let of_network = self.by_network.get_mut(&network)?;
        let removed = of_network.remove(&id)?;
        if of_network.is_empty() {
            self.by_network.remove(&network);
        }
        self.counts.remove(network);
        Some(removed)
    }

    /// Closes a connection of the networks that have the most, so that a newcomer gets its permit.
    /// A newcomer whose network exceeds its share gets one of its own network. Returns `None` if no
    /// connection may be closed.
    fn displace(&mut self, newcomer: Option<&ConnectionEntry>, share_max: usize) -> Option<()> {
        let shares = self.by_network.keys().map(|&network| self.counts.share(network));
        let share = newcomer.map_or(0, |newcomer| self.counts.share(newcomer.network));
        let most = if share > share_max { share } else { shares.max()? };
        let networks = self.by_network.iter();
        let candidates = networks
            .filter(|(network, _)| self.counts.share(**network) == most)
            .flat_map(|(&network, connections)| {
                connections.iter().map(move |(&id, connection)| (connection.stage(), network, id))
            })
            .filter(|&(stage, _, id)| {
                let is_newcomer = newcomer.is_some_and(|newcomer| newcomer.id == id);
                !is_newcomer && (share < most || stage.is_idle())
            });
        let (_, network, id) = candidates.min_by_key(|&(stage, ..)| stage)?;
        self.remove(network, id)?.close();
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::task::JoinHandle;
    use tokio::time::advance;

    use super::*;

    /// A task that holds a connection until it is closed.
    struct TestConnection {
        connection: Arc<OpenConnection>,
        holder: JoinHandle<()>,
    }

    /// Connects, then lets a second pass.
    async fn connect(connections: &ConnectionLimiter, address: &str) -> Option<TestConnection> {
        let proxies = TrustedProxies::new(vec!["192.0.2.9".parse().unwrap()]);
        let place = connections.acquire(address.parse().unwrap(), &proxies).await?;
        let connection = Arc::clone(&place.connection);
        let holder = tokio::spawn(async move {
            place.connection.closed().await;
            drop(place);
        });
        advance(Duration::from_secs(1)).await;
        Some(TestConnection { connection, holder })
    }

    async fn connect_all(
        connections: &ConnectionLimiter,
        address: &str,
        count: usize,
    ) -> Vec<TestConnection> {
        let mut clients = Vec::new();
        for _ in 0..count {
            clients.push(connect(connections, address).await.unwrap());
        }
        clients
    }

    /// Returns the indexes of the closed connections.
    async fn closed(clients: &[TestConnection]) -> Vec<usize> {
        yield_now().await;
        let closed = clients.iter().enumerate().filter(|(_, client)| client.holder.is_finished());
        closed.map(|(index, _)| index).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn one_network_gets_its_share_and_a_trusted_proxy_all() {
        let connections = ConnectionLimiter::new(160);
        let own = connect_all(&connections, "192.0.2.1", 20).await;
        own[0].connection.waits_for_event();
        connect(&connections, "192.0.2.1").await.unwrap();
        assert_eq!(closed(&own).await, [1], "an idle one goes for its own network");
        assert_eq!(connections.displaced_count(), 1);
        let of_proxy = connect_all(&connections, "192.0.2.9", 130).await;
        assert!(closed(&of_proxy).await.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn where_all_work_their_network_gets_no_more() {
        let connections = ConnectionLimiter::new(160);
        let own = connect_all(&connections, "192.0.2.1", 20).await;
        for client in &own {
            client.connection.works();
        }
        assert!(connect(&connections, "192.0.2.1").await.is_none());
        assert!(connect(&connections, "192.0.2.2").await.is_some());
        own[4].holder.abort();
        yield_now().await;
        assert!(connect(&connections, "192.0.2.1").await.is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn a_newcomer_gets_the_place_of_one_of_the_network_that_has_most() {
        let connections = ConnectionLimiter::new(10);
        let few = connect_all(&connections, "192.0.2.1", 2).await;
        let many = connect_all(&connections, "192.0.2.2", 8).await;
        for client in &many[..7] {
            client.connection.works();
            advance(Duration::from_secs(1)).await;
        }
        many[6].connection.waits_for_event();
        let mut order = Vec::new();
        for newcomer in ["198.51.100.1", "198.51.100.2", "198.51.100.3"] {
            connect(&connections, newcomer).await.unwrap();
            order.push(closed(&many).await);
        }
        assert_eq!(order, [vec![7], vec![6, 7], vec![5, 6, 7]], "idle, then events, then new work");
        assert!(closed(&few).await.is_empty());
    }

    /// All networks have as many connections as the newcomer would have.
    #[tokio::test(start_paused = true)]
    async fn among_equals_only_what_is_idle_goes() {
        let connections = ConnectionLimiter::new(3);
        let mut clients = Vec::new();
        for address in ["192.0.2.1", "192.0.2.2", "192.0.2.3"] {
            clients.push(connect(&connections, address).await.unwrap());
        }
        clients[0].connection.works();
        clients[2].connection.waits_for_event();
        let newcomer = connect(&connections, "192.0.2.4").await.unwrap();
        assert_eq!(closed(&clients).await, [1]);
        newcomer.connection.works();
        assert!(connect(&connections, "192.0.2.5").await.is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn subnets_of_one_site_are_one_network_where_there_are_many() {
        let connections = ConnectionLimiter::new(40);
        let few = connect_all(&connections, "192.0.2.1", 2).await;
        let mut many = Vec::new();
        for subnet in 0..38 {
            let address = format!("2001:db8:1:{subnet:x}00::1");
            many.push(connect(&connections, &address).await.unwrap());
        }
        connect(&connections, "198.51.100.1").await.unwrap();
        assert_eq!((closed(&few).await, closed(&many).await), (vec![], vec![0]), "38 of 16 are 3");
    }

    #[tokio::test(start_paused = true)]
    async fn a_proxys_connections_count_for_its_clients_while_they_ask() {
        let connections = ConnectionLimiter::new(4);
        let of_proxy = connect_all(&connections, "192.0.2.9", 4).await;
        assert!(connect(&connections, "192.0.2.1").await.is_none(), "they are idle, and nobody's");
        let mut entries = Vec::new();
        for client in &of_proxy[1..3] {
            client.connection.works();
            entries.push(connections.enter(&client.connection, [198, 51, 100, 7].into()));
            advance(Duration::from_secs(1)).await;
        }
        connect(&connections, "192.0.2.9").await.unwrap();
        assert_eq!(closed(&of_proxy).await, [2]);
        drop(entries);
        assert!(connect(&connections, "192.0.2.1").await.is_none());
    }
}
