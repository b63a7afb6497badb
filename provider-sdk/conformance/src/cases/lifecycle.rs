//! Drains and restarts of the provider that the suite started.
use std::time::Duration;

use ccm_proto::v1::{Capability, ensure_load_balancer_response::Outcome};
use futures::future::join;
use tokio::time::sleep;
use tonic::Code;
use tonic_health::pb::health_check_response::ServingStatus;

use super::health;
use super::load_balancers::service::{ensure_request, inline, nodes, service};
use crate::case::{Case, Checked, Ended, Need, broken, check};
use crate::context::{Context, eventually, failed};
use crate::exchange::describe;
use crate::hooks::Fault;
use crate::process::By;

/// How long a drained provider may take to exit, with the grace of the contract.
const EXIT: Duration = Duration::from_secs(40);

const BALANCERS: Need = Need::Capability(Capability::LoadBalancers);

/// The cases.
pub const CASES: &[Case] = &[
    Case::new(
        "lifecycle/killed",
        "after kill -9 and a restart the load balancers are there, and Ensure answers as before",
        &["LB-2", "LB-12"],
        &[BALANCERS, Need::Mutations, Need::Command],
        |c| Box::pin(killed(c)),
    ),
    Case::new("lifecycle/identity", "after a restart the cloud identity is the same", &["ID-1"], &[Need::Command], |c| {
        Box::pin(identity(c))
    }),
    Case::new(
        "lifecycle/lead-ends",
        "at its end the provider ends Lead with UNAVAILABLE",
        &["LIFE-3", "LEAD-20"],
        &[Need::Capability(Capability::Lead), Need::Mutations, Need::Command],
        |c| Box::pin(lead_ends(c)),
    ),
    Case::new(
        "lifecycle/drain",
        "while a mutation runs, a draining provider is NOT_SERVING, keeps Lead, and lets the mutation end",
        &["LIFE-1", "LIFE-2", "HLT-2"],
        &[BALANCERS, Need::Mutations, Need::Command, Need::Fault(Fault::Hung)],
        |c| Box::pin(drain(c)),
    ),
];

/// Starts the provider again, once it is gone.
async fn start_again(c: &Context) -> Checked {
    let launcher = c.suite.launcher.as_ref().ok_or_else(|| Ended::Skipped("needs --command".into()))?;
    let mut process = c.suite.process.lock().await;
    if let Some(old) = process.as_mut() {
        old.kill().await;
    }
    *process = Some(launcher.start(&c.suite.socket, By::Flag).await?);
    Ok(())
}

async fn terminate(c: &Context) {
    if let Some(process) = c.suite.process.lock().await.as_ref() {
        process.terminate();
    }
}

async fn exits(c: &Context) -> Checked {
    let mut process = c.suite.process.lock().await;
    let ended = match process.as_mut() {
        Some(process) => process.wait(EXIT).await,
        None => None,
    };
    check("LIFE-3", ended.is_some(), format!("it did not exit within {EXIT:?}"))?;
    check("LIFE-3", !c.suite.socket.exists(), "it left its socket")
}

async fn killed(c: &Context) -> Checked {
    let lead = c.lead().await?;
    let service = service(c, "killed");
    let before = c.ensure(&lead, &service).await?;
    start_again(c).await?;
    let lead = eventually("LEAD-6", "the new process is led", EXIT, async || Ok(c.lead().await.ok())).await?;
    let found = c.found("LB-2", &service).await?;
    check("LB-2", Some(&found) == before.status.as_ref(), format!("it was {before:?}, and is {found:?}"))?;
    let after = c.ensure(&lead, &service).await?;
    check("LB-2", after == before, format!("Ensure answered {before:?}, and after the restart {after:?}"))
}

async fn identity(c: &Context) -> Checked {
    start_again(c).await?;
    let request = crate::suite::handshake(&c.suite.cluster);
    let info = eventually("ID-1", "the new process answers", EXIT, async || Ok(c.send(request.clone()).await.ok())).await?;
    let (before, after) = (&c.suite.info.cloud_identity, info.info.unwrap_or_default().cloud_identity);
    check("ID-1", *before == after, format!("cloud_identity was {before:?}, and is {after:?} after a restart"))
}

async fn lead_ends(c: &Context) -> Checked {
    let mut lead = c.lead().await?;
    terminate(c).await;
    let answer = lead.answer_within(EXIT).await;
    let gone = exits(c).await;
    start_again(c).await?;
    gone?;
    match answer {
        Err(status) if status.code() == Code::Unavailable => Ok(()),
        Err(status) => Err(broken("LIFE-3", format!("Lead ended with {}", describe(&status)))),
        Ok(answer) => Err(broken("LIFE-3", format!("Lead went on with {answer:?}"))),
    }
}

async fn drain(c: &Context) -> Checked {
    let mut lead = c.lead().await?;
    let service = service(c, "drain");
    c.may_make(&c.suite.cluster, &service)?;
    let request = ensure_request(&lead, &service, inline(nodes(c, usize::MAX)));
    c.suite.hooks.set(Fault::Hung).await?;
    let draining = async {
        sleep(Duration::from_millis(500)).await;
        terminate(c).await;
        sleep(Duration::from_millis(500)).await;
        // A draining provider takes no new call: the health check is refused, or says NOT_SERVING.
        let health = health::status(&c.channel).await;
        let health = check("HLT-2", !matches!(health, Ok(ServingStatus::Serving)), "a draining provider says SERVING");
        let renewal = lead.renew(lead.first.clone()).await;
        c.suite.hooks.clear().await?;
        health?;
        renewal.map(drop).map_err(|status| failed("LIFE-2", "Lead", &status))
    };
    let (answer, drained) = join(c.send(request), draining).await;
    let gone = exits(c).await;
    c.suite.hooks.clear().await?;
    start_again(c).await?;
    drained.and(gone)?;
    let outcome = answer.map_err(|status| failed("LIFE-2", "EnsureLoadBalancer", &status))?.outcome;
    let ended = matches!(outcome, Some(Outcome::Ready(_) | Outcome::InProgress(_)));
    check("LIFE-2", ended, format!("the running call answered {outcome:?}"))
}
