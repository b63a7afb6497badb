//! The service LoadBalancers, as a thin client of the cloud: read what is there, compare, write only a difference. It keeps
//! nothing; the cloud's marks say whose a load balancer is.
use std::sync::Arc;

use async_trait::async_trait;
use ccm_provider_sdk::{CallContext, LoadBalancers, OptionalLoadBalancerMethods, Progress, ProviderError, Result, v1};

use super::provider_error;
use crate::cloud::CloudApi;
use crate::cloud::counters::Counters;
use crate::cloud::load_balancers::Origin;
use crate::cloud::load_balancers::model::{Found, LoadBalancer, Mark, Search, Wanted};
use difference::{Change, difference};
use naming::Naming;
use serial::{Serial, Turn, to_the_end};

pub mod answers;
pub mod difference;
pub mod naming;
pub mod serial;
pub mod wanted;

/// What of the protocol is served, and how.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Whether `PlanLoadBalancer` is.
    pub plan: bool,
    /// Whether node sets cross the socket once.
    pub node_sets: bool,
    /// How new load balancers are named.
    pub naming: Naming,
    /// The most calls at once.
    pub max_calls: u32,
}

/// The service LoadBalancers.
pub struct Balancers {
    cloud: Arc<dyn CloudApi>,
    calls: Arc<Counters>,
    options: Options,
    origin: Origin,
    serial: Serial,
}

/// What a Service has, what it shall have, and the way from one to the other. `ensure` goes it, `plan` tells it.
struct Comparison {
    name: String,
    present: Option<LoadBalancer>,
    wanted: Wanted,
    changes: Vec<Change>,
    at_work: bool,
}

impl Balancers {
    /// The load balancers of this cloud; for the life of the process, since the cloud knows it as one.
    pub fn new(cloud: Arc<dyn CloudApi>, calls: Arc<Counters>, options: Options) -> Self {
        Self { cloud, calls, options, origin: Origin::random(), serial: Serial::default() }
    }

    /// What this provider was told to be.
    pub fn options(&self) -> Options {
        self.options
    }

    /// What is marked as the Service's, and whatever has the name that it would get.
    async fn find(&self, ctx: &CallContext, service: &v1::Service, to_change: bool) -> Result<Found> {
        let search = Search {
            cluster_uid: ctx.cluster().uid.clone(),
            service_uid: Some(service.uid.clone()),
            or_name: Some(self.options.naming.name(ctx.cluster(), service)),
            on_behalf_of: Some(format!("{}/{}", service.namespace, service.name)),
            to_change,
        };
        self.cloud.find_load_balancers(&search).await.map_err(provider_error)
    }

    async fn compare(&self, ctx: &CallContext, service: &v1::Service, nodes: &[v1::Node], to_change: bool) -> Result<Comparison> {
        // What the user must mend needs no call.
        let wanted = wanted::wanted(ctx.cluster(), service, nodes)?;
        let found = self.find(ctx, service, to_change).await?;
        let at_work = found.at_work;
        let (mine, others) = split(found, &wanted.mark);
        let present = mine.into_iter().next();
        if let (None, Some(other)) = (&present, others.first()) {
            return Err(not_owned(other));
        }
        let name = present.as_ref().map(|present| present.name.clone());
        let name = name.unwrap_or_else(|| self.options.naming.name(ctx.cluster(), service));
        let changes = difference(&name, present.as_ref(), &wanted);
        Ok(Comparison { name, present, wanted, changes, at_work })
    }

    async fn put(&self, turn: Turn, name: String, wanted: Wanted) -> Result<LoadBalancer> {
        let (cloud, origin) = (Arc::clone(&self.cloud), self.origin.clone());
        to_the_end(turn, async move { cloud.put_load_balancer(&origin, &name, wanted).await.map_err(provider_error) }).await
    }

    async fn delete(&self, turn: Turn, names: Vec<String>, mark: Mark) -> Result<()> {
        let (cloud, origin) = (Arc::clone(&self.cloud), self.origin.clone());
        let work = async move {
            for name in names {
                cloud.delete_load_balancer(&origin, &name, &mark).await.map_err(provider_error)?;
            }
            Ok(())
        };
        to_the_end(turn, work).await
    }
}

#[async_trait]
impl LoadBalancers for Balancers {
    async fn get(&self, ctx: &CallContext, service: &v1::Service) -> Result<Option<Progress<v1::LoadBalancerStatus>>> {
        self.calls.count("GetLoadBalancer");
        let (mine, _) = split(self.find(ctx, service, false).await?, &wanted::mark(ctx.cluster(), service));
        Ok(mine.first().map(|one| answers::ready(one, || answers::status(one))))
    }

    fn name(&self, cluster: &v1::ClusterRef, service: &v1::Service) -> String {
        self.options.naming.name(cluster, service)
    }

