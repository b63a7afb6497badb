//! Load balancers beyond mutations: node sets on and off, plans, and lists.
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use ccm_provider_sdk::fake::{FakeLoadBalancers, FakeProvider, Script};
use ccm_provider_sdk::v1::plan_load_balancer_response::Outcome;
use ccm_provider_sdk::v1::{self, Capability};
use ccm_provider_sdk::{
    CallContext, Description, LoadBalancers, Parts, PlanLoadBalancers, Progress, Provider, Result, Server, WithoutList,
    async_trait, planned,
};
use parking_lot::Mutex;
use tonic::Code;

use crate::fixture::{Fixture, cluster, ensure, handshake, reason};

fn serving(load_balancers: FakeLoadBalancers) -> FakeProvider {
    FakeProvider { load_balancers: Some(load_balancers), ..FakeProvider::bare() }
}

async fn capabilities(fixture: &Fixture) -> Vec<Capability> {
    fixture.identity().get_provider_info(handshake()).await.unwrap().into_inner().info.unwrap().capabilities().collect()
}

fn put(hash: &str, nodes: &[&str]) -> v1::PutNodeSetRequest {
    let node = |name: &&str| v1::Node { name: (*name).into(), ..v1::Node::default() };
    v1::PutNodeSetRequest { hash: hash.into(), set: Some(v1::NodeSet { nodes: nodes.iter().map(node).collect() }) }
}

fn by_hash(hash: &str) -> v1::NodeSetRef {
    v1::NodeSetRef { set: Some(v1::node_set_ref::Set::Hash(hash.into())) }
}

fn inline(nodes: &[&str]) -> v1::NodeSetRef {
    v1::NodeSetRef { set: put("", nodes).set.map(v1::node_set_ref::Set::Inline) }
}

#[tokio::test]
async fn a_set_is_sent_once_and_named_after_that() {
    let provider = serving(FakeLoadBalancers::default());
    let fixture = Fixture::of(&provider).await;
    let _lead = fixture.lead(1).await;
    assert!(capabilities(&fixture).await.contains(&Capability::NodeSets));
    let request = v1::EnsureLoadBalancerRequest { nodes: Some(by_hash("h")), ..ensure("s", 1, 1) };

    let status = fixture.load_balancers().ensure_load_balancer(request.clone()).await.unwrap_err();
    assert_eq!((status.code(), reason(&status).as_str()), (Code::FailedPrecondition, "NODE_SET_UNKNOWN"));
    fixture.load_balancers().put_node_set(put("h", &["a", "b"])).await.unwrap();
    fixture.load_balancers().ensure_load_balancer(request).await.unwrap();

    let (_, nodes) = provider.load_balancers.unwrap().ensure.calls().remove(0);
    assert_eq!(nodes.iter().map(|node| node.name.as_str()).collect::<Vec<_>>(), ["a", "b"]);
}

#[tokio::test]
async fn a_provider_whose_node_sets_are_hidden_gets_the_nodes_themselves() {
    let provider = serving(FakeLoadBalancers { node_sets: false, ..FakeLoadBalancers::default() });
    let fixture = Fixture::of(&provider).await;
    let _lead = fixture.lead(1).await;
    assert_eq!(capabilities(&fixture).await, [Capability::Lead, Capability::LoadBalancers]);

    let status = fixture.load_balancers().put_node_set(put("h", &["a"])).await.unwrap_err();
    assert_eq!((status.code(), reason(&status).as_str()), (Code::Unimplemented, "NOT_IMPLEMENTED"));
    let request = v1::EnsureLoadBalancerRequest { nodes: Some(inline(&["a"])), ..ensure("s", 1, 1) };
    fixture.load_balancers().ensure_load_balancer(request).await.unwrap();

    assert_eq!(provider.load_balancers.unwrap().ensure.calls()[0].1[0].name, "a");
}

#[tokio::test]
async fn what_is_optional_is_listed_when_it_is_there_and_unimplemented_when_not() {
    let owned = |n: usize| v1::OwnedLoadBalancer { name: format!("lb-{n}"), ..v1::OwnedLoadBalancer::default() };
    let list = Script::new(move |()| Ok((0..450).map(owned).collect()));
    let plan = Script::new(|_| Ok(Progress::Done(v1::LoadBalancerPlan::default())));
    let fixture =
        Fixture::of(&serving(FakeLoadBalancers { plan: Some(plan), list: Some(list), ..FakeLoadBalancers::default() })).await;
    let served = capabilities(&fixture).await;
    assert!([Capability::PlanLoadBalancer, Capability::ListLoadBalancers].iter().all(|it| served.contains(it)));
    let request = v1::ListLoadBalancersRequest { cluster: Some(cluster()) };
    let mut stream = fixture.load_balancers().list_load_balancers(request.clone()).await.unwrap().into_inner();
    let mut sizes = Vec::new();
    while let Some(message) = stream.message().await.unwrap() {
        sizes.push(message.load_balancers.len());
    }
    assert_eq!(sizes, [200, 200, 50]);

    let fixture = Fixture::of(&serving(FakeLoadBalancers::default())).await;
    let status = fixture.load_balancers().list_load_balancers(request).await.unwrap_err();
    assert_eq!((status.code(), reason(&status).as_str()), (Code::Unimplemented, "NOT_IMPLEMENTED"));
}

