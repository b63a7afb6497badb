//! Routes of the suite's own cluster: made, replaced, listed, removed.
use std::net::IpAddr;
use std::time::{Duration, SystemTime};

use ccm_proto::v1::route_result::Outcome;
use ccm_proto::v1::{Capability, Leadership};
use ccm_proto::v1::{CreateRoutesRequest, DeleteRoutesRequest, ListRoutesRequest, Route, RouteOwner};
use futures::future::join_all;
use tonic::Code;

use crate::case::{Case, Checked, Need, broken, check};
use crate::config::Machine;
use crate::context::Context;
use table::{cidr, create, is_done, item, removal, route};

pub mod others;
pub mod table;

/// What the cases need that make routes.
const ROUTES: &[Need] = &[Need::Capability(Capability::Routes), Need::Mutations, Need::TestCidrs(2), Need::Machines(2)];

/// The cases.
pub const CASES: &[Case] = &[
    Case::new(
        "routes/list",
        "each route of the table has what the core needs",
        &["RT-53", "RT-56", "RT-57", "RT-58"],
        &[Need::Capability(Capability::Routes)],
        |c| Box::pin(list(c)),
    ),
    Case::new(
        "routes/life",
        "a route is made, listed as this cluster's, and removed",
        &["RT-7", "RT-10", "RT-19", "RT-26", "RT-28", "RT-30"],
        ROUTES,
        |c| Box::pin(life(c)),
    ),
    Case::new("routes/repeat", "a repeat leaves one route", &["RT-10", "RT-13"], ROUTES, |c| Box::pin(repeat(c))),
    Case::new("routes/concurrent", "equal calls at once leave one route", &["REP-1", "RT-13"], ROUTES, |c| {
        Box::pin(concurrent(c))
    }),
    Case::new("routes/replace", "another target replaces the cluster's own route", &["RT-11", "RT-10"], ROUTES, |c| {
        Box::pin(replace(c))
    }),
    Case::new("routes/host-bits", "destinations are compared without host bits", &["RT-6"], ROUTES, |c| Box::pin(host_bits(c))),
    Case::new("routes/delete-nothing", "removing a route that does not exist is `done`", &["RT-30", "REP-10"], ROUTES, |c| {
        Box::pin(delete_nothing(c))
    }),
    Case::new(
        "routes/delete-changed",
        "a route that has another target than the item says is a CONFLICT, and stays",
        &["RT-2", "RT-3", "RT-35"],
        ROUTES,
        |c| Box::pin(delete_changed(c)),
    ),
    Case::new("routes/by-id", "the target is looked up by its provider id alone", &["RT-16"], ROUTES, |c| Box::pin(by_id(c))),
    Case::new(
        "routes/unknown-target",
        "a machine that the cloud does not know is target_not_found, and no route is made",
        &["RT-17", "RT-32"],
        ROUTES,
        |c| Box::pin(unknown_target(c)),
    ),
    Case::new("routes/mixed", "an item that fails does not fail the others", &["RT-5", "RT-50", "RT-51"], ROUTES, |c| {
        Box::pin(mixed(c))
    }),
    Case::new("routes/long-batch", "a batch over the limit is refused", &["RT-48", "LIM-13"], ROUTES, |c| {
        Box::pin(long_batch(c))
    }),
    Case::new("routes/incomplete", "an incomplete batch is refused as a whole", &["RT-49"], ROUTES, |c| Box::pin(incomplete(c))),
    Case::new("routes/unled", "routes are changed only for the live leader", &["RT-46", "LEAD-10"], ROUTES, |c| {
        Box::pin(unled(c))
    }),
];

async fn list(c: &Context) -> Checked {
    let parts = c.all("RT-53", ListRoutesRequest { cluster: Some(c.suite.cluster.clone()) }).await?;
    for part in &parts {
        let time = part.observed_at.and_then(|stamp| SystemTime::try_from(stamp).ok());
        let ahead = time.and_then(|time| time.duration_since(SystemTime::now()).ok()).unwrap_or_default();
        check("RT-58", ahead < Duration::from_secs(300), format!("`observed_at` is {ahead:?} ahead"))?;
    }
    for route in parts.iter().flat_map(|part| &part.routes) {
        check("RT-57", route.owner() != RouteOwner::Unspecified, format!("`owner` is not set: {route:?}"))?;
        check("RT-56", is_cidr(&route.destination_cidr), format!("the destination is no CIDR: {route:?}"))?;
    }
    Ok(())
}

