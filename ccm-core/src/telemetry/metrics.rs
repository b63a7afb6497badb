//! Metrics, under upstream's names where upstream has them.
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

mod process;
pub mod routes;

pub use process::ProcessMetrics;

/// What the node controllers count.
#[derive(Clone, Debug)]
pub struct NodeMetrics {
    /// From a node's creation to the removal of its taint, in seconds.
    pub taint_removal_delay: Histogram,
    /// From a node's creation to the end of its initialisation, in seconds.
    pub initial_sync_delay: Histogram,
    /// Successful writes to nodes.
    pub writes: Counter,
    /// Writes to nodes that found them changed and were repeated.
    pub conflicts: Counter,
    /// Nodes deleted.
    pub deletions: Counter,
    /// Deletion breakers that are tripped now.
    pub breakers_tripped: Gauge,
    /// Nodes that operators leave unmanaged now.
    pub unmanaged: Gauge,
}

impl NodeMetrics {
    /// Registers them.
    pub fn new(registry: &mut Registry) -> Self {
        let delay = || Histogram::new(exponential_buckets(1.0, 4.0, 9));
        let metrics = Self {
            taint_removal_delay: delay(),
            initial_sync_delay: delay(),
            writes: Counter::default(),
            conflicts: Counter::default(),
            deletions: Counter::default(),
            breakers_tripped: Gauge::default(),
            unmanaged: Gauge::default(),
        };
        let controller = registry.sub_registry_with_prefix("node_controller");
        controller.register(
            "cloud_provider_taint_removal_delay_seconds",
            "Seconds from the creation of a node to the removal of its uninitialized taint",
            metrics.taint_removal_delay.clone(),
        );
        controller.register(
            "initial_node_sync_delay_seconds",
            "Seconds from the creation of a node to the end of its initialisation",
            metrics.initial_sync_delay.clone(),
        );
        let own = registry.sub_registry_with_prefix("ccm_core");
        own.register("node_writes", "Successful writes to nodes", metrics.writes.clone());
        own.register(
            "node_write_conflicts",
            "Writes to nodes that were refused because the node had changed",
            metrics.conflicts.clone(),
        );
        own.register("node_deletions", "Nodes deleted because their machine is gone", metrics.deletions.clone());
        own.register(
            "node_deletion_breakers_tripped",
            "Deletion breakers that are tripped now",
            metrics.breakers_tripped.clone(),
        );
        own.register("unmanaged_nodes", "Nodes that operators leave unmanaged now", metrics.unmanaged.clone());
        metrics
    }
}

/// What the service controller counts.
#[derive(Clone, Debug)]
pub struct ServiceMetrics {
    /// Attempts to create, change or remove a load balancer.
    pub syncs: Counter,
    /// From a change of the nodes until the last load balancer had its new targets, in seconds.
    pub node_sync_latency: Histogram,
    /// Load balancers whose targets could not be changed.
    pub node_sync_errors: Counter,
    /// How long it took to change the targets of one load balancer, in seconds.
    pub update_latency: Histogram,
    /// Comparisons that found a load balancer changed outside of Kubernetes.
    pub drift_found: Counter,
}

impl ServiceMetrics {
    /// Registers them.
    pub fn new(registry: &mut Registry) -> Self {
        // Upstream's buckets begin at a second; here most updates take less.
        let latency = || Histogram::new(exponential_buckets(0.0625, 2.0, 19));
        let metrics = Self {
            syncs: Counter::default(),
            node_sync_latency: latency(),
            node_sync_errors: Counter::default(),
            update_latency: latency(),
            drift_found: Counter::default(),
        };
        let controller = registry.sub_registry_with_prefix("service_controller");
        controller.register("loadbalancer_sync", "Attempts to create, change or remove a load balancer", metrics.syncs.clone());
        controller.register(
            "nodesync_latency_seconds",
            "Seconds from a change of the nodes until every load balancer had its new targets",
            metrics.node_sync_latency.clone(),
        );
        controller.register(
            "nodesync_error",
            "Load balancers whose targets could not be changed",
            metrics.node_sync_errors.clone(),
        );
        controller.register(
            "update_loadbalancer_host_latency_seconds",
            "Seconds that it took to change the targets of one load balancer",
            metrics.update_latency.clone(),
        );
        let own = registry.sub_registry_with_prefix("ccm_core");
        own.register(
            "load_balancer_drift_found",
            "Comparisons that found a load balancer changed outside of Kubernetes",
            metrics.drift_found.clone(),
        );
        metrics
    }
}

/// The label of [`LeaderMetrics`].
#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct LeaseName {
    name: String,
}

/// Who leads.
#[derive(Clone, Debug, Default)]
pub struct LeaderMetrics {
    status: Family<LeaseName, Gauge>,
}

impl LeaderMetrics {
    /// Registers them.
    pub fn new(registry: &mut Registry) -> Self {
        let metrics = Self::default();
        let help = "Whether this process leads: 1 if it holds the lease, 0 if not";
        registry.register("leader_election_master_status", help, metrics.status.clone());
        metrics
    }

    /// Sets whether this process holds the lease of this name.
    pub fn set_leading(&self, lease: &str, leads: bool) {
        self.status.get_or_create(&LeaseName { name: lease.to_owned() }).set(leads.into());
    }
}

/// The labels of [`ControllerMetrics`].
#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct ManagedController {
    name: String,
    manager: &'static str,
}

/// Which controllers run.
#[derive(Clone, Debug, Default)]
pub struct ControllerMetrics {
    running: Family<ManagedController, Gauge>,
}

impl ControllerMetrics {
    /// Registers them.
    pub fn new(registry: &mut Registry) -> Self {
        let metrics = Self::default();
        let help = "Whether this controller runs in this process now";
        registry.register("running_managed_controllers", help, metrics.running.clone());
        metrics
    }

    /// Sets whether the controller of this name runs.
    pub fn set_running(&self, name: &str, runs: bool) {
        let labels = ManagedController { name: name.to_owned(), manager: "cloud-controller-manager" };
        self.running.get_or_create(&labels).set(runs.into());
    }
}
