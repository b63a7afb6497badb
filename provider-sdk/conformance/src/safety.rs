//! What must hold before the suite changes anything: the cloud that was named, and a provider that nobody leads.
use std::time::Duration;

use ccm_proto::v1::{Capability, ClusterRef, LeadRequest, ProviderInfo};
use tonic::Code;
use tonic::transport::Channel;
use tonic_types::StatusExt as _;

use crate::config::Config;
use crate::exchange::describe;
use crate::lead;
use crate::suite::{EPOCH_STEP, FIRST_EPOCH};

/// Why the suite changes nothing.
#[derive(Debug, thiserror::Error)]
pub enum Unsafe {
    /// The configuration names no cloud.
    #[error("--allow-mutations needs cloudIdentity in the configuration: set it to {0:?} if that is the cloud to test in")]
    NoIdentity(String),
    /// The provider serves another cloud.
    #[error("the provider serves the cloud {found:?}, and the configuration names {named:?}: nothing was changed")]
    OtherCloud {
        /// The provider's.
        found: String,
        /// The configuration's.
        named: String,
    },
    /// A core leads, or led, this provider.
    #[error("ccm-core leads or led this provider process ({0}): stop ccm-core, restart the provider, and try again")]
    Led(String),
}

/// Compares the cloud with the one that was named.
pub fn right_cloud(config: &Config, info: &ProviderInfo) -> Result<(), Unsafe> {
    let found = info.cloud_identity.clone();
    match &config.cloud_identity {
        None => Err(Unsafe::NoIdentity(found)),
        Some(named) if *named != found => Err(Unsafe::OtherCloud { found, named: named.clone() }),
        Some(_) => Ok(()),
    }
}

/// The first epoch that the suite may use. It asks for the lowest epoch: who leads, or led, makes the provider refuse it.
pub async fn first_epoch(channel: &Channel, info: &ProviderInfo, cluster: &ClusterRef) -> Result<u64, Unsafe> {
    if !info.capabilities.contains(&i32::from(Capability::Lead)) {
        return Ok(FIRST_EPOCH);
    }
    let lowest = LeadRequest {
        epoch: 1,
        valid_for: prost_types::Duration::try_from(Duration::from_secs(10)).ok(),
        holder: "provider-conformance".into(),
        cluster: Some(cluster.clone()),
    };
    let Err(status) = lead::open(channel, lowest).await else { return Ok(FIRST_EPOCH) };
    let details = status.get_error_details();
    let highest = details.error_info().and_then(|info| info.metadata.get("highest_epoch")?.parse::<u64>().ok());
    match highest {
        Some(own) if status.code() == Code::FailedPrecondition && own >= FIRST_EPOCH && own % EPOCH_STEP == 0 => {
            Ok(own + EPOCH_STEP)
        }
        _ => Err(Unsafe::Led(describe(&status))),
    }
}
