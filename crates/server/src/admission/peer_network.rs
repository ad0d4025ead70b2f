//! Networks whose requests count as those of one client before it has authenticated.

use std::hash::Hash;
use std::net::{IpAddr, Ipv4Addr};

use accounts::AccountId;

/// An IPv4 address, or an IPv6 network: the first `length` bits of an address. All other bits are
/// zero in `prefix`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum PeerNetwork {
    V4(Ipv4Addr),
    V6 { prefix: u64, length: u8 },
}

/// The number of networks that contain an address, one within the other.
const LEVELS: usize = 3;

/// The prefix lengths of a site, a home and a subnet in IPv6, in bits.
const LENGTHS: [u8; LEVELS] = [48, 56, 64];

/// The number of clients for which each of them may count. A /56 often belongs to one customer, who
/// has 256 subnets and is not 256 clients; but a hosting provider gives each of its customers one
/// subnet of it.
const CLIENTS_COUNTS: [usize; LEVELS] = [16, 4, 1];

impl PeerNetwork {
    /// Returns the smallest network of an address, which is the /64 of an IPv6 address.
    pub(crate) fn from_address(address: IpAddr) -> Self {
        // An IPv4 client of an IPv6 socket has a mapped address, and all of those are in one /64.
        match address.to_canonical() {
            IpAddr::V4(address) => Self::V4(address),
            IpAddr::V6(address) => {
                let [a, b, c, d, ..] = address.segments().map(u64::from);
                let [.., length] = LENGTHS;
                Self::V6 { prefix: a << 48 | b << 32 | c << 16 | d, length }
            }
        }
    }
}

/// A key by which requests are counted, with the wider groups that contain it.
pub(crate) trait AdmissionGroup: Copy + Eq + Hash + Send + 'static {
    /// Returns the groups that contain this key, widest first, itself last. If there is no wider
    /// group, each level is the key itself.
    fn groups(self) -> [Self; LEVELS] {
        [self; LEVELS]
    }

    /// Returns each group once, with the number of clients for which it may count.
    fn distinct_groups(self) -> impl Iterator<Item = (Self, usize)> {
        let groups = self.groups().into_iter().zip(CLIENTS_COUNTS);
        groups.skip_while(move |&(group, clients_count)| group == self && clients_count > 1)
    }
}

impl AdmissionGroup for AccountId {}

impl AdmissionGroup for PeerNetwork {
    fn groups(self) -> [Self; LEVELS] {
        LENGTHS.map(|length| match self {
            Self::V4(_) => self,
            Self::V6 { prefix, .. } => {
                Self::V6 { prefix: prefix & (u64::MAX << (64 - length)), length }
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn network(text: &str) -> PeerNetwork {
        PeerNetwork::from_address(text.parse().unwrap())
    }

    #[test]
    fn ipv6_counts_by_64_and_mapped_ipv4_as_ipv4() {
        assert_eq!(network("2001:db8:1:2::1"), network("2001:db8:1:2:ffff::7"));
        assert_ne!(network("2001:db8:1:2::1"), network("2001:db8:1:3::1"));
        assert_eq!(network("::ffff:192.0.2.1"), network("192.0.2.1"));
        assert_ne!(network("::ffff:192.0.2.1"), network("::ffff:192.0.2.2"));
    }

    #[test]
    fn subnets_of_one_home_and_homes_of_one_site_are_in_one_group() {
        let groups = |text| network(text).groups();
        let [site, home, subnet] = groups("2001:db8:1:aa01::1");
        assert_eq!(subnet, network("2001:db8:1:aa01::"));
        assert_eq!(groups("2001:db8:1:aa02::1")[..2], [site, home]);
        assert_eq!(groups("2001:db8:1:bb01::1")[0], site);
        assert_ne!(groups("2001:db8:1:bb01::1")[1], home);
        assert_ne!(groups("2001:db8:2:aa01::1")[0], site);
        // The widest group differs from the smallest one of another address, though their bits are
        // equal.
        assert_ne!(groups("2001:db8:1::1")[2], site);
        assert_eq!(network("2001:db8:1::1").distinct_groups().count(), LEVELS);
        let alone: Vec<_> = network("192.0.2.1").distinct_groups().collect();
        assert_eq!(alone, [(network("192.0.2.1"), 1)]);
    }
}