    async fn ensure(
        &self,
        ctx: &CallContext,
        service: &v1::Service,
        nodes: &[v1::Node],
    ) -> Result<Progress<v1::LoadBalancerReady>> {
        self.calls.count("EnsureLoadBalancer");
        let turn = self.serial.turn(&service.uid).await;
        let Comparison { name, present, wanted, changes, at_work } = self.compare(ctx, service, nodes, true).await?;
        let one = match present {
            _ if at_work => return Ok(answers::at_work()),
            Some(present) if changes.is_empty() => present,
            _ => self.put(turn, name, wanted).await?,
        };
        Ok(answers::ready(&one, || v1::LoadBalancerReady {
            status: Some(answers::status(&one)),
            warnings: wanted::warnings(service),
            annotations: answers::annotations(&one.name),
        }))
    }

    async fn update(
        &self,
        ctx: &CallContext,
        service: &v1::Service,
        nodes: &[v1::Node],
    ) -> Result<Progress<v1::LoadBalancerUpdated>> {
        self.calls.count("UpdateLoadBalancer");
        let targets = wanted::targets(service, nodes)?;
        let turn = self.serial.turn(&service.uid).await;
        let found = self.find(ctx, service, true).await?;
        if found.at_work {
            return Ok(answers::at_work());
        }
        let (mine, _) = split(found, &wanted::mark(ctx.cluster(), service));
        let Some(present) = mine.into_iter().next() else {
            let words = format!("service {}/{} has no load balancer to update", service.namespace, service.name);
            return Err(ProviderError::conflict(words));
        };
        let annotations = answers::annotations(&present.name);
        if present.wanted.targets != targets {
            self.put(turn, present.name, Wanted { targets, ..present.wanted }).await?;
        }
        Ok(Progress::Done(v1::LoadBalancerUpdated { warnings: Vec::new(), annotations }))
    }

    async fn ensure_deleted(&self, ctx: &CallContext, service: &v1::Service) -> Result<Progress<()>> {
        self.calls.count("EnsureLoadBalancerDeleted");
        let turn = self.serial.turn(&service.uid).await;
        let found = self.find(ctx, service, true).await?;
        if found.at_work {
            return Ok(answers::at_work());
        }
        let mark = wanted::mark(ctx.cluster(), service);
        match split(found, &mark) {
            (mine, others) if mine.is_empty() => others.first().map_or(Ok(()), |other| Err(not_owned(other)))?,
            (mine, _) => self.delete(turn, mine.into_iter().map(|one| one.name).collect(), mark).await?,
        }
        Ok(Progress::Done(()))
    }

    fn optional(&self) -> OptionalLoadBalancerMethods {
        OptionalLoadBalancerMethods { plan: self.options.plan, list: true, node_sets: self.options.node_sets }
    }

    fn node_set_put(&self) {
        self.calls.count("PutNodeSet");
    }

    async fn plan(&self, ctx: &CallContext, service: &v1::Service, nodes: &[v1::Node]) -> Result<Progress<v1::LoadBalancerPlan>> {
        if !self.options.plan {
            return Err(ProviderError::not_implemented("PlanLoadBalancer"));
        }
        self.calls.count("PlanLoadBalancer");
        let Comparison { present, changes, .. } = self.compare(ctx, service, nodes, false).await?;
        match present {
            Some(present) if changes.is_empty() => Ok(answers::ready(&present, || v1::LoadBalancerPlan {
                changes: Vec::new(),
                status: Some(answers::status(&present)),
                annotations: answers::annotations(&present.name),
            })),
            _ => {
                let changes = changes.iter().map(Change::to_string).collect();
                Ok(Progress::Done(v1::LoadBalancerPlan { changes, ..v1::LoadBalancerPlan::default() }))
            }
        }
    }

    async fn list(&self, ctx: &CallContext) -> Result<Vec<v1::OwnedLoadBalancer>> {
        self.calls.count("ListLoadBalancers");
        let search = Search { cluster_uid: ctx.cluster().uid.clone(), ..Search::default() };
        let found = self.cloud.find_load_balancers(&search).await.map_err(provider_error)?;
        Ok(found.load_balancers.iter().map(answers::owned).collect())
    }
}

/// Those that are marked so, and the others.
fn split(found: Found, mark: &Mark) -> (Vec<LoadBalancer>, Vec<LoadBalancer>) {
    found.load_balancers.into_iter().partition(|one| one.wanted.mark.is_same_owner(mark))
}

fn not_owned(other: &LoadBalancer) -> ProviderError {
    let mark = &other.wanted.mark;
    ProviderError::not_owned(format!(
        "load balancer {} belongs to service {}/{} (UID {}) of cluster {}; rename or remove it there",
        other.name, mark.namespace, mark.service, mark.service_uid, mark.cluster_uid
    ))
}
