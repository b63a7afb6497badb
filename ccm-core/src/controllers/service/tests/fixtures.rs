//! A cloud whose answers are scripted, and a world around the controller.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use parking_lot::Mutex;
use prometheus_client::registry::Registry;
use serde_json::{Value, json};
use tokio::sync::{mpsc, watch};

pub use super::cloud::{Cloud, Reply, Verb, address, ensured, refusal};
use crate::cluster::events::{Event, Events};
use crate::cluster::gate::Gate;
use crate::cluster::nodes::Nodes;
use crate::cluster::patch::ServiceWriter;
use crate::cluster::scripted::ApiServer;
use crate::cluster::services::Services;
use crate::config::services::Drift;
use crate::controllers::service::decide::Classes;
use crate::controllers::service::{ServiceConfig, ServiceContext};
use crate::model::provider_info::{Capability, Limits, ProviderInfo};
use crate::model::term::{Cloud as TermCloud, Term};
use crate::names;
use crate::provider::{Identity, LoadBalancers, ProviderError, ProviderState};
use crate::telemetry::cloud_health::CloudHealth;
use crate::telemetry::health::Health;
use crate::telemetry::metrics::ServiceMetrics;

/// A provider that serves load balancers, and plans, ten calls at a time.
pub fn provider() -> ProviderInfo {
    ProviderInfo {
        name: "fake".into(),
        capabilities: [Capability::LoadBalancers, Capability::PlanLoadBalancer].into(),
        cloud_identity: "cloud".into(),
        limits: Limits { max_concurrent_load_balancer_calls: 10, ..Limits::default() },
        ..ProviderInfo::default()
    }
}

/// The same without plans.
pub fn without_plans() -> ProviderInfo {
    ProviderInfo { capabilities: [Capability::LoadBalancers].into(), ..provider() }
}

/// The default class, drift reported, and no limit but the provider's.
pub fn config() -> ServiceConfig {
    ServiceConfig {
        concurrent_syncs: None,
        classes: Classes { listed: [].into(), default: true },
        drift: Drift::Report,
        drift_period: Duration::from_hours(1),
    }
}

/// A Service `default/NAME` of type LoadBalancer, as a user makes it.
pub fn service(name: &str) -> Value {
    json!({
        "metadata": {
            "name": name, "namespace": "default", "uid": format!("uid-{name}"), "generation": 1,
            "creationTimestamp": "2024-01-01T00:00:00Z",
        },
        "spec": { "type": "LoadBalancer", "ports": [{ "port": 80, "protocol": "TCP", "nodePort": 30_080 }] },
    })
}

/// The same as this controller leaves it: of the default class, with its address.
pub fn finished(name: &str) -> Value {
    let mut service = service(name);
    service["metadata"]["finalizers"] = json!([names::LOAD_BALANCER_FINALIZER]);
    service["metadata"]["annotations"] = json!({ names::annotations::LOAD_BALANCER_CLASS: "" });
    service["status"] = json!({
        "loadBalancer": { "ingress": [{ "ip": "203.0.113.1", "ipMode": "VIP" }] },
        "conditions": [{
            "type": names::LOAD_BALANCER_READY, "status": "True", "reason": "Ready", "message": "",
            "lastTransitionTime": "2024-01-01T00:00:00Z", "observedGeneration": 1,
        }],
    });
    service
}

/// `default/NAME`.
pub fn key(name: &str) -> String {
    format!("default/{name}")
}

/// A node that is ready.
pub fn node(name: &str) -> Value {
    json!({
        "metadata": { "name": name, "uid": format!("uid-{name}"), "creationTimestamp": "2024-01-01T00:00:00Z", "labels": {} },
        "spec": { "providerID": format!("fake://{name}") },
        "status": { "conditions": [{ "type": "Ready", "status": "True" }] },
    })
}

/// Changes a JSON object.
pub fn with(mut object: Value, change: impl FnOnce(&mut Value)) -> Value {
    change(&mut object);
    object
}

/// Says who the provider is, and counts how often it is asked.
#[derive(Default)]
pub struct FakeIdentity {
    pub asked: std::sync::atomic::AtomicUsize,
    /// What it answers instead.
    pub refusal: Mutex<Option<ProviderError>>,
}

#[async_trait]
impl Identity for FakeIdentity {
    async fn confirm(&self) -> Result<Arc<ProviderInfo>, ProviderError> {
        self.asked.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        self.refusal.lock().clone().map_or_else(|| Ok(Arc::new(provider())), Err)
    }
}

