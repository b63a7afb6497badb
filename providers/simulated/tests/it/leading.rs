//! A provider and a core that leads: the calls about load balancers as a core makes them.
use std::time::Duration;

use ccm_proto::v1;
use ccm_proto::v1::identity_client::IdentityClient;
use ccm_proto::v1::load_balancers_client::LoadBalancersClient;
use ccm_proto::v1::{ensure_load_balancer_response, plan_load_balancer_response};
use serde_json::Value;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::Channel;
use tonic::{Request, Status, Streaming};
use tonic_types::StatusExt as _;

use crate::processes::Provider;

/// A leadership, for as long as it is kept.
pub struct Lead {
    _words: mpsc::Sender<v1::LeadRequest>,
    _answers: Streaming<v1::LeadResponse>,
}

/// A provider under a leader of epoch 1.
pub struct Leading {
    pub provider: Provider,
    pub cluster: v1::ClusterRef,
    pub lead: Option<Lead>,
}

impl Leading {
    pub async fn start(args: &[&str]) -> Self {
        Self::of_cluster("cluster-uid", args).await
    }

    pub async fn of_cluster(uid: &str, args: &[&str]) -> Self {
        let provider = Provider::start(args).await;
        let mut leading = Self { provider, cluster: v1::ClusterRef { name: "kubernetes".into(), uid: uid.into() }, lead: None };
        leading.lead().await;
        leading
    }

    /// Leads, again if it did.
    pub async fn lead(&mut self) {
        let (words, stream) = mpsc::channel(1);
        let valid_for = Duration::from_mins(5).try_into().ok();
        let word = v1::LeadRequest { epoch: 1, valid_for, holder: "core".into(), cluster: Some(self.cluster.clone()) };
        words.send(word).await.unwrap();
        let mut client = IdentityClient::new(self.provider.channel.clone());
        let mut answers = client.lead(ReceiverStream::new(stream)).await.unwrap().into_inner();
        assert_eq!(answers.message().await.unwrap().unwrap().epoch, 1);
        self.lead = Some(Lead { _words: words, _answers: answers });
    }

    /// kill -9 and a new process, which is led too.
    pub async fn restart(&mut self) {
        self.provider.restart().await;
        self.lead().await;
    }

    pub fn client(&self) -> LoadBalancersClient<Channel> {
        LoadBalancersClient::new(self.provider.channel.clone())
    }

    pub async fn ensure(
        &self,
        service: &v1::Service,
        nodes: &[v1::Node],
    ) -> Result<ensure_load_balancer_response::Outcome, Status> {
        let request = v1::EnsureLoadBalancerRequest {
            cluster: Some(self.cluster.clone()),
            leadership: Some(v1::Leadership { epoch: 1 }),
            service: Some(service.clone()),
            nodes: Some(inline(nodes)),
        };
        Ok(self.client().ensure_load_balancer(within(request)).await?.into_inner().outcome.unwrap())
    }

    /// Ensures what must be ready at once.
    pub async fn ready(&self, service: &v1::Service, nodes: &[v1::Node]) -> v1::LoadBalancerReady {
        match self.ensure(service, nodes).await.unwrap() {
            ensure_load_balancer_response::Outcome::Ready(ready) => ready,
            other => panic!("{other:?}"),
        }
    }

    pub async fn update(
        &self,
        service: &v1::Service,
        nodes: &[v1::Node],
    ) -> Result<v1::update_load_balancer_response::Outcome, Status> {
        let request = v1::UpdateLoadBalancerRequest {
            cluster: Some(self.cluster.clone()),
            leadership: Some(v1::Leadership { epoch: 1 }),
            service: Some(service.clone()),
            nodes: Some(inline(nodes)),
        };
        Ok(self.client().update_load_balancer(within(request)).await?.into_inner().outcome.unwrap())
    }

    pub async fn delete(&self, service: &v1::Service) -> Result<v1::ensure_load_balancer_deleted_response::Outcome, Status> {
        let request = v1::EnsureLoadBalancerDeletedRequest {
            cluster: Some(self.cluster.clone()),
            leadership: Some(v1::Leadership { epoch: 1 }),
            service: Some(service.clone()),
        };
        Ok(self.client().ensure_load_balancer_deleted(within(request)).await?.into_inner().outcome.unwrap())
    }

    pub async fn plan(&self, service: &v1::Service, nodes: &[v1::Node]) -> Result<v1::LoadBalancerPlan, Status> {
        let request = v1::PlanLoadBalancerRequest {
            cluster: Some(self.cluster.clone()),
            service: Some(service.clone()),
            nodes: Some(inline(nodes)),
        };
        match self.client().plan_load_balancer(within(request)).await?.into_inner().outcome.unwrap() {
            plan_load_balancer_response::Outcome::Plan(plan) => Ok(plan),
            other => panic!("{other:?}"),
        }
    }

    /// What `ctl load-balancers` lists.
    pub fn there(&self) -> Vec<Value> {
        serde_json::from_str(&self.provider.ctl(&["load-balancers", "-o", "json"])).unwrap()
    }

    /// What `ctl calls` counted under this name.
    pub fn calls(&self, name: &str) -> u64 {
        let calls: Value = serde_json::from_str(&self.provider.ctl(&["calls"])).unwrap();
        calls[name].as_u64().unwrap_or_default()
    }
}

fn inline(nodes: &[v1::Node]) -> v1::NodeSetRef {
    let set = v1::NodeSet { nodes: nodes.to_vec() };
    v1::NodeSetRef { set: Some(v1::node_set_ref::Set::Inline(set)) }
}

pub fn within<T>(message: T) -> Request<T> {
    let mut request = Request::new(message);
    request.set_timeout(Duration::from_secs(30));
    request
}

pub fn service(uid: &str, annotations: &[(&str, &str)]) -> v1::Service {
    let annotations = annotations.iter().map(|(key, value)| (format!("simulated.ccm-core.dev/{key}"), (*value).to_owned()));
    let port = v1::ServicePort { protocol: v1::Protocol::Tcp.into(), port: 80, node_port: Some(30_000), ..Default::default() };
    v1::Service {
        namespace: "default".into(),
        name: format!("web-{uid}"),
        uid: uid.into(),
        annotations: annotations.collect(),
        ports: vec![port],
        ..v1::Service::default()
    }
}

pub fn nodes(names: &[&str]) -> Vec<v1::Node> {
    names.iter().map(|name| v1::Node { name: (*name).into(), uid: format!("uid-{name}"), ..v1::Node::default() }).collect()
}

/// The reason in a status's details; empty if there is none.
pub fn reason(status: &Status) -> String {
    status.get_details_error_info().map(|info| info.reason).unwrap_or_default()
}
