//! What a real API server makes of the patches to a node's status, made by ccm-core's own writer under its own rights.
use anyhow::{Context, Result};
use ccm_core::cluster::convert;
use ccm_core::cluster::patch::{NetworkCondition, NodeStatusPatch, NodeWriter, WriteError};
use ccm_core::model::node::{Address, AddressType, NetworkUnavailable, Node};
use ccm_test_support::control_plane;
use ccm_test_support::world::World;
use k8s_openapi::api::core::v1 as core;
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use serde_json::json;

use super::service_patches::gate;

fn as_model(node: core::Node) -> Result<Node> {
    Ok(convert::node(serde_json::from_value(serde_json::to_value(node)?)?))
}

async fn create(nodes: &Api<core::Node>) -> Result<Node> {
    let node = serde_json::from_value(json!({ "metadata": { "name": "a" } }))?;
    nodes.create(&PostParams::default(), &node).await?;
    let ready = json!({ "status": { "conditions": [{ "type": "Ready", "status": "True", "reason": "KubeletReady" }] } });
    as_model(nodes.patch_status("a", &PatchParams::default(), &Patch::Strategic(ready)).await?)
}

#[tokio::test]
async fn the_network_condition_changes_alone_and_only_on_the_node_that_was_read() -> Result<()> {
    let world = World::start().await?;
    let client = control_plane::client(&world.dir().join("ccm-core.kubeconfig")).await?;
    let (writer, nodes) = (NodeWriter::new(client, gate()), Api::<core::Node>::all(world.admin()));
    let joined = create(&nodes).await?;

    let addresses = vec![Address { kind: AddressType::InternalIp, value: "10.0.0.1".to_owned() }];
    let first = NodeStatusPatch { addresses: Some(addresses), network: Some(NetworkCondition::NoRouteYet) };
    let waiting = writer.patch_status(&joined, &first).await?;
    assert_eq!(waiting.network_unavailable, NetworkUnavailable::NoRouteCreated);
    assert_eq!((waiting.addresses.len(), waiting.conditions.len()), (1, 2));

    // Made from a version before the last write, as after a heartbeat.
    let routed = writer.network_condition(&joined, true).await?;
    assert_eq!((routed.network_unavailable, routed.conditions.len()), (NetworkUnavailable::RouteCreated, 2));
    let conditions = nodes.get("a").await?.status.and_then(|status| status.conditions).context("it has no conditions")?;
    let network = conditions.iter().find(|it| it.type_ == "NetworkUnavailable").context("it has no such condition")?;
    assert!(network.last_transition_time.is_some() && network.last_heartbeat_time.is_some());
    assert_eq!(network.message.as_deref(), Some("RouteController created a route"));

    nodes.delete("a", &DeleteParams::default()).await?;
    assert!(matches!(writer.network_condition(&joined, false).await, Err(WriteError::Gone)));
    create(&nodes).await?;
    let refused = writer.network_condition(&joined, false).await;
    assert!(matches!(refused, Err(WriteError::Gone)), "{refused:?}");
    assert_eq!(as_model(nodes.get("a").await?)?.network_unavailable, NetworkUnavailable::Absent);
    Ok(())
}
