//! Sabotage of look-ups and zones.
use ccm_proto::v1::instance_result::Outcome;
use ccm_proto::v1::{
    BatchGetInstancesRequest, GetZoneRequest, GetZoneResponse, Instance, InstanceNotFound, InstanceResult, NodeAddress, OwnZone,
    Warning, Zone, get_zone_request, get_zone_response,
};
use prost_types::Timestamp;
use tonic::{Code, Status};

use super::edits::{answer, forgive, instead, request};
use super::{Edits, Sabotage};

/// All of them.
pub fn all() -> Vec<Sabotage> {
    [answers(), batches(), queries(), zones()].into_iter().flatten().collect()
}

type Look = BatchGetInstancesRequest;

fn results(edit: fn(&mut InstanceResult)) -> Edits {
    answer::<Look>(move |_, answer| answer.results.iter_mut().for_each(edit))
}

fn machines(edit: fn(&mut Instance)) -> Edits {
    answer::<Look>(move |_, answer| {
        for result in &mut answer.results {
            if let Some(Outcome::Instance(machine)) = &mut result.outcome {
                edit(machine);
            }
        }
    })
}

/// Each result with this outcome has another one.
fn instead_of(fits: fn(&Outcome) -> bool, outcome: fn() -> Outcome) -> Edits {
    answer::<Look>(move |_, answer| {
        for result in &mut answer.results {
            if result.outcome.as_ref().is_some_and(fits) {
                result.outcome = Some(outcome());
            }
        }
    })
}

fn not_found() -> Outcome {
    Outcome::NotFound(InstanceNotFound {})
}

