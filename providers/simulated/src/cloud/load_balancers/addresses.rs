//! Which addresses load balancers get. Pure: which are taken is an argument. An address follows from the name, so that
//! a load balancer that is made anew mostly gets its old one, and the next free one where that is taken.
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::model::Family;
use crate::cloud::derive::{fnv1a, mix};

/// 198.18.0.0/15, which is reserved for benchmarks and never routed.
const V4: u32 = u32::from_be_bytes([198, 18, 0, 0]);
/// How many addresses it has.
const V4_SIZE: u64 = 1 << 17;
/// 2001:db8::/32, which is reserved for documentation.
const V6: u128 = 0x2001_0db8 << 96;

/// An address of this family for the load balancer of this name; `None` if all are taken.
pub fn choose(name: &str, family: Family, is_taken: impl Fn(&IpAddr) -> bool) -> Option<IpAddr> {
    let start = mix(fnv1a(name));
    // The first and the last address stay free, as a network's do.
    let offsets = (0..V4_SIZE - 2).map(|step| 1 + start.wrapping_add(step) % (V4_SIZE - 2));
    match family {
        Family::IPv4 => offsets.map(v4).find(|address| !is_taken(address)),
        Family::IPv6 => (0..V4_SIZE).map(|step| v6(start.wrapping_add(step))).find(|address| !is_taken(address)),
    }
}

fn v4(offset: u64) -> IpAddr {
    Ipv4Addr::from_bits(V4 + u32::try_from(offset).unwrap_or_default()).into()
}

fn v6(host: u64) -> IpAddr {
    Ipv6Addr::from_bits(V6 + u128::from(host)).into()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn two_thousand_load_balancers_share_no_address_and_stay_in_their_networks() {
        let mut taken = HashSet::new();
        for name in (0..2000).map(|n| format!("a{n}")) {
            for family in [Family::IPv4, Family::IPv6] {
                assert!(taken.insert(choose(&name, family, |address| taken.contains(address)).unwrap()), "{name} {family}");
            }
        }
        let inside = |address: &IpAddr| match address {
            IpAddr::V4(v4) => v4.octets()[0] == 198 && [18, 19].contains(&v4.octets()[1]),
            IpAddr::V6(v6) => v6.segments()[..2] == [0x2001, 0xdb8],
        };
        assert!(taken.iter().all(inside));
    }

    #[test]
    fn the_same_name_gets_the_same_address_unless_it_is_taken() {
        let first = choose("web", Family::IPv4, |_| false).unwrap();
        assert_eq!(choose("web", Family::IPv4, |_| false), Some(first));
        assert_ne!(choose("web", Family::IPv4, |address| *address == first), Some(first));
        assert_eq!(choose("web", Family::IPv4, |_| true), None);
    }
}
