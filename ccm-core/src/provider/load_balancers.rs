//! Load balancers over whichever provider is connected. An answer counts only if the same cloud is still behind the socket.
//! Each call is made once: when to repeat one is for the caller, who knows what it is about.
use std::sync::Arc;

use async_trait::async_trait;
use ccm_proto::v1;

use super::grpc::Method;
use super::session::{Handle, Live};
use super::{LoadBalancers, ProviderError, classify, convert};
use crate::model::load_balancer::{Ensured, Extras, OwnedLoadBalancer, Planned, Progress};
use crate::model::provider_info::Capability;
use crate::model::service::Service;
use crate::model::target::TargetSet;
use nodes::Inline;
use wire::{Mutation, Nodes, Question};

mod nodes;
#[cfg(test)]
pub(super) mod tests;
mod wire;

/// The connected provider's load balancers.
#[derive(Debug)]
pub struct ProviderLoadBalancers {
    handle: Handle,
    inline: Inline,
}

impl ProviderLoadBalancers {
    /// Over a session's handle.
    pub fn new(handle: Handle) -> Self {
        Self { handle, inline: Inline::default() }
    }

    /// Without Lead a provider cannot tell who may change things.
    fn mutable_provider(&self) -> Result<Arc<Live>, ProviderError> {
        self.handle.current_with(&[Capability::LoadBalancers, Capability::Lead])
    }

    async fn mutate<R: prost::Message + Default + 'static>(
        &self,
        live: &Live,
        method: Method,
        epoch: u64,
        service: &Service,
        targets: &TargetSet,
    ) -> Result<R, ProviderError> {
        let request = |nodes: Nodes| Mutation {
            cluster: Some(self.handle.cluster()),
            leadership: Some(v1::Leadership { epoch }),
            service: Some(convert::service(service)),
            nodes: Some(nodes),
        };
        let answer = self.inline.call(live, method, targets, request).await?;
        self.handle.still_the_same_cloud(live)?;
        Ok(answer)
    }
}

#[async_trait]
impl LoadBalancers for ProviderLoadBalancers {
    async fn ensure(&self, epoch: u64, service: &Service, targets: &TargetSet) -> Result<Progress<Ensured>, ProviderError> {
        let live = self.mutable_provider()?;
        let answer = self.mutate(&live, Method::EnsureLoadBalancer, epoch, service, targets).await?;
        convert::ensured(answer, &live.info)
    }

    async fn update(&self, epoch: u64, service: &Service, targets: &TargetSet) -> Result<Progress<Extras>, ProviderError> {
        let live = self.mutable_provider()?;
        let answer = self.mutate(&live, Method::UpdateLoadBalancer, epoch, service, targets).await?;
        convert::updated(answer, &live.info)
    }

    async fn delete(&self, epoch: u64, service: &Service) -> Result<Progress<()>, ProviderError> {
        let live = self.mutable_provider()?;
        let request = v1::EnsureLoadBalancerDeletedRequest {
            cluster: Some(self.handle.cluster()),
            leadership: Some(v1::Leadership { epoch }),
            service: Some(convert::service(service)),
        };
        let (connection, mut client) = (&live.connection, live.connection.load_balancers());
        let answer = connection
            .call(Method::EnsureLoadBalancerDeleted, request, |it| async move { client.ensure_load_balancer_deleted(it).await });
        let answer = answer.await.map_err(|status| classify::status(&status))?;
        // "Done" by another cloud would let go of what is left in the first.
        self.handle.still_the_same_cloud(&live)?;
        convert::deleted(answer)
    }

    async fn plan(&self, service: &Service, targets: &TargetSet) -> Result<Progress<Planned>, ProviderError> {
        let live = self.handle.current_with(&[Capability::LoadBalancers, Capability::PlanLoadBalancer])?;
        let request = |nodes: Nodes| Question {
            cluster: Some(self.handle.cluster()),
            service: Some(convert::service(service)),
            nodes: Some(nodes),
        };
        let answer = self.inline.call(&live, Method::PlanLoadBalancer, targets, request).await?;
        self.handle.still_the_same_cloud(&live)?;
        convert::planned(answer, &live.info)
    }

    async fn list(&self) -> Result<Vec<OwnedLoadBalancer>, ProviderError> {
        let live = self.handle.current_with(&[Capability::LoadBalancers, Capability::ListLoadBalancers])?;
        let request = v1::ListLoadBalancersRequest { cluster: Some(self.handle.cluster()) };
        let mut client = live.connection.load_balancers();
        let items = |message: &v1::ListLoadBalancersResponse| message.load_balancers.len();
        let answer = live
            .connection
            .collect(Method::ListLoadBalancers, request, items, |it| async move { client.list_load_balancers(it).await });
        let messages = answer.await.map_err(|status| classify::status(&status))?;
        self.handle.still_the_same_cloud(&live)?;
        convert::owned(messages)
    }
}
