//! The controllers of one term: which run, and what each is given. When they start and stop is for the term to say.
use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::Terms;
use crate::cluster::events::Events;
use crate::cluster::nodes::Nodes;
use crate::cluster::patch::{NodeWriter, ServiceWriter};
use crate::cluster::services::Services;
use crate::cluster::state::TermStore;
use crate::controllers::NodeContext;
use crate::controllers::node::{self, NodeConfig};
use crate::controllers::node_lifecycle::{self, LifecycleConfig};
use crate::controllers::route::{self, RouteConfig, RouteContext};
use crate::controllers::service::decide::Classes;
use crate::controllers::service::{self, ServiceConfig, ServiceContext};
use crate::controllers::unmanaged;
use crate::model::provider_info::{Capability, ProviderInfo};
use crate::names;
use crate::runtime::supervisor::Supervisor;
use crate::telemetry::health::Check;
use crate::telemetry::term::TermReports;

/// The tasks of one term.
pub(super) struct Running {
    /// Controllers and watches. They end when they are told to stop.
    pub tasks: Supervisor,
    /// Those that write the controllers' events. They end with the controllers, once all is written.
    pub writers: Supervisor,
    /// What they report, until the term ends.
    pub reports: TermReports,
}

impl Running {
    /// None yet.
    pub(super) fn new(reports: TermReports) -> Self {
        let supervisor = || Supervisor::new(reports.health.liveness().clone());
        Self { tasks: supervisor(), writers: supervisor(), reports }
    }

    /// Runs what serves the controllers, until they are told to stop.
    fn assist(&mut self, name: &'static str, stop: &CancellationToken, task: impl Future<Output = ()> + Send + 'static) {
        let stop = stop.clone();
        self.tasks.spawn(name, async move {
            stop.run_until_cancelled(task).await;
        });
    }

    /// Runs a controller, and says so under the name that upstream's metric has for it.
    fn control(&mut self, metric: &'static str, controller: impl Future<Output = ()> + Send + 'static) {
        self.reports.runs(metric);
        self.tasks.spawn(metric, controller);
    }
}

impl Terms {
    /// Starts those that the flags ask for.
    pub(super) fn controllers(&self, store: TermStore, reports: TermReports, stop: &CancellationToken) -> Running {
        let mut tasks = Running::new(reports);
        let (nodes, watch) = Nodes::watch(self.parts.clients.watches.clone(), self.parts.clients.presence.clone());
        tasks.assist("node-watch", stop, watch);
        let report = tasks.reports.cloud.clone().report_rate_limit("Instances", self.wires.rate_limit.clone());
        tasks.assist("rate-limit-report", stop, report);
        let unmanaged = unmanaged::run(nodes.clone(), self.wires.events.clone(), tasks.reports.nodes.clone());
        tasks.assist("unmanaged-nodes", stop, unmanaged);
        self.start_routes(&nodes, &store, &mut tasks, stop);
        // First of the node controllers, so that it knows a first installation from one whose nodes carry our annotation already.
        if self.parts.config.controllers.runs(names::controllers::NODE_LIFECYCLE) {
            let context = self.context(names::controllers::NODE_LIFECYCLE, &nodes, &mut tasks);
            let lifecycle = node_lifecycle::run(context, store, self.lifecycle_config(), stop.clone());
            tasks.control("cloud-node-lifecycle", lifecycle);
        }
        if self.parts.config.controllers.runs(names::controllers::NODE) {
            let context = self.context(names::controllers::NODE, &nodes, &mut tasks);
            tasks.control("cloud-node", node::run(context, self.node_config(), stop.clone()));
        }
        if self.parts.config.controllers.runs(names::controllers::SERVICE) {
            let context = self.service_context(&nodes, &mut tasks, stop);
            tasks.control("service", service::run(context, self.service_config(), stop.clone()));
        }
        tasks
    }

    fn context(&self, controller: &str, nodes: &Nodes, tasks: &mut Running) -> NodeContext {
        let client = self.parts.client.clone();
        let (events, writer) =
            Events::start(client.clone(), self.parts.clients.presence.clone(), controller, &self.parts.identity);
        tasks.writers.spawn("node-events", writer);
        NodeContext {
            nodes: nodes.clone(),
            writer: NodeWriter::new(client, self.gate.clone()),
            events,
            instances: Arc::clone(&self.wires.instances),
            identity: Arc::new(self.wires.handle.clone()),
            provider: self.wires.handle.state(),
            metrics: tasks.reports.nodes.clone(),
            health: tasks.reports.health.clone(),
            cloud: tasks.reports.cloud.clone(),
        }
    }

