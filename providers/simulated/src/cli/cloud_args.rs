//! The flags that make a cloud, shared by `cloud` and by `serve`, which embeds one. A flag wins over the file.
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use crate::cloud::config::{Config, RateLimitConfig, Settings};
use crate::cloud::faults::{FaultName, FaultSpec};
use crate::cloud::validate;

/// How the cloud behaves, and where its state is.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Cloud")]
pub struct CloudArgs {
    /// YAML file with the cloud's settings and its initial machines and volumes. These count only where --state holds
    /// nothing yet.
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,

    /// Directory in which the cloud's state survives restarts. Without it the state is in memory only.
    #[arg(long, value_name = "DIR")]
    pub state: Option<PathBuf>,

    /// How long each call of a provider to the cloud takes. A batch is one call.
    #[arg(long, value_name = "DURATION", value_parser = humantime::parse_duration)]
    pub latency: Option<Duration>,

    /// Up to how much longer a call takes, evenly spread.
    #[arg(long, value_name = "DURATION", value_parser = humantime::parse_duration)]
    pub jitter: Option<Duration>,

    /// How long it takes until providers see a change (eventual consistency).
    #[arg(long, value_name = "DURATION", value_parser = humantime::parse_duration)]
    pub lag: Option<Duration>,

    /// How many calls a second the cloud takes from providers, in the long run; more are refused with a time to come back.
    #[arg(long, value_name = "CALLS")]
    pub rate_limit: Option<f64>,

    /// How many calls it takes at once after a rest; one second's worth unless given.
    #[arg(long, value_name = "CALLS", requires = "rate_limit")]
    pub rate_burst: Option<u32>,

    /// Have a running machine for any name that is asked for; id, type, zone and addresses follow from the name. Nothing
    /// is stored for it until `ctl` changes it.
    #[arg(long)]
    pub auto_instances: bool,

    /// The name of the cloud. Unless given it is made up once and kept in --state; without --state it is
    /// `simulated://default`.
    #[arg(long, value_name = "ID")]
    pub cloud_identity: Option<String>,

    /// How long a new load balancer takes until it works; meanwhile it is in progress.
    #[arg(long, value_name = "DURATION", value_parser = humantime::parse_duration)]
    pub load_balancer_provisioning: Option<Duration>,

    /// How many load balancers there may be; any number unless given.
    #[arg(long, value_name = "COUNT")]
    pub max_load_balancers: Option<usize>,

    /// How many routes there may be; any number unless given.
    #[arg(long, value_name = "COUNT")]
    pub max_routes: Option<usize>,

    /// A fault that is set from the beginning; may be repeated. See `ctl fault set --help`.
    #[arg(long = "fault", value_name = "NAME")]
    pub faults: Vec<FaultName>,
}

impl CloudArgs {
    /// The cloud that is asked for.
    pub fn settings(self) -> anyhow::Result<Settings> {
        let mut settings = self.config.as_deref().map(Config::read).transpose()?.unwrap_or_default();
        if let Some(identity) = self.cloud_identity {
            validate::identity("--cloud-identity", &identity)?;
            settings.cloud_identity = Some(identity);
        }
        if let Some(per_second) = self.rate_limit {
            settings.rate_limit = Some(RateLimitConfig { per_second, burst: self.rate_burst }.checked("--rate-limit")?);
        }
        settings.latency.base = self.latency.unwrap_or(settings.latency.base);
        settings.latency.jitter = self.jitter.unwrap_or(settings.latency.jitter);
        settings.world.lag = self.lag.unwrap_or(settings.world.lag);
        settings.world.auto |= self.auto_instances;
        let sold = &mut settings.load_balancers;
        sold.provisioning = self.load_balancer_provisioning.unwrap_or(sold.provisioning);
        sold.max = self.max_load_balancers.or(sold.max);
        settings.routes.max = self.max_routes.or(settings.routes.max);
        settings.state = self.state;
        settings.faults.extend(self.faults.into_iter().map(FaultSpec::new));
        Ok(settings)
    }

    /// A flag that was given and that only a cloud can have: of no use to a provider whose cloud is elsewhere.
    pub fn for_the_cloud_only(&self) -> Option<&'static str> {
        let given = [
            (self.config.is_some(), "--config"),
            (self.state.is_some(), "--state"),
            (self.lag.is_some(), "--lag"),
            (self.rate_limit.is_some(), "--rate-limit"),
            (self.auto_instances, "--auto-instances"),
            (self.cloud_identity.is_some(), "--cloud-identity"),
            (self.load_balancer_provisioning.is_some(), "--load-balancer-provisioning"),
            (self.max_load_balancers.is_some(), "--max-load-balancers"),
            (self.max_routes.is_some(), "--max-routes"),
            (!self.faults.is_empty(), "--fault"),
        ];
        given.into_iter().find_map(|(given, flag)| given.then_some(flag))
    }
}
