//! Nodes as kubelet makes and reports them, without any kubelet: created through the API with the taint, then Ready or not.
mod full;

use std::collections::BTreeMap;

use anyhow::{Result, ensure};
use futures::{StreamExt, TryStreamExt, stream};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Node, NodeAddress, NodeCondition, NodeSpec, NodeStatus, NodeSystemInfo, Taint};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::api::{DeleteParams, ListParams, ObjectMeta, Patch, PatchParams, PostParams};
use kube::{Api, Client, ResourceExt};
use serde_json::{Value, json};

/// The taint of a node that no cloud controller has seen yet.
pub const UNINITIALIZED: &str = "node.cloudprovider.kubernetes.io/uninitialized";

/// The taint of a node whose machine is stopped.
pub const SHUTDOWN: &str = "node.cloudprovider.kubernetes.io/shutdown";

/// Requests at one time.
const IN_FLIGHT: usize = 32;

/// All kubelets of the cluster. Clones are the same ones.
#[derive(Clone)]
pub struct Kubelets {
    nodes: Api<Node>,
}

/// A node as it registers.
#[derive(Clone, Debug)]
pub struct Registration {
    name: String,
    provider_id: Option<String>,
    tainted: bool,
    ready: bool,
    annotations: BTreeMap<String, String>,
    pod_cidrs: Vec<String>,
}

impl Registration {
    /// As kubelet registers with `--cloud-provider=external`: tainted, without a providerID, Ready.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            provider_id: None,
            tainted: true,
            ready: true,
            annotations: BTreeMap::new(),
            pod_cidrs: Vec::new(),
        }
    }

    /// With kubelet's `--provider-id`.
    #[must_use]
    pub fn provider_id(self, id: &str) -> Self {
        Self { provider_id: Some(id.to_owned()), ..self }
    }

    /// Without the taint, as nodes have it that were there before.
    #[must_use]
    pub fn untainted(self) -> Self {
        Self { tainted: false, ..self }
    }

    /// With an annotation.
    #[must_use]
    pub fn annotation(mut self, key: &str, value: &str) -> Self {
        self.annotations.insert(key.to_owned(), value.to_owned());
        self
    }

    /// With Pod CIDRs, as an allocator gives them.
    #[must_use]
    pub fn pod_cidrs(self, cidrs: &[impl AsRef<str>]) -> Self {
        Self { pod_cidrs: cidrs.iter().map(|cidr| cidr.as_ref().to_owned()).collect(), ..self }
    }

    /// Not Ready.
    #[must_use]
    pub fn not_ready(self) -> Self {
        Self { ready: false, ..self }
    }

    fn node(self) -> Node {
        let taint =
            Taint { key: UNINITIALIZED.into(), value: Some("true".into()), effect: "NoSchedule".into(), time_added: None };
        Node {
            metadata: ObjectMeta {
                name: Some(self.name.clone()),
                labels: Some(labels(&self.name)),
                annotations: Some(self.annotations),
                ..ObjectMeta::default()
            },
            spec: Some(NodeSpec {
                provider_id: self.provider_id,
                taints: self.tainted.then(|| vec![taint]),
                pod_cidr: self.pod_cidrs.first().cloned(),
                pod_cidrs: Some(self.pod_cidrs).filter(|cidrs| !cidrs.is_empty()),
                ..NodeSpec::default()
            }),
            status: Some(NodeStatus {
                addresses: Some(vec![NodeAddress { type_: "Hostname".into(), address: self.name }]),
                conditions: Some(vec![ready(self.ready)]),
                node_info: Some(node_info()),
                ..NodeStatus::default()
            }),
        }
    }
}

impl Kubelets {
    /// Kubelets that use this client.
    pub fn new(client: Client) -> Self {
        Self { nodes: Api::all(client) }
    }

    /// Nodes register.
    pub async fn register(&self, nodes: impl IntoIterator<Item = Registration>) -> Result<()> {
        let params = PostParams::default();
        self.each(nodes, async |nodes, node| nodes.create(&params, &node.node()).await.map(drop)).await
    }

    /// Nodes of these names register, tainted and Ready.
    pub async fn join(&self, names: &[String]) -> Result<()> {
        self.register(names.iter().map(Registration::new)).await
    }

    /// They report all that a kubelet reports, images and texts included, and a controller annotates them: each writer leaves
    /// its managed fields.
    pub async fn report_in_full(&self, names: &[String]) -> Result<()> {
        let by = |manager: &str| PatchParams { field_manager: Some(manager.to_owned()), ..PatchParams::default() };
        let (kubelet, controller) = (by("kubelet"), by("kube-controller-manager"));
        let annotations = Patch::Strategic(full::annotations());
        self.each(names, async |nodes, name| {
            nodes.patch_status(name, &kubelet, &Patch::Strategic(json!({ "status": full::status() }))).await?;
            nodes.patch(name, &controller, &annotations).await.map(drop)
        })
        .await
    }

