//! A cluster, a routing table, and the controller between them.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use parking_lot::Mutex;
use prometheus_client::registry::Registry;
use serde_json::{Value, json};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::cluster::events::{Event, Events};
use crate::cluster::gate::Gate;
use crate::cluster::nodes::Nodes;
use crate::cluster::patch::NodeWriter;
use crate::cluster::scripted::ApiServer;
use crate::cluster::state::{Beginning, StateStore, TermStore};
use crate::controllers::route::{RouteConfig, RouteContext, run};
use crate::model::provider_info::{Capability, ProviderInfo};
use crate::model::route::{Route, WantedRoute};
use crate::model::term::{Cloud, Term};
use crate::provider::scripted::routes::{Call, ScriptedRoutes};
use crate::provider::{Identity, ProviderError, ProviderState};
use crate::telemetry::cloud_health::CloudHealth;
use crate::telemetry::health::{Check, Health};
use crate::telemetry::metrics::routes::RouteMetrics;

const NODES: &str = "/api/v1/nodes";
const MAP: &str = "/api/v1/namespaces/kube-system/configmaps/ccm-core-fake";

/// A provider that serves routes.
pub fn provider() -> ProviderInfo {
    ProviderInfo {
        name: "fake".into(),
        capabilities: [Capability::Routes].into(),
        provider_id_prefixes: vec!["fake://".into()],
        cloud_identity: "cloud".into(),
        ..ProviderInfo::default()
    }
}

/// 10.0.0.0/8 and fd00::/8, upstream's names and our periods.
pub fn config() -> RouteConfig {
    RouteConfig {
        cluster_cidrs: ["10.0.0.0/8", "fd00::/8"].map(|cidr| cidr.parse().unwrap()).into(),
        reconciliation_period: Duration::from_mins(5),
        deletion_window: Duration::from_mins(10),
        deletion_fraction: 0.2,
    }
}

/// An initialised node with the Pod CIDR 10.0.NUMBER.0/24 and the machine `fake://nNUMBER`.
pub fn node(number: u32) -> Value {
    let name = format!("n{number}");
    json!({
        "metadata": { "name": name, "uid": format!("uid-{name}"), "creationTimestamp": "2024-01-01T00:00:00Z" },
        "spec": { "providerID": format!("fake://{name}"), "podCIDRs": [cidr(number)] },
        "status": { "addresses": [{ "type": "InternalIP", "address": format!("192.168.{}.{}", number / 250, number % 250) }] },
    })
}

/// 10.X.NUMBER.0/24 for numbers up to 65535.
pub fn cidr(number: u32) -> String {
    format!("10.{}.{}.0/24", number / 256, number % 256)
}

/// Changes a JSON object.
pub fn with(mut object: Value, change: impl FnOnce(&mut Value)) -> Value {
    change(&mut object);
    object
}

/// The route of node nNUMBER, as the table lists it.
pub fn route(number: u32) -> Route {
    crate::provider::scripted::routes::ours(&format!("n{number}"), &cidr(number))
}

/// Says who the provider is, and counts how often it is asked.
#[derive(Default)]
pub struct Who {
    pub asked: AtomicUsize,
    /// What it answers instead.
    pub instead: Mutex<Option<Result<ProviderInfo, ProviderError>>>,
}

#[async_trait]
impl Identity for Who {
    async fn confirm(&self) -> Result<Arc<ProviderInfo>, ProviderError> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        self.instead.lock().clone().unwrap_or_else(|| Ok(provider())).map(Arc::new)
    }
}

pub struct World {
    pub api: ApiServer,
    /// What the watch has shown.
    pub nodes: Nodes,
    pub table: ScriptedRoutes,
    pub who: Arc<Who>,
    pub provider: watch::Sender<ProviderState>,
    pub term: watch::Sender<Option<Term>>,
    pub metrics: RouteMetrics,
    pub health: Health,
    pub config: RouteConfig,
    events: Events,
    notes: mpsc::Receiver<Event>,
    running: Option<(JoinHandle<()>, CancellationToken)>,
}

impl World {
    /// Nodes and a table; the lease is held and the provider ready.
    pub fn new(nodes: impl IntoIterator<Item = Value>, routes: impl IntoIterator<Item = Route>) -> Self {
        let api = ApiServer::with_nodes(nodes);
        let view = Nodes::fixed(api.nodes());
        api.feed_nodes(&view);
        let map = json!({
            "metadata": { "name": "ccm-core-fake", "uid": "map" },
            "data": { "cloud-identity": "cloud", "epoch": "7" },
        });
        api.put(MAP, map);
        let (events, notes) = Events::queue(100_000);
        let valid_until = Instant::now() + Duration::from_hours(1);
        let term = Term { epoch: 7, cloud: Arc::new(Cloud::of(&provider())), holder: "me".into(), valid_until };
        Self {
            nodes: view,
            table: ScriptedRoutes::new(routes),
            who: Arc::default(),
            provider: watch::channel(ProviderState::Ready(Arc::new(provider()))).0,
            term: watch::channel(Some(term)).0,
            metrics: RouteMetrics::new(&mut Registry::default()),
            health: Health::default(),
            config: config(),
            api,
            events,
            notes,
            running: None,
        }
    }

