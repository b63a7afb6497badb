//! What the process reports because it leads: the controllers' lines of readiness and their gauges. They are another replica's to
//! report once the term is over, so that dropping this resets them all, however the term ends.
use std::collections::BTreeMap;

use super::cloud_health::CloudHealth;
use super::health::{Check, Health};
use super::metrics::routes::RouteMetrics;
use super::metrics::{ControllerMetrics, NodeMetrics};

/// The reports of one leadership term.
#[derive(Debug)]
pub struct TermReports {
    /// What readiness says.
    pub health: Health,
    /// What readiness says of the cloud.
    pub cloud: CloudHealth,
    /// What the node controllers count.
    pub nodes: NodeMetrics,
    /// What the route controller counts.
    pub routes: RouteMetrics,
    controllers: ControllerMetrics,
    running: Vec<&'static str>,
    /// The checks that are the process's and not the term's.
    before: BTreeMap<String, Check>,
}

impl TermReports {
    /// Begins a term. Checks that exist now outlast it.
    pub fn begin(health: &Health, nodes: &NodeMetrics, routes: &RouteMetrics, controllers: &ControllerMetrics) -> Self {
        Self {
            health: health.clone(),
            cloud: CloudHealth::new(health.clone()),
            nodes: nodes.clone(),
            routes: routes.clone(),
            controllers: controllers.clone(),
            running: Vec::new(),
            before: health.checks(),
        }
    }

    /// The controller of this name runs until the term ends.
    pub fn runs(&mut self, controller: &'static str) {
        self.controllers.set_running(controller, true);
        self.running.push(controller);
    }
}

impl Drop for TermReports {
    fn drop(&mut self) {
        self.health.keep(&self.before);
        self.nodes.breakers_tripped.set(0);
        self.nodes.unmanaged.set(0);
        self.routes.reset();
        self.running.iter().for_each(|controller| self.controllers.set_running(controller, false));
    }
}

#[cfg(test)]
mod tests {
    use prometheus_client::encoding::text::encode;
    use prometheus_client::registry::Registry;

    use super::*;
    use crate::provider::{Outcome, ProviderError};
    use crate::telemetry::metrics::routes::Counts;

    /// Every gauge that is not 0.
    fn gauges(registry: &Registry) -> Vec<String> {
        let mut text = String::new();
        assert_eq!(encode(&mut text, registry), Ok(()));
        let names = text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.strip_suffix(" gauge"));
        let is_gauge = |line: &str| names.clone().any(|name| line.starts_with(name));
        let samples = text.lines().filter(|line| is_gauge(line) && !line.ends_with(" 0"));
        samples.map(str::to_owned).collect()
    }

    #[test]
    fn the_end_of_a_term_leaves_no_gauge_and_no_line_of_readiness_behind() {
        let (mut registry, health) = (Registry::default(), Health::default());
        let (nodes, controllers) = (NodeMetrics::new(&mut registry), ControllerMetrics::new(&mut registry));
        health.set("provider", Check::Ok);
        let routes = RouteMetrics::new(&mut registry);
        let mut reports = TermReports::begin(&health, &nodes, &routes, &controllers);
        let error = ProviderError { outcome: Outcome::Terminal, reason: "UNAUTHENTICATED".to_owned(), message: String::new() };
        reports.cloud.clone().looked_up("a", Some(&error));
        reports.health.set("node-deletion", Check::Warning("no node is deleted".to_owned()));
        reports.health.set("provider", Check::Failed("away".to_owned()));
        reports.nodes.breakers_tripped.set(2);
        reports.nodes.unmanaged.set(1);
        reports.routes.breaker_tripped.set(1);
        reports.routes.count(Counts { wanted: 1, ours: 1, others: 0, stale: 0 });
        ["service", "cloud-node"].into_iter().for_each(|controller| reports.runs(controller));
        assert_eq!((health.checks().len(), gauges(&registry).len()), (3, 7), "{:?}", gauges(&registry));
        drop(reports);
        assert_eq!(health.checks(), [("provider".to_owned(), Check::Failed("away".to_owned()))].into());
        assert_eq!(gauges(&registry), Vec::<String>::new());
    }
}
