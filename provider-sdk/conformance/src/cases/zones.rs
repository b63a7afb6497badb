//! Zones, clusters and volumes: small reading services.
use ccm_proto::v1::get_zone_request::Target;
use ccm_proto::v1::{
    Capability, GetMasterRequest, GetVolumeLabelsRequest, GetZoneRequest, ListClustersRequest, OwnZone, Zone,
    get_master_response, get_volume_labels_response, get_zone_response,
};
use tonic::Code;

use super::instances::{look_up, machine, no_id, query};
use crate::case::{Case, Checked, Need, broken, check};
use crate::context::{Context, is_refusal};

const ZONES: Need = Need::Capability(Capability::Zones);

/// The cases.
pub const CASES: &[Case] = &[
    Case::new(
        "zones/known",
        "the zone of a machine is that of its Instance, by id and by name",
        &["ZN-1"],
        &[ZONES, Need::Capability(Capability::Instances), Need::Machines(1)],
        |c| Box::pin(known(c)),
    ),
    Case::new("zones/unknown", "the zone of an unknown machine is not_found", &["ZN-2", "ERR-19"], &[ZONES], |c| {
        Box::pin(unknown(c))
    }),
    Case::new("zones/no-target", "a call without a target is refused", &["ZN-3"], &[ZONES], |c| Box::pin(no_target(c))),
    Case::new("zones/own", "the provider's own zone is a zone, or needs a person's act", &["ZN-4"], &[ZONES], |c| {
        Box::pin(own(c))
    }),
    Case::new(
        "clusters/unknown",
        "the master of an unknown cluster is not_found",
        &["ERR-19"],
        &[Need::Capability(Capability::Clusters)],
        |c| Box::pin(clusters(c)),
    ),
    Case::new(
        "volumes/unknown",
        "an unknown volume is not_found or not_mine",
        &["ERR-19"],
        &[Need::Capability(Capability::Volumes)],
        |c| Box::pin(volumes(c)),
    ),
];

fn ask(target: Target) -> GetZoneRequest {
    GetZoneRequest { target: Some(target) }
}

async fn zone(c: &Context, target: Target) -> Checked<Zone> {
    match c.ok("ZN-1", ask(target)).await?.outcome {
        Some(get_zone_response::Outcome::Zone(zone)) => Ok(zone),
        other => Err(broken("ZN-1", format!("expected `zone`, got {other:?}"))),
    }
}

async fn known(c: &Context) -> Checked {
    let wanted = c.suite.machines[0].clone();
    let found = machine("INST-6", look_up(c, "INST-6", query(&wanted.name, &wanted.provider_id)).await?)?;
    let by_id = zone(c, Target::ProviderId(wanted.provider_id)).await?;
    let of_instance = Zone { zone: found.zone, region: found.region };
    let differs = |one: &Option<String>, other: &Option<String>| one.is_some() && other.is_some() && one != other;
    let same = !differs(&by_id.zone, &of_instance.zone) && !differs(&by_id.region, &of_instance.region);
    check("ZN-1", same, format!("{by_id:?} is not the zone of the Instance, {of_instance:?}"))?;
    let by_name = zone(c, Target::NodeName(wanted.name)).await?;
    check("ZN-1", by_name == by_id, format!("by name the zone is {by_name:?}, by id {by_id:?}"))
}

async fn unknown(c: &Context) -> Checked {
    for target in [Target::ProviderId(no_id(&c.suite)), Target::NodeName("conformance-none".into())] {
        let found = c.ok("ZN-2", ask(target)).await?.outcome;
        let expected = matches!(found, Some(get_zone_response::Outcome::NotFound(_)));
        check("ZN-2", expected, format!("expected `not_found`, got {found:?}"))?;
    }
    Ok(())
}

async fn no_target(c: &Context) -> Checked {
    c.refused("ZN-3", GetZoneRequest::default(), Code::InvalidArgument, "").await.map(drop)
}

async fn own(c: &Context) -> Checked {
    match c.send(ask(Target::Own(OwnZone {}))).await {
        Ok(answer) => check("ZN-4", answer.outcome.is_some(), "the answer has no outcome"),
        Err(status) => is_refusal("ZN-4", status, Code::FailedPrecondition, "USER_ACTION_REQUIRED").map(drop),
    }
}

async fn clusters(c: &Context) -> Checked {
    c.ok("ERR-19", ListClustersRequest::default()).await?;
    let found = c.ok("ERR-19", GetMasterRequest { cluster_name: "conformance-none".into() }).await?.outcome;
    let expected = matches!(found, Some(get_master_response::Outcome::NotFound(_)));
    check("ERR-19", expected, format!("expected `not_found`, got {found:?}"))
}

async fn volumes(c: &Context) -> Checked {
    use get_volume_labels_response::Outcome::{NotFound, NotMine};
    let request = GetVolumeLabelsRequest {
        name: "conformance".into(),
        plugin: "conformance.example.com".into(),
        volume_id: "conformance-none".into(),
        ..GetVolumeLabelsRequest::default()
    };
    let found = c.ok("ERR-19", request).await?.outcome;
    let expected = matches!(found, Some(NotFound(_) | NotMine(_)));
    check("ERR-19", expected, format!("expected `not_found` or `not_mine`, got {found:?}"))
}
