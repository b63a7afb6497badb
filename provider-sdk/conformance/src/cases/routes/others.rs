//! Routes of others: listed and marked, and never replaced or removed.
use ccm_proto::v1::{Capability, ClusterRef, LeadRequest, Route, RouteOwner};
use tonic::Code;
use uuid::Uuid;

use super::leads_to;
use super::table::{self, cidr, create, removal, route};
use crate::case::{Case, Checked, Need, check};
use crate::config::Machine;
use crate::context::Context;
use crate::lead::Lead;

const ROUTES: &[Need] = &[Need::Capability(Capability::Routes), Need::Mutations, Need::TestCidrs(2), Need::Machines(2)];

/// The cases.
pub const CASES: &[Case] = &[
    Case::new(
        "routes/others-listed",
        "a route of another cluster is listed, as one of others",
        &["RT-8", "RT-19"],
        ROUTES,
        |c| Box::pin(listed(c)),
    ),
    Case::new(
        "routes/others-create",
        "a route of others that leads elsewhere is NOT_OWNED, and stays",
        &["RT-4", "RT-14", "RT-33"],
        ROUTES,
        |c| Box::pin(elsewhere(c)),
    ),
    Case::new(
        "routes/others-same",
        "a route of others that leads to the target is `done`, and stays theirs",
        &["RT-15", "RT-29"],
        ROUTES,
        |c| Box::pin(same(c)),
    ),
    Case::new("routes/others-delete", "a route of others is not removed", &["RT-4", "RT-34"], ROUTES, |c| Box::pin(delete(c))),
];

/// A route that the suite's cluster made, and a leadership of another cluster. Ends the case where both share their routes.
async fn made(c: &Context) -> Checked<(Machine, Lead)> {
    let lead = c.lead().await?;
    let target = c.suite.machines[0].clone();
    create(c, &lead, "RT-28", route(cidr(c, 0), &target)).await?;
    let other = ClusterRef { name: "provider-conformance".into(), uid: Uuid::new_v4().to_string() };
    let seen = c.routes_seen_by(&other, cidr(c, 0)).await?;
    check("RT-19", seen.len() == 1, format!("another cluster sees {} routes for {}: {seen:?}", seen.len(), cidr(c, 0)))?;
    if seen[0].owner() == RouteOwner::ThisCluster {
        return Context::skip("the provider counts every route of the table as the cluster's that asks");
    }
    Ok((target, c.lead_as(LeadRequest { cluster: Some(other), ..c.lead_request() }).await?))
}

/// The route is as its cluster made it.
async fn untouched(c: &Context, rule: &'static str, target: &Machine) -> Checked {
    let own = c.own_route(rule, cidr(c, 0)).await?;
    check(rule, leads_to(&own, target), format!("a route of others was changed: {own:?}"))
}

async fn listed(c: &Context) -> Checked {
    made(c).await.map(drop)
}

async fn elsewhere(c: &Context) -> Checked {
    let (target, lead) = made(c).await?;
    let outcome = table::creation(c, &lead, route(cidr(c, 0), &c.suite.machines[1])).await?;
    table::is_item_error("RT-14", outcome.as_ref(), Code::FailedPrecondition, "NOT_OWNED")?;
    untouched(c, "RT-14", &target).await
}

async fn same(c: &Context) -> Checked {
    let (target, lead) = made(c).await?;
    create(c, &lead, "RT-15", route(cidr(c, 0), &target)).await?;
    untouched(c, "RT-15", &target).await
}

async fn delete(c: &Context) -> Checked {
    let (target, lead) = made(c).await?;
    let theirs = Route { owner: RouteOwner::Other.into(), ..route(cidr(c, 0), &target) };
    let listed = c.routes_for(cidr(c, 0)).await?.into_iter().next().unwrap_or(theirs);
    let outcome = removal(c, &lead, listed).await?;
    table::is_item_error("RT-4", outcome.as_ref(), Code::FailedPrecondition, "NOT_OWNED")?;
    untouched(c, "RT-4", &target).await
}
