//! The service Zones: where a machine is, by the cloud's word.
use std::sync::Arc;

use async_trait::async_trait;
use ccm_provider_sdk::{CallContext, ProviderError, Result, ZoneTarget, Zones, v1};
use tokio::sync::watch;

use super::{provider_error, refusal};
use crate::cloud::CloudApi;
use crate::cloud::counters::Counters;
use crate::cloud::model::{CloudInfo, Outcome, Query};

/// The service Zones.
pub struct CloudZones {
    cloud: Arc<dyn CloudApi>,
    info: watch::Receiver<CloudInfo>,
    calls: Arc<Counters>,
}

impl CloudZones {
    /// The zones of this cloud.
    pub fn new(cloud: Arc<dyn CloudApi>, info: watch::Receiver<CloudInfo>, calls: Arc<Counters>) -> Self {
        Self { cloud, info, calls }
    }

    /// The provider is a machine of the first zone.
    fn own(&self) -> v1::Zone {
        let info = self.info.borrow();
        v1::Zone { zone: info.zones.first().cloned(), region: Some(info.region.clone()) }
    }
}

#[async_trait]
impl Zones for CloudZones {
    async fn get_zone(&self, _ctx: &CallContext, target: ZoneTarget) -> Result<Option<v1::Zone>> {
        self.calls.count("GetZone");
        let query = match target {
            ZoneTarget::ProviderId(id) => Query { name: String::new(), provider_id: Some(id) },
            ZoneTarget::NodeName(name) => Query { name, provider_id: None },
            ZoneTarget::Own => return Ok(Some(self.own())),
        };
        let answer = self.cloud.look_up(&[query]).await.map_err(provider_error)?;
        match answer.items.into_iter().next().map(|item| item.outcome) {
            Some(Outcome::Found(machine)) => Ok(Some(v1::Zone { zone: Some(machine.zone), region: Some(machine.region) })),
            Some(Outcome::NotFound | Outcome::NotMine(_)) => Ok(None),
            Some(Outcome::Failed(failure)) => Err(refusal(failure)),
            None => Err(ProviderError::internal("the cloud answered nothing")),
        }
    }
}
