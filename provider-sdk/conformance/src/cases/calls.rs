//! One call of each method of a capability, with an empty request: for methods that are not served.
use std::time::Duration;

use ccm_proto::v1::{
    AddSshKeyToAllInstancesRequest, BatchGetInstancesRequest, Capability, CreateRoutesRequest, DeleteRoutesRequest,
    EnsureLoadBalancerDeletedRequest, EnsureLoadBalancerRequest, GetCurrentNodeNameRequest, GetLoadBalancerNameRequest,
    GetLoadBalancerRequest, GetMasterRequest, GetVolumeLabelsRequest, GetZoneRequest, LeadRequest, ListClustersRequest,
    ListLoadBalancersRequest, ListRoutesRequest, PlanLoadBalancerRequest, PutNodeSetRequest, UpdateLoadBalancerRequest,
    WatchInstancesRequest,
};
use tonic::Status;

use crate::connection;
use crate::context::{Context, READING};
use crate::rpc::{Rpc, name};

/// A method's name, and what it answered.
pub type Answered = (&'static str, Result<(), Status>);

/// Calls each method of the capability.
pub async fn unserved(c: &Context, capability: Capability) -> Vec<Answered> {
    match capability {
        Capability::Unspecified => Vec::new(),
        Capability::Lead => vec![stream::<LeadRequest>(c).await],
        Capability::Instances => vec![call::<BatchGetInstancesRequest>(c).await],
        Capability::WatchInstances => vec![stream::<WatchInstancesRequest>(c).await],
        Capability::AddSshKey => vec![call::<AddSshKeyToAllInstancesRequest>(c).await],
        Capability::CurrentNodeName => vec![call::<GetCurrentNodeNameRequest>(c).await],
        Capability::LoadBalancers => load_balancers(c).await,
        Capability::NodeSets => vec![call::<PutNodeSetRequest>(c).await],
        Capability::PlanLoadBalancer => vec![call::<PlanLoadBalancerRequest>(c).await],
        Capability::ListLoadBalancers => vec![stream::<ListLoadBalancersRequest>(c).await],
        Capability::Routes => {
            let list = stream::<ListRoutesRequest>(c).await;
            vec![list, call::<CreateRoutesRequest>(c).await, call::<DeleteRoutesRequest>(c).await]
        }
        Capability::Zones => vec![call::<GetZoneRequest>(c).await],
        Capability::Clusters => vec![call::<ListClustersRequest>(c).await, call::<GetMasterRequest>(c).await],
        Capability::Volumes => vec![call::<GetVolumeLabelsRequest>(c).await],
    }
}

async fn load_balancers(c: &Context) -> Vec<Answered> {
    vec![
        call::<GetLoadBalancerRequest>(c).await,
        call::<GetLoadBalancerNameRequest>(c).await,
        call::<EnsureLoadBalancerRequest>(c).await,
        call::<UpdateLoadBalancerRequest>(c).await,
        call::<EnsureLoadBalancerDeletedRequest>(c).await,
    ]
}

async fn call<R: Rpc>(c: &Context) -> Answered {
    (name(R::PATH), c.send_within(R::default(), READING).await.map(drop))
}

/// A stream that is served may stay open: a second without an error counts as an answer.
async fn stream<R: Rpc>(c: &Context) -> Answered {
    let opened = async {
        let requests = tokio_stream::once(R::default());
        let mut answers = connection::both_ways(&c.channel, requests).await?;
        answers.message().await.map(drop)
    };
    let answer = tokio::time::timeout(Duration::from_secs(1), opened).await.unwrap_or(Ok(()));
    c.exchanges.add(name(R::PATH), &R::default(), &answer, Duration::ZERO);
    (name(R::PATH), answer)
}
