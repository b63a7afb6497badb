//! Between the model and the contract's messages. A provider's answer is judged item by item: what is contradictory
//! becomes that item's error, what is merely useless is dropped with a warning, and each names its field. No call is made here.
use std::sync::Arc;
use std::time::Duration;

use ccm_proto::v1;
use jiff::Timestamp;
use v1::instance_result::Outcome;

use crate::model::instance::{Answer, InstanceState, Lookup, NodeQuery};
use crate::model::node::{Address, AddressType};
use crate::model::provider_info::ProviderInfo;

use super::capabilities::retry;
use super::{ProviderError, classify};
use results::matched;

mod instance;
mod load_balancer;
mod reader;
mod results;
mod route;
mod service;
mod syntax;
mod target;
#[cfg(test)]
mod tests;

pub use instance::set_zone;
pub use load_balancer::{deleted, ensured, owned, planned, updated};
pub use route::{LeftOut, creation, deletion, route_results, route_table};
pub use service::service;
pub use target::node;

/// How far ahead of this clock a provider's may be.
const MAX_AHEAD: Duration = Duration::from_mins(5);
/// The longest providerID, in bytes.
const MAX_PROVIDER_ID: usize = 1024;
/// When to ask again where the provider does not say.
const POLL_AFTER: Duration = Duration::from_secs(5);
/// The shortest and the longest time that a provider may say.
const POLL_RANGE: (Duration, Duration) = (Duration::from_millis(100), Duration::from_hours(1));

/// What an answer is judged by.
#[derive(Clone, Debug)]
pub struct Context {
    /// The description of the provider that answered.
    pub info: Arc<ProviderInfo>,
    /// Its cloud identity.
    pub identity: Arc<str>,
    /// The time by this process's wall clock.
    pub now: Timestamp,
}

/// A batch of queries as the contract has it.
pub fn request(queries: &[Arc<NodeQuery>]) -> v1::BatchGetInstancesRequest {
    v1::BatchGetInstancesRequest { queries: queries.iter().map(|it| query(it)).collect() }
}

fn query(query: &NodeQuery) -> v1::InstanceQuery {
    v1::InstanceQuery {
        node_name: query.node_name.clone(),
        provider_id: query.provider_id.clone(),
        system_uuid: query.system_uuid.clone(),
        addresses: query.addresses.iter().map(address).collect(),
        labels: query.labels.clone().into_iter().collect(),
        annotations: query.annotations.clone().into_iter().collect(),
    }
}

fn address(address: &Address) -> v1::NodeAddress {
    let kind = match address.kind {
        AddressType::Hostname => v1::NodeAddressType::Hostname,
        AddressType::InternalIp => v1::NodeAddressType::InternalIp,
        AddressType::ExternalIp => v1::NodeAddressType::ExternalIp,
        AddressType::InternalDns => v1::NodeAddressType::InternalDns,
        AddressType::ExternalDns => v1::NodeAddressType::ExternalDns,
    };
    v1::NodeAddress { r#type: kind.into(), address: address.value.clone() }
}

/// One answer or error for each query, in the queries' order.
pub fn answers(
    queries: &[Arc<NodeQuery>],
    response: v1::BatchGetInstancesResponse,
    context: &Context,
) -> Vec<Result<Answer, ProviderError>> {
    let keys = queries.iter().map(|query| query.node_name.clone());
    let results = matched(keys, response.results, "node_name", |result| std::mem::take(&mut result.node_name));
    let results = queries.iter().zip(results);
    results.map(|(query, result)| result.and_then(|(index, result)| answer(query, index, result, context))).collect()
}

fn answer(query: &NodeQuery, index: usize, result: v1::InstanceResult, context: &Context) -> Result<Answer, ProviderError> {
    let path = format!("results[{index}]");
    let observed_at = result.observed_at.map(|it| observed_at(&format!("{path}.observed_at"), it, context.now)).transpose()?;
    let needed = || observed_at.ok_or_else(|| invalid(&format!("{path}.observed_at"), "is missing"));
    let (lookup, observed_at) = match result.outcome {
        None => return Err(invalid(&path, "has no outcome")),
        Some(Outcome::Error(error)) => return Err(classify::item(&error)),
        Some(Outcome::Instance(found)) => {
            let found = instance::read(&format!("{path}.instance"), found, &context.info)?;
            if found.state == InstanceState::Deleted && found.provider_id.is_none() && query.provider_id.is_some() {
                let what = "is missing: only an id proves which machine was deleted";
                return Err(invalid(&format!("{path}.instance.provider_id"), what));
            }
            (Lookup::Found(Box::new(found)), needed()?)
        }
        Some(Outcome::NotFound(_)) => (Lookup::NotFound, needed()?),
        // Where the contract requires no time, no answer is newer than another.
        Some(Outcome::NotMine(it)) => {
            (Lookup::NotMine(classify::shorten(&it.message).to_owned()), observed_at.unwrap_or_default())
        }
        Some(Outcome::Ambiguous(it)) => (Lookup::Ambiguous(ids(it)), observed_at.unwrap_or_default()),
    };
    Ok(Answer { lookup, observed_at, cloud_identity: Arc::clone(&context.identity) })
}

fn ids(ambiguous: v1::InstanceAmbiguous) -> Vec<String> {
    ambiguous.provider_ids.into_iter().take(20).map(|id| classify::shorten(&id).to_owned()).collect()
}

fn observed_at(path: &str, wire: prost_types::Timestamp, now: Timestamp) -> Result<Timestamp, ProviderError> {
    let time = Timestamp::new(wire.seconds, wire.nanos).map_err(|_| invalid(path, "is not a time"))?;
    if wire.nanos < 0 {
        return Err(invalid(path, "is not a time"));
    }
    if time.duration_since(now).as_secs() > i64::try_from(MAX_AHEAD.as_secs()).unwrap_or(i64::MAX) {
        return Err(invalid(path, &format!("{time} is in the future ({now} here): set the provider's clock right")));
    }
    Ok(time)
}

/// When to repeat a call that the cloud has not finished.
fn poll_after(wire: &v1::InProgress) -> Duration {
    let given = wire.poll_after.and_then(|it| Duration::try_from(it).ok());
    given.unwrap_or(POLL_AFTER).clamp(POLL_RANGE.0, POLL_RANGE.1)
}

/// The error of an item whose answer contradicts the contract.
pub fn invalid(path: &str, what: &str) -> ProviderError {
    retry("INTERNAL", format!("the provider's answer is not valid: {path}: {what}"))
}
