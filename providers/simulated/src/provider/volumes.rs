//! The service Volumes: where a disk is, by the cloud's word.
use std::sync::Arc;

use async_trait::async_trait;
use ccm_provider_sdk::{CallContext, Result, VolumeLookup, Volumes, v1};
use tokio::sync::watch;

use super::provider_error;
use crate::cloud::CloudApi;
use crate::cloud::counters::Counters;
use crate::cloud::model::{CloudInfo, VOLUME_PLUGIN};

/// The service Volumes.
pub struct Disks {
    cloud: Arc<dyn CloudApi>,
    info: watch::Receiver<CloudInfo>,
    calls: Arc<Counters>,
}

impl Disks {
    /// The disks of this cloud.
    pub fn new(cloud: Arc<dyn CloudApi>, info: watch::Receiver<CloudInfo>, calls: Arc<Counters>) -> Self {
        Self { cloud, info, calls }
    }
}

#[async_trait]
impl Volumes for Disks {
    async fn get_volume_labels(&self, _ctx: &CallContext, volume: &v1::GetVolumeLabelsRequest) -> Result<VolumeLookup> {
        self.calls.count("GetVolumeLabels");
        if volume.plugin != VOLUME_PLUGIN {
            return Ok(VolumeLookup::NotMine);
        }
        let disk = self.cloud.volume(&volume.volume_id).await.map_err(provider_error)?;
        let Some(disk) = disk else { return Ok(VolumeLookup::NotFound) };
        let region = self.info.borrow().region.clone();
        let place = [("topology.kubernetes.io/zone", disk.zone), ("topology.kubernetes.io/region", region)];
        let place = place.map(|(key, value)| (key.to_owned(), value));
        Ok(VolumeLookup::Found(disk.labels.into_iter().chain(place).collect()))
    }
}
