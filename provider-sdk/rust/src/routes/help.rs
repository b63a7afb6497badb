//! What every provider of routes has to work out: whose a route is, what its destination is, and which address of a node it leads
//! to. Pure; it knows no cloud.
use std::net::IpAddr;

use ccm_proto::v1;
use ipnet::IpNet;

use crate::context::CallContext;
use crate::error::ProviderError;
use crate::provider::Result;

/// The tag by which a cluster finds what it made: the cluster's UID, in a tag, a label or a description of each route.
///
/// ```
/// # use ccm_provider_sdk::{CallContext, ClusterTag, v1};
/// # fn whose(ctx: &CallContext, tag: Option<&str>) -> v1::RouteOwner {
/// ClusterTag::of(ctx).owner(tag)
/// # }
/// ```
#[derive(Clone, Copy, Debug)]
pub struct ClusterTag<'a> {
    uid: &'a str,
}

impl<'a> ClusterTag<'a> {
    /// The tag of the cluster on whose behalf the call is made.
    pub fn of(ctx: &'a CallContext) -> Self {
        Self { uid: &ctx.cluster().uid }
    }

    /// What to write into the tag.
    pub const fn value(self) -> &'a str {
        self.uid
    }

    /// Whose a route with this tag is. A route without a tag is one of others: nobody knows who made it.
    pub fn owner(self, tag: Option<&str>) -> v1::RouteOwner {
        if !self.uid.is_empty() && tag == Some(self.uid) { v1::RouteOwner::ThisCluster } else { v1::RouteOwner::Other }
    }
}

/// A route's destination without host bits: `10.0.1.7/24` and `10.0.1.0/24` are one destination. A text that is no CIDR is an
/// error that names the field.
pub fn destination(route: &v1::Route) -> Result<IpNet> {
    let text = &route.destination_cidr;
    let refusal = |_| ProviderError::invalid_request("destination_cidr", format!("{text:?} is no CIDR"));
    text.parse().map_err(refusal).map(|net: IpNet| net.trunc())
}

/// The address to which a route to a new destination leads, for clouds whose routes lead to addresses: the node's first
/// InternalIP of the destination's family.
pub fn next_hop(new: &v1::Route) -> Option<IpAddr> {
    let is_v4 = destination(new).ok()?.addr().is_ipv4();
    let internal = new.target_addresses.iter().filter(|address| address.r#type() == v1::NodeAddressType::InternalIp);
    internal.filter_map(|address| address.address.parse().ok()).find(|address: &IpAddr| address.is_ipv4() == is_v4)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn to(cidr: &str) -> v1::Route {
        v1::Route { destination_cidr: cidr.into(), ..v1::Route::default() }
    }

    fn address(kind: v1::NodeAddressType, text: &str) -> v1::NodeAddress {
        v1::NodeAddress { r#type: kind.into(), address: text.into() }
    }

    #[test]
    fn a_tag_is_this_clusters_only_if_it_has_the_clusters_uid() {
        let named = |uid: &str| v1::ClusterRef { name: "same name".into(), uid: uid.into() };
        let ctx = CallContext::new("r", named("u1"));
        let tag = ClusterTag::of(&ctx);
        assert_eq!(tag.value(), "u1");
        assert_eq!(tag.owner(Some("u1")), v1::RouteOwner::ThisCluster);
        assert_eq!([tag.owner(Some("u2")), tag.owner(Some("")), tag.owner(None)], [v1::RouteOwner::Other; 3]);
        let nameless = CallContext::new("r", named(""));
        assert_eq!(ClusterTag::of(&nameless).owner(Some("")), v1::RouteOwner::Other, "no UID owns nothing");
    }

    #[test]
    fn a_destination_has_no_host_bits_and_is_a_cidr() {
        let table = [
            ("10.0.1.7/24", Some("10.0.1.0/24")),
            ("fd00:0::1:5/112", Some("fd00::1:0/112")),
            ("10.0.1.0", None),
            ("pl-1234", None),
            ("", None),
        ];
        for (text, expected) in table {
            assert_eq!(destination(&to(text)).ok().map(|net| net.to_string()).as_deref(), expected, "{text}");
        }
        assert!(destination(&to("pl-1234")).is_err_and(|error| error.message.starts_with("destination_cidr:")));
    }

    #[test]
    fn the_next_hop_is_the_first_internal_address_of_the_destinations_family() {
        use v1::NodeAddressType::{ExternalIp, InternalIp};
        let target_addresses = vec![
            address(ExternalIp, "192.0.2.1"),
            address(InternalIp, "fd00::1"),
            address(InternalIp, "10.9.0.1"),
            address(InternalIp, "10.9.0.2"),
        ];
        let hop = |cidr: &str| next_hop(&v1::Route { target_addresses: target_addresses.clone(), ..to(cidr) });
        assert_eq!(hop("10.0.1.0/24"), "10.9.0.1".parse().ok());
        assert_eq!(hop("fd01::/64"), "fd00::1".parse().ok());
        assert_eq!(next_hop(&to("10.0.1.0/24")), None);
    }
}