fn answers() -> Vec<Sabotage> {
    let warning = |reason: &str| Warning { reason: reason.into(), message: "m".into() };
    let bad = NodeAddress { r#type: 2, address: "not an address".into() };
    let address = move |machine: &mut Instance| machine.addresses.push(bad.clone());
    let with = |edit: Box<dyn Fn(&mut Instance) + Send + Sync>| {
        answer::<Look>(move |_, answer| {
            for result in &mut answer.results {
                if let Some(Outcome::Instance(machine)) = &mut result.outcome {
                    edit(machine);
                }
            }
        })
    };
    vec![
        Sabotage::new("no-state", &["INST-13"], machines(|machine| machine.state = 0)),
        Sabotage::new(
            "foreign-prefix",
            &["INST-9", "INST-5", "INST-7", "INST-18"],
            machines(|machine| machine.provider_id.insert_str(0, "other://")),
        ),
        Sabotage::new(
            "other-id-answered",
            &["INST-10", "INST-5", "INST-7", "INST-18"],
            machines(|machine| machine.provider_id.push('x')),
        ),
        Sabotage::new("invalid-address", &["INST-15"], with(Box::new(address))),
        Sabotage::new(
            "many-labels",
            &["INST-14"],
            machines(|machine| {
                machine.additional_labels = (0..101).map(|number| (format!("example.com/{number}"), String::new())).collect();
            }),
        ),
        Sabotage::new("many-warnings", &["INST-16"], with(Box::new(move |machine| machine.warnings = vec![warning("Word"); 11]))),
        Sabotage::new("odd-warning", &["INST-17"], with(Box::new(move |machine| machine.warnings = vec![warning("two words")]))),
        Sabotage::new("no-observed-at", &["INST-23", "INST-3"], results(|result| result.observed_at = None)),
        Sabotage::new(
            "observed-tomorrow",
            &["INST-24"],
            results(|result| {
                result.observed_at.iter_mut().for_each(|time| time.seconds += 86_400);
            }),
        ),
        Sabotage::new(
            "observed-long-ago",
            &["INST-4"],
            results(|result| {
                result.observed_at.iter_mut().for_each(|time| time.seconds -= 300);
            }),
        ),
        Sabotage::new(
            "observed-now",
            &["INST-3"],
            results(|result| {
                result.observed_at = Some(Timestamp::from(std::time::SystemTime::now()));
            }),
        ),
        Sabotage::new(
            "stopped-is-running",
            &["INST-7"],
            machines(|machine| {
                if machine.state == 3 {
                    machine.state = 2;
                }
            }),
        ),
    ]
}

fn batches() -> Vec<Sabotage> {
    vec![
        Sabotage::new("one-result-missing", &["INST-26"], answer::<Look>(|_, answer| drop(answer.results.pop()))),
        Sabotage::new(
            "one-result-twice",
            &["INST-26"],
            answer::<Look>(|_, answer| {
                if let Some(first) = answer.results.first().cloned() {
                    answer.results.push(first);
                }
            }),
        ),
        Sabotage::new(
            "other-name",
            &["INST-27", "INST-26"],
            answer::<Look>(|_, answer| {
                answer.results.push(InstanceResult { node_name: "nobody".into(), ..InstanceResult::default() });
            }),
        ),
        Sabotage::new(
            "unknown-fails-all",
            &["INST-1", "INST-18", "LIM-3", "LIM-1", "LIM-11", "ERR-16", "INST-20", "INST-19"],
            Edits {
                answer: Some(Box::new(|path, _, answer| match answer {
                    Ok(bytes) if crate::rpc::name(path) == "BatchGetInstances" => unless_missing(bytes),
                    other => other,
                })),
                ..Edits::default()
            },
        ),
    ]
}

/// The answer; a status of the call if one of its machines is not found.
fn unless_missing(bytes: bytes::Bytes) -> Result<bytes::Bytes, Status> {
    let answer: ccm_proto::v1::BatchGetInstancesResponse = prost::Message::decode(bytes.clone()).unwrap_or_default();
    let missing = answer.results.iter().any(|one| matches!(one.outcome, Some(Outcome::NotFound(_))));
    if missing { Err(Status::not_found("one of them does not exist")) } else { Ok(bytes) }
}

fn queries() -> Vec<Sabotage> {
    vec![
        Sabotage::new(
            "looks-by-name",
            &["INST-5", "INST-19", "INST-20"],
            request::<Look>(|asked| {
                asked.queries.iter_mut().for_each(|query| query.provider_id = None);
            }),
        ),
        Sabotage::new(
            "unknown-is-not-mine",
            &["INST-18", "INST-19"],
            instead_of(
                |outcome| matches!(outcome, Outcome::NotFound(_)),
                || Outcome::NotMine(ccm_proto::v1::InstanceNotMine::default()),
            ),
        ),
        Sabotage::new(
            "foreign-is-not-found",
            &["INST-20"],
            instead_of(|outcome| matches!(outcome, Outcome::NotMine(_)), not_found),
        ),
        Sabotage::new(
            "known-is-not-found",
            &["INST-6", "INST-5", "INST-1", "INST-7"],
            instead_of(|outcome| matches!(outcome, Outcome::Instance(_)), not_found),
        ),
        Sabotage::new(
            "errors-are-not-found",
            &["ERR-14", "ERR-11", "ERR-13", "ERR-3"],
            Edits {
                answer: Some(Box::new(|path, request, answer| match answer {
                    Err(status) if crate::rpc::name(path) == "BatchGetInstances" && is_cloud(&status) => Ok(all_missing(request)),
                    other => other,
                })),
                ..Edits::default()
            },
        ),
        Sabotage::new(
            "takes-bad-queries",
            &["INST-29"],
            forgive::<Look>(Code::InvalidArgument, |asked| {
                (asked.queries.len() <= 2).then(ccm_proto::v1::BatchGetInstancesResponse::default)
            }),
        ),
    ]
}

fn is_cloud(status: &Status) -> bool {
    matches!(status.code(), Code::Unavailable | Code::Unauthenticated | Code::ResourceExhausted)
}

fn all_missing(request: &bytes::Bytes) -> bytes::Bytes {
    let asked: Look = prost::Message::decode(request.clone()).unwrap_or_default();
    let result = |name: String| InstanceResult {
        node_name: name,
        observed_at: Some(Timestamp::from(std::time::SystemTime::now())),
        outcome: Some(not_found()),
    };
    let results = asked.queries.into_iter().map(|query| result(query.node_name)).collect();
    prost::Message::encode_to_vec(&ccm_proto::v1::BatchGetInstancesResponse { results }).into()
}

fn zones() -> Vec<Sabotage> {
    let nowhere = || GetZoneResponse { outcome: Some(get_zone_response::Outcome::Zone(Zone::default())) };
    vec![
        Sabotage::new(
            "zone-by-id-differs",
            &["ZN-1"],
            answer::<GetZoneRequest>(|asked, answer| {
                let by_id = matches!(asked.target, Some(get_zone_request::Target::ProviderId(_)));
                if let (true, Some(get_zone_response::Outcome::Zone(zone))) = (by_id, &mut answer.outcome) {
                    zone.zone = Some("another-zone".into());
                }
            }),
        ),
        Sabotage::new(
            "zone-of-nobody",
            &["ZN-2"],
            answer::<GetZoneRequest>(move |_, answer| {
                if matches!(answer.outcome, Some(get_zone_response::Outcome::NotFound(_))) {
                    *answer = nowhere();
                }
            }),
        ),
        Sabotage::new(
            "zone-without-target",
            &["ZN-3"],
            request::<GetZoneRequest>(|asked| {
                asked.target.get_or_insert(get_zone_request::Target::Own(OwnZone {}));
            }),
        ),
        Sabotage::new(
            "own-zone-internal",
            &["ZN-4"],
            instead::<GetZoneRequest>(|asked| {
                let own = matches!(asked.target, Some(get_zone_request::Target::Own(_)));
                own.then(|| Err(Status::internal("no idea")))
            }),
        ),
    ]
}
