//! The handshake, the capabilities, and what the provider says of itself.
use std::time::Duration;

use ccm_proto::v1::{Capability, ClusterRef, GetProviderInfoRequest, GetProviderInfoResponse, ProviderInfo, ProviderLimits};
use futures::future::join_all;
use tokio::time::Instant;
use tonic::Code;

use super::calls::unserved;
use crate::case::{Case, Checked, check};
use crate::context::{Context, failed, is_refusal};
use crate::rpc::Rpc;
use crate::suite::handshake;

/// The capabilities of the contract.
const CAPABILITIES: std::ops::RangeInclusive<i32> = 1..=13;

/// How long a handshake may take.
const PROMPT: Duration = Duration::from_secs(5);

/// The cases.
pub const CASES: &[Case] = &[
    Case::new(
        "identity/description",
        "the provider describes itself within the bounds of the contract",
        &["HS-9", "HS-11", "HS-12", "HS-13", "HS-14", "HS-15", "HS-16", "SOCK-10"],
        &[],
        |c| Box::pin(description(c)),
    ),
    Case::new(
        "identity/version",
        "a core that speaks no known protocol version is refused, and an unknown one beside v1 is passed over",
        &["HS-3", "HS-11", "ERR-1"],
        &[],
        |c| Box::pin(version(c)),
    ),
    Case::new("identity/newer-core", "fields that the provider does not know are ignored", &["VER-4"], &[], |c| {
        Box::pin(newer_core(c))
    }),
    Case::new("identity/prompt", "twenty handshakes at once are answered within 5 s", &["HS-2"], &[], |c| Box::pin(prompt(c))),
    Case::new("identity/stable", "the description is the same on every connection", &["ID-1"], &[], |c| Box::pin(stable(c))),
    Case::new("identity/leads", "a provider that changes things lists CAPABILITY_LEAD", &["CAP-2"], &[], |c| Box::pin(leads(c))),
    Case::new(
        "identity/unlisted",
        "each method whose capability is not listed answers UNIMPLEMENTED",
        &["CAP-1", "ERR-7", "ERR-10"],
        &[],
        |c| Box::pin(unlisted(c)),
    ),
    Case::new(
        "identity/readiness",
        "the provider does not ask for node conditions that change all the time",
        &["NS-1"],
        &[],
        |c| Box::pin(readiness(c)),
    ),
];

async fn shake(c: &Context) -> Checked<ProviderInfo> {
    let answer = c.ok("HS-2", handshake(&c.suite.cluster)).await?;
    check("HS-12", answer.info.is_some(), "`info` is missing")?;
    Ok(answer.info.unwrap_or_default())
}

async fn description(c: &Context) -> Checked {
    let info = shake(c).await?;
    check("HS-9", is_label(&info.name), format!("the name {:?} is no DNS label of at most 40 characters", info.name))?;
    check("HS-11", info.protocol_version == "v1", format!("protocol_version is {:?}, offered was v1", info.protocol_version))?;
    let identity = info.cloud_identity.len();
    check("HS-12", (1..=256).contains(&identity), format!("cloud_identity has {identity} bytes"))?;
    let instances = info.capabilities.contains(&i32::from(Capability::Instances));
    check("HS-13", !instances || !info.provider_id_prefixes.is_empty(), "there is no prefix in provider_id_prefixes")?;
    for prefix in &info.provider_id_prefixes {
        check("HS-14", (1..=256).contains(&prefix.len()), format!("the prefix {prefix:?} has {} bytes", prefix.len()))?;
    }
    let nameless = info.service_annotation_prefixes.iter().any(String::is_empty);
    check("HS-15", !nameless, "a prefix in service_annotation_prefixes is empty")?;
    check("HS-16", !has_zero(info.limits.unwrap_or_default()), format!("a limit is 0: {:?}", info.limits))
}

fn is_label(name: &str) -> bool {
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    (1..=40).contains(&name.len()) && name.chars().all(fits) && !name.starts_with('-') && !name.ends_with('-')
}

fn has_zero(limits: ProviderLimits) -> bool {
    let all = [
        limits.max_batch_size,
        limits.max_concurrent_instance_calls,
        limits.max_concurrent_load_balancer_calls,
        limits.max_concurrent_route_calls,
    ];
    all.contains(&Some(0))
}

