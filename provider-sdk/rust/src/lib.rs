//! Everything a cloud provider for ccm-core needs besides the cloud: the traits it implements, the server that speaks the
//! protocol for it, and typed errors. It must know nothing of any particular cloud, nor of Kubernetes' API.
//!
//! Start at [`Provider`] and [`Instances`]: one look-up method makes a provider. `Server` does the rest.

pub mod batch;
pub mod context;
pub mod error;
pub mod provider;

pub use ccm_proto::v1;
pub use context::{CallContext, LeaderContext};
pub use error::ProviderError;
pub use provider::{
    Clusters, Description, Instances, LoadBalancers, Lookup, LookupResult, OptionalInstanceMethods, OptionalLoadBalancerMethods,
    Progress, Provider, Result, Routes, VolumeLookup, Volumes, ZoneTarget, Zones,
};
