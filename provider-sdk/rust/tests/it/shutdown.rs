//! Health, reflection, and an end that drains.
use std::future::pending;
use std::time::Duration;

use ccm_provider_sdk::fake::{FakeProvider, Serving};
use ccm_provider_sdk::health::HealthError;
use ccm_provider_sdk::{HealthArgs, Lookup, Progress, Server, v1};
use tokio::sync::oneshot;
use tokio::time::timeout;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;
use tonic_reflection::pb::v1::ServerReflectionRequest;
use tonic_reflection::pb::v1::server_reflection_client::ServerReflectionClient;
use tonic_reflection::pb::v1::server_reflection_request::MessageRequest;
use tonic_reflection::pb::v1::server_reflection_response::MessageResponse;

use crate::fixture::{Fixture, PATIENCE, SHORT, batch, ensure, within, word};

fn health(serving: &Serving) -> HealthArgs {
    HealthArgs { endpoint: serving.endpoint().clone(), service: String::new(), timeout: PATIENCE }
}

#[tokio::test]
async fn the_health_subcommand_says_whether_the_provider_serves() {
    let fixture = Fixture::of(&FakeProvider::default()).await;
    let args = health(&fixture.serving);
    let known = HealthArgs { service: "ccm.provider.v1.Instances".into(), ..args.clone() };

    args.check().await.unwrap();
    known.check().await.unwrap();
    fixture.serving.stop().await.unwrap();

    let error = args.check().await.unwrap_err();
    assert!(matches!(error, HealthError::Unreachable { .. }) && error.to_string().contains("p.sock"), "{error}");
}

#[tokio::test]
async fn a_server_that_drains_says_so_and_lets_running_calls_end() {
    let provider = FakeProvider::default();
    let get = provider.instances.clone().unwrap().get;
    let (finish, finished) = oneshot::channel();
    get.then_await(|_| async move {
        finished.await.unwrap();
        Ok(Lookup::not_found())
    });
    let fixture = Fixture::of(&provider).await;
    let watch = HealthCheckRequest { service: String::new() };
    let mut states = HealthClient::new(fixture.channel()).watch(watch).await.unwrap().into_inner();
    assert_eq!(states.message().await.unwrap().unwrap().status(), ServingStatus::Serving);
    let mut client = fixture.instances();
    let call = tokio::spawn(async move { client.batch_get_instances(batch(["a"])).await });
    get.wait_for_calls(1).await;

    fixture.serving.begin_stop();
    assert_eq!(states.message().await.unwrap().unwrap().status(), ServingStatus::NotServing);
    finish.send(()).unwrap();

    assert!(call.await.unwrap().is_ok());
    timeout(PATIENCE, fixture.serving.stop()).await.unwrap().unwrap();
}

#[tokio::test]
async fn a_running_mutation_may_end_under_its_leader_while_the_server_drains() {
    let provider = FakeProvider::whole();
    let balancers = provider.load_balancers.clone().unwrap();
    let (finish, finished) = oneshot::channel::<()>();
    balancers.ensure.then_await(|_| async move {
        finished.await.unwrap();
        Ok(Progress::Done(v1::LoadBalancerReady::default()))
    });
    let fixture = Fixture::of(&provider).await;
    let _lead = fixture.lead(1).await;
    let mut client = fixture.load_balancers();
    let call = tokio::spawn(async move { client.ensure_load_balancer(ensure("s", 1, 1)).await });
    balancers.ensure.wait_for_calls(1).await;

    fixture.serving.begin_stop();
    finish.send(()).unwrap();

    assert!(call.await.unwrap().is_ok());
    timeout(PATIENCE, fixture.serving.stop()).await.unwrap().unwrap();
    assert!(provider.leaders()[0].is_lost());
}

/// Makes a service's work run detached, with its end in the test's hand; the receiver tells when it was dropped or has ended.
async fn detach(provider: &FakeProvider, fixture: &Fixture) -> (oneshot::Sender<()>, oneshot::Receiver<()>) {
    let (finish, finished) = oneshot::channel::<()>();
    let (held, dropped) = oneshot::channel::<()>();
    provider.load_balancers.as_ref().unwrap().ensure.then_await(|_| async move {
        let _held = held;
        finished.await.unwrap();
        Ok(Progress::Done(v1::LoadBalancerReady::default()))
    });
    let call = within(SHORT, ensure("s", 1, 1));
    let answer = fixture.load_balancers().ensure_load_balancer(call).await.unwrap().into_inner().outcome;
    assert!(matches!(answer, Some(v1::ensure_load_balancer_response::Outcome::InProgress(_))));
    (finish, dropped)
}

