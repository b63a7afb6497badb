//! Look-ups while the cloud changes or fails: what is gone is not found, and a failure is never "not found".
use std::time::Duration;

use ccm_proto::v1::instance_result::Outcome;
use ccm_proto::v1::{BatchGetInstancesRequest, Capability, ErrorReason, InstanceState, ItemError};
use tonic::Code;
use tonic_types::StatusExt as _;

use super::{is_error, look_up, machine, queries, query};
use crate::case::{Case, Checked, Need, broken, check};
use crate::config::Machine;
use crate::context::{Context, eventually, is_refusal};
use crate::hooks::{Fault, Hook};

const INSTANCES: Need = Need::Capability(Capability::Instances);

/// How long the cloud may take to show a change to the provider.
const LAG: Duration = Duration::from_secs(60);

/// The cases.
pub const CASES: &[Case] = &[
    Case::new(
        "instances/stopped",
        "a machine that was stopped is STOPPED, and found",
        &["INST-7", "INST-13"],
        &[INSTANCES, Need::Mutations, Need::Hook(Hook::CreateMachine), Need::Hook(Hook::StopMachine)],
        |c| Box::pin(stopped(c)),
    ),
    Case::new(
        "instances/deleted",
        "a machine that was deleted is DELETED or not found, and not before",
        &["INST-8", "INST-18"],
        &[INSTANCES, Need::Mutations, Need::Hook(Hook::CreateMachine), Need::Hook(Hook::DeleteMachine)],
        |c| Box::pin(deleted(c)),
    ),
    Case::new(
        "instances/cloud-away",
        "while the cloud is away no machine is not_found, and afterwards all are known again",
        &["ERR-14", "INST-22", "ERR-1"],
        &[INSTANCES, Need::Mutations, Need::Machines(1), Need::Fault(Fault::CloudAway)],
        |c| Box::pin(fails(c, Fault::CloudAway, "ERR-14", Code::Unavailable, ErrorReason::CloudUnavailable)),
    ),
    Case::new(
        "instances/credentials",
        "refused credentials are UNAUTHENTICATED, and never an empty answer",
        &["ERR-11", "ERR-1"],
        &[INSTANCES, Need::Mutations, Need::Machines(1), Need::Fault(Fault::CredentialsRefused)],
        |c| Box::pin(fails(c, Fault::CredentialsRefused, "ERR-11", Code::Unauthenticated, ErrorReason::CredentialsInvalid)),
    ),
    Case::new(
        "instances/rate-limit",
        "a rate limit of the cloud is RATE_LIMITED",
        &["ERR-13", "ERR-1"],
        &[INSTANCES, Need::Mutations, Need::Machines(1), Need::Fault(Fault::RateLimited)],
        |c| Box::pin(fails(c, Fault::RateLimited, "ERR-13", Code::ResourceExhausted, ErrorReason::RateLimited)),
    ),
    Case::new(
        "instances/retry-info",
        "a rate limit comes with the time of the next try",
        &["ERR-3"],
        &[INSTANCES, Need::Mutations, Need::Fault(Fault::RateLimited)],
        |c| Box::pin(retry_info(c)),
    ),
    Case::new(
        "instances/stale",
        "data that was not read anew keeps its time",
        &["INST-3", "INST-25"],
        &[INSTANCES, Need::Mutations, Need::Machines(1), Need::Fault(Fault::Stale)],
        |c| Box::pin(stale(c)),
    ),
];

/// A machine of this case's own, which a hook makes.
async fn made(c: &Context, name: &str) -> Checked<Machine> {
    let name = format!("conformance-{}-{name}", &c.suite.cluster.uid[..c.suite.cluster.uid.len().min(8)]);
    c.may_have_machine(&name)?;
    c.suite.hooks.run(Hook::CreateMachine, &name).await?;
    let provider_id = eventually("INST-6", "the new machine is found", LAG, async || {
        let result = look_up(c, "INST-6", queries(std::slice::from_ref(&name)).remove(0)).await?;
        Ok(machine("INST-6", result).ok().map(|machine| machine.provider_id))
    });
    Ok(Machine { provider_id: provider_id.await?, name })
}

