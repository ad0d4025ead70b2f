//! Places for connections, of which no network gets all.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::admission::network::Network;
use crate::admission::proxies::Proxies;
use crate::admission::shares::Shares;

/// Of all connections, one network may have one in so many; but also where there are few, as many
/// as a household needs.
const SHARES: usize = 8;
const SHARE_MIN: usize = 16;

/// When so much of all connections is taken, a new one has less time for a request's head: those
/// who hold connections for nothing lose them soon, and the others come in.
const CROWDED_SHARE: (usize, usize) = (3, 4);
const CROWDED_IDLE_MAX: Duration = Duration::from_secs(5);

pub(crate) struct Connections {
    total: Arc<Semaphore>,
    total_count: usize,
    networks: Shares<Network>,
}

/// A connection's place; given back when it is dropped.
pub(crate) struct Place {
    _of_total: OwnedSemaphorePermit,
    of_network: Option<OwnedSemaphorePermit>,
}

impl Connections {
    pub(crate) fn new(count_max: usize) -> Self {
        let share = (count_max / SHARES).max(SHARE_MIN);
        let total = Arc::new(Semaphore::new(count_max));
        Self { total, total_count: count_max, networks: Shares::new(share) }
    }

    /// Waits for a place; whose it is, nobody knows yet.
    pub(crate) async fn place(&self) -> Place {
        let permit = Arc::clone(&self.total).acquire_owned().await;
        Place { _of_total: permit.expect("nobody closes the semaphore"), of_network: None }
    }

    /// Whether there is a place for this peer, too. Proxies that are trusted speak for many.
    pub(crate) fn admit(&self, place: &mut Place, peer: IpAddr, proxies: &Proxies) -> bool {
        if proxies.is_trusted(peer) {
            return true;
        }
        place.of_network = self.networks.of(Network::of(peer)).try_acquire_owned().ok();
        place.of_network.is_some()
    }

    /// How long a new connection may be without a request's whole head.
    pub(crate) fn idle_max(&self, usual: Duration) -> Duration {
        let taken = self.total_count - self.total.available_permits();
        let (part, whole) = CROWDED_SHARE;
        if taken * whole > self.total_count * part { usual.min(CROWDED_IDLE_MAX) } else { usual }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn one_network_gets_its_share_and_a_trusted_proxy_all() {
        let connections = Connections::new(160);
        let proxies = Proxies::new(vec!["192.0.2.9".parse().unwrap()]);
        let mut places = Vec::new();
        for last in [1, 2, 9] {
            let peer = IpAddr::from([192, 0, 2, last]);
            let mut admitted = 0;
            for _ in 0..30 {
                let mut place = connections.place().await;
                admitted += usize::from(connections.admit(&mut place, peer, &proxies));
                places.push(place);
            }
            assert_eq!(admitted, if last == 9 { 30 } else { 20 });
        }
    }

    #[tokio::test]
    async fn where_it_is_crowded_heads_have_less_time() {
        let connections = Connections::new(4);
        let usual = Duration::from_secs(30);
        let mut places = Vec::new();
        for idle_max in [usual, usual, usual, usual, CROWDED_IDLE_MAX] {
            assert_eq!(connections.idle_max(usual), idle_max);
            if places.len() < 4 {
                places.push(connections.place().await);
            }
        }
    }
}
