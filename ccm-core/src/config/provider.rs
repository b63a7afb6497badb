//! Flags about the provider sidecar.
use std::time::Duration;

use clap::Args;
use serde::Serialize;

use super::Invalid;
use super::go_syntax::{boolean, duration, serialize_duration};
use crate::provider::endpoint::Endpoint;

/// Where to find it, and whom to take for it: all that a command needs that only asks.
#[derive(Debug, Args)]
#[command(next_help_heading = "Provider")]
pub(super) struct EndpointArgs {
    /// Where the provider sidecar listens: `unix:///absolute/path`
    #[arg(long, value_name = "ENDPOINT", env = "CCM_PROVIDER_ENDPOINT")]
    pub(super) provider_endpoint: Endpoint,
    /// Users whose process may listen there, besides this process's own and root: numeric ids, separated by commas
    ///
    /// Whoever listens in the provider's place could have nodes deleted. So a listener of any other user is refused before
    /// anything is sent. The provider's counterpart in the SDK is --allow-peer-uid.
    #[arg(long, value_name = "UID", env = "CCM_PROVIDER_PEER_UID", value_delimiter = ',')]
    pub(super) provider_peer_uid: Vec<u32>,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Provider")]
pub(super) struct ProviderArgs {
    #[command(flatten)]
    endpoint: EndpointArgs,
    /// How long the provider may be away before this process gives the lease back
    ///
    /// While it is away nothing is changed in the cluster either way. After this long another replica, whose provider may be
    /// well, can take over.
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = duration)]
    provider_grace: Duration,
    /// Accept this cloud identity in place of the one that the cluster knows
    ///
    /// The first identity that a provider names is remembered in the cluster. Another one (a wrong image, project or region)
    /// stops everything until it is accepted here.
    #[arg(long, value_name = "IDENTITY")]
    accept_cloud_identity: Option<String>,
    /// The name that the provider must have; empty or "external": any
    #[arg(long, value_name = "NAME", default_value = "", hide_default_value = true)]
    cloud_provider: String,
    /// Run although the provider reports no cluster ID
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
    /// How long it may be away before the lease is given back.
    #[serde(serialize_with = "serialize_duration")]
    pub grace: Duration,
    /// The cloud identity that the operator accepts in place of the remembered one.
    pub accept_cloud_identity: Option<String>,
    /// The name that the provider must have (`--cloud-provider`), if any is demanded.
    pub required_name: Option<String>,
    /// Whether a provider without a cluster ID will do.
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