#[tokio::test]
async fn node_taints_and_annotation_prefixes_are_told_in_the_handshake() {
    let provider = serving(FakeLoadBalancers::default());
    provider.describe_as(|it| {
        it.node_taints = vec!["example.com/*".into()];
        it.service_annotation_prefixes = vec!["example.com/".into()];
    });
    let fixture = Fixture::of(&provider).await;
    let info = fixture.identity().get_provider_info(handshake()).await.unwrap().into_inner().info.unwrap();
    assert_eq!(info.node_taints, ["example.com/*"]);
    assert_eq!(info.service_annotation_prefixes, ["example.com/"]);
}

/// A cloud with one load balancer: the names of its targets. `ensure` and `plan` both begin with the difference.
#[derive(Default)]
struct OneBalancer(Arc<Mutex<BTreeSet<String>>>);

enum Step {
    Add(String),
    Remove(String),
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Add(name) => write!(f, "add target {name}"),
            Self::Remove(name) => write!(f, "remove target {name}"),
        }
    }
}

impl OneBalancer {
    fn difference(&self, nodes: &[v1::Node]) -> Vec<Step> {
        let (wanted, present): (BTreeSet<_>, _) = (nodes.iter().map(|it| it.name.clone()).collect(), self.0.lock().clone());
        let add = wanted.difference(&present).cloned().map(Step::Add);
        add.chain(present.difference(&wanted).cloned().map(Step::Remove)).collect()
    }

    fn apply(&self, step: Step) {
        let mut targets = self.0.lock();
        match step {
            Step::Add(name) => targets.insert(name),
            Step::Remove(name) => targets.remove(&name),
        };
    }

    fn ready() -> v1::LoadBalancerReady {
        let ingress = vec![v1::LoadBalancerIngress { ip: Some("192.0.2.1".into()), ..v1::LoadBalancerIngress::default() }];
        v1::LoadBalancerReady {
            status: Some(v1::LoadBalancerStatus { ingress }),
            annotations: [("example.com/name".into(), "lb".into())].into(),
            ..v1::LoadBalancerReady::default()
        }
    }
}

impl Provider for OneBalancer {
    fn describe(&self) -> Description {
        FakeProvider::bare().describe()
    }
    fn parts(self: Arc<Self>) -> Parts {
        Parts::new().load_balancers(self)
    }
}

impl WithoutList for OneBalancer {}

#[async_trait]
impl LoadBalancers for OneBalancer {
    async fn get(&self, _: &CallContext, _: &v1::Service) -> Result<Option<Progress<v1::LoadBalancerStatus>>> {
        Ok(None)
    }
    async fn ensure(&self, _: &CallContext, _: &v1::Service, nodes: &[v1::Node]) -> Result<Progress<v1::LoadBalancerReady>> {
        self.difference(nodes).into_iter().for_each(|step| self.apply(step));
        Ok(Progress::Done(Self::ready()))
    }
    async fn update(&self, _: &CallContext, _: &v1::Service, nodes: &[v1::Node]) -> Result<Progress<v1::LoadBalancerUpdated>> {
        self.difference(nodes).into_iter().for_each(|step| self.apply(step));
        Ok(Progress::Done(v1::LoadBalancerUpdated::default()))
    }
    async fn ensure_deleted(&self, _: &CallContext, _: &v1::Service) -> Result<Progress<()>> {
        Ok(Progress::Done(()))
    }
}

#[async_trait]
impl PlanLoadBalancers for OneBalancer {
    async fn plan(&self, _: &CallContext, _: &v1::Service, nodes: &[v1::Node]) -> Result<Progress<v1::LoadBalancerPlan>> {
        Ok(planned(self.difference(nodes), Self::ready))
    }
}

#[tokio::test]
async fn a_plan_is_the_difference_in_words_and_nothing_once_it_was_ensured() {
    let fixture = Fixture::of_server(Server::new(OneBalancer(Arc::new(Mutex::new(["old".to_owned()].into()))))).await;
    let _lead = fixture.lead(1).await;
    let wanted = v1::EnsureLoadBalancerRequest { nodes: Some(inline(&["a"])), ..ensure("s", 1, 1) };
    let question = v1::PlanLoadBalancerRequest {
        cluster: wanted.cluster.clone(),
        service: wanted.service.clone(),
        nodes: wanted.nodes.clone(),
    };
    let plan = || async {
        match fixture.load_balancers().plan_load_balancer(question.clone()).await.unwrap().into_inner().outcome {
            Some(Outcome::Plan(plan)) => plan,
            other => panic!("{other:?}"),
        }
    };

    let before = plan().await;
    assert_eq!((before.changes.as_slice(), before.status), (&["add target a".to_owned(), "remove target old".into()][..], None));
    fixture.load_balancers().ensure_load_balancer(wanted).await.unwrap();
    let after = plan().await;

    let v1::LoadBalancerReady { status, annotations, .. } = OneBalancer::ready();
    assert_eq!(after, v1::LoadBalancerPlan { changes: vec![], status, annotations });
}

#[tokio::test]
async fn a_plan_that_is_written_is_served() {
    let fixture = Fixture::of_server(Server::new(OneBalancer::default())).await;
    let served = capabilities(&fixture).await;
    let expected = [Capability::Lead, Capability::NodeSets, Capability::LoadBalancers, Capability::PlanLoadBalancer];
    assert_eq!(served, expected);
}
