//! Load balancers over real sockets: what crosses, what each answer becomes, and how often a node set is sent.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use ccm_provider_sdk::fake::{RawServer, Serving};
use jiff::Timestamp;
use tempfile::TempDir;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::*;
use crate::model::load_balancer::{LoadBalancerStatus, Protocol};
use crate::model::node::{Address, AddressType, Condition, ConditionStatus, Taint};
use crate::model::service::{IpFamily, IpFamilyPolicy, ServicePort, SessionAffinity, TrafficPolicy};
use crate::model::target::Target;
use crate::model::term::{Cloud, Term};
use crate::provider::Anyone;
use crate::provider::scripted;
use crate::provider::session::Session;
use crate::provider::{Outcome, ProviderState};

mod node_sets;
mod outcomes;
mod sdk;

/// Longer than anything here takes; only a failing test waits for it.
const PATIENCE: Duration = Duration::from_secs(20);

pub fn target(name: &str) -> Target {
    let map = |key: &str| BTreeMap::from([(key.to_owned(), "v".to_owned())]);
    Target {
        name: name.to_owned(),
        uid: format!("uid-{name}"),
        provider_id: Some(format!("fake://{name}")),
        labels: map("label"),
        annotations: map("annotation"),
        taints: vec![Taint { key: "t".to_owned(), value: None, effect: "NoExecute".to_owned(), time_added: None }],
        conditions: vec![Condition { kind: "Ready".to_owned(), status: ConditionStatus::True }],
        addresses: vec![Address { kind: AddressType::InternalIp, value: "10.0.0.1".to_owned() }],
        pod_cidrs: vec!["10.1.0.0/24".to_owned()],
        system_uuid: Some("uuid".to_owned()),
        zone: Some("z".to_owned()),
        region: None,
    }
}

pub fn targets(names: &[&str]) -> TargetSet {
    TargetSet::new(names.iter().map(|name| target(name)))
}

pub fn service(name: &str) -> Service {
    let port = ServicePort {
        name: "http".to_owned(),
        protocol: Protocol::Tcp,
        app_protocol: Some("http".to_owned()),
        port: 80,
        target_port: Some("web".to_owned()),
        node_port: Some(30080),
    };
    Service {
        namespace: "default".to_owned(),
        name: name.to_owned(),
        uid: format!("uid-{name}"),
        resource_version: "1".to_owned(),
        generation: 3,
        created_at: Timestamp::UNIX_EPOCH,
        deleted_at: None,
        labels: BTreeMap::new(),
        annotations: BTreeMap::from([("example.com/size".to_owned(), "large".to_owned())]),
        finalizers: vec!["service.kubernetes.io/load-balancer-cleanup".to_owned()],
        is_load_balancer: true,
        load_balancer_class: None,
        ports: vec![port],
        ip_families: vec![IpFamily::V6, IpFamily::V4],
        ip_family_policy: Some(IpFamilyPolicy::RequireDualStack),
        external_traffic_policy: Some(TrafficPolicy::Local),
        internal_traffic_policy: None,
        session_affinity: Some(SessionAffinity::ClientIp),
        session_affinity_timeout_seconds: Some(60),
        load_balancer_source_ranges: vec!["10.0.0.0/8".to_owned()],
        load_balancer_ip: Some("192.0.2.9".to_owned()),
        health_check_node_port: Some(30081),
        allocate_load_balancer_node_ports: Some(false),
        external_ips: Vec::new(),
        cluster_ips: vec!["10.96.0.1".to_owned()],
        status: LoadBalancerStatus::default(),
        condition: None,
    }
}

/// A session whose provider is not there yet.
struct Scenario {
    dir: TempDir,
    handle: Handle,
    balancers: Arc<ProviderLoadBalancers>,
    term: watch::Sender<Option<Term>>,
    work: JoinHandle<()>,
}

impl Drop for Scenario {
    fn drop(&mut self) {
        self.work.abort();
    }
}

impl Scenario {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let term = watch::Sender::new(None);
        let (handle, work) = Session::start(scripted::session_in(dir.path()), Arc::new(Anyone), term.subscribe());
        let balancers = Arc::new(handle.load_balancers());
        Self { dir, handle, balancers, term, work: tokio::spawn(work) }
    }

    /// A raw provider with these capabilities, ready.
    async fn with_raw(capabilities: &[v1::Capability]) -> (Self, RawServer, Serving<tonic::transport::Error>) {
        let (scenario, raw) = (Self::new(), RawServer::default());
        describe(&raw, "here", capabilities);
        let serving = scenario.serve(&raw);
        scenario.until(|state| state.ready().is_some()).await;
        (scenario, raw, serving)
    }

    fn endpoint(&self) -> String {
        format!("unix://{}", self.socket().display())
    }

    fn socket(&self) -> PathBuf {
        self.dir.path().join("p.sock")
    }

    fn serve(&self, raw: &RawServer) -> Serving<tonic::transport::Error> {
        drop(std::fs::remove_file(self.socket()));
        raw.start(&self.endpoint().parse().unwrap()).unwrap()
    }

    async fn until(&self, holds: impl FnMut(&ProviderState) -> bool) {
        let mut state = self.handle.state();
        tokio::time::timeout(PATIENCE, state.wait_for(holds)).await.unwrap().unwrap();
    }

    fn lead(&self, epoch: u64) {
        let valid_until = Instant::now() + Duration::from_secs(60);
        let cloud = Arc::new(Cloud::of(&self.handle.current().unwrap().info));
        self.term.send_replace(Some(Term { epoch, cloud, holder: "me".into(), valid_until }));
    }
}

/// Everything about load balancers, node sets included.
const ALL: &[v1::Capability] = &[
    v1::Capability::Lead,
    v1::Capability::LoadBalancers,
    v1::Capability::NodeSets,
    v1::Capability::PlanLoadBalancer,
    v1::Capability::ListLoadBalancers,
];

fn describe(raw: &RawServer, identity: &str, capabilities: &[v1::Capability]) {
    let info = v1::ProviderInfo {
        capabilities: capabilities.iter().map(|it| (*it).into()).collect(),
        cloud_identity: identity.to_owned(),
        service_annotation_prefixes: vec!["example.com/".to_owned()],
        ..RawServer::sound_info()
    };
    raw.info.always(move |_| Ok(v1::GetProviderInfoResponse { info: Some(info.clone()) }));
}

/// The error of the contract that a provider answers.
fn refusal(code: tonic::Code, reason: v1::ErrorReason, after: Option<Duration>) -> Status {
    let error = ccm_provider_sdk::ProviderError::new(code, reason, "words");
    after.into_iter().fold(error, ccm_provider_sdk::ProviderError::with_retry_after).into()
}
