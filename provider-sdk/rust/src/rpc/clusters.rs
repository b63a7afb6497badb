//! The service Clusters.
use std::sync::Arc;

use ccm_proto::v1;
use ccm_proto::v1::get_master_response::Outcome;
use tonic::{Request, Response, Status};

use super::call::Kind;
use super::{Shared, nonempty};
use crate::context::CallContext;
use crate::provider::{Clusters, Result};

/// Clusters, for any provider.
pub(super) struct Service {
    shared: Arc<Shared>,
}

impl Service {
    pub(super) fn new(shared: &Arc<Shared>) -> Self {
        Self { shared: Arc::clone(shared) }
    }

    fn part(&self, method: &str) -> Result<Arc<dyn Clusters>> {
        self.shared.part(v1::Capability::Clusters, method, |parts| parts.clusters)
    }

    async fn list(&self, ctx: CallContext) -> Result<v1::ListClustersResponse> {
        let cluster_names = self.part("ListClusters")?.list(&ctx).await?;
        Ok(v1::ListClustersResponse { cluster_names })
    }

    async fn master(&self, ctx: CallContext, request: v1::GetMasterRequest) -> Result<v1::GetMasterResponse> {
        let clusters = self.part("GetMaster")?;
        let address = clusters.master(&ctx, nonempty("cluster_name", &request.cluster_name)?).await?;
        let outcome = address.map_or(Outcome::NotFound(v1::ClusterNotFound {}), Outcome::Address);
        Ok(v1::GetMasterResponse { outcome: Some(outcome) })
    }
}

#[tonic::async_trait]
impl v1::clusters_server::Clusters for Service {
    async fn list_clusters(
        &self,
        request: Request<v1::ListClustersRequest>,
    ) -> Result<Response<v1::ListClustersResponse>, Status> {
        self.shared.answer("ListClusters", Kind::Read, request, |ctx, _| self.list(ctx)).await
    }

    async fn get_master(&self, request: Request<v1::GetMasterRequest>) -> Result<Response<v1::GetMasterResponse>, Status> {
        self.shared.answer("GetMaster", Kind::Read, request, |ctx, request| self.master(ctx, request)).await
    }
}
