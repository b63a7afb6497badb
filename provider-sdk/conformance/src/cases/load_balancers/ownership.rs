//! Whose a load balancer is: what another cluster or another Service made is never taken, changed or removed.
use ccm_proto::v1::{Capability, ClusterRef, LeadRequest, Service, ensure_load_balancer_response};
use tonic::Code;
use uuid::Uuid;

use super::BALANCERS;
use super::service::{ensure_request, inline, nodes, service, update_request};
use crate::case::{Case, Checked, Need, check};
use crate::context::{Context, is_refusal};
use crate::lead::Lead;

/// The cases.
pub const CASES: &[Case] = &[
    Case::new(
        "load-balancers/two-clusters",
        "another cluster with the same Service neither takes nor changes the load balancer",
        &["LB-9", "LB-10", "LB-30"],
        BALANCERS,
        |c| Box::pin(two_clusters(c)),
    ),
    Case::new(
        "load-balancers/foreign-delete",
        "the removal for another cluster is `done`, and leaves the load balancer alone",
        &["LB-9", "LB-10", "LB-20"],
        BALANCERS,
        |c| Box::pin(foreign_delete(c)),
    ),
    Case::new(
        "load-balancers/made-anew",
        "a Service that is made anew with its old name has a load balancer of its own",
        &["LB-9"],
        BALANCERS,
        |c| Box::pin(made_anew(c)),
    ),
    Case::new(
        "load-balancers/list",
        "the list has what the cluster owns, each with its Service, and nothing of another cluster's",
        &["LB-7", "LB-17", "LB-59"],
        &[Need::Capability(Capability::LoadBalancers), Need::Capability(Capability::ListLoadBalancers), Need::Mutations],
        |c| Box::pin(list(c)),
    ),
    Case::new(
        "load-balancers/list-for-people",
        "the list names each Service",
        &["LB-8"],
        &[Need::Capability(Capability::LoadBalancers), Need::Capability(Capability::ListLoadBalancers), Need::Mutations],
        |c| Box::pin(list_for_people(c)),
    ),
];

fn other_cluster() -> ClusterRef {
    ClusterRef { name: "provider-conformance".into(), uid: Uuid::new_v4().to_string() }
}

async fn lead_other(c: &Context, cluster: &ClusterRef) -> Checked<Lead> {
    c.lead_as(LeadRequest { cluster: Some(cluster.clone()), ..c.lead_request() }).await
}

/// A load balancer of the suite's cluster, and its status; the leadership ends.
async fn made(c: &Context, name: &str) -> Checked<(Service, ccm_proto::v1::LoadBalancerStatus)> {
    let lead = c.lead().await?;
    let service = service(c, name);
    let status = c.ensure(&lead, &service).await?.status.unwrap_or_default();
    Ok((service, status))
}

async fn two_clusters(c: &Context) -> Checked {
    let (service, status) = made(c, "two-clusters").await?;
    let other = other_cluster();
    let lead = lead_other(c, &other).await?;
    let update = update_request(&lead, &service, inline(nodes(c, 0)));
    c.gone("LB-10", &other, &service).await?;
    c.refused("LB-10", update, Code::Aborted, "CONFLICT").await?;
    c.may_make(&other, &service)?;
    match c.send(ensure_request(&lead, &service, inline(nodes(c, usize::MAX)))).await {
        Err(refusal) => drop(is_refusal("LB-10", refusal, Code::FailedPrecondition, "NOT_OWNED")?),
        Ok(answer) => {
            let Some(ensure_load_balancer_response::Outcome::Ready(own)) = answer.outcome else { return Ok(()) };
            let shared = own.status.as_ref() == Some(&status);
            check("LB-10", !shared, format!("both clusters have the same load balancer: {status:?}"))?;
        }
    }
    same(c, &service, &status).await
}

async fn foreign_delete(c: &Context) -> Checked {
    let (service, status) = made(c, "foreign-delete").await?;
    let lead = lead_other(c, &other_cluster()).await?;
    c.delete(&lead, &service).await?;
    same(c, &service, &status).await
}

async fn same(c: &Context, service: &Service, status: &ccm_proto::v1::LoadBalancerStatus) -> Checked {
    let now = c.found("LB-9", service).await?;
    check("LB-9", now == *status, format!("the first cluster's load balancer was {status:?}, and is {now:?}"))
}

async fn made_anew(c: &Context) -> Checked {
    let (old, status) = made(c, "made-anew").await?;
    let new = Service { uid: Uuid::new_v4().to_string(), ..old.clone() };
    let lead = c.lead().await?;
    c.gone("LB-9", &c.suite.cluster, &new).await?;
    c.delete(&lead, &new).await?;
    same(c, &old, &status).await
}

async fn list(c: &Context) -> Checked {
    let (service, status) = made(c, "list").await?;
    let listed = c.list(&c.suite.cluster).await?;
    let own = listed.iter().find(|one| one.service_uid.as_ref() == Some(&service.uid));
    check("LB-17", own.is_some(), format!("the list does not have the load balancer of {}: {listed:?}", service.uid))?;
    check("LB-17", own.is_none_or(|one| !one.name.is_empty()), "an item has no name")?;
    check(
        "LB-17",
        own.is_none_or(|one| one.status.as_ref() == Some(&status)),
        format!("the list says {own:?}, Ensure {status:?}"),
    )?;
    let others = c.list(&other_cluster()).await?;
    check("LB-7", others.is_empty(), format!("a cluster that made nothing owns {others:?}"))
}

async fn list_for_people(c: &Context) -> Checked {
    let (service, _) = made(c, "list-for-people").await?;
    let listed = c.list(&c.suite.cluster).await?;
    let names = listed.iter().find(|one| one.service_uid.as_ref() == Some(&service.uid));
    let named = names.is_some_and(|one| {
        one.service_name.as_ref() == Some(&service.name) && one.service_namespace.as_ref() == Some(&service.namespace)
    });
    check("LB-8", named, format!("namespace and name of the Service are not those of the list: {names:?}"))
}
