//! The life of a load balancer: made, repeated, updated, removed.
use std::net::IpAddr;

use ccm_proto::v1::{
    Capability, EnsureLoadBalancerDeletedRequest, GetLoadBalancerNameRequest, LoadBalancerReady, LoadBalancerStatus, Service,
    ensure_load_balancer_response,
};
use futures::future::join_all;
use tonic::Code;

use crate::case::{Case, Checked, Need, broken, check};
use crate::context::{Context, failed};
use crate::rpc::Rpc as _;
use service::{ensure_request, inline, nodes, service, update_request};

pub mod faults;
pub mod node_sets;
pub mod ownership;
pub mod plans;
pub mod service;

/// What every case about load balancers needs.
pub const BALANCERS: &[Need] = &[Need::Capability(Capability::LoadBalancers), Need::Mutations];

/// The cases.
pub const CASES: &[Case] = &[
    Case::new(
        "load-balancers/life",
        "a load balancer is made, found and removed",
        &["LB-2", "LB-18", "LB-20", "LB-52", "LB-53"],
        BALANCERS,
        |c| Box::pin(life(c)),
    ),
    Case::new(
        "load-balancers/ready",
        "`ready` holds what the core can use: addresses, annotations of its prefixes, plain warnings",
        &["LB-5", "LB-45", "LB-47", "LB-48", "LB-49"],
        BALANCERS,
        |c| Box::pin(ready(c)),
    ),
    Case::new("load-balancers/repeat", "Ensure repeated answers the same", &["LB-2", "LB-18"], BALANCERS, |c| {
        Box::pin(repeat(c))
    }),
    Case::new(
        "load-balancers/concurrent",
        "equal Ensure calls at once make one load balancer and answer the same",
        &["REP-1", "REP-2"],
        BALANCERS,
        |c| Box::pin(concurrent(c)),
    ),
    Case::new(
        "load-balancers/delete-nothing",
        "removing what does not exist is `done`, each time",
        &["REP-10", "LB-20"],
        BALANCERS,
        |c| Box::pin(delete_nothing(c)),
    ),
    Case::new("load-balancers/delete-at-once", "removals at once are all `done`", &["REP-10", "REP-2"], BALANCERS, |c| {
        Box::pin(delete_at_once(c))
    }),
    Case::new(
        "load-balancers/update-nothing",
        "Update of what does not exist is CONFLICT, and makes nothing",
        &["LB-4", "LB-26", "ERR-1"],
        BALANCERS,
        |c| Box::pin(update_nothing(c)),
    ),
    Case::new("load-balancers/update", "Update leaves addresses as they are", &["LB-3", "LB-19"], BALANCERS, |c| {
        Box::pin(update(c))
    }),
    Case::new("load-balancers/class", "a Service of any class is served", &["LB-1"], BALANCERS, |c| Box::pin(class(c))),
    Case::new("load-balancers/name", "the name stays while the load balancer exists", &["LB-12", "LB-54"], BALANCERS, |c| {
        Box::pin(name(c))
    }),
    Case::new("load-balancers/incomplete", "a call without service, UID or cluster is refused", &["LB-43"], BALANCERS, |c| {
        Box::pin(incomplete(c))
    }),
    Case::new(
        "load-balancers/user-configuration",
        "an annotation that cannot be used is named in USER_CONFIGURATION",
        &["LB-13", "LB-28", "ERR-1"],
        &[Need::Capability(Capability::LoadBalancers), Need::Mutations, Need::InvalidAnnotation],
        |c| Box::pin(user_configuration(c)),
    ),
];

async fn life(c: &Context) -> Checked {
    let lead = c.lead().await?;
    let service = service(c, "life");
    c.gone("LB-53", &c.suite.cluster, &service).await?;
    let ready = c.ensure(&lead, &service).await?;
    let found = c.found("LB-52", &service).await?;
    check("LB-2", Some(&found) == ready.status.as_ref(), format!("GetLoadBalancer says {found:?}, Ensure said {ready:?}"))?;
    c.delete(&lead, &service).await?;
    c.gone("LB-20", &c.suite.cluster, &service).await
}

