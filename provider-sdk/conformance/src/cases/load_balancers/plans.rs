//! Plans: what Ensure would do, in words, and nothing done.
use ccm_proto::v1::{Capability, PlanLoadBalancerRequest};
use tonic::Code;

use super::service::{hash, inline, nodes, service};
use crate::case::{Case, Checked, Need, check};
use crate::context::Context;

const PLANS: &[Need] =
    &[Need::Capability(Capability::LoadBalancers), Need::Capability(Capability::PlanLoadBalancer), Need::Mutations];

/// The cases.
pub const CASES: &[Case] = &[
    Case::new(
        "plans/new",
        "the plan of what does not exist has changes, and makes nothing",
        &["LB-14", "LB-16", "LB-22"],
        PLANS,
        |c| Box::pin(new(c)),
    ),
    Case::new(
        "plans/unchanged",
        "the plan of what is in the desired state has no changes, and says what Ensure would answer",
        &["LB-15", "LB-21", "LB-46"],
        PLANS,
        |c| Box::pin(unchanged(c)),
    ),
    Case::new(
        "plans/changed",
        "the plan of a changed Service has changes, and makes none of them",
        &["LB-14", "LB-16", "LB-22"],
        PLANS,
        |c| Box::pin(changed(c)),
    ),
    Case::new("plans/incomplete", "a plan without cluster, service or nodes is refused", &["LB-43", "NS-3"], PLANS, |c| {
        Box::pin(incomplete(c))
    }),
    Case::new(
        "plans/unknown-set",
        "a plan with an unknown hash is NODE_SET_UNKNOWN",
        &["NS-5", "LB-40"],
        &[
            Need::Capability(Capability::LoadBalancers),
            Need::Capability(Capability::PlanLoadBalancer),
            Need::Capability(Capability::NodeSets),
        ],
        |c| Box::pin(unknown_set(c)),
    ),
];

async fn new(c: &Context) -> Checked {
    let service = service(c, "plan-new");
    let plan = c.plan(&service, inline(nodes(c, usize::MAX))).await?;
    check("LB-16", !plan.changes.is_empty(), "there is no load balancer, and the plan has no changes")?;
    c.gone("LB-14", &c.suite.cluster, &service).await
}

async fn unchanged(c: &Context) -> Checked {
    let lead = c.lead().await?;
    let service = service(c, "plan-unchanged");
    let ready = c.ensure(&lead, &service).await?;
    let plan = c.plan(&service, inline(nodes(c, usize::MAX))).await?;
    check("LB-21", plan.changes.is_empty(), format!("Ensure said `ready`, and the plan has changes: {:?}", plan.changes))?;
    check("LB-15", plan.status.is_some(), "a plan without changes has no status")?;
    let same = plan.status == ready.status && plan.annotations == ready.annotations;
    check("LB-15", same, format!("the plan says {plan:?}, and Ensure said {ready:?}"))
}

async fn changed(c: &Context) -> Checked {
    let lead = c.lead().await?;
    let mut service = service(c, "plan-changed");
    c.ensure(&lead, &service).await?;
    if let Some(port) = service.ports.first_mut() {
        (port.port, port.node_port) = (8080, Some(30081));
    }
    let first = c.plan(&service, inline(nodes(c, usize::MAX))).await?;
    check("LB-16", !first.changes.is_empty(), "the Service has another port, and the plan has no changes")?;
    let second = c.plan(&service, inline(nodes(c, usize::MAX))).await?;
    check("LB-14", !second.changes.is_empty(), "after a plan with changes, a second plan has none: the first made them")
}

async fn incomplete(c: &Context) -> Checked {
    let whole = PlanLoadBalancerRequest {
        cluster: Some(c.suite.cluster.clone()),
        service: Some(service(c, "plan-incomplete")),
        nodes: inline(nodes(c, usize::MAX)),
    };
    let mut no_cluster = whole.clone();
    no_cluster.cluster = None;
    let mut no_service = whole.clone();
    no_service.service = None;
    let mut no_nodes = whole;
    no_nodes.nodes = None;
    for request in [no_cluster, no_service, no_nodes] {
        c.refused("LB-43", request, Code::InvalidArgument, "").await?;
    }
    Ok(())
}

async fn unknown_set(c: &Context) -> Checked {
    let request = PlanLoadBalancerRequest {
        cluster: Some(c.suite.cluster.clone()),
        service: Some(service(c, "plan-unknown-set")),
        nodes: hash("conformance-never-put"),
    };
    c.refused("NS-5", request, Code::FailedPrecondition, "NODE_SET_UNKNOWN").await.map(drop)
}
