//! Counts per network, and per wider network around it.

use std::collections::HashMap;

use crate::admission::peer_network::AdmissionGroup;

/// Counts by group.
pub(crate) struct GroupCounts<K>(HashMap<K, usize>);

impl<K: AdmissionGroup> GroupCounts<K> {
    pub(crate) fn new() -> Self {
        Self(HashMap::new())
    }

    pub(crate) fn add(&mut self, key: K) {
        for (group, _) in key.distinct_groups() {
            *self.0.entry(group).or_default() += 1;
        }
    }

    /// Undoes one [`Self::add`].
    pub(crate) fn remove(&mut self, key: K) {
        for (group, _) in key.distinct_groups() {
            let count = self.0.get_mut(&group).expect("what is removed was added");
            *count -= 1;
            if *count == 0 {
                self.0.remove(&group);
            }
        }
    }

    /// Returns the count of a key, or, if higher, that of a wider group divided by the number of
    /// clients for which the group may count.
    pub(crate) fn share(&self, key: K) -> usize {
        let counts = key.distinct_groups().map(|(group, clients_count)| {
            self.0.get(&group).copied().unwrap_or_default().div_ceil(clients_count)
        });
        counts.max().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use super::*;
    use crate::admission::peer_network::PeerNetwork;

    #[test]
    fn a_site_s_share_counts_for_sixteen_clients() {
        let mut counts = GroupCounts::new();
        let subnet = |number: u16| {
            PeerNetwork::from_address(IpAddr::from([0x2001, 0xdb8, 1, number, 0, 0, 0, 1]))
        };
        for number in 0..40 {
            // These are the subnets of forty homes.
            counts.add(subnet(number << 8));
        }
        assert_eq!(counts.share(subnet(0)), 3, "40 of 16");
        counts.add(subnet(0));
        counts.add(subnet(0));
        counts.add(subnet(0));
        assert_eq!(counts.share(subnet(0)), 4, "the subnet has more itself");
        for _ in 0..4 {
            counts.remove(subnet(0));
        }
        assert_eq!(counts.share(subnet(0)), 3);
        for number in 1..40 {
            counts.remove(subnet(number << 8));
        }
        assert!(counts.0.is_empty());
    }
}
