//! All that a kubelet and the other controllers of a cluster write to a node, texts and images included: some 20 KB as JSON.
use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{
    ContainerImage, DaemonEndpoint, NodeCondition, NodeDaemonEndpoints, NodeRuntimeHandler, NodeRuntimeHandlerFeatures,
    NodeStatus, NodeSystemInfo,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::{Value, json};

/// As many as a kubelet reports by default.
const IMAGES: usize = 50;

/// What a kubelet reports.
pub(super) fn status() -> NodeStatus {
    NodeStatus {
        allocatable: Some(resources("15890m", "60273516Ki", "93492209510", "110")),
        capacity: Some(resources("16", "64973676Ki", "101430960Ki", "110")),
        conditions: Some(conditions()),
        daemon_endpoints: Some(NodeDaemonEndpoints { kubelet_endpoint: Some(DaemonEndpoint { port: 10250 }) }),
        images: Some((0..IMAGES).map(image).collect()),
        node_info: Some(node_info()),
        runtime_handlers: Some(vec![NodeRuntimeHandler {
            name: Some("runc".into()),
            features: Some(NodeRuntimeHandlerFeatures { recursive_read_only_mounts: Some(true), user_namespaces: Some(true) }),
        }]),
        ..NodeStatus::default()
    }
}

/// What the other controllers of a cluster add.
pub(super) fn annotations() -> Value {
    json!({ "metadata": { "annotations": {
        "node.alpha.kubernetes.io/ttl": "0",
        "volumes.kubernetes.io/controller-managed-attach-detach": "true",
        "csi.volume.kubernetes.io/nodeid": r#"{"csi.example.com":"i-0123456789abcdef0"}"#,
    } } })
}

fn resources(cpu: &str, memory: &str, storage: &str, pods: &str) -> BTreeMap<String, Quantity> {
    [
        ("cpu", cpu),
        ("memory", memory),
        ("ephemeral-storage", storage),
        ("pods", pods),
        ("hugepages-1Gi", "0"),
        ("hugepages-2Mi", "0"),
    ]
    .map(|(name, quantity)| (name.to_owned(), Quantity(quantity.to_owned())))
    .into()
}

fn conditions() -> Vec<NodeCondition> {
    vec![
        condition("MemoryPressure", "False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
        condition("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
        condition("PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
        condition("NetworkUnavailable", "False", "NetworkIsUp", "the network plugin is running on this node"),
        condition("Ready", "True", "KubeletReady", "kubelet is posting ready status"),
    ]
}

fn condition(kind: &str, status: &str, reason: &str, message: &str) -> NodeCondition {
    NodeCondition {
        type_: kind.into(),
        status: status.into(),
        reason: Some(reason.into()),
        message: Some(message.into()),
        last_heartbeat_time: Some(Time(Timestamp::now())),
        last_transition_time: Some(Time(Timestamp::now())),
    }
}

/// One by its digest and by its tag.
fn image(number: usize) -> ContainerImage {
    let repository = format!("registry.example.com/platform/production/team-{}/service-{number}", number % 7);
    let digest = format!("{:064x}", 0x9e37_79b9_7f4a_7c15_u128 * (number as u128 + 1));
    ContainerImage {
        names: Some(vec![format!("{repository}@sha256:{digest}"), format!("{repository}:v1.{number}.0-20260101.build.{number}")]),
        size_bytes: i64::try_from(number).ok().map(|number| 20_000_000 + number * 1_234_567),
    }
}

fn node_info() -> NodeSystemInfo {
    NodeSystemInfo {
        boot_id: uuid::Uuid::new_v4().to_string(),
        machine_id: uuid::Uuid::new_v4().simple().to_string(),
        container_runtime_version: "containerd://2.2.1".into(),
        kernel_version: "6.12.41-1-cloud-amd64".into(),
        os_image: "Debian GNU/Linux 13 (trixie)".into(),
        ..super::node_info()
    }
}
