//! The provider: what the cloud says, in the words of the protocol. A thin client that keeps nothing but the cloud's last
//! word about itself, and decides nothing.
use std::sync::Arc;

use ccm_provider_sdk::{CallContext, Description, Intercept, Parts, Provider, ProviderError, RouteList, v1};
use tokio::sync::watch;

use crate::cloud::counters::Counters;
use crate::cloud::model::{CloudInfo, Failure, FailureCode, PROVIDER_ID_PREFIX};
use crate::cloud::{CloudApi, CloudError};
use load_balancers::Balancers;
use load_balancers::wanted::PREFIX;
use routes::TableOfCloud;

pub mod garbage;
pub mod instances;
pub mod load_balancers;
pub mod routes;
pub mod serial;
pub mod volumes;
pub mod watched;
pub mod zones;

/// The provider's permanent name.
pub const NAME: &str = "simulated";

/// The provider's version; a build may be given another.
pub const VERSION: &str = match option_env!("PROVIDER_SIMULATED_VERSION") {
    Some(version) => version,
    None => env!("CARGO_PKG_VERSION"),
};

/// The most machines in one call.
const MAX_BATCH: u32 = 500;

/// The most calls to the service Instances at once.
const MAX_CALLS: u32 = 8;

/// A provider for the simulated cloud.
pub struct Simulated {
    info: watch::Receiver<CloudInfo>,
    cluster_id: Option<String>,
    load_balancers: Arc<Balancers>,
    routes: Arc<TableOfCloud>,
    instances: Arc<instances::Machines>,
    zones: Arc<zones::CloudZones>,
    volumes: Arc<volumes::Disks>,
}

impl Simulated {
    /// A provider for `cloud`, which describes itself by the latest of `info` and counts its calls in `calls`. Without a
    /// `cluster_id` it says that the cloud does not tag clusters. `load_balancers` and `routes` are the same for the life of the process.
    pub fn new(
        cloud: Arc<dyn CloudApi>,
        info: watch::Receiver<CloudInfo>,
        calls: Arc<Counters>,
        cluster_id: Option<String>,
        load_balancers: Arc<Balancers>,
        routes: Arc<TableOfCloud>,
    ) -> Self {
        Self {
            load_balancers,
            routes,
            instances: Arc::new(instances::Machines::new(Arc::clone(&cloud), Arc::clone(&calls))),
            zones: Arc::new(zones::CloudZones::new(Arc::clone(&cloud), info.clone(), Arc::clone(&calls))),
            volumes: Arc::new(volumes::Disks::new(cloud, info.clone(), calls)),
            info,
            cluster_id,
        }
    }

    /// Load balancers, less what the flags hide.
    fn with_load_balancers(&self, parts: Parts) -> Parts {
        let options = self.load_balancers.options();
        let hidden = [(options.plan, v1::Capability::PlanLoadBalancer), (options.node_sets, v1::Capability::NodeSets)];
        let hidden = hidden.into_iter().filter(|(served, _)| !served);
        let parts = parts.load_balancers(Arc::clone(&self.load_balancers));
        hidden.fold(parts, |parts, (_, capability)| parts.hide(capability))
    }

    /// The counters of a provider: calls that concern the cloud. The handshake and the leadership do not.
    pub fn counters() -> Counters {
        Counters::showing(&["BatchGetInstances"])
    }
}

impl Provider for Simulated {
    fn describe(&self) -> Description {
        Description {
            name: NAME.into(),
            version: VERSION.into(),
            provider_id_prefixes: vec![PROVIDER_ID_PREFIX.into()],
            cloud_identity: self.info.borrow().cloud_identity.clone(),
            cluster_id: self.cluster_id.clone(),
            limits: v1::ProviderLimits {
                max_batch_size: Some(MAX_BATCH),
                max_concurrent_instance_calls: Some(MAX_CALLS),
                max_concurrent_load_balancer_calls: Some(self.load_balancers.options().max_calls),
                max_concurrent_route_calls: Some(self.routes.options().max_calls),
            },
            node_labels: vec![format!("{PREFIX}*")],
            service_annotation_prefixes: vec![PREFIX.into()],
            ..Description::default()
        }
    }

    fn parts(self: Arc<Self>) -> Parts {
        let parts = Parts::new()
            .instances(Arc::clone(&self.instances))
            .zones(Arc::clone(&self.zones))
            .volumes(Arc::clone(&self.volumes))
            .intercept(Arc::clone(&self));
        let parts = if self.info.borrow().load_balancers { self.with_load_balancers(parts) } else { parts };
        if self.info.borrow().routes { self.routes.serve_with(parts) } else { parts }
    }
}

/// Counts what the SDK answers by itself, and spoils answers where the fault `garbage` asks for it.
impl Intercept for Simulated {
    fn batch_answered(&self, ctx: &CallContext, response: &mut v1::BatchGetInstancesResponse) {
        self.instances.spoil(ctx, response);
    }

    fn routes_listed(&self, _: &CallContext, list: &mut RouteList) -> Option<ProviderError> {
        self.routes.break_off(list)
    }

    fn node_set_put(&self) {
        self.load_balancers.count_node_set();
    }
}

/// What the cloud could not tell, in the words of the protocol.
fn provider_error(error: CloudError) -> ProviderError {
    match error {
        CloudError::Refused(failure) => refusal(failure),
        other => {
            let unavailable = ProviderError::unavailable(other.to_string());
            if let CloudError::Unreachable { source, .. } = other { unavailable.with_source(source) } else { unavailable }
        }
    }
}

/// A refusal by the cloud, in the words of the protocol. None of them means that a machine is not there.
fn refusal(failure: Failure) -> ProviderError {
    let retry_after = failure.retry_after();
    match failure.code {
        FailureCode::Unauthenticated => ProviderError::unauthenticated(failure.message),
        FailureCode::RateLimited => ProviderError::rate_limited(failure.message, retry_after),
        FailureCode::QuotaExceeded => ProviderError::quota_exceeded(failure.message),
        FailureCode::NotOwned => ProviderError::not_owned(failure.message),
        FailureCode::Unavailable | FailureCode::Internal => ProviderError::unavailable(failure.message),
        FailureCode::Conflict => ProviderError::conflict(failure.message),
        FailureCode::Invalid | FailureCode::Unknown => {
            ProviderError::internal(format!("the cloud did not understand the provider: {}", failure.message))
        }
    }
}
