//! Which parts a provider has, and what follows from that: the capabilities of its handshake and the methods that answer. A
//! part says by the traits that it implements what it serves; the compiler refuses a part that leaves a method open.
use std::sync::Arc;

use ccm_proto::v1::Capability;

use crate::instances::{AddSshKeys, CurrentNodeName, Instances, WatchInstances};
use crate::intercept::Intercept;
use crate::load_balancers::{ListLoadBalancers, LoadBalancers, PlanLoadBalancers};
use crate::provider::{Clusters, Volumes, Zones};
use crate::routes::{RouteBatches, Routes};
use sealed::Token;

/// Whether a method is served is for the SDK to ask and for nobody to answer otherwise: nobody else can name the token.
pub(crate) mod sealed {
    /// The argument of hidden methods.
    #[derive(Clone, Copy, Debug)]
    pub struct Token;
}

/// Everything that can be listed, in the order in which it is.
const ALL: [Capability; 13] = [
    Capability::Lead,
    Capability::NodeSets,
    Capability::Instances,
    Capability::WatchInstances,
    Capability::AddSshKey,
    Capability::CurrentNodeName,
    Capability::LoadBalancers,
    Capability::PlanLoadBalancer,
    Capability::ListLoadBalancers,
    Capability::Routes,
    Capability::Zones,
    Capability::Clusters,
    Capability::Volumes,
];

/// All that can be asked of machines.
pub(crate) trait InstancesPart: Instances + WatchInstances + AddSshKeys + CurrentNodeName {}

impl<T: Instances + WatchInstances + AddSshKeys + CurrentNodeName> InstancesPart for T {}

/// All that can be asked of load balancers.
pub(crate) trait LoadBalancersPart: LoadBalancers + PlanLoadBalancers + ListLoadBalancers {}

impl<T: LoadBalancers + PlanLoadBalancers + ListLoadBalancers> LoadBalancersPart for T {}

/// Routes, as the cloud changes them.
#[derive(Clone)]
pub(crate) enum RoutesPart {
    Single(Arc<dyn Routes>),
    Batches(Arc<dyn RouteBatches>),
}

/// The parts of a provider, each an `Arc` of what implements it:
/// `Parts::new().instances(machines).load_balancers(balancers)`. What is not given answers UNIMPLEMENTED.
#[derive(Clone, Default)]
#[must_use = "parts are served by returning them from `Provider::parts`"]
pub struct Parts {
    pub(crate) instances: Option<Arc<dyn InstancesPart>>,
    pub(crate) load_balancers: Option<Arc<dyn LoadBalancersPart>>,
    pub(crate) routes: Option<RoutesPart>,
    pub(crate) zones: Option<Arc<dyn Zones>>,
    pub(crate) clusters: Option<Arc<dyn Clusters>>,
    pub(crate) volumes: Option<Arc<dyn Volumes>>,
    pub(crate) intercept: Option<Arc<dyn Intercept>>,
    hidden: Vec<Capability>,
}

impl Parts {
    /// No part at all.
    pub fn new() -> Self {
        Self::default()
    }

    /// Machines (Go's `InstancesV2` and `Instances`). The type says what it serves besides look-ups; one that does not say it
    /// is refused by the compiler.
    ///
    /// ```compile_fail,E0277
    /// # use std::sync::Arc;
    /// # use ccm_provider_sdk::{CallContext, Instances, Lookup, Parts, Result, async_trait, v1};
    /// # struct MyCloud;
    /// #[async_trait]
    /// impl Instances for MyCloud {
    ///     async fn get_instance(&self, _: &CallContext, _: &v1::InstanceQuery) -> Result<Lookup> {
    ///         Ok(Lookup::not_found())
    ///     }
    /// }
    /// // `impl LookUpsOnly for MyCloud {}` is missing.
    /// let parts = Parts::new().instances(Arc::new(MyCloud));
    /// ```
    pub fn instances<T>(self, part: Arc<T>) -> Self
    where
        T: Instances + WatchInstances + AddSshKeys + CurrentNodeName,
    {
        Self { instances: Some(part), ..self }
    }

