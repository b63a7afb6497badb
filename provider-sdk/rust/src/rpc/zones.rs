//! The service Zones.
use std::sync::Arc;

use ccm_proto::v1;
use ccm_proto::v1::get_zone_request::Target;
use ccm_proto::v1::get_zone_response::Outcome;
use tonic::{Request, Response, Status};

use super::call::Kind;
use super::{Shared, nonempty, required};
use crate::context::CallContext;
use crate::provider::{Result, ZoneTarget};

/// Zones, for any provider.
pub(super) struct Service {
    shared: Arc<Shared>,
}

impl Service {
    pub(super) fn new(shared: &Arc<Shared>) -> Self {
        Self { shared: Arc::clone(shared) }
    }

    async fn zone(&self, ctx: CallContext, request: v1::GetZoneRequest) -> Result<v1::GetZoneResponse> {
        let zones = self.shared.part(v1::Capability::Zones, "GetZone", |parts| parts.zones)?;
        let zone = zones.get_zone(&ctx, target(request)?).await?;
        let outcome = zone.map_or(Outcome::NotFound(v1::ZoneNotFound {}), Outcome::Zone);
        Ok(v1::GetZoneResponse { outcome: Some(outcome) })
    }
}

fn target(request: v1::GetZoneRequest) -> Result<ZoneTarget> {
    match required("target", request.target)? {
        Target::ProviderId(id) => nonempty("provider_id", &id).map(|id| ZoneTarget::ProviderId(id.to_owned())),
        Target::NodeName(name) => nonempty("node_name", &name).map(|name| ZoneTarget::NodeName(name.to_owned())),
        Target::Own(_) => Ok(ZoneTarget::Own),
    }
}

#[tonic::async_trait]
impl v1::zones_server::Zones for Service {
    async fn get_zone(&self, request: Request<v1::GetZoneRequest>) -> Result<Response<v1::GetZoneResponse>, Status> {
        self.shared.answer("GetZone", Kind::Read, request, |ctx, request| self.zone(ctx, request)).await
    }
}
