//! A cluster, a cloud and a controller between them.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
use std::collections::HashMap;

use async_trait::async_trait;
use parking_lot::Mutex;
use prometheus_client::registry::Registry;
use serde_json::{Value, json};
use tokio::sync::{mpsc, watch};

use super::super::fixtures::{IDENTITY, at, found, provider};
use super::super::*;
use crate::cluster::events::{Event, Events};
use crate::cluster::gate::Gate;
use crate::cluster::nodes::Nodes;
use crate::cluster::patch::NodeWriter;
use crate::cluster::scripted::ApiServer;
use crate::cluster::state::{Beginning, StateStore};
use crate::model::instance::{Answer, InstanceState, Lookup, NodeQuery};
use crate::model::node::Ready;
use crate::model::term::{self as model, Term};
use crate::provider::{Identity, Instances, Priority, ProviderError, ProviderState};
use crate::telemetry::cloud_health::CloudHealth;
use crate::telemetry::health::{Check, Health};
use crate::telemetry::metrics::NodeMetrics;

pub const NODES: &str = "/api/v1/nodes";
pub const MAP: &str = "/api/v1/namespaces/kube-system/configmaps/ccm-core-simulated";

/// The cloud: every machine runs unless told otherwise, and its data is always fresh.
pub struct Cloud {
    answers: Mutex<HashMap<String, Result<Lookup, ProviderError>>>,
    others: Mutex<Result<Lookup, ProviderError>>,
    identity: Mutex<Result<String, ProviderError>>,
    begun: Instant,
    calls: Mutex<usize>,
}

impl Cloud {
    fn new() -> Self {
        Self {
            answers: Mutex::default(),
            others: Mutex::new(Ok(found(InstanceState::Running))),
            identity: Mutex::new(Ok(IDENTITY.to_owned())),
            begun: Instant::now(),
            calls: Mutex::default(),
        }
    }

    pub fn answer(&self, name: &str, answer: Result<Lookup, ProviderError>) {
        self.answers.lock().insert(name.to_owned(), answer);
    }

    pub fn answer_all(&self, answer: Result<Lookup, ProviderError>) {
        self.answers.lock().clear();
        *self.others.lock() = answer;
    }

    pub fn confirm_as(&self, identity: Result<&str, ProviderError>) {
        *self.identity.lock() = identity.map(str::to_owned);
    }

    pub fn calls(&self) -> usize {
        *self.calls.lock()
    }
}

#[async_trait]
impl Instances for Cloud {
    async fn look_up(&self, query: NodeQuery, priority: Priority) -> Result<Answer, ProviderError> {
        assert_eq!(priority, Priority::Lifecycle);
        *self.calls.lock() += 1;
        let answer = self.answers.lock().get(&query.node_name).cloned();
        let lookup = answer.unwrap_or_else(|| self.others.lock().clone())?;
        let observed_at = at(i64::try_from(self.begun.elapsed().as_secs()).unwrap());
        Ok(Answer { lookup, observed_at, cloud_identity: Arc::from(IDENTITY) })
    }
}

#[async_trait]
impl Identity for Cloud {
    async fn confirm(&self) -> Result<Arc<ProviderInfo>, ProviderError> {
        let identity = self.identity.lock().clone()?;
        Ok(Arc::new(ProviderInfo { cloud_identity: identity, ..provider() }))
    }
}

pub struct World {
    pub api: ApiServer,
    pub cloud: Arc<Cloud>,
    pub ctx: NodeContext,
    term: watch::Sender<Option<Term>>,
    provider: watch::Sender<ProviderState>,
    notes: mpsc::Receiver<Event>,
    told: Vec<Event>,
}

impl World {
    pub fn new(nodes: impl IntoIterator<Item = Node>) -> Self {
        let nodes: Vec<_> = nodes.into_iter().collect();
        let (api, cloud) = (ApiServer::default(), Arc::new(Cloud::new()));
        let valid_until = std::time::Instant::now() + Duration::from_hours(24);
        let of = Arc::new(model::Cloud::of(&provider()));
        let (term, terms) = watch::channel(Some(Term { epoch: 1, cloud: of, holder: Arc::from("test"), valid_until }));
        let (provider, states) = watch::channel(ProviderState::Ready(Arc::new(provider())));
        let (events, notes) = Events::queue(10_000);
        let health = Health::default();
        let ctx = NodeContext {
            nodes: Nodes::fixed(nodes.clone()),
            writer: NodeWriter::new(api.client(), Gate::new(terms, states.clone())),
            events,
            instances: cloud.clone(),
            identity: cloud.clone(),
            provider: states,
            metrics: NodeMetrics::new(&mut Registry::default()),
            cloud: CloudHealth::new(health.clone()),
            health,
        };
        let world = Self { api, cloud, ctx, term, provider, notes, told: Vec::new() };
        nodes.iter().for_each(|node| world.put(node));
        world
    }