fn is_cidr(text: &str) -> bool {
    let parts = text.split_once('/').and_then(|(ip, bits)| Some((ip.parse::<IpAddr>().ok()?, bits.parse::<u8>().ok()?)));
    parts.is_some_and(|(ip, bits)| bits <= if ip.is_ipv4() { 32 } else { 128 })
}

fn machines(c: &Context) -> (Machine, Machine) {
    (c.suite.machines[0].clone(), c.suite.machines[1].clone())
}

async fn life(c: &Context) -> Checked {
    let lead = c.lead().await?;
    let (target, _) = machines(c);
    create(c, &lead, "RT-28", route(cidr(c, 0), &target)).await?;
    let own = c.own_route("RT-10", cidr(c, 0)).await?;
    check("RT-10", leads_to(&own, &target), format!("the route does not lead to {target:?}: {own:?}"))?;
    is_done("RT-30", removal(c, &lead, own).await?.as_ref())?;
    let left = c.routes_for(cidr(c, 0)).await?;
    check("RT-26", left.is_empty(), format!("a route that was removed is listed: {left:?}"))
}

/// Whether the route leads to the machine: by id, and by name only where there is no id.
pub fn leads_to(route: &Route, machine: &Machine) -> bool {
    match &route.target_provider_id {
        Some(id) => *id == machine.provider_id,
        None => route.target_node_name == machine.name,
    }
}

async fn repeat(c: &Context) -> Checked {
    let lead = c.lead().await?;
    for _ in 0..3 {
        create(c, &lead, "RT-10", route(cidr(c, 0), &machines(c).0)).await?;
    }
    c.own_route("RT-13", cidr(c, 0)).await.map(drop)
}

async fn concurrent(c: &Context) -> Checked {
    let lead = c.lead().await?;
    let wanted = route(cidr(c, 0), &machines(c).0);
    let made = join_all((0..5).map(|_| create(c, &lead, "REP-1", wanted.clone()))).await;
    made.into_iter().collect::<Checked>()?;
    c.own_route("RT-13", cidr(c, 0)).await.map(drop)
}

async fn replace(c: &Context) -> Checked {
    let lead = c.lead().await?;
    let (one, other) = machines(c);
    create(c, &lead, "RT-10", route(cidr(c, 0), &one)).await?;
    create(c, &lead, "RT-11", route(cidr(c, 0), &other)).await?;
    let own = c.own_route("RT-11", cidr(c, 0)).await?;
    check("RT-11", leads_to(&own, &other), format!("the route does not lead to {other:?}: {own:?}"))
}

async fn host_bits(c: &Context) -> Checked {
    let lead = c.lead().await?;
    let target = machines(c).0;
    create(c, &lead, "RT-6", route(cidr(c, 0), &target)).await?;
    let with_bits = cidr(c, 0).replacen(".0/", ".7/", 1);
    if with_bits == cidr(c, 0) {
        return Context::skip("the first of testCidrs does not end in .0");
    }
    create(c, &lead, "RT-6", route(&with_bits, &target)).await?;
    let all = [c.routes_for(cidr(c, 0)).await?, c.routes_for(&with_bits).await?].concat();
    check("RT-6", all.len() == 1, format!("one destination has {} routes: {all:?}", all.len()))
}

async fn delete_nothing(c: &Context) -> Checked {
    let lead = c.lead().await?;
    let gone = Route { owner: RouteOwner::ThisCluster.into(), ..route(cidr(c, 1), &machines(c).0) };
    is_done("RT-30", removal(c, &lead, gone).await?.as_ref())
}

async fn delete_changed(c: &Context) -> Checked {
    let lead = c.lead().await?;
    let (one, other) = machines(c);
    create(c, &lead, "RT-10", route(cidr(c, 0), &one)).await?;
    let listed = c.own_route("RT-10", cidr(c, 0)).await?;
    create(c, &lead, "RT-11", route(cidr(c, 0), &other)).await?;
    let outcome = removal(c, &lead, listed).await?;
    table::is_item_error("RT-2", outcome.as_ref(), Code::Aborted, "CONFLICT")?;
    let own = c.own_route("RT-3", cidr(c, 0)).await?;
    check("RT-3", leads_to(&own, &other), format!("the route is another: {own:?}"))
}

