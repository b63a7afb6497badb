//! Everything a cloud provider for ccm-core needs besides the cloud: the traits it implements, the server that speaks the
//! protocol for it, and typed errors. It must know nothing of any particular cloud, nor of Kubernetes' API.
//!
//! Start at [`Provider`] and [`Instances`]: one look-up method makes a provider, and [`ProviderCommand`] its program. What
//! calls mean on the wire is `rpc`; who may change things when is `leadership` and `mutations`; the socket is [`server`].

pub mod batch;
mod cache;
pub mod command;
pub mod context;
mod description;
pub mod endpoint;
pub mod error;
#[cfg(any(test, feature = "fake"))]
pub mod fake;
pub mod health;
mod instances;
mod intercept;
mod leadership;
mod load_balancers;
mod mutations;
mod node_sets;
mod parts;
pub mod plan;
pub mod provider;
pub mod routes;
mod rpc;
pub mod server;

pub use async_trait::async_trait;
pub use cache::{ListCache, Listed};
pub use ccm_proto::v1;
pub use command::ProviderCommand;
pub use context::{CallContext, LeaderContext};
pub use endpoint::Endpoint;
pub use error::ProviderError;
pub use health::HealthArgs;
pub use instances::{
    AddSshKeys, CurrentNodeName, Instances, LookUpsOnly, Lookup, LookupOutcome, WatchInstances, WithoutCurrentNodeName,
    WithoutSshKeys, WithoutWatch,
};
pub use intercept::Intercept;
pub use load_balancers::{
    ListLoadBalancers, LoadBalancers, PlanLoadBalancers, WithoutList, WithoutPlan, default_load_balancer_name,
};
pub use parts::Parts;
pub use plan::planned;
pub use provider::{Clusters, Description, Progress, Provider, Result, VolumeLookup, Volumes, ZoneTarget, Zones};
pub use routes::{ClusterTag, NewRoute, RouteBatches, RouteList, RouteOutcome, Routes};
pub use server::{ServeArgs, ServeError, Server};