    /// Starts the controller anew, and stops it after so long. The nodes that are gone by then are gone from its view, too.
    pub async fn run_for(&mut self, time: Duration) {
        let left = self.ctx.nodes.list().into_iter().filter(|node| self.api.object(&path(node)).is_some());
        self.ctx.nodes = Nodes::fixed(left.map(|node| (*node).clone()));
        self.run_on(time).await;
    }

    /// The same, with the view that there is.
    pub async fn run_on(&mut self, time: Duration) {
        let shutdown = CancellationToken::new();
        let store = self.begun();
        let running = tokio::spawn(run(self.ctx.clone(), store, LifecycleConfig::default(), shutdown.clone()));
        tokio::time::sleep(time).await;
        shutdown.cancel();
        running.await.unwrap();
        while let Ok(note) = self.notes.try_recv() {
            self.told.push(note);
        }
    }

    /// The state of the term that [`World::new`] has begun: its identity and epoch are in the ConfigMap.
    fn begun(&self) -> TermStore {
        let mut map =
            self.api.object(MAP).unwrap_or_else(|| json!({ "metadata": { "name": "ccm-core-simulated", "uid": "map" } }));
        map["data"]["cloud-identity"] = json!(IDENTITY);
        map["data"]["epoch"] = json!("1");
        self.api.put(MAP, map);
        let (store, gate) = (StateStore::new(self.api.client(), "simulated"), self.ctx.writer.gate().clone());
        let beginning = Beginning { identity: IDENTITY.to_owned(), epoch: 1, worked_before: false, set_back: false };
        TermStore::begun(store, beginning, gate, self.ctx.events.clone())
    }

    /// Puts a node into the API server, past the controller's view of it.
    pub fn put(&self, node: &Node) {
        self.api.put(&path(node), object(node));
    }

    pub fn lose_lease(&mut self) {
        self.term.send_replace(None);
    }

    pub fn lose_provider(&mut self) {
        self.provider.send_replace(ProviderState::Unusable { message: "a test".to_owned() });
    }

    /// What the events of a reason were about.
    pub fn events(&self, reason: &str) -> Vec<String> {
        self.told.iter().filter(|note| note.reason == reason).map(|note| note.subject.name.clone()).collect()
    }

    pub fn check(&self, concern: &str) -> Option<Check> {
        self.ctx.health.checks().remove(concern)
    }

    /// A key of the state; empty if there is none.
    pub fn data(&self, key: &str) -> String {
        let map = self.api.object(MAP).unwrap();
        map["data"][key].as_str().unwrap_or_default().to_owned()
    }

    pub fn trip_id(&self) -> String {
        let trips: Value = serde_json::from_str(&self.data("breakers")).unwrap();
        assert_eq!(trips.as_array().unwrap().len(), 1);
        trips[0]["id"].as_str().unwrap().to_owned()
    }

    pub fn annotate_map(&self, key: &str, value: &str) {
        let mut map = self.api.object(MAP).unwrap();
        map["metadata"]["annotations"] = json!({ key: value });
        self.api.put(MAP, map);
    }
}

fn path(node: &Node) -> String {
    format!("{NODES}/{}", node.name)
}

fn object(node: &Node) -> Value {
    let status = match node.ready {
        Ready::True => "True",
        Ready::False => "False",
        Ready::Unknown => "Unknown",
    };
    let taints: Vec<_> = node.taints.iter().map(|taint| json!({ "key": taint.key, "effect": taint.effect })).collect();
    json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": node.name,
            "uid": node.uid,
            "labels": node.labels,
            "annotations": node.annotations,
            "creationTimestamp": node.created_at.to_string(),
        },
        "spec": { "providerID": node.provider_id, "unschedulable": node.unschedulable, "taints": taints },
        "status": { "conditions": [{ "type": "Ready", "status": status }] },
    })
}
