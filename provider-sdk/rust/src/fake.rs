//! Providers for tests, whose every answer is scripted: [`FakeProvider`] behind the SDK's own server, and [`RawServer`] that
//! bypasses the SDK and so can break the contract. Never part of a real provider.
pub use provider::{
    BatchScript, FakeInstances, FakeLoadBalancers, FakeProvider, FakeRoutes, FakeVolumes, FakeZones, KeyScript, ListScript,
    PlanScript,
};
pub use raw::{RawLoadBalancers, RawServer};
pub use script::Script;
pub use serving::Serving;

mod provider;
mod raw;
mod script;
mod serving;
