//! The subcommand `health`: asks a provider's own health service over its socket, since kubelet's gRPC probe cannot.
use std::process::ExitCode;
use std::time::Duration;

use tokio::time::timeout;
use tonic::Status;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;

use crate::endpoint::Endpoint;

/// Which provider is asked, and how long.
#[derive(Clone, Debug, clap::Args)]
pub struct HealthArgs {
    /// The Unix socket of the provider, as `unix:///absolute/path`.
    #[arg(long, env = "PROVIDER_ENDPOINT", value_name = "ENDPOINT")]
    pub endpoint: Endpoint,

    /// The service that is asked for; the server as a whole unless given.
    #[arg(long, value_name = "SERVICE", default_value = "")]
    pub service: String,

    /// How long the answer may take, such as `3s`.
    #[arg(long, value_name = "DURATION", default_value = "3s", value_parser = humantime::parse_duration)]
    pub timeout: Duration,
}

/// Why a provider is not healthy.
#[derive(Debug, thiserror::Error)]
pub enum HealthError {
    /// Nothing answers.
    #[error("no provider answers on {endpoint}: {}", status.message())]
    Unreachable {
        /// Where it was looked for.
        endpoint: Endpoint,
        /// What came instead of an answer.
        #[source]
        status: Box<Status>,
    },
    /// No answer came in time.
    #[error("the provider on {endpoint} did not answer within {timeout:?}")]
    Late {
        /// Where it was looked for.
        endpoint: Endpoint,
        /// How long was waited.
        timeout: Duration,
    },
    /// It says so itself.
    #[error("the provider on {endpoint} says {state}")]
    NotServing {
        /// Where it is.
        endpoint: Endpoint,
        /// Its word.
        state: &'static str,
    },
}

impl HealthArgs {
    /// Whether the provider serves.
    pub async fn check(&self) -> Result<(), HealthError> {
        let endpoint = || self.endpoint.clone();
        let mut client = HealthClient::new(self.endpoint.channel());
        let asked = client.check(HealthCheckRequest { service: self.service.clone() });
        let answer = timeout(self.timeout, asked).await;
        let answer = answer.map_err(|_| HealthError::Late { endpoint: endpoint(), timeout: self.timeout })?;
        let answer = answer.map_err(|status| HealthError::Unreachable { endpoint: endpoint(), status: Box::new(status) })?;
        match answer.into_inner().status() {
            ServingStatus::Serving => Ok(()),
            other => Err(HealthError::NotServing { endpoint: endpoint(), state: other.as_str_name() }),
        }
    }

    /// Checks, says why where it does not serve, and gives the process's exit code: 0 or 1.
    pub async fn run(&self) -> ExitCode {
        match self.check().await {
            Ok(()) => {
                println!("serving");
                ExitCode::SUCCESS
            }
            Err(error) => {
                eprintln!("not healthy: {error}");
                ExitCode::FAILURE
            }
        }
    }
}
