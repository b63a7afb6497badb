//! A provider whose answers are scripted, and a world around the controller.
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use async_trait::async_trait;
use jiff::Timestamp;
use parking_lot::Mutex;
use prometheus_client::registry::Registry;
use serde_json::{Value, json};
use tokio::sync::{mpsc, watch};

use crate::cluster::events::{Event, Events};
use crate::cluster::gate::Gate;
use crate::cluster::nodes::Nodes;
use crate::cluster::patch::NodeWriter;
use crate::cluster::scripted::ApiServer;
use crate::controllers::NodeContext;
use crate::model::instance::{Answer, Instance, InstanceState, Lookup, NodeQuery};
use crate::model::node::{Address, AddressType};
use crate::model::provider_info::{Capability, Limits, ProviderInfo};
use crate::model::term::{Cloud, Term};
use crate::names::taints;
use crate::provider::{Identity, Instances, Outcome, Priority, ProviderError, ProviderState};
use crate::telemetry::cloud_health::CloudHealth;
use crate::telemetry::health::Health;
use crate::telemetry::metrics::NodeMetrics;

/// A provider that serves look-ups and routes.
pub fn provider() -> ProviderInfo {
    ProviderInfo {
        name: "fake".into(),
        version: "1".into(),
        capabilities: [Capability::Instances, Capability::Routes].into(),
        provider_id_prefixes: ["fake://", "aws://", "node0.", "test-"].map(str::to_owned).into(),
        cloud_identity: "cloud".into(),
        limits: Limits { max_batch_size: 500, max_concurrent_instance_calls: 1, ..Limits::default() },
        ..ProviderInfo::default()
    }
}

/// A running machine of which nothing else is known.
pub fn instance(provider_id: Option<&str>) -> Instance {
    Instance {
        provider_id: provider_id.map(str::to_owned),
        state: InstanceState::Running,
        instance_type: None,
        zone: None,
        region: None,
        addresses: vec![],
        additional_labels: [].into(),
        pod_cidrs: vec![],
        warnings: vec![],
    }
}

/// A running machine of which everything is known.
pub fn machine(name: &str) -> Lookup {
    let address = Address { kind: AddressType::InternalIp, value: "10.0.0.1".into() };
    Lookup::Found(Box::new(Instance {
        instance_type: Some("small".into()),
        zone: Some("zone-a".into()),
        region: Some("region".into()),
        addresses: vec![address],
        additional_labels: [("example.com/rack".to_owned(), "r1".to_owned())].into(),
        ..instance(Some(&format!("fake://{name}")))
    }))
}

/// A node as kubelet registers it.
pub fn tainted(name: &str) -> Value {
    json!({
        "metadata": { "name": name, "uid": format!("uid-{name}"), "creationTimestamp": "2024-01-01T00:00:00Z" },
        "spec": { "taints": [{ "key": taints::UNINITIALIZED, "value": "true", "effect": "NoSchedule" }] },
        "status": { "addresses": [{ "type": "Hostname", "address": name }] },
    })
}

/// An error that a repeat may mend.
pub fn busy() -> ProviderError {
    error(Outcome::Retry { after: None })
}

/// An error with this outcome.
pub fn error(outcome: Outcome) -> ProviderError {
    ProviderError { outcome, reason: "SCRIPTED".into(), message: "scripted".into() }
}

type Reply = Result<Lookup, ProviderError>;

/// Answers by node name: the scripted replies one after another, the last one for ever.
#[derive(Default)]
pub struct FakeInstances {
    replies: Mutex<HashMap<String, Vec<Reply>>>,
    asked: Mutex<Vec<(String, Priority)>>,
    /// How many look-ups must wait together before any is answered.
    together: Mutex<Option<Arc<tokio::sync::Barrier>>>,
    panics: Mutex<String>,
}

impl FakeInstances {
    /// Scripts the replies for a node.
    pub fn reply(&self, name: &str, replies: impl IntoIterator<Item = Reply>) {
        self.replies.lock().insert(name.to_owned(), replies.into_iter().collect());
    }

    /// Panics when asked about this node, instead of an answer.
    pub fn panic_over(&self, name: &str) {
        name.clone_into(&mut self.panics.lock());
    }

    /// Answers none before so many ask.
    pub fn answer_together(&self, count: usize) {
        *self.together.lock() = Some(Arc::new(tokio::sync::Barrier::new(count)));
    }

    /// Who was asked about so far, and with which priority.
    pub fn asked(&self) -> Vec<(String, Priority)> {
        self.asked.lock().clone()
    }
}

#[async_trait]
impl Instances for FakeInstances {
    async fn look_up(&self, query: NodeQuery, priority: Priority) -> Result<Answer, ProviderError> {
        self.asked.lock().push((query.node_name.clone(), priority));
        let panics = *self.panics.lock() == query.node_name;
        assert!(!panics, "scripted");
        let barrier = self.together.lock().clone();
        if let Some(barrier) = barrier {
            barrier.wait().await;
        }
        let mut replies = self.replies.lock();
        let reply = match replies.get_mut(&query.node_name) {
            Some(list) if list.len() > 1 => list.remove(0),
            Some(list) => list[0].clone(),
            None => Ok(machine(&query.node_name)),
        };
        Ok(Answer { lookup: reply?, observed_at: Timestamp::now(), cloud_identity: "cloud".into() })
    }
}

struct NoIdentity;

#[async_trait]
impl Identity for NoIdentity {
    async fn confirm(&self) -> Result<Arc<ProviderInfo>, ProviderError> {
        Err(error(Outcome::Unsupported))
    }
}

/// All that surrounds the controller.
pub struct World {
    /// What it is given.
    pub ctx: NodeContext,
    /// The API server; what changes there is shown in the context's nodes.
    pub server: ApiServer,
    /// The provider's machines.
    pub instances: Arc<FakeInstances>,
    /// The provider's state.
    pub provider: watch::Sender<ProviderState>,
    /// The lease.
    pub term: watch::Sender<Option<Term>>,
    /// The events.
    pub notes: mpsc::Receiver<Event>,
}

impl World {
    /// A world with these nodes, the lease held and the provider ready.
    pub fn new(nodes: impl IntoIterator<Item = Value>) -> Self {
        let server = ApiServer::with_nodes(nodes);
        let view = Nodes::fixed(server.nodes());
        server.feed_nodes(&view);
        let valid_until = Instant::now() + std::time::Duration::from_hours(1);
        let term = Term { epoch: 1, cloud: Arc::new(Cloud::of(&provider())), holder: "me".into(), valid_until };
        let (term, terms) = watch::channel(Some(term));
        let (provider, states) = watch::channel(ProviderState::Ready(Arc::new(provider())));
        let (events, receiver) = Events::queue(100_000);
        let instances = Arc::new(FakeInstances::default());
        let health = Health::default();
        let ctx = NodeContext {
            nodes: view,
            writer: NodeWriter::new(server.client(), Gate::new(terms, states.clone())),
            events,
            instances: Arc::clone(&instances) as Arc<dyn Instances>,
            identity: Arc::new(NoIdentity),
            provider: states,
            metrics: NodeMetrics::new(&mut Registry::default()),
            cloud: CloudHealth::new(health.clone()),
            health,
        };
        Self { ctx, server, instances, provider, term, notes: receiver }
    }

    /// Adds or changes a node, as somebody else would.
    pub fn put(&self, node: Value) {
        self.server.put_node(node);
    }

    /// The reasons of the events so far.
    pub fn reasons(&mut self) -> Vec<String> {
        std::iter::from_fn(|| self.notes.try_recv().ok()).map(|note| note.reason).collect()
    }
}
