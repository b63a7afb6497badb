//! What the route controller counts.
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

/// What made the controller compare nodes and routes; with upstream's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trigger {
    /// A node came, went, or changed its Pod CIDRs, addresses or machine.
    NodeChange,
    /// A list of the table, or a retry.
    Periodic,
}

/// What came of it; with upstream's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SyncOutcome {
    /// A route was made or removed.
    Changed,
    /// Nothing had to be done.
    Noop,
    /// A list or a call failed.
    Error,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Sync {
    outcome: &'static str,
    trigger: &'static str,
}

impl Sync {
    fn of(trigger: Trigger, outcome: SyncOutcome) -> Self {
        let outcome = match outcome {
            SyncOutcome::Changed => "changed",
            SyncOutcome::Noop => "noop",
            SyncOutcome::Error => "error",
        };
        let trigger = match trigger {
            Trigger::NodeChange => "node_change",
            Trigger::Periodic => "periodic",
        };
        Self { outcome, trigger }
    }
}

/// What routes are counted as.
#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Counted {
    kind: &'static str,
}

/// How many routes there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Pod CIDRs of nodes that are to have routes.
    pub wanted: usize,
    /// Routes of this cluster.
    pub ours: usize,
    /// Routes of others.
    pub others: usize,
    /// Routes of this cluster inside its CIDRs that lead to no node's Pods.
    pub stale: usize,
}

/// The metrics.
#[derive(Clone, Debug, Default)]
pub struct RouteMetrics {
    syncs: Family<Sync, Counter>,
    routes: Family<Counted, Gauge>,
    /// Stale routes that were removed.
    pub deletions: Counter,
    /// Whether the breaker for stale routes is tripped.
    pub breaker_tripped: Gauge,
}

impl RouteMetrics {
    /// Registers them.
    pub fn new(registry: &mut Registry) -> Self {
        let metrics = Self::default();
        let controller = registry.sub_registry_with_prefix("route_controller");
        controller.register(
            "route_sync",
            "Comparisons of nodes and routes, by what triggered them and whether a route changed",
            metrics.syncs.clone(),
        );
        let own = registry.sub_registry_with_prefix("ccm_core");
        own.register("routes", "Routes that are wanted, this cluster's, of others, and stale", metrics.routes.clone());
        own.register("route_deletions", "Stale routes that were removed", metrics.deletions.clone());
        own.register(
            "route_deletion_breaker_tripped",
            "Whether the breaker for the deletion of stale routes is tripped now",
            metrics.breaker_tripped.clone(),
        );
        metrics
    }

    /// A comparison has ended.
    pub fn synced(&self, trigger: Trigger, outcome: SyncOutcome) {
        self.syncs.get_or_create(&Sync::of(trigger, outcome)).inc();
    }

    /// How often a comparison ended so.
    #[cfg(test)]
    pub fn syncs(&self, trigger: Trigger, outcome: SyncOutcome) -> u64 {
        self.syncs.get_or_create(&Sync::of(trigger, outcome)).get()
    }

    /// Sets the number of routes.
    pub fn count(&self, counts: Counts) {
        let Counts { wanted, ours, others, stale } = counts;
        let all = [("wanted", wanted), ("ours", ours), ("others", others), ("stale", stale)];
        for (kind, count) in all {
            self.routes.get_or_create(&Counted { kind }).set(i64::try_from(count).unwrap_or(i64::MAX));
        }
    }

    /// The controller does not run any more: nothing is counted.
    pub fn reset(&self) {
        self.routes.clear();
        self.breaker_tripped.set(0);
    }
}
