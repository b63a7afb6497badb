//! Load balancers while the cloud fails or hangs: errors with their reasons, and work that goes on without its caller.
use std::time::Duration;

use ccm_proto::v1::{EnsureLoadBalancerRequest, ensure_load_balancer_response::Outcome};
use futures::future::join;
use tokio::time::{Instant, sleep};
use tonic::Code;

use super::service::{ensure_request, inline, nodes, service};
use crate::case::{Case, Checked, Need, broken, check};
use crate::context::{Context, failed, is_refusal};
use crate::exchange::describe;
use crate::hooks::Fault;
use crate::lead::Lead;
use crate::rpc::Rpc as _;
use ccm_proto::v1::Capability;

const HUNG: &[Need] = &[Need::Capability(Capability::LoadBalancers), Need::Mutations, Need::Fault(Fault::Hung)];

/// The deadline of a call that the hung cloud holds.
const HELD: Duration = Duration::from_secs(4);

/// The cases.
pub const CASES: &[Case] = &[
    Case::new(
        "load-balancers/cloud-away",
        "a cloud that is away is CLOUD_UNAVAILABLE, and the next call succeeds when it is back",
        &["LB-36", "ERR-14", "ERR-1"],
        &[Need::Capability(Capability::LoadBalancers), Need::Mutations, Need::Fault(Fault::CloudAway)],
        |c| Box::pin(fails(c, Fault::CloudAway, "LB-36", Code::Unavailable, "CLOUD_UNAVAILABLE")),
    ),
    Case::new(
        "load-balancers/credentials",
        "refused credentials are CREDENTIALS_INVALID",
        &["LB-32", "ERR-11", "ERR-1"],
        &[Need::Capability(Capability::LoadBalancers), Need::Mutations, Need::Fault(Fault::CredentialsRefused)],
        |c| Box::pin(fails(c, Fault::CredentialsRefused, "LB-32", Code::Unauthenticated, "CREDENTIALS_INVALID")),
    ),
    Case::new(
        "load-balancers/rate-limit",
        "a rate limit is RATE_LIMITED",
        &["LB-34", "ERR-13", "ERR-1"],
        &[Need::Capability(Capability::LoadBalancers), Need::Mutations, Need::Fault(Fault::RateLimited)],
        |c| Box::pin(fails(c, Fault::RateLimited, "LB-34", Code::ResourceExhausted, "RATE_LIMITED")),
    ),
    Case::new(
        "load-balancers/quota",
        "a quota that is used up is QUOTA_EXCEEDED",
        &["LB-31", "ERR-1"],
        &[Need::Capability(Capability::LoadBalancers), Need::Mutations, Need::Fault(Fault::QuotaExceeded)],
        |c| Box::pin(fails(c, Fault::QuotaExceeded, "LB-31", Code::ResourceExhausted, "QUOTA_EXCEEDED")),
    ),
    Case::new(
        "load-balancers/in-progress",
        "a call whose work goes on answers in_progress at 90 % of its deadline, and the work goes on without it",
        &["REP-5", "REP-6", "LB-23"],
        HUNG,
        |c| Box::pin(in_progress(c)),
    ),
    Case::new(
        "load-balancers/behind",
        "a call that waits behind another answers in_progress at 90 % of its deadline",
        &["REP-3", "REP-7"],
        HUNG,
        |c| Box::pin(behind(c)),
    ),
    Case::new(
        "load-balancers/leadership-ends",
        "when the leadership ends, calls that wait for a mutation are answered by NOT_LEADING",
        &["LEAD-11", "LEAD-12"],
        HUNG,
        |c| Box::pin(leadership_ends(c)),
    ),
];

async fn fails(c: &Context, fault: Fault, rule: &'static str, code: Code, reason: &'static str) -> Checked {
    let lead = c.lead().await?;
    let service = service(c, "fault");
    c.suite.hooks.set(fault).await?;
    let request = ensure_request(&lead, &service, inline(nodes(c, usize::MAX)));
    c.ensure_refused(rule, request, code, reason).await?;
    c.suite.hooks.clear().await?;
    c.ensure(&lead, &service).await.map(drop)
}

fn request(c: &Context, lead: &Lead, name: &str) -> Checked<EnsureLoadBalancerRequest> {
    let service = service(c, name);
    c.may_make(&c.suite.cluster, &service)?;
    Ok(ensure_request(lead, &service, inline(nodes(c, usize::MAX))))
}

/// The call must answer `in_progress` shortly before its deadline.
async fn attaches(c: &Context, rule: &'static str, request: EnsureLoadBalancerRequest) -> Checked {
    let start = Instant::now();
    let answer = c.send_within(request, HELD).await;
    let took = start.elapsed();
    let outcome = answer.map_err(|status| failed(rule, EnsureLoadBalancerRequest::PATH, &status))?.outcome;
    check(rule, matches!(outcome, Some(Outcome::InProgress(_))), format!("expected `in_progress`, got {outcome:?}"))?;
    check(rule, took < HELD.mul_f64(0.98), format!("with a deadline of {HELD:?} the answer took {took:?}"))
}

async fn in_progress(c: &Context) -> Checked {
    let lead = c.lead().await?;
    let request = request(c, &lead, "in-progress")?;
    c.suite.hooks.set(Fault::Hung).await?;
    attaches(c, "REP-6", request.clone()).await?;
    c.suite.hooks.clear().await?;
    let service = request.service.clone().unwrap_or_default();
    c.ensure_with(&lead, &service, request.nodes).await.map(drop)
}

async fn behind(c: &Context) -> Checked {
    let lead = c.lead().await?;
    let first = request(c, &lead, "behind")?;
    let mut second = first.clone();
    if let Some(port) = second.service.as_mut().and_then(|service| service.ports.first_mut()) {
        port.port = 8080;
    }
    c.suite.hooks.set(Fault::Hung).await?;
    let later = async {
        sleep(Duration::from_millis(300)).await;
        attaches(c, "REP-7", second).await
    };
    join(attaches(c, "REP-6", first), later).await.1
}

async fn leadership_ends(c: &Context) -> Checked {
    let lead = c.lead().await?;
    let request = request(c, &lead, "leadership-ends")?;
    c.suite.hooks.set(Fault::Hung).await?;
    let ending = async {
        sleep(Duration::from_millis(500)).await;
        drop(lead);
    };
    let start = Instant::now();
    let (answer, ()) = join(c.send(request), ending).await;
    let Err(status) = answer else { return Err(broken("LEAD-12", format!("the call answered {answer:?}"))) };
    let said = describe(&status);
    let prompt = start.elapsed() < Duration::from_secs(10);
    is_refusal("LEAD-12", status, Code::FailedPrecondition, "NOT_LEADING")?;
    check("LEAD-12", prompt, format!("it took {:?} until {said}", start.elapsed()))
}
