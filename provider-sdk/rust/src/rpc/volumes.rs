//! The service Volumes.
use std::sync::Arc;

use ccm_proto::v1;
use ccm_proto::v1::get_volume_labels_response::Outcome;
use tonic::{Request, Response, Status};

use super::call::Kind;
use super::{Shared, nonempty};
use crate::context::CallContext;
use crate::provider::{Result, VolumeLookup};

/// Volumes, for any provider.
pub(super) struct Service {
    shared: Arc<Shared>,
}

impl Service {
    pub(super) fn new(shared: &Arc<Shared>) -> Self {
        Self { shared: Arc::clone(shared) }
    }

    async fn labels(&self, ctx: CallContext, request: v1::GetVolumeLabelsRequest) -> Result<v1::GetVolumeLabelsResponse> {
        let volumes = self.shared.part(v1::Capability::Volumes, "GetVolumeLabels", |parts| parts.volumes)?;
        nonempty("plugin", &request.plugin)?;
        nonempty("volume_id", &request.volume_id)?;
        let outcome = match volumes.get_volume_labels(&ctx, &request).await? {
            VolumeLookup::Found(labels) => Outcome::Labels(v1::VolumeLabels { labels }),
            VolumeLookup::NotFound => Outcome::NotFound(v1::VolumeNotFound {}),
            VolumeLookup::NotMine => Outcome::NotMine(v1::VolumeNotMine {}),
        };
        Ok(v1::GetVolumeLabelsResponse { outcome: Some(outcome) })
    }
}

#[tonic::async_trait]
impl v1::volumes_server::Volumes for Service {
    async fn get_volume_labels(
        &self,
        request: Request<v1::GetVolumeLabelsRequest>,
    ) -> Result<Response<v1::GetVolumeLabelsResponse>, Status> {
        self.shared.answer("GetVolumeLabels", Kind::Read, request, |ctx, request| self.labels(ctx, request)).await
    }
}
