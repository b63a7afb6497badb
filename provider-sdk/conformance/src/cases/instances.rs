//! Look-ups of machines: outcomes, batches and what an answer must hold.
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::{Duration, SystemTime};

use ccm_proto::v1::instance_result::Outcome;
use ccm_proto::v1::{
    BatchGetInstancesRequest, Capability, Instance, InstanceQuery, InstanceResult, InstanceState, NodeAddress, NodeAddressType,
};
use tonic::Code;

use crate::case::{Case, Checked, Need, broken, check};
use crate::config::Machine;
use crate::context::Context;
use crate::suite::Suite;

pub mod faults;

const INSTANCES: Need = Need::Capability(Capability::Instances);

/// The cases.
pub const CASES: &[Case] = &[
    Case::new(
        "instances/known",
        "a machine that exists is found, with an answer that the core can use",
        &["INST-6", "INST-9", "INST-10", "INST-13", "INST-14", "INST-15", "INST-16", "INST-17", "INST-23", "INST-24"],
        &[INSTANCES, Need::Machines(1)],
        |c| Box::pin(known(c)),
    ),
    Case::new(
        "instances/by-id",
        "a machine is found by its provider id alone, whatever name the query has",
        &["INST-5"],
        &[INSTANCES, Need::Machines(1)],
        |c| Box::pin(by_id(c)),
    ),
    Case::new(
        "instances/crossed",
        "where a query has the name of one machine and the id of another, the id decides",
        &["INST-5"],
        &[INSTANCES, Need::Machines(2)],
        |c| Box::pin(crossed(c)),
    ),
    Case::new(
        "instances/other-id",
        "a machine of the name with another provider id is not found",
        &["INST-19"],
        &[INSTANCES, Need::Machines(1)],
        |c| Box::pin(other_id(c)),
    ),
    Case::new(
        "instances/unknown",
        "a machine that the cloud does not have is the result not_found, and no error",
        &["INST-18", "INST-23", "INST-24", "ERR-19"],
        &[INSTANCES],
        |c| Box::pin(unknown(c)),
    ),
    Case::new("instances/foreign", "an id with a foreign prefix is not_mine", &["INST-20"], &[INSTANCES], |c| {
        Box::pin(foreign(c))
    }),
    Case::new(
        "instances/mixed",
        "a batch of known, unknown and foreign machines has exactly one result for each query",
        &["INST-1", "INST-26", "INST-27"],
        &[INSTANCES],
        |c| Box::pin(mixed(c)),
    ),
    Case::new("instances/nameless", "a query without a node name is refused", &["INST-29"], &[INSTANCES], |c| {
        Box::pin(nameless(c))
    }),
    Case::new("instances/twice", "two queries of one name are refused", &["INST-29"], &[INSTANCES], |c| Box::pin(twice(c))),
    Case::new("instances/fresh", "the cloud's data is at most 30 s old", &["INST-4"], &[INSTANCES, Need::Machines(1)], |c| {
        Box::pin(fresh(c))
    }),
];

/// Queries by name alone.
pub fn queries(names: &[String]) -> Vec<InstanceQuery> {
    names.iter().map(|name| InstanceQuery { node_name: name.clone(), ..InstanceQuery::default() }).collect()
}

/// Whether the item failed.
pub fn is_error(result: &InstanceResult) -> bool {
    matches!(result.outcome, Some(Outcome::Error(_)))
}

/// A query for this name and id.
pub fn query(name: &str, id: &str) -> InstanceQuery {
    InstanceQuery { node_name: name.into(), provider_id: Some(id.into()), ..InstanceQuery::default() }
}

/// Looks one machine up, which must give one result.
pub async fn look_up(c: &Context, rule: &'static str, query: InstanceQuery) -> Checked<InstanceResult> {
    let name = query.node_name.clone();
    let answer = c.ok(rule, BatchGetInstancesRequest { queries: vec![query] }).await?;
    let count = answer.results.len();
    let mut own = answer.results.into_iter().filter(|result| result.node_name == name);
    let missing = || broken("INST-26", format!("one query has {count} results, none of them for it"));
    let result = own.next().ok_or_else(missing)?;
    check("INST-26", own.next().is_none(), format!("the query has {count} results"))?;
    check("INST-27", count == 1, "a result has a name that was not asked for")?;
    Ok(result)
}

/// The machine in a result that must have one.
pub fn machine(rule: &'static str, result: InstanceResult) -> Checked<Instance> {
    match result.outcome {
        Some(Outcome::Instance(machine)) => Ok(machine),
        other => Err(broken(rule, format!("expected `instance`, got {other:?}"))),
    }
}

/// Whether the result is `not_found`.
pub fn not_found(rule: &'static str, result: &InstanceResult) -> Checked {
    let found = &result.outcome;
    check(rule, matches!(found, Some(Outcome::NotFound(_))), format!("expected `not_found`, got {found:?}"))
}

fn first(suite: &Suite) -> Machine {
    suite.machines[0].clone()
}

/// An id of this provider's that no machine has.
pub fn no_id(suite: &Suite) -> String {
    let prefix = suite.info.provider_id_prefixes.first().cloned().unwrap_or_default();
    suite.machines.first().map_or_else(|| format!("{prefix}conformance-none"), |one| format!("{}-none", one.provider_id))
}

