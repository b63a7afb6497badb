//! What a real API server makes of the patches to Services, made by ccm-core's own writer under its own rights.
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use ccm_core::cluster::convert;
use ccm_core::cluster::gate::Gate;
use ccm_core::cluster::patch::{ConditionChange, ServicePatch, ServiceWriter, StatusPatch, WriteError};
use ccm_core::model::load_balancer::{Ingress, IngressAddress, IpMode, LoadBalancerStatus, PortStatus, Protocol};
use ccm_core::model::provider_info::{KeySelector, Limits, ProviderInfo};
use ccm_core::model::service::{Condition, Service};
use ccm_core::model::term::{Cloud, Term};
use ccm_core::names;
use ccm_core::provider::ProviderState;
use ccm_test_support::control_plane;
use ccm_test_support::world::World;
use k8s_openapi::api::core::v1 as core;
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use tokio::sync::watch;

const THEIRS: &str = "example.com/theirs";

/// The gate wants one; it is asked nothing.
fn provider() -> ProviderInfo {
    ProviderInfo {
        name: "test".into(),
        version: "1".into(),
        capabilities: BTreeSet::new(),
        provider_id_prefixes: vec![],
        cloud_identity: "cloud".into(),
        cluster_id: None,
        limits: Limits::default(),
        node_labels: KeySelector::default(),
        node_annotations: KeySelector::default(),
        node_taints: KeySelector::default(),
        node_conditions: BTreeSet::new(),
        service_annotation_prefixes: vec![],
    }
}

/// A gate that is open.
pub fn gate() -> Gate {
    let cloud = Arc::new(Cloud::of(&provider()));
    let term = Term { epoch: 1, cloud, holder: "test".into(), valid_until: Instant::now() + Duration::from_hours(1) };
    let (_, terms) = watch::channel(Some(term));
    let (_, states) = watch::channel(ProviderState::Ready(Arc::new(provider())));
    Gate::new(terms, states)
}

/// A Service of somebody's, and the writer.
struct Desk {
    world: World,
    services: Api<core::Service>,
    writer: ServiceWriter,
}

impl Desk {
    async fn new() -> Result<Self> {
        let world = World::start().await?;
        let core = control_plane::client(&world.dir().join("ccm-core.kubeconfig")).await?;
        let services = Api::namespaced(world.admin(), "default");
        Ok(Self { services, writer: ServiceWriter::new(core, gate()), world })
    }

    async fn create(&self, finalizers: &[&str]) -> Result<Service> {
        let service: core::Service = serde_json::from_value(json!({
            "metadata": { "name": "web", "finalizers": finalizers, "annotations": { "kept": "1", "old": "2" } },
            "spec": { "type": "LoadBalancer", "ports": [{ "port": 80 }] },
        }))?;
        let created = serde_json::to_value(self.services.create(&PostParams::default(), &service).await?)?;
        Ok(convert::service(serde_json::from_value(created)?))
    }

    async fn raw(&self) -> Result<Value> {
        Ok(serde_json::to_value(self.services.get("web").await?)?)
    }

    async fn set(&self, service: &Service, finalizer: bool) -> Result<Service, WriteError> {
        let patch = ServicePatch { finalizer: Some(finalizer), ..ServicePatch::default() };
        self.writer.patch(service, &patch).await
    }
}

fn condition(reason: &str) -> Condition {
    Condition {
        ready: false,
        reason: reason.into(),
        message: "x".repeat(40_000),
        observed_generation: 2,
        since: "2024-05-06T07:08:09Z".parse().expect("a time"),
    }
}

fn status(ingress: impl IntoIterator<Item = Ingress>) -> LoadBalancerStatus {
    LoadBalancerStatus { ingress: ingress.into_iter().collect() }
}

fn ip(text: &str, ports: Vec<PortStatus>) -> Ingress {
    Ingress { address: IngressAddress::Ip(text.parse().expect("an address"), Some(IpMode::Proxy)), ports }
}

