//! What the service LoadBalancers does with the cloud: looks for what a Service has, compares, and sends a mutation to its end.
use std::sync::Arc;

use ccm_provider_sdk::{CallContext, ProviderError, Result, v1};

use super::difference::{Change, difference};
use super::{Balancers, wanted};
use crate::cloud::load_balancers::model::{Found, LoadBalancer, Mark, Search, Wanted};
use crate::provider::provider_error;
use crate::provider::serial::{Turn, to_the_end};

/// What a Service has, what it shall have, and the way from one to the other. `ensure` goes it, `plan` tells it.
pub(super) struct Comparison {
    pub(super) name: String,
    pub(super) present: Option<LoadBalancer>,
    pub(super) wanted: Wanted,
    pub(super) changes: Vec<Change>,
    pub(super) at_work: bool,
}

impl Balancers {
    /// What is marked as the Service's, and whatever has the name that it would get.
    pub(super) async fn find(&self, ctx: &CallContext, service: &v1::Service, to_change: bool) -> Result<Found> {
        let search = Search {
            cluster_uid: ctx.cluster().uid.clone(),
            service_uid: Some(service.uid.clone()),
            or_name: Some(self.options.naming.name(ctx.cluster(), service)),
            on_behalf_of: Some(format!("{}/{}", service.namespace, service.name)),
            to_change,
        };
        self.cloud.find_load_balancers(&search).await.map_err(provider_error)
    }

    pub(super) async fn compare(
        &self,
        ctx: &CallContext,
        service: &v1::Service,
        nodes: &[v1::Node],
        to_change: bool,
    ) -> Result<Comparison> {
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

    pub(super) async fn put(&self, turn: Turn, name: String, wanted: Wanted) -> Result<LoadBalancer> {
        let (cloud, origin) = (Arc::clone(&self.cloud), self.origin.clone());
        to_the_end(turn, async move { cloud.put_load_balancer(&origin, &name, wanted).await.map_err(provider_error) }).await
    }

    pub(super) async fn delete(&self, turn: Turn, names: Vec<String>, mark: Mark) -> Result<()> {
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

/// Those that are marked so, and the others.
pub(super) fn split(found: Found, mark: &Mark) -> (Vec<LoadBalancer>, Vec<LoadBalancer>) {
    found.load_balancers.into_iter().partition(|one| one.wanted.mark.is_same_owner(mark))
}

fn not_owned(other: &LoadBalancer) -> ProviderError {
    let mark = &other.wanted.mark;
    ProviderError::not_owned(format!(
        "load balancer {} belongs to service {}/{} (UID {}) of cluster {}; rename or remove it there",
        other.name, mark.namespace, mark.service, mark.service_uid, mark.cluster_uid
    ))
}