    fn start_routes(&self, nodes: &Nodes, store: &TermStore, tasks: &mut Running, stop: &CancellationToken) {
        let config = &self.parts.config;
        if !config.controllers.runs(names::controllers::ROUTE) || !config.routes.configure {
            return;
        }
        if !config.configures_routes() {
            return self.miss_cluster_cidr(tasks);
        }
        let context = self.route_context(nodes, store, tasks);
        tasks.control("route", route::run(context, self.route_config(), stop.clone()));
    }

    /// Upstream exits here. A provider that serves no routes would not miss them either.
    fn miss_cluster_cidr(&self, tasks: &Running) {
        let message =
            "node-route-controller does not run: set --cluster-cidr to the Pods' CIDRs, or --configure-cloud-routes=false";
        let serves = |info: &Arc<ProviderInfo>| info.capabilities.contains(&Capability::Routes);
        if self.wires.handle.state().borrow().ready().is_some_and(serves) {
            tracing::warn!("{message}");
            tasks.reports.health.set(names::controllers::ROUTE, Check::Warning(message.to_owned()));
        } else {
            tracing::info!("{message}");
        }
    }

    fn route_context(&self, nodes: &Nodes, store: &TermStore, tasks: &mut Running) -> RouteContext {
        let client = self.parts.client.clone();
        let (events, writer) =
            Events::start(client.clone(), self.parts.clients.presence.clone(), names::ROUTE_EVENT_SOURCE, &self.parts.identity);
        tasks.writers.spawn("route-events", writer);
        RouteContext {
            nodes: nodes.clone(),
            writer: NodeWriter::new(client, self.gate.clone()),
            events,
            routes: Arc::new(self.wires.handle.routes()),
            identity: Arc::new(self.wires.handle.clone()),
            provider: self.wires.handle.state(),
            store: store.clone(),
            metrics: tasks.reports.routes.clone(),
            health: tasks.reports.health.clone(),
            cloud: tasks.reports.cloud.clone(),
        }
    }

    fn route_config(&self) -> RouteConfig {
        let routes = &self.parts.config.routes;
        RouteConfig {
            cluster_cidrs: self.parts.config.kubernetes.cluster_cidrs.clone(),
            reconciliation_period: routes.reconciliation_period,
            deletion_window: routes.deletion_window,
            deletion_fraction: routes.deletion_fraction,
        }
    }

    fn service_context(&self, nodes: &Nodes, tasks: &mut Running, stop: &CancellationToken) -> ServiceContext {
        let client = self.parts.client.clone();
        let (events, writer) =
            Events::start(client.clone(), self.parts.clients.presence.clone(), names::SERVICE_EVENT_SOURCE, &self.parts.identity);
        tasks.writers.spawn("service-events", writer);
        let (services, watch) = Services::watch(self.parts.clients.watches.clone(), self.parts.clients.presence.clone());
        tasks.assist("service-watch", stop, watch);
        ServiceContext {
            services,
            nodes: nodes.clone(),
            writer: ServiceWriter::new(client, self.gate.clone()),
            events,
            load_balancers: Arc::new(self.wires.handle.load_balancers()),
            identity: Arc::new(self.wires.handle.clone()),
            provider: self.wires.handle.state(),
            metrics: self.parts.metrics.services.clone(),
            health: tasks.reports.health.clone(),
            cloud: tasks.reports.cloud.clone(),
        }
    }

    fn service_config(&self) -> ServiceConfig {
        let services = &self.parts.config.services;
        ServiceConfig {
            concurrent_syncs: services.concurrent_syncs,
            classes: Classes { listed: services.classes.clone(), default: services.serve_default_class },
            drift: services.drift,
            drift_period: services.drift_period,
        }
    }

    fn node_config(&self) -> NodeConfig {
        let nodes = &self.parts.config.nodes;
        NodeConfig {
            status_update_frequency: nodes.status_update_frequency,
            concurrent_writes: nodes.concurrent_syncs,
            configures_routes: self.parts.config.configures_routes(),
        }
    }

    fn lifecycle_config(&self) -> LifecycleConfig {
        let deletion = &self.parts.config.deletion;
        LifecycleConfig {
            monitor_period: self.parts.config.nodes.monitor_period,
            confirmation: deletion.confirmation,
            window: deletion.window,
            zone_fraction: deletion.zone_fraction,
            limit: deletion.limit as usize,
            uninitialized_grace: deletion.uninitialized_grace,
        }
    }
}
