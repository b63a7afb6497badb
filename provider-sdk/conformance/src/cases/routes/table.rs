//! Calls about routes, as short as a case wants them.
use std::time::Duration;

use ccm_proto::v1::route_result::Outcome;
use ccm_proto::v1::{
    ClusterRef, CreateRouteItem, CreateRoutesRequest, DeleteRouteItem, DeleteRoutesRequest, ListRoutesRequest, NodeAddress,
    NodeAddressType, Route, RouteOwner,
};
use tonic::Code;

use crate::case::{Checked, broken, check};
use crate::config::Machine;
use crate::context::{Context, eventually};
use crate::lead::Lead;

/// How long the cloud may be at work on one route.
const SETTLED: Duration = Duration::from_secs(60);

/// A test CIDR.
pub fn cidr(c: &Context, number: usize) -> &str {
    &c.suite.config.test_cidrs[number]
}

/// A route to the machine.
pub fn route(destination: &str, target: &Machine) -> Route {
    Route {
        destination_cidr: destination.to_owned(),
        target_node_name: target.name.clone(),
        target_provider_id: Some(target.provider_id.clone()),
        target_addresses: vec![NodeAddress { r#type: NodeAddressType::InternalIp.into(), address: "10.0.0.1".into() }],
        ..Route::default()
    }
}

/// An item of a batch.
pub fn item(key: &str, route: Route) -> CreateRouteItem {
    CreateRouteItem { key: key.to_owned(), name_hint: "provider-conformance".into(), route: Some(route) }
}

/// Makes one route; what its result says when the cloud is no longer at work.
pub async fn creation(c: &Context, lead: &Lead, route: Route) -> Checked<Option<Outcome>> {
    c.may_route(&route.destination_cidr)?;
    eventually("RT-31", "the route is made", SETTLED, async || {
        let items = vec![item("1", route.clone())];
        let request = CreateRoutesRequest { cluster: lead.cluster(), leadership: lead.proof(), items };
        let mut results = c.ok("RT-28", request).await?.results;
        check("RT-50", results.len() == 1, format!("one item has {} results", results.len()))?;
        let outcome = results.remove(0).outcome;
        Ok((!matches!(outcome, Some(Outcome::InProgress(_)))).then_some(outcome))
    })
    .await
}

/// Makes one route, which must succeed.
pub async fn create(c: &Context, lead: &Lead, rule: &'static str, route: Route) -> Checked {
    is_done(rule, creation(c, lead, route).await?.as_ref())
}

/// Removes one route; what its result says when the cloud is no longer at work.
pub async fn removal(c: &Context, lead: &Lead, route: Route) -> Checked<Option<Outcome>> {
    eventually("RT-31", "the route is removed", SETTLED, async || {
        let items = vec![DeleteRouteItem { key: "1".into(), route: Some(route.clone()) }];
        let request = DeleteRoutesRequest { cluster: lead.cluster(), leadership: lead.proof(), items };
        let mut results = c.ok("RT-30", request).await?.results;
        check("RT-50", results.len() == 1, format!("one item has {} results", results.len()))?;
        let outcome = results.remove(0).outcome;
        Ok((!matches!(outcome, Some(Outcome::InProgress(_)))).then_some(outcome))
    })
    .await
}

/// Whether the item succeeded.
pub fn is_done(rule: &'static str, outcome: Option<&Outcome>) -> Checked {
    check(rule, matches!(outcome, Some(Outcome::Done(_))), format!("expected `done`, got {outcome:?}"))
}

/// Whether the item failed so.
pub fn is_item_error(rule: &'static str, outcome: Option<&Outcome>, code: Code, reason: &str) -> Checked {
    let Some(Outcome::Error(error)) = outcome else {
        return Err(broken(rule, format!("expected {code:?} {reason}, got {outcome:?}")));
    };
    let fits = error.code == i32::from(code) && error.reason().as_str_name().ends_with(reason);
    check(rule, fits, format!("expected {code:?} {reason}, got {error:?}"))
}

impl Context {
    /// The routes of the table for a destination, as the suite's cluster sees them.
    pub async fn routes_for(&self, destination: &str) -> Checked<Vec<Route>> {
        self.routes_seen_by(&self.suite.cluster, destination).await
    }

    /// The same, as another cluster sees them.
    pub async fn routes_seen_by(&self, cluster: &ClusterRef, destination: &str) -> Checked<Vec<Route>> {
        let parts = self.all("RT-53", ListRoutesRequest { cluster: Some(cluster.clone()) }).await?;
        Ok(parts.into_iter().flat_map(|part| part.routes).filter(|route| route.destination_cidr == destination).collect())
    }

    /// The one route for a destination, which must be the suite's own.
    pub async fn own_route(&self, rule: &'static str, destination: &str) -> Checked<Route> {
        let mut routes = self.routes_for(destination).await?;
        check(rule, routes.len() == 1, format!("there are {} routes for {destination}: {routes:?}", routes.len()))?;
        let route = routes.remove(0);
        check("RT-7", route.owner() == RouteOwner::ThisCluster, format!("its owner is not this cluster: {route:?}"))?;
        Ok(route)
    }
}
