//! `ccm-core load-balancers` and `ccm-core routes`: their own command lines, with the flags of the cluster and of the provider.
use std::ffi::{OsStr, OsString};

use clap::{CommandFactory, FromArgMatches, Parser, ValueEnum};

use super::{ConfigError, KubernetesConfig, go_syntax, kubernetes, provider};
use crate::provider::endpoint::Endpoint;

/// What a command lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listed {
    /// The load balancers of this cluster.
    LoadBalancers,
    /// The routing table of this cluster.
    Routes,
}

/// The flags of both commands.
#[derive(Debug, Parser)]
#[command(version, args_override_self = true)]
struct ListCli {
    #[command(flatten)]
    provider: provider::EndpointArgs,
    #[command(flatten)]
    kubernetes: kubernetes::KubernetesArgs,
    /// Output format
    #[arg(long, short, value_enum, default_value_t = Output::Table)]
    output: Output,
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

/// What a command lists, and how.
#[derive(Clone, Debug, PartialEq)]
pub struct ListingConfig {
    /// What it lists.
    pub listed: Listed,
    /// Where the provider sidecar listens.
    pub endpoint: Endpoint,
    /// The users that may listen there, besides this process's own and root.
    pub peer_uids: Vec<u32>,
    /// The API server and the cluster.
    pub kubernetes: KubernetesConfig,
    /// The output format.
    pub output: Output,
    /// Whether the command lists only what is this cluster's and no Service or node claims.
    pub unclaimed: bool,
}

/// The texts of a command.
struct Texts {
    about: &'static str,
    long: &'static str,
    unclaimed: &'static str,
}

impl Listed {
    /// What the first argument asks for, if it is the name of such a command.
    pub(super) fn from_name(argument: &OsStr) -> Option<Self> {
        [Self::LoadBalancers, Self::Routes].into_iter().find(|listed| listed.name() == argument)
    }

    const fn name(self) -> &'static str {
        match self {
            Self::LoadBalancers => "load-balancers",
            Self::Routes => "routes",
        }
    }

    const fn texts(self) -> Texts {
        match self {
            Self::LoadBalancers => Texts {
                about: "List the load balancers that this cluster owns in the cloud, and which of them no Service claims",
                long: "The command changes nothing in the cluster or in the cloud. It lists load balancers from the provider, which \
                       must serve `ListLoadBalancers`, and Services from the API server, so it can run at the same time as ccm-core.",
                unclaimed: "List only load balancers that no Service claims",
            },
            Self::Routes => Texts {
                about: "List the routing table of this cluster in the cloud, and which of its routes no node claims",
                long: "The command changes nothing in the cluster or in the cloud. It lists routes from the provider, which must \
                       serve `Routes`, and nodes from the API server, so it can run at the same time as ccm-core. A node claims the \
                       routes to its Pod CIDRs. STATE is one of: claimed; unclaimed (no node has the Pod CIDR); leads elsewhere (a \
                       node has it, and the target is another machine); blackhole (the cloud drops the packets); duplicate (another \
                       route to the same node is listed before).",
                unclaimed: "List only routes of this cluster that no node claims",
            },
        }
    }

    fn command(self) -> clap::Command {
        let (texts, name) = (self.texts(), format!("ccm-core {}", self.name()));
        let command = ListCli::command().name(name.clone()).bin_name(name).about(texts.about);
        let long_about = format!("{}\n\n{}", texts.about, texts.long);
        command.long_about(long_about).mut_arg("unclaimed", |arg| arg.help(texts.unclaimed))
    }
}

impl ListingConfig {
    /// Reads the arguments after the command's name.
    pub(super) fn from_args(listed: Listed, args: impl Iterator<Item = OsString>) -> Result<Self, ConfigError> {
        let args = std::iter::once(OsString::from(listed.name())).chain(args.map(go_syntax::dashed));
        let mut matches = listed.command().try_get_matches_from(args)?;
        let cli = ListCli::from_arg_matches_mut(&mut matches)?;
        Ok(Self {
            listed,
            endpoint: cli.provider.provider_endpoint,
            peer_uids: cli.provider.provider_peer_uid,
            kubernetes: cli.kubernetes.validate()?,
            output: cli.output,
            unclaimed: cli.unclaimed,
        })
    }
}
