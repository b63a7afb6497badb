//! The service Instances: one batch is one call of the cloud.
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use ccm_provider_sdk::{CallContext, Instances, LookUpsOnly, Lookup, ProviderError, Result, v1};
use parking_lot::Mutex;

use super::{garbage, provider_error, refusal};
use crate::cloud::CloudApi;
use crate::cloud::counters::Counters;
use crate::cloud::model::{Address, AddressType, Instance, Item, Outcome, Query, State};

/// The service Instances.
pub struct Machines {
    cloud: Arc<dyn CloudApi>,
    calls: Arc<Counters>,
    /// The ids of the requests whose answers the fault `garbage` spoils.
    spoilt: Mutex<HashSet<String>>,
    turns: AtomicUsize,
}

impl Machines {
    /// The machines of this cloud.
    pub fn new(cloud: Arc<dyn CloudApi>, calls: Arc<Counters>) -> Self {
        Self { cloud, calls, spoilt: Mutex::default(), turns: AtomicUsize::new(0) }
    }

    /// Spoils the answer to a batch, if the fault `garbage` met it.
    pub(super) fn spoil(&self, ctx: &CallContext, response: &mut v1::BatchGetInstancesResponse) {
        if self.spoilt.lock().remove(ctx.request_id()) {
            garbage::spoil(response, self.turns.fetch_add(1, Ordering::Relaxed));
        }
    }
}

impl LookUpsOnly for Machines {}

#[async_trait]
impl Instances for Machines {
    async fn get_instance(&self, ctx: &CallContext, query: &v1::InstanceQuery) -> Result<Lookup> {
        let results = self.batch_get_instances(ctx, std::slice::from_ref(query)).await?;
        results.into_iter().next().unwrap_or_else(|| Err(ProviderError::internal("the cloud answered nothing")))
    }

    async fn batch_get_instances(&self, ctx: &CallContext, queries: &[v1::InstanceQuery]) -> Result<Vec<Result<Lookup>>> {
        self.calls.count("BatchGetInstances");
        let queries: Vec<_> = queries.iter().map(query).collect();
        let answer = self.cloud.look_up(&queries).await.map_err(provider_error)?;
        if answer.garbage {
            self.spoilt.lock().insert(ctx.request_id().to_owned());
        }
        Ok(answer.items.into_iter().map(result).collect())
    }
}

fn query(query: &v1::InstanceQuery) -> Query {
    let provider_id = query.provider_id.clone().filter(|id| !id.is_empty());
    Query { name: query.node_name.clone(), provider_id }
}

fn result(item: Item) -> Result<Lookup> {
    let lookup = match item.outcome {
        Outcome::Found(machine) => Lookup::found(instance(machine)),
        Outcome::NotFound => Lookup::not_found(),
        Outcome::NotMine(words) => Lookup::not_mine(words),
        Outcome::Failed(failure) => return Err(refusal(failure)),
    };
    Ok(lookup.read_at(item.observed_at.into()))
}

fn instance(machine: Instance) -> v1::Instance {
    v1::Instance {
        provider_id: machine.provider_id,
        state: state(machine.state).into(),
        instance_type: Some(machine.instance_type),
        zone: Some(machine.zone),
        region: Some(machine.region),
        addresses: machine.addresses.into_iter().map(address).collect(),
        additional_labels: machine.labels.into_iter().collect(),
        pod_cidrs: machine.pod_cidrs,
        warnings: Vec::new(),
    }
}

fn state(state: State) -> v1::InstanceState {
    match state {
        State::Pending => v1::InstanceState::Pending,
        State::Running => v1::InstanceState::Running,
        State::Stopped => v1::InstanceState::Stopped,
        State::Deleted => v1::InstanceState::Deleted,
    }
}

fn address(address: Address) -> v1::NodeAddress {
    let kind = match address.kind {
        AddressType::Hostname => v1::NodeAddressType::Hostname,
        AddressType::InternalIP => v1::NodeAddressType::InternalIp,
        AddressType::ExternalIP => v1::NodeAddressType::ExternalIp,
        AddressType::InternalDNS => v1::NodeAddressType::InternalDns,
        AddressType::ExternalDNS => v1::NodeAddressType::ExternalDns,
    };
    v1::NodeAddress { r#type: kind.into(), address: address.address }
}
