//! What is counted of the calls to the provider.
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

/// A method and how the call ended.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct CallLabels {
    /// The method's name, such as `BatchGetInstances`.
    pub method: String,
    /// The gRPC code's name, such as `OK`.
    pub code: String,
}

/// A method.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct MethodLabels {
    /// The method's name.
    pub method: String,
}

/// In which form nodes crossed the socket.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct NodeSetLabels {
    /// `put` for a set that later calls name by its hash, `inline` for one within a call.
    pub form: String,
}

/// Calls to the provider.
#[derive(Clone, Debug)]
pub struct ProviderMetrics {
    /// `ccm_core_provider_requests_total`.
    pub requests: Family<CallLabels, Counter>,
    /// `ccm_core_provider_request_duration_seconds`.
    pub duration: Family<MethodLabels, Histogram, fn() -> Histogram>,
    /// `ccm_core_provider_batch_size`.
    pub batch_size: Histogram,
    /// `ccm_core_provider_node_set_bytes_total`.
    pub node_set_bytes: Family<NodeSetLabels, Counter>,
    /// `ccm_core_provider_node_set_encode_seconds`.
    pub node_set_encode: Histogram,
    /// `ccm_core_provider_ready`.
    pub ready: Gauge,
}

impl ProviderMetrics {
    /// Registers them.
    pub fn new(registry: &mut Registry) -> Self {
        let metrics = Self::unregistered();
        let own = registry.sub_registry_with_prefix("ccm_core_provider");
        own.register("requests", "Calls to the provider, by method and gRPC code", metrics.requests.clone());
        own.register("request_duration_seconds", "Seconds until the provider answered", metrics.duration.clone());
        own.register("batch_size", "Look-ups in one BatchGetInstances", metrics.batch_size.clone());
        own.register("node_set_bytes", "Bytes of node sets that were sent, by form", metrics.node_set_bytes.clone());
        own.register("node_set_encode_seconds", "Seconds that encoding a node set took", metrics.node_set_encode.clone());
        own.register(
            "ready",
            "Whether the provider can be used now: 1 if so; at 0 ccm-core changes nothing",
            metrics.ready.clone(),
        );
        metrics
    }

    /// Metrics without a registry.
    pub fn unregistered() -> Self {
        Self {
            requests: Family::default(),
            duration: Family::new_with_constructor(latency),
            batch_size: Histogram::new(exponential_buckets(1.0, 2.0, 12)),
            node_set_bytes: Family::default(),
            node_set_encode: Histogram::new(exponential_buckets(0.0001, 4.0, 8)),
            ready: Gauge::default(),
        }
    }

    /// Counts a call that has ended.
    pub fn ended(&self, method: &str, code: &str, seconds: f64) {
        self.requests.get_or_create(&CallLabels { method: method.to_owned(), code: code.to_owned() }).inc();
        self.duration.get_or_create(&MethodLabels { method: method.to_owned() }).observe(seconds);
    }

    /// Counts a node set that is about to be sent.
    pub fn node_set(&self, form: &str, bytes: usize) {
        self.node_set_bytes.get_or_create(&NodeSetLabels { form: form.to_owned() }).inc_by(bytes as u64);
    }
}

fn latency() -> Histogram {
    Histogram::new([0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0])
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_names_are_those_that_dashboards_use() {
        let mut registry = Registry::default();
        let metrics = ProviderMetrics::new(&mut registry);
        metrics.ended("BatchGetInstances", "OK", 0.02);
        metrics.batch_size.observe(500.0);
        metrics.node_set("put", 2048);
        metrics.node_set_encode.observe(0.01);
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
        for line in [
            "ccm_core_provider_requests_total{method=\"BatchGetInstances\",code=\"OK\"} 1",
            "ccm_core_provider_request_duration_seconds_count{method=\"BatchGetInstances\"} 1",
            "ccm_core_provider_batch_size_count 1",
            "ccm_core_provider_node_set_bytes_total{form=\"put\"} 2048",
            "ccm_core_provider_node_set_encode_seconds_count 1",
        ] {
            assert!(text.contains(line), "{line} is missing in:\n{text}");
        }
    }
}
