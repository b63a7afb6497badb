//! Zone and region for the machines of a provider that serves Zones and leaves them out of its instances, as Go's
//! providers with both interfaces do. It asks for nothing that an instance already says.
use ccm_proto::v1;
use futures::{StreamExt, stream};
use tonic::Code;
use v1::get_zone_request::Target;
use v1::get_zone_response::Outcome;

use super::grpc::Method;
use super::session::Live;
use super::{ProviderError, classify, convert};
use crate::model::instance::{Answer, Instance, Lookup};
use crate::model::provider_info::Capability;

/// Fills in what the answers lack; one whose zone cannot be found out becomes an error.
pub async fn fill_in(live: &Live, answers: &mut [Result<Answer, ProviderError>]) {
    if !live.info.capabilities.contains(&Capability::Zones) {
        return;
    }
    let lacking = answers.iter_mut().filter(|answer| machine(answer).is_some());
    let calls = stream::iter(lacking).map(|answer| async move {
        if let Err(error) = ask(live, machine(answer)).await {
            *answer = Err(error);
        }
    });
    calls.buffer_unordered(live.info.limits.max_concurrent_instance_calls).collect::<()>().await;
}

/// The machine of an answer, if it can be asked about and says nothing itself.
fn machine(answer: &mut Result<Answer, ProviderError>) -> Option<&mut Instance> {
    match answer.as_mut().ok().map(|it| &mut it.lookup) {
        Some(Lookup::Found(it)) if it.zone.is_none() && it.region.is_none() && it.provider_id.is_some() => Some(it),
        _ => None,
    }
}

async fn ask(live: &Live, instance: Option<&mut Instance>) -> Result<(), ProviderError> {
    let Some(instance) = instance else { return Ok(()) };
    let request = v1::GetZoneRequest { target: instance.provider_id.clone().map(Target::ProviderId) };
    let mut client = live.connection.zones();
    let answer = live.connection.call(Method::GetZone, request, |it| async move { client.get_zone(it).await }).await;
    match answer.map(|it| it.outcome) {
        Ok(Some(Outcome::Zone(zone))) => convert::set_zone(instance, zone),
        // The machine went meanwhile, which the next look will say, or the method is not there after all.
        Ok(Some(Outcome::NotFound(_))) => {}
        Err(status) if status.code() == Code::Unimplemented => {}
        Ok(None) => return Err(convert::invalid("outcome", "GetZone answered none")),
        Err(status) => return Err(classify::status(&status)),
    }
    Ok(())
}