async fn by_id(c: &Context) -> Checked {
    let lead = c.lead().await?;
    let (one, other) = machines(c);
    let crossed = Route { target_node_name: other.name.clone(), ..route(cidr(c, 0), &one) };
    create(c, &lead, "RT-16", crossed).await?;
    let own = c.own_route("RT-16", cidr(c, 0)).await?;
    check("RT-16", leads_to(&own, &one), format!("the item has the id of {one:?}; the route: {own:?}"))
}

async fn unknown_target(c: &Context) -> Checked {
    let lead = c.lead().await?;
    let nobody = Machine { name: "conformance-none".into(), provider_id: super::instances::no_id(&c.suite) };
    let outcome = table::creation(c, &lead, route(cidr(c, 0), &nobody)).await?;
    let expected = matches!(outcome, Some(Outcome::TargetNotFound(_)));
    check("RT-17", expected, format!("expected `target_not_found`, got {outcome:?}"))?;
    let left = c.routes_for(cidr(c, 0)).await?;
    check("RT-17", left.is_empty(), format!("a route to no machine was made: {left:?}"))
}

async fn mixed(c: &Context) -> Checked {
    let lead = c.lead().await?;
    let nobody = Machine { name: "conformance-none".into(), provider_id: super::instances::no_id(&c.suite) };
    c.may_route(cidr(c, 0))?;
    c.may_route(cidr(c, 1))?;
    let items = vec![item("good", route(cidr(c, 0), &machines(c).0)), item("bad", route(cidr(c, 1), &nobody))];
    let request = CreateRoutesRequest { cluster: lead.cluster(), leadership: lead.proof(), items };
    let results = c.ok("RT-5", request).await?.results;
    let of = |key: &str| results.iter().filter(|one| one.key == key).collect::<Vec<_>>();
    for key in ["good", "bad"] {
        check("RT-50", of(key).len() == 1, format!("the item {key} has {} results", of(key).len()))?;
    }
    check("RT-51", results.len() == 2, format!("two items have {} results", results.len()))?;
    is_done("RT-5", of("good").first().and_then(|one| one.outcome.as_ref()))
}

async fn long_batch(c: &Context) -> Checked {
    let lead = c.lead().await?;
    let target = machines(c).0;
    let items = (0..=c.suite.max_batch()).map(|number| item(&number.to_string(), route(cidr(c, 0), &target))).collect();
    c.may_route(cidr(c, 0))?;
    let request = CreateRoutesRequest { cluster: lead.cluster(), leadership: lead.proof(), items };
    c.refused("RT-48", request, Code::InvalidArgument, "BATCH_TOO_LARGE").await.map(drop)
}

async fn incomplete(c: &Context) -> Checked {
    let lead = c.lead().await?;
    let good = || route(cidr(c, 0), &machines(c).0);
    let no_target = Route { target_node_name: String::new(), ..good() };
    let no_cidr = Route { destination_cidr: "conformance".into(), ..good() };
    let mut no_route = item("1", good());
    no_route.route = None;
    let batches = [
        vec![],
        vec![item("", good())],
        vec![item("1", good()), item("1", good())],
        vec![item("1", no_target)],
        vec![item("1", no_cidr)],
        vec![no_route],
    ];
    c.may_route(cidr(c, 0))?;
    for items in batches {
        let request = CreateRoutesRequest { cluster: lead.cluster(), leadership: lead.proof(), items };
        c.refused("RT-49", request, Code::InvalidArgument, "").await?;
    }
    let request = DeleteRoutesRequest { cluster: lead.cluster(), leadership: lead.proof(), items: vec![] };
    c.refused("RT-49", request, Code::InvalidArgument, "").await.map(drop)
}

async fn unled(c: &Context) -> Checked {
    let lead = c.lead().await?;
    let items = vec![item("1", route(cidr(c, 0), &machines(c).0))];
    let leadership = Some(Leadership { epoch: c.suite.next_epoch() });
    c.may_route(cidr(c, 0))?;
    let request = CreateRoutesRequest { cluster: lead.cluster(), leadership, items };
    c.refused("RT-46", request, Code::FailedPrecondition, "NOT_LEADING").await?;
    let left = c.routes_for(cidr(c, 0)).await?;
    left.first().map_or(Ok(()), |one| Err(broken("RT-46", format!("a route was made all the same: {one:?}"))))
}
