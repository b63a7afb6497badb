//! Who may change things. The changes here are removals of what does not exist.
use ccm_proto::v1::{
    Capability, ClusterRef, DeleteRouteItem, DeleteRoutesRequest, EnsureLoadBalancerDeletedRequest, LeadRequest, Leadership,
    Route,
};
use tonic::{Code, Status};

use super::super::load_balancers::service::service;
use super::NOTICED;
use crate::case::{Case, Checked, Need, check};
use crate::context::{Context, eventually, failed, is_refusal};
use crate::rpc::Rpc;

const LEAD: &[Need] = &[Need::Capability(Capability::Lead), Need::Mutations];

/// The cases.
pub const CASES: &[Case] = &[
    Case::new(
        "leadership/unled",
        "nothing is changed while no stream is live, and without proof of leadership",
        &["LEAD-10", "ERR-1"],
        LEAD,
        |c| Box::pin(unled(c)),
    ),
    Case::new(
        "leadership/fenced",
        "nothing is changed under an older epoch, a newer one, or for another cluster",
        &["LEAD-10", "ERR-1"],
        LEAD,
        |c| Box::pin(fenced(c)),
    ),
    Case::new(
        "leadership/ended",
        "nothing is changed after the stream was closed, or its valid_for passed",
        &["LEAD-10", "ERR-1"],
        LEAD,
        |c| Box::pin(ended(c)),
    ),
    Case::new(
        "leadership/cut",
        "nothing is changed after the connection under the stream broke",
        &["LEAD-10", "LEAD-11"],
        LEAD,
        |c| Box::pin(cut(c)),
    ),
    Case::new(
        "leadership/request-first",
        "an incomplete request is INVALID_ARGUMENT, whether its caller leads or not",
        &["ERR-7", "LB-43", "RT-49"],
        LEAD,
        |c| Box::pin(request_first(c)),
    ),
];

/// Removes what does not exist, by the service that the provider has.
async fn change(c: &Context, cluster: Option<ClusterRef>, leadership: Option<Leadership>) -> Result<(), Status> {
    if c.suite.serves(Capability::LoadBalancers) {
        let service = Some(service(c, "conformance-none"));
        return c.send(EnsureLoadBalancerDeletedRequest { cluster, leadership, service }).await.map(drop);
    }
    let route =
        Route { destination_cidr: "192.0.2.0/24".into(), target_node_name: "conformance-none".into(), ..Route::default() };
    let items = vec![DeleteRouteItem { key: "1".into(), route: Some(route) }];
    c.send(DeleteRoutesRequest { cluster, leadership, items }).await.map(drop)
}

async fn fails(c: &Context, cluster: Option<ClusterRef>, leadership: Option<Leadership>, when: &str) -> Checked {
    match change(c, cluster, leadership).await {
        Err(status) => is_refusal("LEAD-10", status, Code::FailedPrecondition, "NOT_LEADING").map(drop),
        Ok(()) => check("LEAD-10", false, format!("a change was accepted {when}")),
    }
}

fn mutates(c: &Context) -> Checked {
    let any = [Capability::LoadBalancers, Capability::Routes].into_iter().any(|one| c.suite.serves(one));
    if any { Ok(()) } else { Context::skip("the provider serves neither LoadBalancers nor Routes") }
}

async fn unled(c: &Context) -> Checked {
    mutates(c)?;
    let own = || Some(c.suite.cluster.clone());
    let epoch = c.suite.next_epoch();
    fails(c, own(), Some(Leadership { epoch }), "while no stream was live").await?;
    let _lead = c.lead().await?;
    fails(c, own(), None, "without `leadership`").await
}

async fn fenced(c: &Context) -> Checked {
    mutates(c)?;
    let older = c.suite.next_epoch();
    let lead = c.lead().await?;
    let newer = c.suite.next_epoch();
    for (epoch, word) in [(older, "older"), (newer, "newer")] {
        fails(c, lead.cluster(), Some(Leadership { epoch }), &format!("under an epoch that is {word}")).await?;
    }
    let other = ClusterRef { uid: format!("{}-other", c.suite.cluster.uid), ..c.suite.cluster.clone() };
    fails(c, Some(other), lead.proof(), "for a cluster that the stream does not lead").await?;
    let changed = change(c, lead.cluster(), lead.proof()).await;
    changed.map_err(|status| failed("REP-10", EnsureLoadBalancerDeletedRequest::PATH, &status))
}

async fn ended(c: &Context) -> Checked {
    mutates(c)?;
    let lead = c.lead().await?;
    let (cluster, proof) = (lead.cluster(), lead.proof());
    drop(lead);
    eventually("LEAD-10", "a change is refused after Lead was closed", NOTICED, async || {
        Ok(change(c, cluster.clone(), proof).await.err())
    })
    .await?;
    let short = LeadRequest { valid_for: Some(prost_types::Duration { seconds: 1, nanos: 0 }), ..c.lead_request() };
    let mut lead = c.lead_as(short).await?;
    // The stream's end says that the time has passed.
    let _ = lead.answer().await;
    fails(c, lead.cluster(), lead.proof(), "after valid_for had passed").await
}

async fn cut(c: &Context) -> Checked {
    mutates(c)?;
    let (lead, proof, cluster) = {
        let other = c.suite.connect();
        let (lead, _) =
            c.try_lead(&other, c.lead_request()).await.map_err(|status| failed("LEAD-6", LeadRequest::PATH, &status))?;
        let (proof, cluster) = (lead.proof(), lead.cluster());
        (lead, proof, cluster)
    };
    drop(lead);
    eventually("LEAD-10", "a change is refused after the connection broke", NOTICED, async || {
        Ok(change(c, cluster.clone(), proof).await.err())
    })
    .await
    .map(drop)
}

async fn request_first(c: &Context) -> Checked {
    mutates(c)?;
    if c.suite.serves(Capability::LoadBalancers) {
        c.refused("ERR-7", EnsureLoadBalancerDeletedRequest::default(), Code::InvalidArgument, "").await?;
    }
    if c.suite.serves(Capability::Routes) {
        c.refused("ERR-7", DeleteRoutesRequest::default(), Code::InvalidArgument, "").await?;
    }
    Ok(())
}
