//! In which order a call is checked, and what never waits behind other calls.
use std::future::pending;

use ccm_provider_sdk::fake::FakeProvider;
use ccm_provider_sdk::v1::routes_client::RoutesClient;
use ccm_provider_sdk::{Server, v1};
use tokio::time::timeout;
use tonic::{Code, Status};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;

use crate::fixture::{Fixture, PATIENCE, batch, ensure, handshake, reason, word};

fn told(status: &Status) -> (Code, String) {
    (status.code(), reason(status))
}

fn by_hash(epoch: u64) -> v1::EnsureLoadBalancerRequest {
    let nodes = Some(v1::NodeSetRef { set: Some(v1::node_set_ref::Set::Hash("unknown".into())) });
    v1::EnsureLoadBalancerRequest { nodes, ..ensure("s", epoch, 1) }
}

#[tokio::test]
async fn what_is_not_served_is_said_before_anything_else() {
    let fixture = Fixture::of(&FakeProvider::bare()).await;

    let status = fixture.load_balancers().ensure_load_balancer(v1::EnsureLoadBalancerRequest::default()).await.unwrap_err();
    assert_eq!(told(&status), (Code::Unimplemented, "NOT_IMPLEMENTED".into()));
    let status = RoutesClient::new(fixture.channel()).create_routes(v1::CreateRoutesRequest::default()).await.unwrap_err();
    assert_eq!(told(&status), (Code::Unimplemented, "NOT_IMPLEMENTED".into()));
}

#[tokio::test]
async fn the_shape_of_a_request_comes_before_leadership_and_leadership_before_the_node_set() {
    let fixture = Fixture::of(&FakeProvider::whole()).await;
    let mut client = fixture.load_balancers();

    let no_nodes = v1::EnsureLoadBalancerRequest { nodes: None, ..ensure("s", 1, 1) };
    assert_eq!(told(&client.ensure_load_balancer(no_nodes).await.unwrap_err()), (Code::InvalidArgument, String::new()));
    let not_leading = (Code::FailedPrecondition, "NOT_LEADING".to_owned());
    assert_eq!(told(&client.ensure_load_balancer(by_hash(1)).await.unwrap_err()), not_leading);
    let _lead = fixture.lead(1).await;
    assert_eq!(told(&client.ensure_load_balancer(by_hash(2)).await.unwrap_err()), not_leading);
    let absent = v1::EnsureLoadBalancerRequest { leadership: None, ..by_hash(1) };
    assert_eq!(told(&client.ensure_load_balancer(absent).await.unwrap_err()), not_leading, "absent is not led");
    let status = client.ensure_load_balancer(by_hash(1)).await.unwrap_err();
    assert_eq!(told(&status), (Code::FailedPrecondition, "NODE_SET_UNKNOWN".into()));
}

#[tokio::test]
async fn an_empty_set_is_a_set_and_an_absent_one_is_none() {
    let provider = FakeProvider::whole();
    let fixture = Fixture::of(&provider).await;
    let _lead = fixture.lead(1).await;
    let mut client = fixture.load_balancers();
    let put = |set| v1::PutNodeSetRequest { hash: "unknown".into(), set };

    assert_eq!(client.put_node_set(put(None)).await.unwrap_err().code(), Code::InvalidArgument);
    client.put_node_set(put(Some(v1::NodeSet::default()))).await.unwrap();
    client.ensure_load_balancer(by_hash(1)).await.unwrap();
    client.ensure_load_balancer(ensure("other", 1, 1)).await.unwrap();

    assert!(provider.load_balancers.unwrap().ensure.calls().iter().all(|(_, nodes)| nodes.is_empty()));
}

#[tokio::test]
async fn handshake_health_and_lead_are_answered_while_every_other_call_is_taken() {
    let provider = FakeProvider::whole();
    let (instances, balancers) = (provider.instances.clone().unwrap(), provider.load_balancers.clone().unwrap());
    instances.get.always_await(|_| pending());
    balancers.ensure.always_await(|_| pending());
    let fixture = Fixture::of_server(Server::new(provider)).await;
    let mut lead = fixture.lead(1).await;
    // As many as the contract's default limits.
    for _ in 0..4 {
        let mut client = fixture.instances();
        tokio::spawn(async move { client.batch_get_instances(batch(["a"])).await });
    }
    for number in 0..10 {
        let mut client = fixture.load_balancers();
        tokio::spawn(async move { client.ensure_load_balancer(ensure(&number.to_string(), 1, 1)).await });
    }
    timeout(PATIENCE, async { tokio::join!(instances.get.wait_for_calls(4), balancers.ensure.wait_for_calls(10)) })
        .await
        .unwrap();

    timeout(PATIENCE, fixture.identity().get_provider_info(handshake())).await.unwrap().unwrap();
    lead.words.send(word(1, "core-a", PATIENCE)).await.unwrap();
    assert_eq!(lead.acknowledged().await.unwrap(), 1);
    let mut health = HealthClient::new(fixture.channel());
    let answer = timeout(PATIENCE, health.check(HealthCheckRequest::default())).await.unwrap().unwrap();
    assert_eq!(answer.into_inner().status(), ServingStatus::Serving);
}