    /// The same with the controller running, and its first list done.
    pub async fn started(nodes: impl IntoIterator<Item = Value>, routes: impl IntoIterator<Item = Route>) -> Self {
        let mut world = Self::new(nodes, routes);
        world.start().await;
        world.settle().await;
        world
    }

    /// Starts the controller of a new term.
    pub async fn start(&mut self) {
        let gate = Gate::new(self.term.subscribe(), self.provider.subscribe());
        let store = StateStore::new(self.api.client(), "fake");
        let beginning = Beginning { identity: "cloud".into(), epoch: 7, worked_before: false, set_back: false };
        let store = TermStore::begun(store, beginning, gate.clone(), self.events.clone());
        store.load().await.expect("the state is there");
        let ctx = RouteContext {
            nodes: self.nodes.clone(),
            writer: NodeWriter::new(self.api.client(), gate),
            events: self.events.clone(),
            routes: Arc::new(self.table.clone()),
            identity: Arc::clone(&self.who) as Arc<dyn Identity>,
            provider: self.provider.subscribe(),
            store,
            metrics: self.metrics.clone(),
            health: self.health.clone(),
            cloud: CloudHealth::new(self.health.clone()),
        };
        let stop = CancellationToken::new();
        self.running = Some((tokio::spawn(run(ctx, self.config.clone(), stop.clone())), stop));
    }

    /// Ends the term in order.
    pub async fn stop(&mut self) {
        let (task, stop) = self.running.take().expect("it runs");
        stop.cancel();
        task.await.expect("it ends");
    }

    /// Ends the controller in the middle of what it does.
    pub fn kill(&mut self) {
        self.running.take().expect("it runs").0.abort();
    }

    /// Long enough for a batch, a debounced deletion, and everything that follows; shorter than a period.
    pub async fn settle(&self) {
        tokio::time::sleep(Duration::from_secs(30)).await;
    }

    /// Waits until this holds, and answers how long that took; fails after a day.
    pub async fn until(&self, what: &str, mut holds: impl FnMut(&Self) -> bool) -> Duration {
        let began = tokio::time::Instant::now();
        while !holds(self) {
            assert!(began.elapsed() < Duration::from_hours(24), "{what}");
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        began.elapsed()
    }

    /// Changes a node as another client would, and the watch shows it.
    pub fn change(&self, number: u32, change: impl FnOnce(&mut Value)) {
        let node = self.api.object(&format!("{NODES}/n{number}")).expect("the node is there");
        self.api.put_node(with(node, change));
    }

    /// A node is gone.
    pub fn remove(&self, number: u32) {
        self.api.remove(&format!("{NODES}/n{number}"));
    }

    /// The routes' destinations and targets now, sorted.
    pub fn routes(&self) -> Vec<String> {
        let target = |route: &Route| route.target.node_name.clone().unwrap_or_else(|| route.target.description.clone());
        let mut routes: Vec<_> =
            self.table.routes().iter().map(|route| format!("{} {}", route.destination, target(route))).collect();
        routes.sort();
        routes
    }

    /// The routes that were asked for so far, call by call.
    pub fn created(&self) -> Vec<Vec<WantedRoute>> {
        let creations = self.table.calls().into_iter();
        creations.filter_map(|call| if let Call::Create(_, routes) = call { Some(routes) } else { None }).collect()
    }

    /// The destinations that were asked to be removed so far.
    pub fn deleted(&self) -> Vec<String> {
        let deletions = self.table.calls().into_iter();
        let routes = deletions.filter_map(|call| if let Call::Delete(_, routes) = call { Some(routes) } else { None });
        routes.flatten().map(|route| route.destination.to_string()).collect()
    }

    /// What the condition NetworkUnavailable of a node says: status and reason.
    pub fn condition(&self, number: u32) -> Option<(String, String)> {
        let node = self.api.object(&format!("{NODES}/n{number}"))?;
        let all = node["status"]["conditions"].as_array()?.clone();
        let condition = all.iter().find(|it| it["type"] == "NetworkUnavailable")?;
        let text = |field: &str| condition[field].as_str().unwrap_or_default().to_owned();
        Some((text("status"), text("reason")))
    }

    /// Whether the condition says that the node's routes are made.
    pub fn is_available(&self, number: u32) -> bool {
        self.condition(number) == Some(("False".to_owned(), "RouteCreated".to_owned()))
    }

    /// The number of writes to nodes so far.
    pub fn writes(&self) -> usize {
        self.api.writes().iter().filter(|write| write.contains(NODES)).count()
    }

    /// The reasons of the events since this was last asked, and what they are about.
    pub fn events(&mut self) -> Vec<(String, String)> {
        let notes = std::iter::from_fn(|| self.notes.try_recv().ok());
        notes.map(|note| (note.reason, note.subject.name)).collect()
    }

    /// The text of a warning of readiness.
    pub fn warning(&self, concern: &str) -> Option<String> {
        match self.health.checks().remove(concern)? {
            Check::Warning(text) => Some(text),
            other => panic!("{other:?}"),
        }
    }
}
