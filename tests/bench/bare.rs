//! The measure for ccm-core: a client that makes the same patches to each node or Service and does nothing else.
use std::time::{Duration, Instant};

use anyhow::Result;
use ccm_test_support::services::{CLASS, FINALIZER, NAME, NAMESPACE, READY, Services, Wish};
use ccm_test_support::world::World;
use futures::{StreamExt, TryStreamExt, stream};
use k8s_openapi::api::core::v1::{Node, Service};
use kube::api::{Patch, PatchParams};
use kube::{Api, ResourceExt};
use serde_json::json;

/// Patches every node twice, so many requests at one time.
pub async fn patch_all(world: &World, in_flight: usize) -> Result<Duration> {
    let nodes: Api<Node> = Api::all(world.admin());
    let all: Vec<Node> = world.kubelets().all().await?.into_values().collect();
    let began = Instant::now();
    stream::iter(all.into_iter().enumerate())
        .map(Ok)
        .try_for_each_concurrent(in_flight, |(number, node)| initialise(&nodes, number, node))
        .await?;
    Ok(began.elapsed())
}

async fn initialise(nodes: &Api<Node>, number: usize, node: Node) -> Result<()> {
    let (name, params) = (node.name_any(), PatchParams::default());
    let addressed = nodes.patch_status(&name, &params, &Patch::Strategic(addresses(number, &node))).await?;
    nodes.patch(&name, &params, &Patch::Strategic(metadata(&addressed))).await?;
    Ok(())
}

fn addresses(number: usize, node: &Node) -> serde_json::Value {
    let ip = format!("10.{}.{}.1", number / 250, number % 250);
    json!({
        "metadata": { "uid": node.uid(), "resourceVersion": node.resource_version() },
        "status": { "addresses": [
            { "$patch": "replace" },
            { "type": "InternalIP", "address": ip },
            { "type": "Hostname", "address": node.name_any() },
        ] },
    })
}

fn metadata(node: &Node) -> serde_json::Value {
    let applied = r#"{"node.kubernetes.io/instance-type":"sim.small"}"#;
    json!({
        "metadata": {
            "uid": node.uid(), "resourceVersion": node.resource_version(),
            "annotations": { "ccm-core.dev/applied-labels": applied },
            "labels": {
                "node.kubernetes.io/instance-type": "sim.small", "beta.kubernetes.io/instance-type": "sim.small",
                "topology.kubernetes.io/zone": "sim-1a", "failure-domain.beta.kubernetes.io/zone": "sim-1a",
                "topology.kubernetes.io/region": "sim-1", "failure-domain.beta.kubernetes.io/region": "sim-1",
            },
        },
        "spec": { "providerID": format!("simulated://sim-1a/{}", node.name_any()), "taints": [] },
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
    let named = json!({ "metadata": { "annotations": { NAME: format!("a{number:031}") } } });
    api.patch(name, &params, &Patch::Strategic(named)).await?;
    let condition = json!({
        "type": READY, "status": "True", "reason": "Ready", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z",
    });
    let address = json!({ "ip": format!("198.18.{}.{}", number / 250, number % 250 + 1) });
    let status = json!({ "status": { "loadBalancer": { "ingress": [address] }, "conditions": [condition] } });
    api.patch_status(name, &params, &Patch::Strategic(status)).await?;
    Ok(())
}
