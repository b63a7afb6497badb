//! The standard services that every gRPC server has beside its own: health and reflection.
use std::time::Duration;

use tokio::time::timeout;
use tonic::Status;
use tonic::transport::Channel;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;
use tonic_health::pb::{HealthCheckRequest, HealthCheckResponse};
use tonic_reflection::pb::v1::server_reflection_client::ServerReflectionClient;
use tonic_reflection::pb::v1::server_reflection_request::MessageRequest;
use tonic_reflection::pb::v1::server_reflection_response::MessageResponse;
use tonic_reflection::pb::v1::{ServerReflectionRequest, ServerReflectionResponse};

use crate::case::{Case, Checked, Need, broken, check};
use crate::context::Context;
use crate::exchange::describe;
use crate::hooks::Fault;

/// How long a health check may take.
const PROMPT: Duration = Duration::from_secs(5);

/// The cases.
pub const CASES: &[Case] = &[
    Case::new("health/serving", "Check for the name \"\" answers SERVING", &["HLT-1", "HLT-2"], &[], |c| Box::pin(serving(c))),
    Case::new("health/reflection", "reflection names the services of the contract", &["HLT-1"], &[], |c| Box::pin(reflection(c))),
    Case::new(
        "health/cloud-away",
        "a cloud that is away does not make the provider unhealthy",
        &["HLT-3"],
        &[Need::Mutations, Need::Fault(Fault::CloudAway)],
        |c| Box::pin(with_fault(c, Fault::CloudAway)),
    ),
    Case::new(
        "health/credentials",
        "refused credentials do not make the provider unhealthy",
        &["HLT-3"],
        &[Need::Mutations, Need::Fault(Fault::CredentialsRefused)],
        |c| Box::pin(with_fault(c, Fault::CredentialsRefused)),
    ),
];

/// What `Check` answers for the name `""`.
pub async fn status(channel: &Channel) -> Result<ServingStatus, Status> {
    let mut client = HealthClient::new(channel.clone());
    let call = client.check(HealthCheckRequest::default());
    let late = |_| Status::deadline_exceeded("the health check was not answered");
    let answer: HealthCheckResponse = timeout(PROMPT, call).await.map_err(late)??.into_inner();
    Ok(answer.status())
}

/// The health check must say this.
pub async fn expect(c: &Context, rule: &'static str, expected: ServingStatus) -> Checked {
    let answer = status(&c.channel).await;
    c.exchanges.add("grpc.health.v1.Health/Check", &"", &answer, Duration::ZERO);
    let found = answer.map_err(|status| broken(rule, format!("the health check failed: {}", describe(&status))))?;
    check(rule, found == expected, format!("the health check says {found:?}, expected {expected:?}"))
}

async fn serving(c: &Context) -> Checked {
    expect(c, "HLT-2", ServingStatus::Serving).await
}

async fn with_fault(c: &Context, fault: Fault) -> Checked {
    c.suite.hooks.set(fault).await?;
    expect(c, "HLT-3", ServingStatus::Serving).await
}

async fn reflection(c: &Context) -> Checked {
    let names = services(&c.channel).await;
    c.exchanges.add("grpc.reflection.v1", &"list_services", &names, Duration::ZERO);
    let names = names.map_err(|status| broken("HLT-1", format!("reflection failed: {}", describe(&status))))?;
    let ours = "ccm.provider.v1.Identity";
    check("HLT-1", names.iter().any(|name| name == ours), format!("reflection does not name {ours}: {names:?}"))
}

async fn services(channel: &Channel) -> Result<Vec<String>, Status> {
    let request =
        ServerReflectionRequest { host: String::new(), message_request: Some(MessageRequest::ListServices(String::new())) };
    let mut client = ServerReflectionClient::new(channel.clone());
    let mut answers = client.server_reflection_info(tokio_stream::once(request)).await?.into_inner();
    let answer: Option<ServerReflectionResponse> = answers.message().await?;
    match answer.and_then(|answer| answer.message_response) {
        Some(MessageResponse::ListServicesResponse(list)) => Ok(list.service.into_iter().map(|one| one.name).collect()),
        other => Err(Status::internal(format!("unexpected answer {other:?}"))),
    }
}