fn types(service: &Value) -> Vec<&str> {
    let list = service["status"]["conditions"].as_array();
    list.into_iter().flatten().filter_map(|condition| condition["type"].as_str()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn finalizers_of_others_stay_whatever_happens_to_ours() -> Result<()> {
    let desk = Desk::new().await?;
    let created = desk.create(&[THEIRS]).await?;
    let annotations = BTreeMap::from([("old".to_owned(), None), ("new".to_owned(), Some("3".to_owned()))]);
    let patch = ServicePatch { finalizer: Some(true), annotations };
    let with = desk.writer.patch(&created, &patch).await?;
    assert_eq!(with.finalizers, [names::LOAD_BALANCER_FINALIZER, THEIRS], "the API server puts the new one first");
    assert_eq!(with.annotations.keys().collect::<Vec<_>>(), ["kept", "new"]);
    let again = desk.set(&with, true).await?;
    assert_eq!(again.finalizers, with.finalizers);
    let without = desk.set(&again, false).await?;
    assert_eq!(without.finalizers, [THEIRS]);
    assert_eq!(desk.set(&without, false).await?.finalizers, [THEIRS], "removing what is not there is nothing");
    desk.world.end().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_goes_with_its_last_finalizer_and_is_gone_for_the_writer() -> Result<()> {
    let desk = Desk::new().await?;
    let with = desk.set(&desk.create(&[]).await?, true).await?;
    assert!(with.has_finalizer());
    desk.services.delete("web", &DeleteParams::default()).await?;
    let deleted = desk.writer.get(&with).await?;
    assert!(deleted.deleted_at.is_some());
    assert!(matches!(desk.set(&with, false).await, Err(WriteError::Conflict)), "the resourceVersion is an old one");
    assert!(!desk.set(&deleted, false).await?.has_finalizer());
    assert!(matches!(desk.writer.get(&deleted).await, Err(WriteError::Gone)));
    assert!(matches!(desk.set(&deleted, false).await, Err(WriteError::Gone)));
    let another = desk.create(&[]).await?;
    assert!(matches!(desk.writer.get(&deleted).await, Err(WriteError::Gone)), "another of its name is not this one");
    let refused = desk.set(&deleted, true).await;
    assert!(matches!(refused, Err(WriteError::Conflict)), "nothing is written to another of its name: {refused:?}");
    assert!(!desk.writer.get(&another).await?.has_finalizer());
    desk.world.end().await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_addresses_are_replaced_as_a_whole_and_by_whatever_comes() -> Result<()> {
    let desk = Desk::new().await?;
    let busy = PortStatus { port: 80, protocol: Protocol::Tcp, error: Some("Busy".into()) };
    let name = Ingress { address: IngressAddress::Hostname("lb.example.com".into()), ports: vec![] };
    let both = IngressAddress::IpAndHostname("192.0.2.5".parse()?, Some(IpMode::Proxy), "lb.example.com".into());
    let both = Ingress { address: both, ports: vec![] };
    let mut service = desk.create(&[]).await?;
    let lists = [
        vec![ip("192.0.2.1", vec![busy.clone()]), ip("192.0.2.2", vec![])],
        vec![ip("192.0.2.2", vec![])],
        vec![name, ip("192.0.2.1", vec![busy])],
        vec![both],
        vec![],
        vec![ip("192.0.2.3", vec![])],
    ];
    for list in lists {
        let patch = StatusPatch { load_balancer: Some(status(list.clone())), ..StatusPatch::default() };
        service = desk.writer.patch_status(&service, &patch).await?;
        assert_eq!(service.status.ingress, list);
    }
    let vip = Ingress { address: IngressAddress::Ip("192.0.2.4".parse()?, None), ports: vec![] };
    let patch = StatusPatch { load_balancer: Some(status([vip])), ..StatusPatch::default() };
    let after = desk.writer.patch_status(&service, &patch).await?;
    let vip = IngressAddress::Ip("192.0.2.4".parse()?, Some(IpMode::Vip));
    assert_eq!(after.status.ingress[0].address, vip, "Kubernetes says VIP where nothing is said");
    let stale = desk.writer.patch_status(&service, &patch).await;
    assert!(matches!(stale, Err(WriteError::Conflict)), "{stale:?}");
    desk.world.end().await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_conditions_of_others_stay_whatever_happens_to_ours() -> Result<()> {
    let desk = Desk::new().await?;
    let created = desk.create(&[]).await?;
    let remove = StatusPatch { condition: Some(ConditionChange::Remove), ..StatusPatch::default() };
    let untouched = desk.writer.patch_status(&created, &remove).await?;
    assert_eq!(types(&desk.raw().await?), [""; 0], "removing what is not there is nothing");
    let set = |reason, load_balancer| StatusPatch {
        load_balancer,
        condition: Some(ConditionChange::Set(condition(reason))),
        ..StatusPatch::default()
    };
    let first = desk.writer.patch_status(&untouched, &set("Provisioning", None)).await?;
    let cut = Condition { message: "x".repeat(32_768), ..condition("Provisioning") };
    assert_eq!(first.condition, Some(cut.clone()));
    let theirs = json!({ "status": { "conditions": [{
        "type": "Theirs", "status": "True", "reason": "R", "message": "", "lastTransitionTime": "2024-01-01T00:00:00Z",
    }] } });
    desk.services.patch_status("web", &PatchParams::default(), &Patch::Strategic(theirs)).await?;
    let fresh = desk.writer.get(&first).await?;
    let second = desk.writer.patch_status(&fresh, &set("Quota", Some(status([ip("192.0.2.1", vec![])])))).await?;
    assert_eq!((second.status.ingress.len(), second.condition), (1, Some(Condition { reason: "Quota".into(), ..cut })));
    let raw = desk.raw().await?;
    let theirs = raw["status"]["conditions"].as_array().context("conditions")?.iter().find(|it| it["type"] == "Theirs");
    assert_eq!((types(&raw).len(), theirs.context("their condition")?["reason"].as_str()), (2, Some("R")));
    let removed = desk.writer.patch_status(&desk.writer.get(&first).await?, &remove).await?;
    assert_eq!((removed.condition, removed.status.ingress.len()), (None, 1));
    assert_eq!(types(&desk.raw().await?), ["Theirs"]);
    desk.world.end().await
}

#[tokio::test(flavor = "multi_thread")]
async fn annotations_are_written_with_the_status_in_one_write() -> Result<()> {
    let desk = Desk::new().await?;
    let created = desk.create(&[THEIRS]).await?;
    let annotations = BTreeMap::from([("old".to_owned(), None), ("new".to_owned(), Some("3".to_owned()))]);
    let load_balancer = Some(status([ip("192.0.2.1", vec![])]));
    let patch = StatusPatch { load_balancer, condition: Some(ConditionChange::Set(condition("Ready"))), annotations };
    let after = desk.writer.patch_status(&created, &patch).await?;
    assert_eq!(after.annotations.keys().collect::<Vec<_>>(), ["kept", "new"]);
    assert_eq!(
        (after.status.ingress.len(), after.condition.is_some(), after.finalizers.as_slice()),
        (1, true, &[THEIRS.to_owned()][..])
    );
    let raw = desk.raw().await?;
    assert_eq!(raw["metadata"]["annotations"]["new"], "3");
    assert_eq!(after.generation, created.generation, "it is no change of the user's");
    let only = StatusPatch { annotations: BTreeMap::from([("new".to_owned(), Some("4".to_owned()))]), ..StatusPatch::default() };
    assert_eq!(desk.writer.patch_status(&after, &only).await?.annotations["new"], "4");
    desk.world.end().await
}
