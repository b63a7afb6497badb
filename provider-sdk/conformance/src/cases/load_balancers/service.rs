//! The Services of the suite and their nodes, and the calls about them as short as a case wants them.
use std::time::{Duration, SystemTime};

use ccm_proto::v1::{
    ClusterRef, EnsureLoadBalancerDeletedRequest, EnsureLoadBalancerRequest, GetLoadBalancerRequest, GetLoadBalancerResponse,
    IpFamily, IpFamilyPolicy, ListLoadBalancersRequest, LoadBalancerPlan, LoadBalancerReady, LoadBalancerStatus, Node,
    NodeAddress, NodeAddressType, NodeSet, NodeSetRef, ObjectTimes, OwnedLoadBalancer, PlanLoadBalancerRequest, Protocol,
    PutNodeSetRequest, Service, ServicePort, TrafficPolicy, UpdateLoadBalancerRequest, ensure_load_balancer_deleted_response,
    ensure_load_balancer_response, get_load_balancer_response, node_set_ref, plan_load_balancer_response,
    update_load_balancer_response,
};
use tonic::Code;
use uuid::Uuid;

use crate::case::{Checked, Ended, broken, check};
use crate::context::{Context, eventually};
use crate::lead::Lead;

/// How long the cloud may be at work on one load balancer.
const SETTLED: Duration = Duration::from_secs(180);

/// A Service with one port.
pub fn service(c: &Context, name: &str) -> Service {
    let port = ServicePort {
        name: "web".into(),
        protocol: Protocol::Tcp.into(),
        port: 80,
        target_port: "8080".into(),
        node_port: Some(30080),
        app_protocol: None,
    };
    Service {
        namespace: "provider-conformance".into(),
        name: name.into(),
        uid: Uuid::new_v4().to_string(),
        annotations: c.suite.config.service_annotations.clone().into_iter().collect(),
        times: Some(ObjectTimes { created_at: Some(SystemTime::now().into()), deleted_at: None }),
        generation: 1,
        ports: vec![port],
        ip_families: vec![IpFamily::Ipv4.into()],
        ip_family_policy: IpFamilyPolicy::SingleStack.into(),
        external_traffic_policy: TrafficPolicy::Cluster.into(),
        internal_traffic_policy: TrafficPolicy::Cluster.into(),
        allocate_load_balancer_node_ports: Some(true),
        cluster_ips: vec!["10.96.0.10".into()],
        ..Service::default()
    }
}