async fn known(c: &Context) -> Checked {
    let wanted = first(&c.suite);
    let result = look_up(c, "INST-6", query(&wanted.name, &wanted.provider_id)).await?;
    observed(&result)?;
    let machine = machine("INST-6", result)?;
    check("INST-13", machine.state() != InstanceState::Unspecified, "`state` is not set")?;
    let id = &machine.provider_id;
    let ours = c.suite.info.provider_id_prefixes.iter().any(|prefix| id.starts_with(prefix));
    check("INST-9", id.is_empty() || (ours && id.len() <= 1024), format!("the id {id:?} has none of the prefixes"))?;
    check("INST-10", id.is_empty() || *id == wanted.provider_id, format!("the id is {id:?}, not {:?}", wanted.provider_id))?;
    usable(&machine)
}

/// The parts of an answer that the core would leave out.
fn usable(machine: &Instance) -> Checked {
    check("INST-14", machine.additional_labels.len() <= 100, "there are more than 100 additional_labels")?;
    for address in &machine.addresses {
        check("INST-15", is_usable(address), format!("the address {address:?} is not valid"))?;
    }
    check("INST-16", machine.warnings.len() <= 10, "there are more than 10 warnings")?;
    let plain = |word: &str| (1..=128).contains(&word.len()) && word.chars().all(|c| c.is_ascii_alphanumeric());
    let odd = machine.warnings.iter().find(|warning| !plain(&warning.reason));
    check("INST-17", odd.is_none(), format!("the reason of a warning is no plain word: {odd:?}"))
}

fn is_usable(address: &NodeAddress) -> bool {
    match address.r#type() {
        NodeAddressType::Unspecified => false,
        NodeAddressType::InternalIp | NodeAddressType::ExternalIp => address.address.parse::<IpAddr>().is_ok(),
        _ => !address.address.is_empty(),
    }
}

/// Whether `observed_at` is there and not in the future.
fn observed(result: &InstanceResult) -> Checked<SystemTime> {
    let stamp = result.observed_at.ok_or_else(|| broken("INST-23", "`observed_at` is missing"))?;
    let time = SystemTime::try_from(stamp).map_err(|error| broken("INST-23", format!("`observed_at`: {error}")))?;
    let ahead = time.duration_since(SystemTime::now()).unwrap_or_default();
    check("INST-24", ahead < Duration::from_secs(300), format!("`observed_at` is {ahead:?} ahead"))?;
    Ok(time)
}

async fn by_id(c: &Context) -> Checked {
    let wanted = first(&c.suite);
    let result = look_up(c, "INST-5", query("conformance-no-such-name", &wanted.provider_id)).await?;
    let found = machine("INST-5", result)?.provider_id;
    check("INST-5", found.is_empty() || found == wanted.provider_id, format!("another machine was found: {found:?}"))
}

async fn crossed(c: &Context) -> Checked {
    let (name, id) = (&c.suite.machines[0].name, &c.suite.machines[1].provider_id);
    let found = machine("INST-5", look_up(c, "INST-5", query(name, id)).await?)?.provider_id;
    check("INST-5", found.is_empty() || found == *id, format!("expected the machine with the id {id:?}, got {found:?}"))
}

async fn other_id(c: &Context) -> Checked {
    let result = look_up(c, "INST-19", query(&first(&c.suite).name, &no_id(&c.suite))).await?;
    not_found("INST-19", &result)
}

async fn unknown(c: &Context) -> Checked {
    let by_name = look_up(c, "INST-18", queries(&["conformance-none".to_owned()]).remove(0)).await?;
    not_found("INST-18", &by_name)?;
    observed(&by_name).map(drop)
}

async fn foreign(c: &Context) -> Checked {
    let result = look_up(c, "INST-20", query("conformance-foreign", "conformance-foreign://zone/machine")).await?;
    let found = &result.outcome;
    check("INST-20", matches!(found, Some(Outcome::NotMine(_))), format!("expected `not_mine`, got {found:?}"))
}

async fn mixed(c: &Context) -> Checked {
    let mut asked: Vec<_> = c.suite.machines.iter().map(|one| query(&one.name, &one.provider_id)).collect();
    asked.extend(queries(&["conformance-none-1".to_owned(), "conformance-none-2".to_owned()]));
    asked.push(query("conformance-foreign", "conformance-foreign://zone/machine"));
    let answer = c.ok("INST-1", BatchGetInstancesRequest { queries: asked.clone() }).await?;
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    answer.results.iter().for_each(|result| *counts.entry(&result.node_name).or_default() += 1);
    for one in &asked {
        let count = counts.remove(one.node_name.as_str()).unwrap_or_default();
        check("INST-26", count == 1, format!("the query for {} has {count} results", one.node_name))?;
    }
    check("INST-27", counts.is_empty(), format!("results for names that were not asked for: {counts:?}"))?;
    let known = answer.results.iter().find(|one| c.suite.machines.iter().any(|machine| machine.name == one.node_name));
    known.map_or(Ok(()), |one| machine("INST-1", one.clone()).map(drop))
}

async fn nameless(c: &Context) -> Checked {
    let request = BatchGetInstancesRequest { queries: vec![InstanceQuery::default()] };
    c.refused("INST-29", request, Code::InvalidArgument, "").await.map(drop)
}

async fn twice(c: &Context) -> Checked {
    let name = "conformance-none".to_owned();
    let request = BatchGetInstancesRequest { queries: queries(&[name.clone(), name]) };
    c.refused("INST-29", request, Code::InvalidArgument, "").await.map(drop)
}

async fn fresh(c: &Context) -> Checked {
    let wanted = first(&c.suite);
    let time = observed(&look_up(c, "INST-6", query(&wanted.name, &wanted.provider_id)).await?)?;
    let age = SystemTime::now().duration_since(time).unwrap_or_default();
    check("INST-4", age <= Duration::from_secs(31), format!("the data is {age:?} old"))
}
