//! Sabotage of the handshake, of errors in general, of health and of limits.
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use ccm_proto::v1::{BatchGetInstancesRequest, Capability, GetProviderInfoRequest, ProviderInfo, ProviderLimits};
use tonic::{Code, Status};
use tonic_types::{ErrorDetails, StatusExt as _};

use super::edits::{answer, delay, forgive, instead, request, status};
use super::{Edits, Sabotage};
use crate::rpc::name;

/// All of them.
pub fn all() -> Vec<Sabotage> {
    [description(), errors(), services()].into_iter().flatten().collect()
}

fn info(edit: fn(&mut ProviderInfo)) -> Edits {
    answer::<GetProviderInfoRequest>(move |_, answer| answer.info.iter_mut().for_each(edit))
}

fn description() -> Vec<Sabotage> {
    vec![
        Sabotage::new("name-no-label", &["HS-9"], info(|info| info.name = "Not A Label".into())),
        Sabotage::new("version-not-offered", &["HS-11"], info(|info| info.protocol_version = "v7".into())),
        Sabotage::new("no-prefix", &["HS-13", "INST-9"], info(|info| info.provider_id_prefixes.clear())),
        Sabotage::new("empty-prefix", &["HS-14"], info(|info| info.provider_id_prefixes.push(String::new()))),
        Sabotage::new("empty-annotation-prefix", &["HS-15"], info(|info| info.service_annotation_prefixes.push(String::new()))),
        Sabotage::new("zero-limit", &["HS-16"], info(zero_route_limit)),
        Sabotage::new(
            "any-version",
            &["HS-3", "HS-11"],
            request::<GetProviderInfoRequest>(|asked| {
                asked.protocol_versions = vec!["v1".into()];
            }),
        ),
        Sabotage::new("identity-changes", &["ID-1"], other_identity()),
        Sabotage::new(
            "no-lead-listed",
            &["CAP-2", "CAP-1"],
            info(|info| {
                info.capabilities.retain(|one| *one != i32::from(Capability::Lead));
            }),
        ),
        Sabotage::new("asks-for-readiness", &["NS-1"], info(|info| info.node_conditions.push("Ready".into()))),
        Sabotage::new(
            "slow-handshake",
            &["HS-2", "LIM-12", "LIM-11", "HS-3", "VER-4"],
            delay("GetProviderInfo", Duration::from_secs(6)),
        ),
        Sabotage::new(
            "serves-unlisted",
            &["CAP-1"],
            forgive::<ccm_proto::v1::GetCurrentNodeNameRequest>(Code::Unimplemented, |_| {
                Some(ccm_proto::v1::GetCurrentNodeNameResponse { node_name: "node-1".into() })
            }),
        ),
    ]
}

/// From the third handshake on each has another identity.
fn other_identity() -> Edits {
    let seen = AtomicU64::new(0);
    answer::<GetProviderInfoRequest>(move |_, answer| {
        let number = seen.fetch_add(1, Ordering::Relaxed);
        if number > 1 {
            answer.info.iter_mut().for_each(|info| info.cloud_identity += &number.to_string());
        }
    })
}

fn zero_route_limit(info: &mut ProviderInfo) {
    let limits = info.limits.unwrap_or_default();
    info.limits = Some(ProviderLimits { max_concurrent_route_calls: Some(0), ..limits });
}

/// The status without its details.
fn bare(status: &Status) -> Status {
    Status::new(status.code(), status.message())
}

fn errors() -> Vec<Sabotage> {
    vec![
        Sabotage::new(
            "no-error-info",
            &["ERR-1", "ERR-3"],
            status(|path, status| if name(path) == "Check" { status } else { bare(&status) }),
        ),
        Sabotage::new(
            "other-domain",
            &["ERR-1", "ERR-3"],
            status(|_, status| {
                let reason = status.get_error_details().error_info().map(|info| info.reason.clone());
                let Some(reason) = reason else { return status };
                let details = ErrorDetails::with_error_info(reason, "example.com", [("a".to_owned(), "b".to_owned())]);
                Status::with_error_details(status.code(), status.message(), details)
            }),
        ),
        Sabotage::new(
            "no-retry-info",
            &["ERR-3"],
            status(|_, status| {
                let mut details = status.get_error_details();
                if details.retry_info().is_none() {
                    return status;
                }
                let reason = details.error_info().map(|info| info.reason.clone()).unwrap_or_default();
                details = ErrorDetails::with_error_info(reason, "ccm.provider.v1", [("a".to_owned(), "b".to_owned())]);
                Status::with_error_details(status.code(), status.message(), details)
            }),
        ),
        Sabotage::new("cloud-away-is-internal", &["ERR-14", "LB-36", "RT-43"], recode(Code::Unavailable, Code::Internal)),
        Sabotage::new("credentials-are-internal", &["ERR-11", "LB-32"], recode(Code::Unauthenticated, Code::Internal)),
        Sabotage::new("rate-limit-is-internal", &["ERR-13", "LB-34", "LB-31"], recode(Code::ResourceExhausted, Code::Internal)),
    ]
}

fn recode(from: Code, to: Code) -> Edits {
    status(move |path, status| {
        if status.code() == from && name(path) != "Lead" {
            Status::with_details(to, status.message(), Bytes::copy_from_slice(status.details()))
        } else {
            status
        }
    })
}

fn services() -> Vec<Sabotage> {
    let not_serving = |path: &str, _: &Bytes| (name(path) == "Check").then(|| Ok(Bytes::from_static(&[8, 2])));
    let no_reflection =
        |path: &str, _: &Bytes| (name(path) == "ServerReflectionInfo").then(|| Err(Status::unimplemented("there is none")));
    vec![
        Sabotage::new(
            "never-serving",
            &["HLT-2", "HLT-3", "LIM-11", "LIM-12"],
            Edits { instead: Some(Box::new(not_serving)), ..Edits::default() },
        ),
        Sabotage::new("no-reflection", &["HLT-1"], Edits { instead: Some(Box::new(no_reflection)), ..Edits::default() }),
        Sabotage::new(
            "long-batch-answered",
            &["LIM-13"],
            request::<BatchGetInstancesRequest>(|asked| {
                asked.queries.truncate(500);
            }),
        ),
        Sabotage::new(
            "small-messages",
            &["LIM-1"],
            instead::<BatchGetInstancesRequest>(|asked| {
                let large = prost::Message::encoded_len(asked) > 4 << 20;
                large.then(|| Err(Status::out_of_range("message length too large")))
            }),
        ),
    ]
}