#[tokio::test]
async fn detached_work_ends_under_its_leader_before_lead_is_closed_and_the_socket_goes() {
    let provider = FakeProvider::whole();
    let fixture = Fixture::of(&provider).await;
    let mut lead = fixture.lead(1).await;
    let path = fixture.path();
    let (finish, ended) = detach(&provider, &fixture).await;
    let mut states = HealthClient::new(fixture.channel()).watch(HealthCheckRequest::default()).await.unwrap().into_inner();
    states.message().await.unwrap();

    fixture.serving.begin_stop();
    assert_eq!(states.message().await.unwrap().unwrap().status(), ServingStatus::NotServing);
    lead.words.send(word(1, "core-a", PATIENCE)).await.unwrap();
    assert_eq!(lead.acknowledged().await.unwrap(), 1, "the leader renews while the provider drains");
    assert!(!provider.leaders()[0].is_lost() && path.exists());
    finish.send(()).unwrap();

    timeout(PATIENCE, ended).await.unwrap().unwrap_err();
    assert_eq!(lead.acknowledged().await.unwrap_err().code(), tonic::Code::Unavailable);
    timeout(PATIENCE, fixture.serving.stop()).await.unwrap().unwrap();
    assert!(!path.exists());
}

#[tokio::test]
async fn detached_work_that_outlasts_the_grace_is_cancelled_with_lead() {
    let provider = FakeProvider::whole();
    let grace = Duration::from_millis(50);
    let fixture = Fixture::of_server(Server::new(provider.clone()).shutdown_grace(grace)).await;
    let mut lead = fixture.lead(1).await;
    let path = fixture.path();
    let (_never, ended) = detach(&provider, &fixture).await;

    fixture.serving.begin_stop();

    assert_eq!(lead.acknowledged().await.unwrap_err().code(), tonic::Code::Unavailable);
    timeout(PATIENCE, ended).await.unwrap().unwrap_err();
    timeout(PATIENCE, fixture.serving.stop()).await.unwrap().unwrap();
    assert!(provider.leaders()[0].is_lost() && !path.exists());
}

#[tokio::test]
async fn a_call_that_outlasts_the_grace_is_ended() {
    let provider = FakeProvider::default();
    let get = provider.instances.clone().unwrap().get;
    get.then_await(|_| pending());
    let fixture = Fixture::of_server(Server::new(provider).shutdown_grace(Duration::from_millis(50))).await;
    let mut client = fixture.instances();
    let call = tokio::spawn(async move { client.batch_get_instances(batch(["a"])).await });
    get.wait_for_calls(1).await;

    timeout(PATIENCE, fixture.serving.stop()).await.unwrap().unwrap();

    assert_eq!(call.await.unwrap().unwrap_err().code(), tonic::Code::Unavailable);
}

#[tokio::test]
async fn reflection_describes_the_protocol_with_its_imports() {
    let fixture = Fixture::of(&FakeProvider::default()).await;
    let ask = |message_request| ServerReflectionRequest { host: String::new(), message_request: Some(message_request) };
    let asked = [
        ask(MessageRequest::ListServices(String::new())),
        ask(MessageRequest::FileContainingSymbol("ccm.provider.v1.Instances".into())),
        ask(MessageRequest::FileByFilename("google/protobuf/timestamp.proto".into())),
    ];

    let mut client = ServerReflectionClient::new(fixture.channel());
    let mut answers = client.server_reflection_info(tokio_stream::iter(asked)).await.unwrap().into_inner();

    let Some(MessageResponse::ListServicesResponse(list)) = answers.message().await.unwrap().unwrap().message_response else {
        panic!("no list of services");
    };
    assert!(list.service.iter().any(|service| service.name == "ccm.provider.v1.Identity"));
    for _ in 0..2 {
        let answer = answers.message().await.unwrap().unwrap().message_response;
        assert!(matches!(answer, Some(MessageResponse::FileDescriptorResponse(_))), "{answer:?}");
    }
}
