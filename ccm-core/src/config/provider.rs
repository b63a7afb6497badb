//! Flags about the provider sidecar.
use std::time::Duration;

use clap::Args;
use serde::Serialize;

use super::Invalid;
use super::go_syntax::{boolean, duration, serialize_duration};
use crate::provider::endpoint::Endpoint;

/// Where the provider listens, and which users may: all that a command needs that changes nothing.
#[derive(Debug, Args)]
#[command(next_help_heading = "Provider")]
pub(super) struct EndpointArgs {
    /// Where the provider sidecar listens: `unix:///absolute/path`
    #[arg(long, value_name = "ENDPOINT", env = "CCM_PROVIDER_ENDPOINT")]
    pub(super) provider_endpoint: Endpoint,
    /// Users whose processes may listen there, besides this process's own user and root: numeric ids, separated by commas
    ///
    /// A process that poses as the provider could cause nodes to be deleted. So ccm-core refuses a listener of any other user before
    /// it sends anything. In providers that use the SDK, the counterpart is --allow-peer-uid.
    #[arg(long, value_name = "UID", env = "CCM_PROVIDER_PEER_UID", value_delimiter = ',')]
    pub(super) provider_peer_uid: Vec<u32>,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Provider")]
pub(super) struct ProviderArgs {
    #[command(flatten)]
    endpoint: EndpointArgs,
    /// How long the provider may be unavailable before this replica releases the lease
    ///
    /// ccm-core changes nothing in the cluster while the provider is unavailable. After this time another replica, whose provider may
    /// work, can take over.
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = duration)]
    provider_grace: Duration,
    /// Accept this cloud identity in place of the one that is recorded in the cluster
    ///
    /// ccm-core records the first identity that a provider reports. If a provider reports another one (a wrong image, project or
    /// region), ccm-core changes nothing until this flag accepts it.
    #[arg(long, value_name = "IDENTITY")]
    accept_cloud_identity: Option<String>,
    /// Name that the provider must report; by default, and with "external", any name
    #[arg(long, value_name = "NAME", default_value = "", hide_default_value = true)]
    cloud_provider: String,
    /// Run even if the provider reports no cluster ID
    #[arg(long, num_args = 0..=1, require_equals = true, default_value = "false", default_missing_value = "true", value_parser = boolean, action = clap::ArgAction::Set)]
    allow_untagged_cloud: bool,
}

/// The provider sidecar.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ProviderConfig {
    /// Where it listens.
    pub endpoint: Endpoint,
    /// The users that may listen there, besides this process's own and root.
    pub peer_uids: Vec<u32>,
    /// How long it may be unavailable before this replica releases the lease.
    #[serde(serialize_with = "serialize_duration")]
    pub grace: Duration,
    /// The cloud identity that the operator accepts in place of the recorded one.
    pub accept_cloud_identity: Option<String>,
    /// The name that the provider must report (`--cloud-provider`); none: any name.
    pub required_name: Option<String>,
    /// Whether ccm-core runs with a provider that reports no cluster ID.
    pub allow_untagged_cloud: bool,
}

impl ProviderArgs {
    pub(super) fn validate(self) -> Result<ProviderConfig, Invalid> {
        if self.accept_cloud_identity.as_deref() == Some("") {
            return Err(Invalid::new(
                "accept-cloud-identity",
                "it is empty",
                "give the identity to accept, or leave the flag out",
            ));
        }
        Ok(ProviderConfig {
            endpoint: self.endpoint.provider_endpoint,
            peer_uids: self.endpoint.provider_peer_uid,
            grace: self.provider_grace,
            accept_cloud_identity: self.accept_cloud_identity,
            required_name: Some(self.cloud_provider).filter(|name| !matches!(name.as_str(), "" | "external")),
            allow_untagged_cloud: self.allow_untagged_cloud,
        })
    }
}