async fn version(c: &Context) -> Checked {
    let offer = |versions: &[&str]| GetProviderInfoRequest {
        protocol_versions: versions.iter().map(|&one| one.to_owned()).collect(),
        ..handshake(&c.suite.cluster)
    };
    let reason = "PROTOCOL_VERSION_UNSUPPORTED";
    c.refused("HS-3", offer(&["v0-conformance"]), Code::FailedPrecondition, reason).await?;
    let both = c.ok("HS-11", offer(&["v0-conformance", "v1"])).await?.info.unwrap_or_default();
    check("HS-11", both.protocol_version == "v1", format!("it chose {:?} of v0-conformance and v1", both.protocol_version))
}

/// The handshake of a later version of the contract, which has a field more.
#[derive(Clone, PartialEq, prost::Message)]
struct Newer {
    #[prost(message, optional, tag = "1")]
    cluster: Option<ClusterRef>,
    #[prost(string, tag = "4")]
    core_version: String,
    #[prost(string, repeated, tag = "5")]
    protocol_versions: Vec<String>,
    #[prost(string, tag = "1000")]
    unknown: String,
}

impl Rpc for Newer {
    type Answer = GetProviderInfoResponse;
    const PATH: &'static str = GetProviderInfoRequest::PATH;
}

async fn newer_core(c: &Context) -> Checked {
    let GetProviderInfoRequest { cluster, core_version, protocol_versions, .. } = handshake(&c.suite.cluster);
    let newer = Newer { cluster, core_version, protocol_versions, unknown: "of a later version".into() };
    c.ok("VER-4", newer).await.map(drop)
}

async fn prompt(c: &Context) -> Checked {
    let start = Instant::now();
    let all = join_all((0..20).map(|_| c.send_within(handshake(&c.suite.cluster), PROMPT))).await;
    for answer in all {
        answer.map_err(|status| failed("HS-2", GetProviderInfoRequest::PATH, &status))?;
    }
    check("HS-2", start.elapsed() < PROMPT, format!("twenty handshakes took {:?}", start.elapsed()))
}

async fn stable(c: &Context) -> Checked {
    let first = shake(c).await?;
    let second = c.send_on(&c.suite.connect(), handshake(&c.suite.cluster), PROMPT).await;
    let second = second.map_err(|status| failed("HS-2", GetProviderInfoRequest::PATH, &status))?.info.unwrap_or_default();
    let (one, other) = ((&first.name, &first.cloud_identity), (&second.name, &second.cloud_identity));
    check("ID-1", one == other, format!("name and cloud_identity were {one:?} and then {other:?}"))
}

async fn leads(c: &Context) -> Checked {
    let info = shake(c).await?;
    let lists = |one: Capability| info.capabilities.contains(&i32::from(one));
    let mutating = [Capability::AddSshKey, Capability::LoadBalancers, Capability::Routes];
    let listed: Vec<_> = mutating.into_iter().filter(|one| lists(*one)).collect();
    check("CAP-2", listed.is_empty() || lists(Capability::Lead), format!("it lists {listed:?}, and not CAPABILITY_LEAD"))
}

async fn unlisted(c: &Context) -> Checked {
    let listed = shake(c).await?.capabilities;
    for capability in CAPABILITIES.filter(|one| !listed.contains(one)).filter_map(|one| Capability::try_from(one).ok()) {
        for (method, answer) in unserved(c, capability).await {
            let status = answer.err().ok_or_else(|| {
                crate::case::broken("CAP-1", format!("{method} is answered, and {} is not listed", capability.as_str_name()))
            })?;
            // A server that does not know the service at all answers without details.
            let bare = status.code() == Code::Unimplemented && status.details().is_empty();
            if !bare {
                is_refusal("CAP-1", status, Code::Unimplemented, "NOT_IMPLEMENTED")?;
            }
        }
    }
    Ok(())
}

async fn readiness(c: &Context) -> Checked {
    let info = shake(c).await?;
    check("NS-1", !info.node_conditions.iter().any(|one| one == "Ready"), "node_conditions has Ready")?;
    check("NS-1", !info.node_taints.iter().any(|one| one == "*"), "node_taints has *")
}
