//! Removes what the suite made: after each case what the case left, and with `--cleanup` what a journal lists.
use std::time::Duration;

use ccm_proto::v1::{
    ClusterRef, DeleteRouteItem, DeleteRoutesRequest, EnsureLoadBalancerDeletedRequest, Leadership, ListRoutesRequest, Route,
    RouteOwner, Service, ensure_load_balancer_deleted_response::Outcome, route_result,
};
use tokio::time::{Instant, sleep};
use tonic::transport::Channel;

use crate::connection::{collected, unary};
use crate::context::{MUTATING, READING};
use crate::exchange::describe;

/// How long the cloud may be at work until a thing is gone.
const PATIENCE: Duration = Duration::from_secs(180);

/// How long between two tries.
const PAUSE: Duration = Duration::from_millis(200);

/// Removes a load balancer; why it is still there otherwise.
pub async fn load_balancer(channel: &Channel, epoch: u64, cluster: &ClusterRef, service: &Service) -> Result<(), String> {
    let request = EnsureLoadBalancerDeletedRequest {
        cluster: Some(cluster.clone()),
        leadership: Some(Leadership { epoch }),
        service: Some(service.clone()),
    };
    patiently(async || match unary(channel, request.clone(), MUTATING).await {
        Ok(answer) if matches!(answer.outcome, Some(Outcome::Done(_))) => Ok(()),
        Ok(answer) => Err(format!("{answer:?}")),
        Err(status) => Err(describe(&status)),
    })
    .await
}

/// Removes this cluster's routes for these destinations; why one is still there otherwise.
pub async fn routes(channel: &Channel, epoch: u64, cluster: &ClusterRef, destinations: &[String]) -> Result<(), String> {
    patiently(async || {
        let listed = own_routes(channel, cluster, destinations).await?;
        if listed.is_empty() {
            return Ok(());
        }
        let items = listed.into_iter().enumerate().map(|(at, route)| DeleteRouteItem { key: at.to_string(), route: Some(route) });
        let leadership = Some(Leadership { epoch });
        let request = DeleteRoutesRequest { cluster: Some(cluster.clone()), leadership, items: items.collect() };
        let answer = unary(channel, request, MUTATING).await.map_err(|status| describe(&status))?;
        let left: Vec<_> =
            answer.results.iter().filter(|one| !matches!(one.outcome, Some(route_result::Outcome::Done(_)))).collect();
        if left.is_empty() { Ok(()) } else { Err(format!("{left:?}")) }
    })
    .await
}

async fn own_routes(channel: &Channel, cluster: &ClusterRef, destinations: &[String]) -> Result<Vec<Route>, String> {
    let request = ListRoutesRequest { cluster: Some(cluster.clone()) };
    let parts = collected(channel, request, READING).await.map_err(|status| describe(&status))?;
    let own = |route: &Route| route.owner() == RouteOwner::ThisCluster && destinations.contains(&route.destination_cidr);
    Ok(parts.into_iter().flat_map(|part| part.routes).filter(own).collect())
}

async fn patiently(mut attempt: impl AsyncFnMut() -> Result<(), String>) -> Result<(), String> {
    let start = Instant::now();
    loop {
        match attempt().await {
            Ok(()) => return Ok(()),
            Err(why) if start.elapsed() > PATIENCE => return Err(why),
            Err(_) => sleep(PAUSE).await,
        }
    }
}
