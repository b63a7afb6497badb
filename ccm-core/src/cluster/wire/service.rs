//! A Service on the wire, with the fields in use.
use jiff::Timestamp;
use serde::Deserialize;

use super::Meta;

/// A Service.
#[derive(Debug, Deserialize)]
pub struct Service {
    pub metadata: Meta,
    pub spec: Option<Spec>,
    pub status: Option<Status>,
}

/// `spec`.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Spec {
    #[serde(rename = "type")]
    pub kind: Option<String>,
    pub load_balancer_class: Option<String>,
    pub ports: Option<Vec<ServiceEntry>>,
    pub ip_families: Option<Vec<String>>,
    pub ip_family_policy: Option<String>,
    pub external_traffic_policy: Option<String>,
    pub internal_traffic_policy: Option<String>,
    pub session_affinity: Option<String>,
    pub session_affinity_config: Option<SessionAffinityConfig>,
    pub load_balancer_source_ranges: Option<Vec<String>>,
    #[serde(rename = "loadBalancerIP")]
    pub load_balancer_ip: Option<String>,
    pub health_check_node_port: Option<i32>,
    pub allocate_load_balancer_node_ports: Option<bool>,
    #[serde(rename = "externalIPs")]
    pub external_ips: Option<Vec<String>>,
    #[serde(rename = "clusterIPs")]
    pub cluster_ips: Option<Vec<String>>,
}

/// An entry of `spec.ports`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ServiceEntry {
    pub name: Option<String>,
    pub protocol: Option<String>,
    pub app_protocol: Option<String>,
    pub port: i32,
    pub target_port: Option<TargetPort>,
    pub node_port: Option<i32>,
}

/// A port of the Pods.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub enum TargetPort {
    /// By number.
    Number(i32),
    /// By name.
    Name(String),
}

/// `spec.sessionAffinityConfig`.
#[derive(Debug, Deserialize)]
pub struct SessionAffinityConfig {
    #[serde(rename = "clientIP")]
    pub client_ip: Option<ClientIp>,
}

/// `spec.sessionAffinityConfig.clientIP`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClientIp {
    pub timeout_seconds: Option<i32>,
}

/// `status`.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Status {
    pub load_balancer: Option<LoadBalancer>,
    pub conditions: Option<Vec<Condition>>,
}

/// `status.loadBalancer`.
#[derive(Debug, Default, Deserialize)]
pub struct LoadBalancer {
    pub ingress: Option<Vec<Ingress>>,
}

/// An entry of `status.loadBalancer.ingress`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Ingress {
    pub ip: Option<String>,
    pub ip_mode: Option<String>,
    pub hostname: Option<String>,
    pub ports: Option<Vec<PortStatus>>,
}

/// An entry of `status.loadBalancer.ingress[].ports`.
#[derive(Debug, Deserialize)]
pub struct PortStatus {
    pub port: i32,
    pub protocol: String,
    pub error: Option<String>,
}

/// An entry of `status.conditions`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    #[serde(rename = "type")]
    pub kind: String,
    pub status: String,
    pub reason: Option<String>,
    pub message: Option<String>,
    pub observed_generation: Option<i64>,
    pub last_transition_time: Option<Timestamp>,
}