    /// They report Ready, or not.
    pub async fn report(&self, names: &[String], is_ready: bool) -> Result<()> {
        let status = json!({ "status": { "conditions": [ready(is_ready)] } });
        let (params, patch) = (PatchParams::default(), Patch::Strategic(status));
        self.each(names, async |nodes, name| nodes.patch_status(name, &params, &patch).await.map(drop)).await
    }

    /// An administrator cordons nodes.
    pub async fn cordon(&self, names: &[String]) -> Result<()> {
        self.merge(names, &json!({ "spec": { "unschedulable": true } })).await
    }

    /// An administrator changes nodes by a merge patch.
    pub async fn merge(&self, names: &[String], patch: &Value) -> Result<()> {
        let (params, patch) = (PatchParams::default(), Patch::Merge(patch));
        self.each(names, async |nodes, name| nodes.patch(name, &params, &patch).await.map(drop)).await
    }

    /// An administrator deletes nodes; one that is gone already is none.
    pub async fn remove(&self, names: &[String]) -> Result<()> {
        self.each(names, async |nodes, name| match nodes.delete(name, &DeleteParams::default()).await {
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
            outcome => outcome.map(drop),
        })
        .await
    }

    /// All nodes, by name.
    pub async fn all(&self) -> Result<BTreeMap<String, Node>> {
        let list = self.nodes.list(&ListParams::default()).await?;
        Ok(list.into_iter().map(|node| (node.name_any(), node)).collect())
    }

    /// One node.
    pub async fn get(&self, name: &str) -> Result<Node> {
        Ok(self.nodes.get(name).await?)
    }

    /// Fails unless the cluster has exactly so many nodes.
    pub async fn count_is(&self, expected: usize) -> Result<()> {
        let found = self.all().await?.len();
        ensure!(found == expected, "{found} nodes instead of {expected}");
        Ok(())
    }

    /// Fails unless all nodes of these names are there and initialised.
    pub async fn initialised(&self, names: &[String]) -> Result<()> {
        let all = self.all().await?;
        let waiting: Vec<_> = names.iter().filter(|name| !all.get(*name).is_some_and(is_initialised)).collect();
        let some = &waiting[..waiting.len().min(5)];
        ensure!(waiting.is_empty(), "{} of {} nodes are not initialised, {some:?} for some", waiting.len(), names.len());
        Ok(())
    }

    async fn each<T>(
        &self,
        items: impl IntoIterator<Item = T>,
        act: impl AsyncFn(&Api<Node>, T) -> kube::Result<()>,
    ) -> Result<()> {
        let act = &act;
        Ok(stream::iter(items).map(Ok).try_for_each_concurrent(IN_FLIGHT, async move |item| act(&self.nodes, item).await).await?)
    }
}

/// Whether a node has a providerID and the taint no longer.
pub fn is_initialised(node: &Node) -> bool {
    node.spec.as_ref().is_some_and(|spec| spec.provider_id.is_some()) && !has_taint(node, UNINITIALIZED)
}

/// Whether a taint of the node has this key.
pub fn has_taint(node: &Node, key: &str) -> bool {
    let taints = node.spec.as_ref().and_then(|spec| spec.taints.as_deref()).unwrap_or_default();
    taints.iter().any(|taint| taint.key == key)
}

/// Whether the node says that its routes are there.
pub fn has_route(node: &Node) -> bool {
    let conditions = node.status.as_ref().and_then(|status| status.conditions.as_deref()).unwrap_or_default();
    let mut network = conditions.iter().filter(|condition| condition.type_ == "NetworkUnavailable");
    network.any(|condition| condition.status == "False" && condition.reason.as_deref() == Some("RouteCreated"))
}

/// `PREFIX-0` up to `PREFIX-(COUNT-1)`.
pub fn names(prefix: &str, count: usize) -> Vec<String> {
    (0..count).map(|number| format!("{prefix}-{number}")).collect()
}

fn labels(name: &str) -> BTreeMap<String, String> {
    [("kubernetes.io/hostname", name), ("kubernetes.io/os", "linux"), ("kubernetes.io/arch", "amd64")]
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .into()
}

fn ready(is_ready: bool) -> NodeCondition {
    let (status, reason) = if is_ready { ("True", "KubeletReady") } else { ("False", "KubeletNotReady") };
    NodeCondition {
        type_: "Ready".into(),
        status: status.into(),
        reason: Some(reason.into()),
        message: Some("as the test wants it".into()),
        last_heartbeat_time: Some(Time(Timestamp::now())),
        last_transition_time: Some(Time(Timestamp::now())),
    }
}

fn node_info() -> NodeSystemInfo {
    let version = "v1.37.1";
    NodeSystemInfo {
        system_uuid: uuid::Uuid::new_v4().to_string(),
        kubelet_version: version.into(),
        kube_proxy_version: version.into(),
        operating_system: "linux".into(),
        architecture: "amd64".into(),
        ..NodeSystemInfo::default()
    }
}