async fn ready(c: &Context) -> Checked {
    let lead = c.lead().await?;
    let LoadBalancerReady { status, warnings, annotations } = c.ensure(&lead, &service(c, "ready")).await?;
    check("LB-5", status.as_ref().is_some_and(|status| !status.ingress.is_empty()), "`ready` has no address")?;
    usable(&status.unwrap_or_default())?;
    let prefixes = &c.suite.info.service_annotation_prefixes;
    for (key, value) in &annotations {
        let ours = prefixes.iter().any(|prefix| key.starts_with(prefix)) && !key.starts_with("ccm-core.dev/");
        check("LB-48", ours && value.len() <= 16 << 10, format!("the annotation {key} is none that the core writes"))?;
    }
    let plain = |word: &str| (1..=128).contains(&word.len()) && word.chars().all(|c| c.is_ascii_alphanumeric());
    let fit = warnings.len() <= 10 && warnings.iter().all(|warning| plain(&warning.reason));
    check("LB-49", fit, format!("the warnings are more than 10, or a reason is no plain word: {warnings:?}"))
}

fn usable(status: &LoadBalancerStatus) -> Checked {
    for ingress in &status.ingress {
        let ip = ingress.ip.as_deref();
        let named = ingress.hostname.as_deref().is_some_and(|name| !name.is_empty());
        check("LB-45", ip.is_some() || named, format!("an entry has neither IP address nor host name: {ingress:?}"))?;
        check("LB-47", ip.is_none_or(|ip| ip.parse::<IpAddr>().is_ok()), format!("no IP address: {ip:?}"))?;
        let port = ingress.ports.iter().find(|port| !(1..=65535).contains(&port.port));
        check("LB-47", port.is_none(), format!("no port: {port:?}"))?;
    }
    Ok(())
}

async fn repeat(c: &Context) -> Checked {
    let lead = c.lead().await?;
    let service = service(c, "repeat");
    let first = c.ensure(&lead, &service).await?;
    for _ in 0..3 {
        let again = c.ensure(&lead, &service).await?;
        check("LB-2", again == first, format!("a repeat answered {again:?}, and the first Ensure {first:?}"))?;
    }
    only_one(c, "LB-2", &service).await
}

/// Where the provider lists: there is exactly one load balancer of the Service.
async fn only_one(c: &Context, rule: &'static str, service: &Service) -> Checked {
    if !c.suite.serves(Capability::ListLoadBalancers) {
        return Ok(());
    }
    let listed = c.list(&c.suite.cluster).await?;
    let own: Vec<_> = listed.iter().filter(|one| one.service_uid.as_ref() == Some(&service.uid)).collect();
    check(rule, own.len() == 1, format!("there are {} load balancers of the Service: {own:?}", own.len()))
}

async fn concurrent(c: &Context) -> Checked {
    let lead = c.lead().await?;
    let service = service(c, "concurrent");
    c.may_make(&c.suite.cluster, &service)?;
    let request = ensure_request(&lead, &service, inline(nodes(c, usize::MAX)));
    let answers = join_all((0..5).map(|_| c.send(request.clone()))).await;
    let mut ready = Vec::new();
    for answer in answers {
        match answer.map_err(|status| failed("REP-2", "EnsureLoadBalancer", &status))?.outcome {
            Some(ensure_load_balancer_response::Outcome::Ready(one)) => ready.push(one),
            Some(ensure_load_balancer_response::Outcome::InProgress(_)) => {}
            other => return Err(broken("REP-2", format!("expected `ready` or `in_progress`, got {other:?}"))),
        }
    }
    ready.push(c.ensure(&lead, &service).await?);
    let same = ready.iter().all(|one| *one == ready[0]);
    check("REP-2", same, format!("equal calls answered differently: {ready:?}"))?;
    only_one(c, "REP-1", &service).await
}

async fn delete_nothing(c: &Context) -> Checked {
    let lead = c.lead().await?;
    let service = service(c, "delete-nothing");
    for _ in 0..2 {
        let request = EnsureLoadBalancerDeletedRequest {
            cluster: lead.cluster(),
            leadership: lead.proof(),
            service: Some(service.clone()),
        };
        c.ok("REP-10", request).await?;
    }
    c.delete(&lead, &service).await
}

