//! Whose requests count as one client's, before anybody has proven who they are.

use std::hash::Hash;
use std::net::{IpAddr, Ipv4Addr};

use accounts::AccountId;

/// An IPv4 address, or what somebody has of IPv6: the first `length` bits of an address, of which
/// all others are zero in `prefix`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum PeerNetwork {
    V4(Ipv4Addr),
    V6 { prefix: u64, length: u8 },
}

/// How many networks an address is in, one within the other.
const LEVELS: usize = 3;

/// What a site, a home and a subnet have of IPv6, in bits of their prefix.
const LENGTHS: [u8; LEVELS] = [48, 56, 64];

/// For how many clients each of them may count. A /56 is often one customer's, who has 256 subnets
/// and is not 256 clients; but a hosting provider gives each of its customers one subnet of it.
const CLIENTS_COUNTS: [usize; LEVELS] = [16, 4, 1];

impl PeerNetwork {
    /// The smallest network of an address; of IPv6 that is its /64.
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

/// What requests are counted by, and what it is part of.
pub(crate) trait AdmissionGroup: Copy + Eq + Hash + Send + 'static {
    /// What this is part of, widest first, itself last; at each level itself, if it is part of
    /// nothing else.
    fn groups(self) -> [Self; LEVELS] {
        [self; LEVELS]
    }

    /// Each of these once, with the number of clients that it may count for.
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
        // The widest is not the smallest of another address, though its bits are the same.
        assert_ne!(groups("2001:db8:1::1")[2], site);
        assert_eq!(network("2001:db8:1::1").distinct_groups().count(), LEVELS);
        let alone: Vec<_> = network("192.0.2.1").distinct_groups().collect();
        assert_eq!(alone, [(network("192.0.2.1"), 1)]);
    }
}