/// The nodes of the machines that exist; without any, one that the cloud may not know.
pub fn nodes(c: &Context, count: usize) -> NodeSet {
    let node = |name: &str, provider_id: Option<String>| Node {
        name: name.into(),
        uid: format!("uid-of-{name}"),
        provider_id,
        addresses: vec![NodeAddress { r#type: NodeAddressType::InternalIp.into(), address: "10.0.0.1".into() }],
        ..Node::default()
    };
    let mut nodes: Vec<_> = c.suite.machines.iter().map(|one| node(&one.name, Some(one.provider_id.clone()))).collect();
    nodes.truncate(count);
    nodes.sort_by(|one, other| one.name.cmp(&other.name));
    NodeSet { nodes }
}

/// The nodes themselves.
#[allow(clippy::unnecessary_wraps)] // as the field of the messages
pub fn inline(set: NodeSet) -> Option<NodeSetRef> {
    Some(NodeSetRef { set: Some(node_set_ref::Set::Inline(set)) })
}

/// The nodes by the hash of their set.
#[allow(clippy::unnecessary_wraps)] // as the field of the messages
pub fn hash(hash: &str) -> Option<NodeSetRef> {
    Some(NodeSetRef { set: Some(node_set_ref::Set::Hash(hash.into())) })
}

/// The request to make a load balancer of this Service under this leadership.
pub fn ensure_request(lead: &Lead, service: &Service, nodes: Option<NodeSetRef>) -> EnsureLoadBalancerRequest {
    EnsureLoadBalancerRequest { cluster: lead.cluster(), leadership: lead.proof(), service: Some(service.clone()), nodes }
}

impl Context {
    /// Ensures until the load balancer is ready, with all nodes.
    pub async fn ensure(&self, lead: &Lead, service: &Service) -> Checked<LoadBalancerReady> {
        let nodes = inline(nodes(self, usize::MAX));
        self.ensure_with(lead, service, nodes).await
    }

    /// Ensures until the load balancer is ready.
    pub async fn ensure_with(&self, lead: &Lead, service: &Service, nodes: Option<NodeSetRef>) -> Checked<LoadBalancerReady> {
        use ensure_load_balancer_response::Outcome::{InProgress, Ready};
        self.may_make(&lead.cluster().unwrap_or_default(), service)?;
        eventually("LB-18", "the load balancer is ready", SETTLED, async || {
            match self.ok("LB-18", ensure_request(lead, service, nodes.clone())).await?.outcome {
                Some(Ready(ready)) => Ok(Some(ready)),
                Some(InProgress(_)) => Ok(None),
                other => Err(broken("LB-18", format!("expected `ready` or `in_progress`, got {other:?}"))),
            }
        })
        .await
    }

    /// Updates until the targets are these nodes.
    pub async fn update(&self, lead: &Lead, service: &Service, nodes: Option<NodeSetRef>) -> Checked {
        use update_load_balancer_response::Outcome::{InProgress, Updated};
        eventually("LB-19", "the targets are updated", SETTLED, async || {
            match self.ok("LB-19", update_request(lead, service, nodes.clone())).await?.outcome {
                Some(Updated(_)) => Ok(Some(())),
                Some(InProgress(_)) => Ok(None),
                other => Err(broken("LB-19", format!("expected `updated` or `in_progress`, got {other:?}"))),
            }
        })
        .await
    }

    /// Deletes until nothing is left.
    pub async fn delete(&self, lead: &Lead, service: &Service) -> Checked {
        use ensure_load_balancer_deleted_response::Outcome::{Done, InProgress};
        eventually("LB-20", "the load balancer is removed", SETTLED, async || {
            let service = Some(service.clone());
            let request = EnsureLoadBalancerDeletedRequest { cluster: lead.cluster(), leadership: lead.proof(), service };
            match self.ok("LB-20", request).await?.outcome {
                Some(Done(_)) => Ok(Some(())),
                Some(InProgress(_)) => Ok(None),
                other => Err(broken("LB-20", format!("expected `done` or `in_progress`, got {other:?}"))),
            }
        })
        .await
    }

    /// What `GetLoadBalancer` answers.
    pub async fn get(&self, cluster: &ClusterRef, service: &Service) -> Checked<GetLoadBalancerResponse> {
        self.ok("LB-52", GetLoadBalancerRequest { cluster: Some(cluster.clone()), service: Some(service.clone()) }).await
    }

    /// The load balancer must be there; its status.
    pub async fn found(&self, rule: &'static str, service: &Service) -> Checked<LoadBalancerStatus> {
        match self.get(&self.suite.cluster, service).await?.outcome {
            Some(get_load_balancer_response::Outcome::Found(status)) => Ok(status),
            other => Err(broken(rule, format!("GetLoadBalancer: expected `found`, got {other:?}"))),
        }
    }

    /// There must be no load balancer of the Service.
    pub async fn gone(&self, rule: &'static str, cluster: &ClusterRef, service: &Service) -> Checked {
        let found = self.get(cluster, service).await?.outcome;
        let expected = matches!(found, Some(get_load_balancer_response::Outcome::NotFound(_)));
        check(rule, expected, format!("GetLoadBalancer: expected `not_found`, got {found:?}"))
    }

    /// What there is to do.
    pub async fn plan(&self, service: &Service, nodes: Option<NodeSetRef>) -> Checked<LoadBalancerPlan> {
        let cluster = Some(self.suite.cluster.clone());
        let request = PlanLoadBalancerRequest { cluster, service: Some(service.clone()), nodes };
        match self.ok("LB-21", request).await?.outcome {
            Some(plan_load_balancer_response::Outcome::Plan(plan)) => Ok(plan),
            other => Err(broken("LB-21", format!("expected `plan`, got {other:?}"))),
        }
    }

    /// What the cluster owns.
    pub async fn list(&self, cluster: &ClusterRef) -> Checked<Vec<OwnedLoadBalancer>> {
        let parts = self.all("LB-59", ListLoadBalancersRequest { cluster: Some(cluster.clone()) }).await?;
        Ok(parts.into_iter().flat_map(|part| part.load_balancers).collect())
    }

    /// Gives the provider a set under a new hash; the hash.
    pub async fn put(&self, set: NodeSet) -> Checked<String> {
        let hash = Uuid::new_v4().to_string();
        self.ok("LB-55", PutNodeSetRequest { hash: hash.clone(), set: Some(set) }).await?;
        Ok(hash)
    }

    /// The first Ensure of a Service must be refused so; nothing may have been made.
    pub async fn ensure_refused(
        &self,
        rule: &'static str,
        request: EnsureLoadBalancerRequest,
        code: Code,
        reason: &str,
    ) -> Checked<tonic::Status> {
        let (Some(cluster), Some(service)) = (&request.cluster, &request.service) else {
            return Err(Ended::Stuck("a request without cluster or service".into()));
        };
        self.may_make(cluster, service)?;
        self.refused(rule, request, code, reason).await
    }
}

/// The request to give a load balancer these targets.
pub fn update_request(lead: &Lead, service: &Service, nodes: Option<NodeSetRef>) -> UpdateLoadBalancerRequest {
    UpdateLoadBalancerRequest { cluster: lead.cluster(), leadership: lead.proof(), service: Some(service.clone()), nodes }
}
