//! Flags about the lease and about the end of leadership.
use std::time::Duration;

use clap::Args;
use serde::Serialize;

use super::Invalid;
use super::go_syntax::{boolean, duration, positive_duration, serialize_duration};
use crate::names;

/// As in client-go: the renew deadline must be longer than this many retry periods.
const JITTER: f64 = 1.2;

#[derive(Debug, Args)]
#[command(next_help_heading = "Leader election and shutdown")]
pub(super) struct LeaderElectionArgs {
    /// Change things only while holding the lease; "false" is safe only with a single replica
    #[arg(long, num_args = 0..=1, require_equals = true, default_value = "true", default_missing_value = "true", value_parser = boolean, action = clap::ArgAction::Set)]
    leader_elect: bool,
    /// How long other replicas wait without seeing a renewal before one of them takes over; fractions of a second are dropped
    #[arg(long, value_name = "DURATION", default_value = "15s", value_parser = duration)]
    leader_elect_lease_duration: Duration,
    /// How long after its last renewal of the lease the leader stops leading
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = positive_duration)]
    leader_elect_renew_deadline: Duration,
    /// Time between two attempts to renew or to acquire the lease
    #[arg(long, value_name = "DURATION", default_value = "2s", value_parser = positive_duration)]
    leader_elect_retry_period: Duration,
    /// Kind of the lock object; only "leases" exists
    #[arg(long, value_name = "KIND", default_value = "leases")]
    leader_elect_resource_lock: String,
    /// Name of the lease; to replace a running cloud-controller-manager, give the name of its lease
    #[arg(long, value_name = "NAME", default_value = names::LEASE)]
    leader_elect_resource_name: String,
    /// Namespace of the lease
    #[arg(long, value_name = "NAMESPACE", default_value = names::NAMESPACE)]
    leader_elect_resource_namespace: String,
    /// How long calls to the provider that run at shutdown may take to end before ccm-core releases the lease
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = duration)]
    shutdown_grace: Duration,
}

/// The lease, and how ccm-core releases it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LeaderElectionConfig {
    /// Whether ccm-core needs the lease.
    pub enabled: bool,
    /// How long other replicas wait without seeing a renewal; whole seconds, as in the lease.
    #[serde(serialize_with = "serialize_duration")]
    pub lease_duration: Duration,
    /// How long after its last renewal the leader stops; less than `lease_duration`.
    #[serde(serialize_with = "serialize_duration")]
    pub renew_deadline: Duration,
    /// Time between two attempts to renew or to acquire the lease; less than `renew_deadline`.
    #[serde(serialize_with = "serialize_duration")]
    pub retry_period: Duration,
    /// The lease's name.
    pub resource_name: String,
    /// The lease's namespace.
    pub resource_namespace: String,
    /// How long running calls may take to end at shutdown before ccm-core releases the lease.
    #[serde(serialize_with = "serialize_duration")]
    pub shutdown_grace: Duration,
}

impl LeaderElectionArgs {
    pub(super) fn validate(self) -> Result<LeaderElectionConfig, Invalid> {
        let config = LeaderElectionConfig {
            enabled: self.leader_elect,
            lease_duration: Duration::from_secs(self.leader_elect_lease_duration.as_secs()),
            renew_deadline: self.leader_elect_renew_deadline,
            retry_period: self.leader_elect_retry_period,
            resource_name: self.leader_elect_resource_name,
            resource_namespace: self.leader_elect_resource_namespace,
            shutdown_grace: self.shutdown_grace,
        };
        if self.leader_elect_resource_lock != "leases" {
            let problem = format!("{:?} is not a kind of lock in Kubernetes", self.leader_elect_resource_lock);
            return Err(Invalid::new("leader-elect-resource-lock", problem, "write leases, or leave the flag out"));
        }
        config.check_names()?;
        config.check_times()?;
        Ok(config)
    }
}

impl LeaderElectionConfig {
    fn check_names(&self) -> Result<(), Invalid> {
        let names =
            [("leader-elect-resource-name", &self.resource_name), ("leader-elect-resource-namespace", &self.resource_namespace)];
        match names.into_iter().find(|(_, name)| name.is_empty()) {
            Some((flag, _)) => Err(Invalid::new(flag, "it is empty", "give a name, or leave the flag out")),
            None => Ok(()),
        }
    }

    /// client-go's rules; and the lease stores whole seconds as an int32.
    fn check_times(&self) -> Result<(), Invalid> {
        if self.lease_duration.is_zero() || i32::try_from(self.lease_duration.as_secs()).is_err() {
            return Err(Invalid::new(
                "leader-elect-lease-duration",
                "a lease cannot store this number of seconds",
                "give 1s or more",
            ));
        }
        if self.lease_duration <= self.renew_deadline {
            let remedy = "make it longer, in whole seconds, or shorten --leader-elect-renew-deadline";
            return Err(Invalid::new("leader-elect-lease-duration", "it is not longer than the renew deadline", remedy));
        }
        if self.renew_deadline <= self.retry_period.mul_f64(JITTER) {
            let problem = format!("it is not longer than {JITTER} retry periods");
            return Err(Invalid::new(
                "leader-elect-renew-deadline",
                problem,
                "make it longer, or shorten --leader-elect-retry-period",
            ));
        }
        Ok(())
    }
}
