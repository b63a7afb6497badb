//! Zone and region for the machines of a provider that serves Zones and leaves them out of its instances, as upstream
//! providers with both interfaces do. It does not request what an instance already has.
use ccm_proto::v1;
use futures::{StreamExt, stream};
use tonic::Code;
use v1::get_zone_request::Target;
use v1::get_zone_response::Outcome;

use super::grpc::Method;
use super::session::Live;
use super::{ProviderError, classify, convert};
use crate::model::instance::{Answer, Lookup};
use crate::model::provider_info::Capability;

/// Fills in what the answers lack; an answer whose zone cannot be determined becomes an error.
pub async fn fill_in(live: &Live, answers: &mut [Result<Answer, ProviderError>]) {
    if !live.info.capabilities.contains(&Capability::Zones) {
        return;
    }
    let lacking: Vec<_> = answers.iter().enumerate().filter_map(|(index, answer)| Some((index, asks_for(answer)?))).collect();
    let calls = stream::iter(lacking).map(|(index, id)| async move { (index, ask(live, id).await) });
    let zones: Vec<_> = calls.buffer_unordered(live.info.limits.max_concurrent_instance_calls).collect().await;
    for (index, zone) in zones {
        match (zone, &mut answers[index]) {
            (Ok(Some(zone)), Ok(Answer { lookup: Lookup::Found(instance), .. })) => convert::set_zone(instance, zone),
            (Ok(_), _) => {}
            (Err(error), answer) => *answer = Err(error),
        }
    }
}

/// The id of a machine whose answer does not say where it is.
fn asks_for(answer: &Result<Answer, ProviderError>) -> Option<String> {
    match answer.as_ref().ok().map(|it| &it.lookup) {
        Some(Lookup::Found(it)) if it.zone.is_none() && it.region.is_none() => it.provider_id.clone(),
        _ => None,
    }
}

async fn ask(live: &Live, provider_id: String) -> Result<Option<v1::Zone>, ProviderError> {
    let request = v1::GetZoneRequest { target: Some(Target::ProviderId(provider_id)) };
    let mut client = live.connection.zones();
    let answer = live.connection.call(Method::GetZone, request, |it| async move { client.get_zone(it).await }).await;
    match answer.map(|it| it.outcome) {
        Ok(Some(Outcome::Zone(zone))) => Ok(Some(zone)),
        // The machine is gone meanwhile, which the next look-up shows, or the provider does not serve the method after all.
        Ok(Some(Outcome::NotFound(_))) => Ok(None),
        Err(status) if status.code() == Code::Unimplemented => Ok(None),
        Ok(None) => Err(convert::invalid("outcome", "GetZone answered none")),
        Err(status) => Err(classify::status(&status)),
    }
}