async fn stopped(c: &Context) -> Checked {
    let Machine { name, provider_id } = made(c, "stopped").await?;
    c.suite.hooks.run(Hook::StopMachine, &name).await?;
    eventually("INST-7", "the machine is STOPPED", LAG, async || {
        let found = machine("INST-7", look_up(c, "INST-7", query(&name, &provider_id)).await?)?;
        check("INST-13", found.state() != InstanceState::Unspecified, "`state` is not set")?;
        Ok((found.state() == InstanceState::Stopped).then_some(()))
    })
    .await?;
    c.forget_machine(&name).await
}

async fn deleted(c: &Context) -> Checked {
    let Machine { name, provider_id } = made(c, "deleted").await?;
    c.forget_machine(&name).await?;
    eventually("INST-18", "the machine is DELETED or not_found", LAG, async || {
        let result = look_up(c, "INST-18", query(&name, &provider_id)).await?;
        Ok(match result.outcome {
            Some(Outcome::NotFound(_)) => Some(()),
            Some(Outcome::Instance(machine)) => (machine.state() == InstanceState::Deleted).then_some(()),
            other => return Err(broken("INST-18", format!("a deleted machine was answered by {other:?}"))),
        })
    })
    .await
}

/// Under the fault the call, or each of its items, must fail with this code and reason; afterwards it must not.
async fn fails(c: &Context, fault: Fault, rule: &'static str, code: Code, reason: ErrorReason) -> Checked {
    let Machine { name, provider_id } = c.suite.machines[0].clone();
    let ask = || BatchGetInstancesRequest { queries: vec![query(&name, &provider_id)] };
    c.suite.hooks.set(fault).await?;
    let word = reason.as_str_name().trim_start_matches("ERROR_REASON_");
    match c.send(ask()).await {
        Err(status) => drop(is_refusal(rule, status, code, word)?),
        Ok(answer) => {
            let odd = answer.results.iter().find(|one| !is_item(one.outcome.as_ref(), code, reason));
            check(rule, odd.is_none(), format!("expected {code:?} {word}, got {odd:?}"))?;
        }
    }
    c.suite.hooks.clear().await?;
    eventually(rule, "the machine is found after the fault", LAG, async || {
        let answer = c.send(ask()).await;
        Ok(answer.ok().filter(|answer| answer.results.iter().all(|one| !is_error(one))).map(drop))
    })
    .await
}

fn is_item(outcome: Option<&Outcome>, code: Code, reason: ErrorReason) -> bool {
    let fits = |error: &ItemError| error.code == i32::from(code) && error.reason() == reason;
    matches!(outcome, Some(Outcome::Error(error)) if fits(error))
}

async fn retry_info(c: &Context) -> Checked {
    c.suite.hooks.set(Fault::RateLimited).await?;
    let request = BatchGetInstancesRequest { queries: queries(&["conformance-none".to_owned()]) };
    match c.send(request).await {
        Err(status) => {
            let known = status.get_error_details().retry_info().is_some_and(|retry| retry.retry_delay.is_some());
            check("ERR-3", known, "the status has no RetryInfo")
        }
        Ok(answer) => {
            let known = |one: &Outcome| matches!(one, Outcome::Error(error) if error.retry_after.is_some());
            let all = answer.results.iter().all(|one| one.outcome.as_ref().is_some_and(known));
            check("ERR-3", all, "an item has no retry_after")
        }
    }
}

async fn stale(c: &Context) -> Checked {
    let Machine { name, provider_id } = c.suite.machines[0].clone();
    c.suite.hooks.set(Fault::Stale).await?;
    let first = look_up(c, "INST-3", query(&name, &provider_id)).await?;
    tokio::time::sleep(Duration::from_millis(1100)).await;
    let second = look_up(c, "INST-3", query(&name, &provider_id)).await?;
    let (one, other) = (first.observed_at, second.observed_at);
    check("INST-3", one == other, format!("the data was not read anew, and observed_at went from {one:?} to {other:?}"))
}
