//! The measure for ccm-core: a client that calls the provider through the generated stubs and patches each node, and nothing else.
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use ccm_proto::v1;
use ccm_provider_sdk::Endpoint;
use ccm_test_support::control_plane;
use ccm_test_support::simulated::Provider;
use ccm_test_support::world::World;
use futures::{StreamExt, TryStreamExt, stream};
use k8s_openapi::api::core::v1::{Namespace, Node};
use kube::api::{ListParams, Patch, PatchParams};
use kube::{Api, ResourceExt};
use serde_json::json;
use tonic::transport::Channel;
use v1::identity_client::IdentityClient;
use v1::routes_client::RoutesClient;

/// What a provider takes by default.
const CALLS: usize = 4;
const BATCH: usize = 100;
/// The epoch of this leader. Others led the provider before.
const EPOCH: u64 = 1 << 32;
/// For how long it leads.
const TERM: i64 = 600;

/// Creates the routes of all nodes in full batches, and patches each node when its routes are there, so many at one time.
pub async fn route_all(world: &World, provider: &Provider, in_flight: usize) -> Result<()> {
    let api: Api<Node> = Api::all(control_plane::client(world.core().kubeconfig()).await?);
    let nodes = api.list(&ListParams::default()).await?.items;
    let namespace = Api::<Namespace>::all(world.admin()).get("kube-system").await?;
    let cluster = v1::ClusterRef { name: "kubernetes".to_owned(), uid: namespace.uid().context("kube-system has no UID")? };
    let channel = format!("unix://{}", provider.spec().endpoint().display()).parse::<Endpoint>()?.channel();
    let _leadership = lead(channel.clone(), &cluster).await?;
    let (api, cluster, channel) = (&api, &cluster, &channel);
    stream::iter(nodes.chunks(BATCH / 2))
        .map(|nodes| async move { create(channel.clone(), cluster, nodes).await.map(|()| stream::iter(nodes).map(Ok)) })
        .buffer_unordered(CALLS)
        .try_flatten()
        .try_for_each_concurrent(in_flight, |node| patch(api, node))
        .await
}

/// Leads until the stream that it answers is dropped.
async fn lead(channel: Channel, cluster: &v1::ClusterRef) -> Result<tonic::Streaming<v1::LeadResponse>> {
    let request = v1::LeadRequest {
        epoch: EPOCH,
        valid_for: Some(prost_types::Duration { seconds: TERM, nanos: 0 }),
        holder: "bare".to_owned(),
        cluster: Some(cluster.clone()),
    };
    let requests = stream::iter([request]).chain(stream::pending());
    let mut answers = IdentityClient::new(channel).lead(requests).await?.into_inner();
    answers.message().await?.context("the provider ended Lead")?;
    Ok(answers)
}

async fn create(channel: Channel, cluster: &v1::ClusterRef, nodes: &[Node]) -> Result<()> {
    let items: Vec<_> = nodes.iter().flat_map(items).collect();
    let request =
        v1::CreateRoutesRequest { cluster: Some(cluster.clone()), leadership: Some(v1::Leadership { epoch: EPOCH }), items };
    let mut request = tonic::Request::new(request);
    request.set_timeout(Duration::from_secs(30));
    let results = RoutesClient::new(channel).create_routes(request).await?.into_inner().results;
    let is_done = |result: &v1::RouteResult| matches!(result.outcome, Some(v1::route_result::Outcome::Done(_)));
    ensure!(results.iter().all(is_done), "a route was not created: {results:?}");
    Ok(())
}

fn items(node: &Node) -> Vec<v1::CreateRouteItem> {
    let spec = node.spec.clone().unwrap_or_default();
    let route = |cidr: &String| v1::Route {
        target_node_name: node.name_any(),
        target_provider_id: spec.provider_id.clone(),
        destination_cidr: cidr.clone(),
        ..v1::Route::default()
    };
    let item = |cidr: &String| v1::CreateRouteItem {
        key: cidr.clone(),
        name_hint: node.uid().unwrap_or_default(),
        route: Some(route(cidr)),
    };
    spec.pod_cidrs.iter().flatten().map(item).collect()
}

async fn patch(api: &Api<Node>, node: &Node) -> Result<()> {
    let now = jiff::Timestamp::now();
    let condition = json!({
        "type": "NetworkUnavailable", "status": "False", "reason": "RouteCreated", "message": "RouteController created a route",
        "lastTransitionTime": now, "lastHeartbeatTime": now,
    });
    let patch = json!({ "metadata": { "uid": node.uid() }, "status": { "conditions": [condition] } });
    api.patch_status(&node.name_any(), &PatchParams::default(), &Patch::Strategic(patch)).await?;
    Ok(())
}
