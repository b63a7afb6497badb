//! Nodes that join: what they get, and what it costs.
use std::collections::BTreeMap;

use anyhow::Result;
use ccm_test_support::kubelet::{Registration, names};
use ccm_test_support::wait::{PATIENCE, eventually};
use ccm_test_support::world::World;
use k8s_openapi::api::core::v1::{Event, Node};
use kube::Api;
use kube::api::ListParams;

use crate::herd::Herd;

fn label<'a>(node: &'a Node, key: &str) -> Option<&'a str> {
    node.metadata.labels.as_ref()?.get(key).map(String::as_str)
}

fn addresses(node: &Node) -> Vec<(&str, &str)> {
    let all = node.status.as_ref().and_then(|status| status.addresses.as_deref()).unwrap_or_default();
    all.iter().map(|address| (address.type_.as_str(), address.address.as_str())).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_joining_node_gets_what_the_cloud_knows_of_its_machine_in_two_writes() -> Result<()> {
    let herd = Herd::of(3).await?;
    for name in &herd.names {
        let node = herd.kubelets.get(name).await?;
        let zone = label(&node, "topology.kubernetes.io/zone").expect("a zone");
        let id = node.spec.as_ref().and_then(|spec| spec.provider_id.as_deref()).expect("a providerID");
        assert!(id.starts_with("simulated://") && id.contains(zone), "{id} in {zone}");
        assert_eq!(label(&node, "failure-domain.beta.kubernetes.io/zone"), Some(zone));
        assert_eq!(label(&node, "topology.kubernetes.io/region"), label(&node, "failure-domain.beta.kubernetes.io/region"));
        assert_eq!(label(&node, "node.kubernetes.io/instance-type"), label(&node, "beta.kubernetes.io/instance-type"));
        assert!(label(&node, "node.kubernetes.io/instance-type").is_some());
        assert!(addresses(&node).iter().any(|(kind, _)| *kind == "InternalIP"), "{:?}", addresses(&node));
        assert!(addresses(&node).contains(&("Hostname", name)), "kubelet's own address is kept: {:?}", addresses(&node));
    }
    let writes = herd.world.audit().node_writes()?;
    let two_each: BTreeMap<_, _> = herd.names.iter().map(|name| (name.clone(), 2)).collect();
    assert_eq!(writes.successful, two_each, "{} conflicts", writes.conflicts);
    herd.end().await
}

#[tokio::test(flavor = "multi_thread")]
async fn five_hundred_nodes_at_once_need_few_calls_and_two_writes_each() -> Result<()> {
    let world = World::start().await?;
    let provider = world.provider().flag("--auto-instances").flag("--latency=20ms").start().await?;
    let names = names("node", 500);
    world.kubelets().join(&names).await?;
    // On default flags.
    let core = world.core().start().await?;
    eventually("all to be initialised", PATIENCE, async || world.kubelets().initialised(&names).await).await?;
    let (calls, writes) = (provider.look_ups().await?, world.audit().node_writes()?);
    assert!(calls <= 10, "{calls} calls of BatchGetInstances for 500 nodes");
    assert_eq!(writes.successful.len(), 500);
    assert!(writes.most() <= 2, "a node got {} writes", writes.most());
    core.stop().await?;
    provider.stop().await?;
    world.end().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_whose_machine_the_cloud_does_not_know_yet_is_initialised_once_it_does() -> Result<()> {
    let herd = Herd::of(1).await?;
    let late = names("late", 1);
    herd.kubelets.register(late.iter().map(Registration::new)).await?;
    herd.provider.asked_again(2).await?;
    assert!(herd.kubelets.initialised(&late).await.is_err());
    herd.provider.machines("add", &late).await?;
    herd.initialised(&late).await?;
    herd.end().await
}

#[tokio::test(flavor = "multi_thread")]
async fn events_are_selected_by_the_controller_that_reports_them() -> Result<()> {
    let herd = Herd::of(2).await?;
    let events: Api<Event> = Api::all(herd.world.admin());
    for selector in ["reportingComponent=cloud-node-controller", "source=cloud-node-controller"] {
        eventually(&format!("events by {selector}"), PATIENCE, async || {
            let reasons: Vec<_> =
                events.list(&ListParams::default().fields(selector)).await?.into_iter().map(|it| it.reason).collect();
            anyhow::ensure!(reasons == vec![Some("Synced".to_owned()); 2], "{reasons:?}");
            Ok(())
        })
        .await?;
    }
    herd.end().await
}
