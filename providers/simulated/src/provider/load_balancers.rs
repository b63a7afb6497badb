//! The service LoadBalancers, as a thin client of the cloud: read what is there, compare, write only a difference. It keeps
//! nothing; the cloud's marks say whose a load balancer is.
use std::sync::Arc;

use async_trait::async_trait;
use ccm_provider_sdk::plan::planned;
use ccm_provider_sdk::{CallContext, ListLoadBalancers, LoadBalancers, PlanLoadBalancers, Progress, ProviderError, Result, v1};

use super::provider_error;
use super::serial::Serial;
use crate::cloud::CloudApi;
use crate::cloud::counters::Counters;
use crate::cloud::load_balancers::Origin;
use crate::cloud::load_balancers::model::{Search, Wanted};
use naming::Naming;
use work::{Comparison, split};

pub mod answers;
pub mod difference;
pub mod naming;
pub mod wanted;
mod work;

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

impl Balancers {
    /// The load balancers of this cloud; for the life of the process, since the cloud knows it as one.
    pub fn new(cloud: Arc<dyn CloudApi>, calls: Arc<Counters>, options: Options) -> Self {
        Self { cloud, calls, options, origin: Origin::random(), serial: Serial::default() }
    }

    /// A node set has arrived.
    pub(super) fn count_node_set(&self) {
        self.calls.count("PutNodeSet");
    }

    /// What this provider was told to be.
    pub fn options(&self) -> Options {
        self.options
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
        let warnings = wanted::warnings(service);
        Ok(answers::ready(&one, || v1::LoadBalancerReady { warnings, ..answers::standing(&one) }))
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
        // What carries other marks is none of this Service's, whatever its name: nothing is left to remove.
        let (mine, _others) = split(found, &mark);
        if !mine.is_empty() {
            self.delete(turn, mine.into_iter().map(|one| one.name).collect(), mark).await?;
        }
        Ok(Progress::Done(()))
    }
}

#[async_trait]
impl PlanLoadBalancers for Balancers {
    async fn plan(&self, ctx: &CallContext, service: &v1::Service, nodes: &[v1::Node]) -> Result<Progress<v1::LoadBalancerPlan>> {
        self.calls.count("PlanLoadBalancer");
        let Comparison { present, changes, .. } = self.compare(ctx, service, nodes, false).await?;
        match present.filter(|_| changes.is_empty()).map(|one| answers::ready(&one, || answers::standing(&one))) {
            Some(Progress::InProgress(progress)) => Ok(Progress::InProgress(progress)),
            Some(Progress::Done(standing)) => Ok(planned(&changes, || standing)),
            _ => Ok(planned(&changes, v1::LoadBalancerReady::default)),
        }
    }
}

#[async_trait]
impl ListLoadBalancers for Balancers {
    async fn list(&self, ctx: &CallContext) -> Result<Vec<v1::OwnedLoadBalancer>> {
        self.calls.count("ListLoadBalancers");
        let search = Search { cluster_uid: ctx.cluster().uid.clone(), ..Search::default() };
        let found = self.cloud.find_load_balancers(&search).await.map_err(provider_error)?;
        Ok(found.load_balancers.iter().map(answers::owned).collect())
    }
}
