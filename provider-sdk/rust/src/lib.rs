//! Everything a cloud provider for ccm-core needs besides the cloud: the traits it implements, the server that speaks the
//! protocol for it, and typed errors. It must know nothing of any particular cloud, nor of Kubernetes' API.
//!
//! Start at [`Provider`] and [`Instances`]: one look-up method makes a provider, and [`ProviderCommand`] its program. What
//! calls mean on the wire is `rpc`; who may change things when is `leadership` and `mutations`; the socket is [`server`].

pub mod batch;
mod capabilities;
pub mod command;
pub mod context;
pub mod endpoint;
pub mod error;
#[cfg(any(test, feature = "fake"))]
pub mod fake;
pub mod health;
mod leadership;
mod mutations;
mod node_sets;
pub mod plan;
pub mod provider;
mod rpc;
pub mod server;

pub use async_trait::async_trait;
pub use ccm_proto::v1;
pub use command::ProviderCommand;
pub use context::{CallContext, LeaderContext};
pub use endpoint::Endpoint;
pub use error::ProviderError;
pub use health::HealthArgs;
pub use plan::planned;
pub use provider::{
    Clusters, Description, Instances, LoadBalancers, Lookup, LookupResult, OptionalInstanceMethods, OptionalLoadBalancerMethods,
    Progress, Provider, Result, Routes, VolumeLookup, Volumes, ZoneTarget, Zones,
};
pub use server::{ServeArgs, ServeError, Server};
