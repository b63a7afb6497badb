//! Providers for tests, whose every answer is scripted: [`FakeProvider`] behind the SDK's own server, and [`RawServer`] that
//! bypasses the SDK and so can break the contract. Never part of a real provider.
use ccm_proto::v1;

pub use provider::{
    BatchScript, FakeInstances, FakeLoadBalancers, FakeProvider, FakeVolumes, FakeZones, KeyScript, ListScript, PlanScript,
};
pub use raw::{RawLoadBalancers, RawRoutes, RawServer};
pub use routes::{FakeRouteBatches, FakeRoutes, RouteBatchScript};
pub use script::Script;
pub use serving::Serving;

/// The status of a load balancer with this one IP address.
pub fn status_of(ip: &str) -> v1::LoadBalancerStatus {
    let ingress = vec![v1::LoadBalancerIngress { ip: Some(ip.to_owned()), ..v1::LoadBalancerIngress::default() }];
    v1::LoadBalancerStatus { ingress }
}

mod provider;
mod raw;
mod routes;
mod script;
mod serving;
