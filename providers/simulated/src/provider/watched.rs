//! A cloud whose word about itself is kept at hand: a handshake needs it at once, and a change of identity or of what
//! it has must not wait for the next one. All else it hands through.
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::watch;

use crate::cloud::faults::{Fault, FaultName, FaultSpec};
use crate::cloud::model::{Answer, Change, CloudInfo, Instance, Query, Volume};
use crate::cloud::{CloudApi, CloudError};

mod load_balancers;
mod routes;

/// How often the cloud is asked who it is; somebody else may have changed it.
const REFRESH: Duration = Duration::from_secs(1);

/// A cloud whose word about itself is kept at hand.
pub struct Watched {
    cloud: Arc<dyn CloudApi>,
    info: watch::Sender<CloudInfo>,
}

impl Watched {
    /// Asks the cloud who it is until it answers.
    pub async fn connect(cloud: Arc<dyn CloudApi>) -> Self {
        loop {
            match cloud.info().await {
                Ok(info) => return Self { cloud, info: watch::Sender::new(info) },
                Err(error) => tracing::warn!(error = &error as &dyn std::error::Error, "the cloud is not there yet"),
            }
            tokio::time::sleep(REFRESH).await;
        }
    }

    /// The cloud's latest word about itself.
    pub fn latest(&self) -> watch::Receiver<CloudInfo> {
        self.info.subscribe()
    }

    /// Keeps that word fresh for as long as it is polled.
    pub async fn keep_fresh(&self) {
        loop {
            tokio::time::sleep(REFRESH).await;
            self.refresh().await;
        }
    }

    async fn refresh(&self) {
        // A cloud that does not answer is still the one that it was.
        let Ok(info) = self.cloud.info().await else { return };
        self.info.send_if_modified(|known| {
            let changed = *known != info;
            *known = info;
            changed
        });
    }
}

#[async_trait]
impl CloudApi for Watched {
    async fn info(&self) -> Result<CloudInfo, CloudError> {
        self.cloud.info().await
    }

    async fn look_up(&self, queries: &[Query]) -> Result<Answer, CloudError> {
        self.cloud.look_up(queries).await
    }

    async fn volume(&self, id: &str) -> Result<Option<Volume>, CloudError> {
        self.cloud.volume(id).await
    }

    async fn instances(&self, names: &[String]) -> Result<Vec<Instance>, CloudError> {
        self.cloud.instances(names).await
    }

    async fn change(&self, change: Change) -> Result<Vec<Instance>, CloudError> {
        self.cloud.change(change).await
    }

    async fn faults(&self) -> Result<Vec<Fault>, CloudError> {
        self.cloud.faults().await
    }

    async fn set_fault(&self, spec: FaultSpec) -> Result<(), CloudError> {
        self.cloud.set_fault(spec).await?;
        self.refresh().await;
        Ok(())
    }

    async fn clear_faults(&self, name: Option<FaultName>) -> Result<(), CloudError> {
        self.cloud.clear_faults(name).await?;
        self.refresh().await;
        Ok(())
    }
}
