//! `ccm-core load-balancers`: its own command line, with the flags of the cluster and of the provider.
use std::ffi::OsString;

use clap::{Parser, ValueEnum};

use super::{ConfigError, KubernetesConfig, go_syntax, kubernetes, provider};
use crate::provider::endpoint::Endpoint;

/// The first argument that asks for it.
pub(super) const NAME: &str = "load-balancers";

/// List the load balancers that this cluster owns in the cloud, and which of them no Service claims
///
/// The command changes nothing in the cluster or in the cloud. It lists load balancers from the provider, which must serve
/// `ListLoadBalancers`, and Services from the API server, so it can run at the same time as ccm-core.
#[derive(Debug, Parser)]
#[command(name = "ccm-core load-balancers", bin_name = "ccm-core load-balancers", version, args_override_self = true)]
struct ListCli {
    #[command(flatten)]
    provider: provider::EndpointArgs,
    #[command(flatten)]
    kubernetes: kubernetes::KubernetesArgs,
    /// Output format
    #[arg(long, short, value_enum, default_value_t = Output::Table)]
    output: Output,
    /// List only load balancers that no Service claims
    #[arg(long)]
    unclaimed: bool,
}

/// The output format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Output {
    /// For people
    Table,
    /// For scripts
    Json,
}

/// What the command lists, and how.
#[derive(Clone, Debug, PartialEq)]
pub struct ListingConfig {
    /// Where the provider sidecar listens.
    pub endpoint: Endpoint,
    /// The users that may listen there, besides this process's own and root.
    pub peer_uids: Vec<u32>,
    /// The API server and the cluster.
    pub kubernetes: KubernetesConfig,
    /// The output format.
    pub output: Output,
    /// Whether the command lists only load balancers that no Service claims.
    pub unclaimed: bool,
}

impl ListingConfig {
    /// Reads the arguments after the command's name.
    pub(super) fn from_args(args: impl Iterator<Item = OsString>) -> Result<Self, ConfigError> {
        let cli = ListCli::try_parse_from(std::iter::once(OsString::from(NAME)).chain(args.map(go_syntax::dashed)))?;
        Ok(Self {
            endpoint: cli.provider.provider_endpoint,
            peer_uids: cli.provider.provider_peer_uid,
            kubernetes: cli.kubernetes.validate()?,
            output: cli.output,
            unclaimed: cli.unclaimed,
        })
    }
}