    /// Load balancers (Go's `LoadBalancer`). The type says whether it serves plans and lists; one that does not say it, such as
    /// a wrapper that hands through less than it wraps, is refused by the compiler.
    ///
    /// ```compile_fail,E0277
    /// # use std::sync::Arc;
    /// # use ccm_provider_sdk::{LoadBalancers, Parts, WithoutList};
    /// fn parts<T: LoadBalancers + WithoutList>(part: Arc<T>) -> Parts {
    ///     Parts::new().load_balancers(part) // Neither `PlanLoadBalancers` nor `WithoutPlan`.
    /// }
    /// ```
    pub fn load_balancers<T>(self, part: Arc<T>) -> Self
    where
        T: LoadBalancers + PlanLoadBalancers + ListLoadBalancers,
    {
        Self { load_balancers: Some(part), ..self }
    }

    /// Routes (Go's `Routes`), for a cloud that changes one at a time.
    pub fn routes(self, part: Arc<impl Routes>) -> Self {
        Self { routes: Some(RoutesPart::Single(part)), ..self }
    }

    /// Routes, for a cloud that changes several in one call.
    pub fn route_batches(self, part: Arc<impl RouteBatches>) -> Self {
        Self { routes: Some(RoutesPart::Batches(part)), ..self }
    }

    /// Failure zones (Go's `Zones`).
    pub fn zones(self, part: Arc<impl Zones>) -> Self {
        Self { zones: Some(part), ..self }
    }

    /// Clusters (Go's `Clusters`).
    pub fn clusters(self, part: Arc<impl Clusters>) -> Self {
        Self { clusters: Some(part), ..self }
    }

    /// Volumes (Go's `PVLabeler`).
    pub fn volumes(self, part: Arc<impl Volumes>) -> Self {
        Self { volumes: Some(part), ..self }
    }

    /// For providers that exist to test a core: lets `intercept` see and change what no honest provider touches.
    pub fn intercept(self, intercept: Arc<impl Intercept>) -> Self {
        Self { intercept: Some(intercept), ..self }
    }

    /// For providers that exist to test a core: does not serve `capability`, although it is there.
    pub fn hide(mut self, capability: Capability) -> Self {
        self.hidden.push(capability);
        self
    }

    /// What is served: the capabilities of the handshake. Leadership and node sets are the SDK's own work, and served always.
    pub fn capabilities(&self) -> Vec<Capability> {
        ALL.into_iter().filter(|capability| self.serves(*capability)).collect()
    }

    /// Whether `capability` is served.
    pub fn serves(&self, capability: Capability) -> bool {
        !self.hidden.contains(&capability) && self.has(capability)
    }

    fn has(&self, capability: Capability) -> bool {
        let machines = |served: fn(&dyn InstancesPart) -> bool| self.instances.as_deref().is_some_and(served);
        let balancers = |served: fn(&dyn LoadBalancersPart) -> bool| self.load_balancers.as_deref().is_some_and(served);
        match capability {
            Capability::Lead | Capability::NodeSets => true,
            Capability::Instances => self.instances.is_some(),
            Capability::WatchInstances => machines(|part| WatchInstances::served(part, Token)),
            Capability::AddSshKey => machines(|part| AddSshKeys::served(part, Token)),
            Capability::CurrentNodeName => machines(|part| CurrentNodeName::served(part, Token)),
            Capability::LoadBalancers => self.load_balancers.is_some(),
            Capability::PlanLoadBalancer => balancers(|part| PlanLoadBalancers::served(part, Token)),
            Capability::ListLoadBalancers => balancers(|part| ListLoadBalancers::served(part, Token)),
            Capability::Routes => self.routes.is_some(),
            Capability::Zones => self.zones.is_some(),
            Capability::Clusters => self.clusters.is_some(),
            Capability::Volumes => self.volumes.is_some(),
            Capability::Unspecified => false,
        }
    }
}
