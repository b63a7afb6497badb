//! The measure for ccm-core: a client that makes the same patches to each node or Service and does nothing else.
use std::time::{Duration, Instant};

use anyhow::Result;
use ccm_test_support::control_plane;
use ccm_test_support::services::{CLASS, FINALIZER, NAME, NAMESPACE, READY, Services, Wish};
use ccm_test_support::world::World;
use futures::{StreamExt, TryStreamExt, stream};
use http::header::CONTENT_TYPE;
use k8s_openapi::api::core::v1::{Node, Service};
use kube::api::{ListParams, Patch, PatchParams};
use kube::{Api, Client, ResourceExt};
use serde::Deserialize;
use serde_json::{Value, json};

/// Nodes of one page of the list.
const PAGE: u32 = 500;

/// A node that is to be patched.
struct Target {
    number: usize,
    name: String,
    uid: Option<String>,
    version: Option<String>,
}

/// What of an answer is needed for the next patch.
#[derive(Deserialize)]
struct Answer {
    metadata: Metadata,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    resource_version: String,
}

/// Patches every node twice, so many requests at one time, under ccm-core's account and beside ccm-core's watch, whose bytes it
/// discards. Before that it lists the nodes.
pub async fn initialise_all(world: &World, in_flight: usize) -> Result<()> {
    let client = control_plane::client(world.core().kubeconfig()).await?;
    let (targets, version) = list(&client).await?;
    let watch = tokio::spawn(discard_watch(client.clone(), version));
    let done = stream::iter(targets)
        .map(Ok)
        .try_for_each_concurrent(in_flight, |target| {
            let client = client.clone();
            async move { initialise(&client, &target).await }
        })
        .await;
    watch.abort();
    done
}

async fn list(client: &Client) -> Result<(Vec<Target>, String)> {
    let nodes: Api<Node> = Api::all(client.clone());
    let (mut targets, mut params) = (Vec::new(), ListParams::default().limit(PAGE));
    loop {
        let page = nodes.list_metadata(&params).await?;
        for node in page.items {
            let (uid, version) = (node.uid(), node.resource_version());
            targets.push(Target { number: targets.len(), name: node.name_any(), uid, version });
        }
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => params = params.continue_token(&token),
            None => return Ok((targets, page.metadata.resource_version.unwrap_or_default())),
        }
    }
}

async fn discard_watch(client: Client, version: String) -> Result<()> {
    let url = format!("/api/v1/nodes?watch=true&allowWatchBookmarks=true&resourceVersion={version}");
    let bytes = client.request_stream(http::Request::get(url).body(Vec::new())?).await?;
    futures::io::copy(std::pin::pin!(bytes), &mut futures::io::sink()).await?;
    Ok(())
}

async fn initialise(client: &Client, target: &Target) -> Result<()> {
    let version = patch(client, target, "/status", &addresses(target)).await?;
    patch(client, target, "", &metadata(target, &version)).await?;
    Ok(())
}

async fn patch(client: &Client, target: &Target, subresource: &str, body: &Value) -> Result<String> {
    let request = http::Request::patch(format!("/api/v1/nodes/{}{subresource}?fieldManager=bare", target.name))
        .header(CONTENT_TYPE, "application/strategic-merge-patch+json")
        .body(serde_json::to_vec(body)?)?;
    let answer: Answer = client.request(request).await?;
    Ok(answer.metadata.resource_version)
}

fn addresses(target: &Target) -> Value {
    let ip = format!("10.{}.{}.1", target.number / 250, target.number % 250);
    json!({
        "metadata": { "uid": target.uid, "resourceVersion": target.version },
        "status": { "addresses": [
            { "$patch": "replace" },
            { "type": "InternalIP", "address": ip },
            { "type": "Hostname", "address": target.name },
        ] },
    })
}

fn metadata(target: &Target, version: &str) -> Value {
    let applied = r#"{"node.kubernetes.io/instance-type":"sim.small"}"#;
    json!({
        "metadata": {
            "uid": target.uid, "resourceVersion": version,
            "annotations": { "ccm-core.dev/applied-labels": applied },
            "labels": {
                "node.kubernetes.io/instance-type": "sim.small", "beta.kubernetes.io/instance-type": "sim.small",
                "topology.kubernetes.io/zone": "sim-1a", "failure-domain.beta.kubernetes.io/zone": "sim-1a",
                "topology.kubernetes.io/region": "sim-1", "failure-domain.beta.kubernetes.io/region": "sim-1",
            },
        },
        "spec": { "providerID": format!("simulated://sim-1a/{}", target.name), "taints": [] },
    })
}

/// Makes Services and patches each as one that gets a load balancer is patched, so many at one time.
pub async fn serve_all(world: &World, names: &[String], in_flight: usize) -> Result<Duration> {
    let (services, api) = (Services::new(world.admin()), Api::<Service>::namespaced(world.admin(), NAMESPACE));
    let began = Instant::now();
    stream::iter(names.iter().enumerate())
        .map(Ok)
        .try_for_each_concurrent(in_flight, |(number, name)| serve(&services, &api, number, name))
        .await?;
    Ok(began.elapsed())
}

async fn serve(services: &Services, api: &Api<Service>, number: usize, name: &str) -> Result<()> {
    let params = PatchParams::default();
    services.create([Wish::new(name)]).await?;
    let held = json!({ "metadata": { "finalizers": [FINALIZER], "annotations": { CLASS: "" } } });
    api.patch(name, &params, &Patch::Strategic(held)).await?;
    let condition = json!({
        "type": READY, "status": "True", "reason": "Ready", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z",
    });
    let address = json!({ "ip": format!("198.18.{}.{}", number / 250, number % 250 + 1) });
    let status = json!({
        "metadata": { "annotations": { NAME: format!("a{number:031}") } },
        "status": { "loadBalancer": { "ingress": [address] }, "conditions": [condition] },
    });
    api.patch_status(name, &params, &Patch::Strategic(status)).await?;
    Ok(())
}
