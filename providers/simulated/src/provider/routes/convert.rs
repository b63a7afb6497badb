//! Routes in the words of the protocol and of the cloud. Nothing is decided here.
use std::time::Duration;

use ccm_provider_sdk::routes::{destination, next_hop};
use ccm_provider_sdk::{CallContext, ClusterTag, ProviderError, Result, RouteOutcome, v1};

use crate::cloud::routes::model::{Listed, Machine, Outcome, Removal, Wanted};
use crate::provider::refusal;

/// How long a core shall wait where the cloud does not say how long its work will take.
const AT_WORK: Duration = Duration::from_secs(1);

/// What the cloud shall make.
pub(super) fn wanted(route: &v1::Route, to_addresses: bool) -> Result<Wanted> {
    let machine = Machine { node: route.target_node_name.clone(), provider_id: route.target_provider_id.clone() };
    let address = next_hop(route).filter(|_| to_addresses);
    if to_addresses && address.is_none() {
        let words = format!("node {} has no InternalIP of the family of {}", machine.node, route.destination_cidr);
        return Err(ProviderError::user_configuration("status.addresses", words));
    }
    Ok(Wanted { destination: destination(route)?, machine, address })
}

/// What the cloud shall remove.
pub(super) fn removal(route: &v1::Route) -> Result<Removal> {
    Ok(Removal {
        destination: destination(route)?,
        node: route.target_node_name.clone(),
        provider_id: route.target_provider_id.clone(),
        address: route.target_addresses.first().and_then(|address| address.address.parse().ok()),
        description: route.target_description.clone(),
    })
}

/// A route in a list.
pub(super) fn listed(ctx: &CallContext, one: &Listed) -> v1::Route {
    let Listed { route, machine, blackhole } = one;
    let address = |address: std::net::IpAddr| v1::NodeAddress {
        r#type: v1::NodeAddressType::InternalIp.into(),
        address: address.to_string(),
    };
    v1::Route {
        name: route.id.clone(),
        target_node_name: machine.as_ref().map_or_else(String::new, |machine| machine.node.clone()),
        target_provider_id: machine.as_ref().and_then(|machine| machine.provider_id.clone()),
        destination_cidr: route.destination.to_string(),
        target_addresses: route.target.address().into_iter().map(address).collect(),
        blackhole: *blackhole,
        owner: ClusterTag::of(ctx).owner(route.cluster_uid.as_deref()).into(),
        target_description: route.target.to_string(),
    }
}

/// What became of an item.
pub(super) fn outcome(outcome: Outcome) -> Result<RouteOutcome> {
    match outcome {
        Outcome::Done => Ok(RouteOutcome::Done),
        Outcome::UnknownMachine => Ok(RouteOutcome::TargetNotFound),
        Outcome::Failed(failure) => Err(refusal(failure)),
        Outcome::AtWork => {
            let message = "the cloud is at work on the route".to_owned();
            Ok(RouteOutcome::InProgress(v1::InProgress { poll_after: AT_WORK.try_into().ok(), message }))
        }
    }
}
