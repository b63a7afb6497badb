//! One handshake: what is said, and what to make of each way in which it can fail.
use ccm_proto::v1;
use tonic::{Code, Status};

use super::SessionConfig;
use crate::model::provider_info::ProviderInfo;
use crate::provider::grpc::{Connection, Method};
use crate::provider::{Outcome, classify, description};

/// Why a handshake gave no description that can be used.
#[derive(Debug, PartialEq, Eq)]
pub enum Failure {
    /// The provider answers, and what it says rules it out.
    Unusable(String),
    /// It is not answered now; the next one may be. Whether the connection has ended, the connection knows.
    Missed(String),
}

/// Shakes hands.
pub async fn shake(connection: &Connection, config: &SessionConfig) -> Result<ProviderInfo, Failure> {
    let mut client = connection.identity();
    let answer =
        connection.call(Method::GetProviderInfo, request(config), |it| async move { client.get_provider_info(it).await }).await;
    match answer {
        Ok(response) => description::read(response).map_err(|problems| Failure::Unusable(problems.to_string())),
        Err(status) => Err(explain(&status, config)),
    }
}

fn request(config: &SessionConfig) -> v1::GetProviderInfoRequest {
    let cluster = &config.cluster;
    v1::GetProviderInfoRequest {
        cluster: Some(cluster.reference()),
        pod_cidrs: cluster.pod_cidrs.clone(),
        service_cidrs: cluster.service_cidrs.clone(),
        core_version: config.core_version.clone(),
        protocol_versions: vec![ccm_proto::PROTOCOL_VERSION.to_owned()],
    }
}

fn explain(status: &Status, config: &SessionConfig) -> Failure {
    let (endpoint, words, version) = (&config.endpoint, classify::shorten(status.message()), ccm_proto::PROTOCOL_VERSION);
    if classify::is_lost(status) {
        let cause = classify::chain(status);
        return Failure::Missed(format!(
            "connected to {endpoint}, and what listens there stopped, does not speak gRPC, or refuses this process's user (its log says so): {cause}"
        ));
    }
    if classify::reason(status).as_deref() == Some("PROTOCOL_VERSION_UNSUPPORTED") {
        return Failure::Unusable(format!(
            "the provider does not speak this core's protocol version {version}: {words}; run a provider and a core of one protocol version"
        ));
    }
    let failed = || format!("the provider at {endpoint} failed the handshake: {words} ({})", classify::name(status.code()));
    match (status.code(), classify::status(status).outcome) {
        (Code::DeadlineExceeded, _) => Failure::Missed(format!(
            "connected to {endpoint}, and what listens there does not answer the handshake: {words}; is it a gRPC provider, and does it hang?"
        )),
        (_, Outcome::Retry { .. } | Outcome::Unknown) => Failure::Missed(failed()),
        (Code::Unimplemented, _) => Failure::Unusable(format!(
            "what listens at {endpoint} does not serve ccm.provider.{version}.Identity: it is no provider, or one of another protocol \
             version than this core's {version}; run a provider and a core of one protocol version"
        )),
        (_, Outcome::Terminal | Outcome::Unsupported) => Failure::Unusable(failed()),
    }
}