async fn delete_at_once(c: &Context) -> Checked {
    let lead = c.lead().await?;
    let service = service(c, "delete-at-once");
    c.ensure(&lead, &service).await?;
    let deleted = join_all((0..5).map(|_| c.delete(&lead, &service))).await;
    deleted.into_iter().collect::<Checked>()?;
    c.gone("LB-20", &c.suite.cluster, &service).await
}

async fn update_nothing(c: &Context) -> Checked {
    let lead = c.lead().await?;
    let service = service(c, "update-nothing");
    c.may_make(&c.suite.cluster, &service)?;
    let request = update_request(&lead, &service, inline(nodes(c, usize::MAX)));
    c.refused("LB-4", request, Code::Aborted, "CONFLICT").await?;
    c.gone("LB-4", &c.suite.cluster, &service).await
}

async fn update(c: &Context) -> Checked {
    let lead = c.lead().await?;
    let service = service(c, "update");
    let before = c.ensure(&lead, &service).await?.status;
    c.update(&lead, &service, inline(nodes(c, 1))).await?;
    let after = c.found("LB-3", &service).await?;
    check("LB-3", Some(&after) == before.as_ref(), format!("Update changed the addresses from {before:?} to {after:?}"))
}

async fn class(c: &Context) -> Checked {
    let lead = c.lead().await?;
    let service = Service { load_balancer_class: Some("conformance.example.com/any".into()), ..service(c, "class") };
    c.may_make(&c.suite.cluster, &service)?;
    let answer = c.send(ensure_request(&lead, &service, inline(nodes(c, usize::MAX)))).await;
    answer.map(drop).map_err(|status| failed("LB-1", ccm_proto::v1::EnsureLoadBalancerRequest::PATH, &status))
}

async fn name(c: &Context) -> Checked {
    let lead = c.lead().await?;
    let service = service(c, "name");
    let ask = || GetLoadBalancerNameRequest { cluster: Some(c.suite.cluster.clone()), service: Some(service.clone()) };
    let before = c.ok("LB-54", ask()).await?.name;
    check("LB-54", !before.is_empty(), "the name is empty")?;
    c.ensure(&lead, &service).await?;
    let after = c.ok("LB-54", ask()).await?.name;
    check("LB-12", before == after, format!("the name was {before:?}, and is {after:?} now that it exists"))?;
    if c.suite.serves(Capability::ListLoadBalancers) {
        let listed = c.list(&c.suite.cluster).await?;
        let own = listed.iter().any(|one| one.name == after && one.service_uid.as_ref() == Some(&service.uid));
        check("LB-12", own, format!("the list does not have it under the name {after:?}: {listed:?}"))?;
    }
    Ok(())
}

async fn incomplete(c: &Context) -> Checked {
    let lead = c.lead().await?;
    let whole = ensure_request(&lead, &service(c, "incomplete"), inline(nodes(c, usize::MAX)));
    let mut no_service = whole.clone();
    no_service.service = None;
    let mut no_uid = whole.clone();
    no_uid.service = Some(Service { uid: String::new(), ..service(c, "incomplete") });
    let mut no_cluster = whole;
    no_cluster.cluster = None;
    for request in [no_service, no_uid, no_cluster] {
        c.refused("LB-43", request, Code::InvalidArgument, "").await?;
    }
    Ok(())
}

async fn user_configuration(c: &Context) -> Checked {
    let lead = c.lead().await?;
    let mut service = service(c, "user-configuration");
    let Some(invalid) = c.suite.config.invalid_annotation.clone() else { return Context::skip("no invalidAnnotation") };
    service.annotations.insert(invalid.key.clone(), invalid.value);
    let request = ensure_request(&lead, &service, inline(nodes(c, usize::MAX)));
    let status = c.ensure_refused("LB-13", request, Code::InvalidArgument, "USER_CONFIGURATION").await?;
    check("LB-13", status.message().contains(&invalid.key), format!("the message does not name {}: {status}", invalid.key))
}
