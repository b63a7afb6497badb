//! The methods of the protocol by their requests: each request message belongs to exactly one method. It calls nothing.
use ccm_proto::v1::{
    AddSshKeyToAllInstancesRequest, AddSshKeyToAllInstancesResponse, BatchGetInstancesRequest, BatchGetInstancesResponse,
    CreateRoutesRequest, CreateRoutesResponse, DeleteRoutesRequest, DeleteRoutesResponse, EnsureLoadBalancerDeletedRequest,
    EnsureLoadBalancerDeletedResponse, EnsureLoadBalancerRequest, EnsureLoadBalancerResponse, GetCurrentNodeNameRequest,
    GetCurrentNodeNameResponse, GetLoadBalancerNameRequest, GetLoadBalancerNameResponse, GetLoadBalancerRequest,
    GetLoadBalancerResponse, GetMasterRequest, GetMasterResponse, GetProviderInfoRequest, GetProviderInfoResponse,
    GetVolumeLabelsRequest, GetVolumeLabelsResponse, GetZoneRequest, GetZoneResponse, LeadRequest, LeadResponse,
    ListClustersRequest, ListClustersResponse, ListLoadBalancersRequest, ListLoadBalancersResponse, ListRoutesRequest,
    ListRoutesResponse, PlanLoadBalancerRequest, PlanLoadBalancerResponse, PutNodeSetRequest, PutNodeSetResponse,
    UpdateLoadBalancerRequest, UpdateLoadBalancerResponse, WatchInstancesRequest, WatchInstancesResponse,
};
use prost::Message;
use std::fmt::Debug;

/// The request of a method.
pub trait Rpc: Message + Debug + Default + Clone + 'static {
    /// What the method answers; of a stream, one message.
    type Answer: Message + Debug + Default + Clone + 'static;
    /// The method's path on the wire.
    const PATH: &'static str;
}

macro_rules! methods {
    ($service:literal: $($request:ident => $answer:ident, $method:literal);+) => {
        $(impl Rpc for $request {
            type Answer = $answer;
            const PATH: &'static str = concat!("/ccm.provider.v1.", $service, "/", $method);
        })+
    };
}

methods! {
    "Identity": GetProviderInfoRequest => GetProviderInfoResponse, "GetProviderInfo"; LeadRequest => LeadResponse, "Lead"
}
methods! {
    "Instances": BatchGetInstancesRequest => BatchGetInstancesResponse, "BatchGetInstances";
        WatchInstancesRequest => WatchInstancesResponse, "WatchInstances";
        AddSshKeyToAllInstancesRequest => AddSshKeyToAllInstancesResponse, "AddSSHKeyToAllInstances";
        GetCurrentNodeNameRequest => GetCurrentNodeNameResponse, "GetCurrentNodeName"
}
methods! {
    "LoadBalancers": GetLoadBalancerRequest => GetLoadBalancerResponse, "GetLoadBalancer";
        GetLoadBalancerNameRequest => GetLoadBalancerNameResponse, "GetLoadBalancerName";
        EnsureLoadBalancerRequest => EnsureLoadBalancerResponse, "EnsureLoadBalancer";
        UpdateLoadBalancerRequest => UpdateLoadBalancerResponse, "UpdateLoadBalancer";
        EnsureLoadBalancerDeletedRequest => EnsureLoadBalancerDeletedResponse, "EnsureLoadBalancerDeleted";
        PutNodeSetRequest => PutNodeSetResponse, "PutNodeSet";
        PlanLoadBalancerRequest => PlanLoadBalancerResponse, "PlanLoadBalancer";
        ListLoadBalancersRequest => ListLoadBalancersResponse, "ListLoadBalancers"
}
methods! {
    "Routes": ListRoutesRequest => ListRoutesResponse, "ListRoutes";
        CreateRoutesRequest => CreateRoutesResponse, "CreateRoutes";
        DeleteRoutesRequest => DeleteRoutesResponse, "DeleteRoutes"
}
methods! { "Zones": GetZoneRequest => GetZoneResponse, "GetZone" }
methods! {
    "Clusters": ListClustersRequest => ListClustersResponse, "ListClusters"; GetMasterRequest => GetMasterResponse, "GetMaster"
}
methods! { "Volumes": GetVolumeLabelsRequest => GetVolumeLabelsResponse, "GetVolumeLabels" }

/// The method's name without its service.
pub fn name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}