/// All that surrounds the controller. It outlives it, so that another one can be started.
pub struct World {
    /// The API server; what changes there is shown in the views.
    pub server: ApiServer,
    /// What the watch has shown of Services.
    pub services: Services,
    /// What the watch has shown of nodes.
    pub nodes: Nodes,
    /// The cloud.
    pub cloud: Arc<Cloud>,
    /// Who the provider is.
    pub identity: Arc<FakeIdentity>,
    /// The provider's state.
    pub provider: watch::Sender<ProviderState>,
    /// The lease.
    pub term: watch::Sender<Option<Term>>,
    /// What is counted.
    pub metrics: ServiceMetrics,
    /// What readiness says.
    pub health: Health,
    events: Events,
    notes: mpsc::Receiver<Event>,
}

impl World {
    /// A world with these Services and nodes, the lease held and the provider ready.
    pub fn new(services: impl IntoIterator<Item = Value>, nodes: impl IntoIterator<Item = Value>) -> Self {
        let server = ApiServer::with_services(services);
        nodes.into_iter().for_each(|node| server.put_node(node));
        let (services, nodes) = (Services::fixed(server.services()), Nodes::fixed(server.nodes()));
        server.feed_services(&services);
        server.feed_nodes(&nodes);
        let valid_until = Instant::now() + Duration::from_hours(1);
        let term = Term { epoch: 7, cloud: Arc::new(TermCloud::of(&provider())), holder: "me".into(), valid_until };
        let (events, notes) = Events::queue(100_000);
        Self {
            server,
            services,
            nodes,
            cloud: Arc::default(),
            identity: Arc::default(),
            provider: watch::channel(ProviderState::Ready(Arc::new(provider()))).0,
            term: watch::channel(Some(term)).0,
            metrics: ServiceMetrics::new(&mut Registry::default()),
            health: Health::default(),
            events,
            notes,
        }
    }

    /// What a controller is given.
    pub fn context(&self) -> ServiceContext {
        let states = self.provider.subscribe();
        ServiceContext {
            services: self.services.clone(),
            nodes: self.nodes.clone(),
            writer: ServiceWriter::new(self.server.client(), Gate::new(self.term.subscribe(), states.clone())),
            events: self.events.clone(),
            load_balancers: Arc::clone(&self.cloud) as Arc<dyn LoadBalancers>,
            identity: Arc::clone(&self.identity) as Arc<dyn Identity>,
            provider: states,
            metrics: self.metrics.clone(),
            health: self.health.clone(),
            cloud: CloudHealth::new(self.health.clone()),
        }
    }

    /// Changes a Service as a user would: the API server counts its generation.
    pub fn change(&self, name: &str, change: impl FnOnce(&mut Value)) {
        let path = format!("/api/v1/namespaces/default/services/{name}");
        let mut service = self.server.object(&path).expect("the Service is there");
        change(&mut service);
        service["metadata"]["generation"] = json!(service["metadata"]["generation"].as_i64().unwrap_or_default() + 1);
        self.server.put(&path, service);
    }

    /// A user deletes a Service: it stays as long as it has a finalizer.
    pub fn delete(&self, name: &str) {
        self.change(name, |service| service["metadata"]["deletionTimestamp"] = json!("2024-05-06T07:08:09Z"));
    }

    /// A node is gone.
    pub fn remove_node(&self, name: &str) {
        self.server.remove(&format!("/api/v1/nodes/{name}"));
    }

    /// Another provider, or the same in another state.
    pub fn becomes(&self, info: ProviderInfo) {
        self.provider.send_replace(ProviderState::Ready(Arc::new(info)));
    }

    /// The connection breaks.
    pub fn loses_the_provider(&self) {
        self.provider.send_replace(ProviderState::Disconnected { since: Instant::now(), message: String::new() });
    }

    /// Whether a Service has its address, and says so.
    pub fn is_done(&self, name: &str) -> bool {
        let service = self.server.service(&key(name));
        service.is_some_and(|it| !it.status.ingress.is_empty() && it.condition.is_some_and(|condition| condition.ready))
    }

    /// The events since this was last asked.
    pub fn notes(&mut self) -> Vec<Event> {
        std::iter::from_fn(|| self.notes.try_recv().ok()).collect()
    }

    /// Their reasons.
    pub fn reasons(&mut self) -> Vec<String> {
        self.notes().into_iter().map(|note| note.reason).collect()
    }
}
