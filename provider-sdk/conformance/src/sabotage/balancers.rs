//! Sabotage of load balancers, node sets and plans.
use ccm_proto::v1::ensure_load_balancer_response::Outcome as Ensured;
use ccm_proto::v1::{
    EnsureLoadBalancerDeletedRequest, EnsureLoadBalancerRequest, GetLoadBalancerNameRequest, GetLoadBalancerRequest,
    ListLoadBalancersRequest, LoadBalancerNotFound, LoadBalancerPlan, LoadBalancerReady, LoadBalancerStatus, LoadBalancerUpdated,
    NodeSet, NodeSetRef, PlanLoadBalancerRequest, PlanLoadBalancerResponse, PutNodeSetRequest, PutNodeSetResponse,
    UpdateLoadBalancerRequest, UpdateLoadBalancerResponse, Warning, get_load_balancer_response, node_set_ref,
    plan_load_balancer_response, update_load_balancer_response,
};
use tonic::{Code, Status};
use tonic_types::{ErrorDetails, StatusExt as _};

use super::edits::{answer, forgive, instead, request, status};
use super::{Edits, Sabotage};

/// All of them.
pub fn all() -> Vec<Sabotage> {
    [answers(), ownership(), sets(), plans()].into_iter().flatten().collect()
}

fn ready(edit: fn(&mut LoadBalancerReady)) -> Edits {
    answer::<EnsureLoadBalancerRequest>(move |_, answer| {
        if let Some(Ensured::Ready(ready)) = &mut answer.outcome {
            edit(ready);
        }
    })
}

/// A refusal of the contract.
fn refusal(code: Code, reason: &str) -> Status {
    let details = ErrorDetails::with_error_info(reason, "ccm.provider.v1", [("a".to_owned(), "b".to_owned())]);
    Status::with_error_details(code, "sabotaged", details)
}

/// The status without its first address.
fn poorer(status: &mut Option<LoadBalancerStatus>) {
    status.iter_mut().for_each(|status| status.ingress.clear());
}

fn answers() -> Vec<Sabotage> {
    vec![
        Sabotage::new(
            "ready-without-address",
            &["LB-5", "LB-2", "LB-15", "LB-3", "LB-17", "LB-9"],
            ready(|ready| poorer(&mut ready.status)),
        ),
        Sabotage::new(
            "invalid-ip",
            &["LB-47", "LB-2", "LB-15", "LB-3", "LB-17", "LB-9"],
            ready(|ready| {
                let all = ready.status.iter_mut().flat_map(|status| &mut status.ingress);
                all.for_each(|one| one.ip = Some("not an address".into()));
            }),
        ),
        Sabotage::new(
            "foreign-annotation",
            &["LB-48", "LB-15"],
            ready(|ready| {
                ready.annotations.insert("other.example.com/key".into(), String::new());
            }),
        ),
        Sabotage::new(
            "odd-load-balancer-warning",
            &["LB-49"],
            ready(|ready| {
                ready.warnings.push(Warning { reason: "two words".into(), message: "m".into() });
            }),
        ),
        Sabotage::new("delete-of-nothing-fails", &["REP-10", "LB-20"], delete_twice()),
        Sabotage::new(
            "update-of-nothing-succeeds",
            &["LB-4", "LB-10"],
            forgive::<UpdateLoadBalancerRequest>(Code::Aborted, |_| {
                let outcome = Some(update_load_balancer_response::Outcome::Updated(LoadBalancerUpdated::default()));
                Some(UpdateLoadBalancerResponse { outcome })
            }),
        ),
        Sabotage::new(
            "class-refused",
            &["LB-1"],
            instead::<EnsureLoadBalancerRequest>(|asked| {
                let class = asked.service.as_ref().is_some_and(|service| service.load_balancer_class.is_some());
                class.then(|| Err(refusal(Code::InvalidArgument, "USER_CONFIGURATION")))
            }),
        ),
        Sabotage::new("name-is-empty", &["LB-54"], answer::<GetLoadBalancerNameRequest>(|_, answer| answer.name.clear())),
        Sabotage::new("name-of-another", &["LB-12"], answer::<GetLoadBalancerNameRequest>(|_, answer| answer.name.push('x'))),
        Sabotage::new("incomplete-is-not-leading", &["LB-43", "NS-3", "ERR-7", "LB-58"], invalid_is_not_leading()),
        Sabotage::new(
            "key-not-named",
            &["LB-13"],
            status(|_, status| {
                let own = status.get_error_details().error_info().is_some_and(|info| info.reason == "USER_CONFIGURATION");
                if own { refusal(Code::InvalidArgument, "USER_CONFIGURATION") } else { status }
            }),
        ),
        Sabotage::new(
            "get-finds-nothing",
            &["LB-52", "LB-9", "LB-3", "LB-2"],
            answer::<GetLoadBalancerRequest>(|_, answer| {
                answer.outcome = Some(get_load_balancer_response::Outcome::NotFound(LoadBalancerNotFound {}));
            }),
        ),
        Sabotage::new(
            "quota-is-internal",
            &["LB-31"],
            status(|_, status| {
                let quota = status.get_error_details().error_info().is_some_and(|info| info.reason == "QUOTA_EXCEEDED");
                if quota { Status::internal("the quota is used up") } else { status }
            }),
        ),
        Sabotage::new("waits-to-the-end", &["REP-6", "REP-7"], answer_late()),
    ]
}

/// `in_progress` becomes a missed deadline.
fn answer_late() -> Edits {
    let edit = |path: &str, _: &bytes::Bytes, answer: Result<bytes::Bytes, Status>| match answer {
        Ok(bytes) if crate::rpc::name(path) == "EnsureLoadBalancer" => {
            let decoded: ccm_proto::v1::EnsureLoadBalancerResponse = prost::Message::decode(bytes.clone()).unwrap_or_default();
            let working = matches!(decoded.outcome, Some(Ensured::InProgress(_)));
            if working { Err(Status::deadline_exceeded("the cloud has not finished")) } else { Ok(bytes) }
        }
        other => other,
    };
    Edits { answer: Some(Box::new(edit)), ..Edits::default() }
}

/// The second removal of one Service fails.
fn delete_twice() -> Edits {
    let seen = parking_lot::Mutex::new(Vec::new());
    instead::<EnsureLoadBalancerDeletedRequest>(move |asked| {
        let uid = asked.service.as_ref().map(|service| service.uid.clone()).unwrap_or_default();
        let mut seen = seen.lock();
        let nothing = asked.service.as_ref().is_some_and(|service| service.name.starts_with("delete-"));
        let again = nothing && seen.contains(&uid);
        seen.push(uid);
        again.then(|| Err(Status::not_found("there is none")))
    })
}

fn invalid_is_not_leading() -> Edits {
    status(|path, status| {
        let bare = status.code() == Code::InvalidArgument && status.get_error_details().error_info().is_none();
        if bare && path.contains("LoadBalancers") { refusal(Code::FailedPrecondition, "NOT_LEADING") } else { status }
    })
}

fn ownership() -> Vec<Sabotage> {
    let first = parking_lot::Mutex::new(String::new());
    // The provider sees one cluster only: the one that was seen first.
    let one_cluster = move |uid: &mut String| {
        let mut first = first.lock();
        if first.is_empty() {
            first.clone_from(uid);
        }
        uid.clone_from(&first);
    };
    vec![
        Sabotage::new(
            "list-forgets",
            &["LB-17", "LB-8", "REP-1", "LB-2", "LB-12"],
            answer::<ListLoadBalancersRequest>(|_, answer| {
                answer.load_balancers.clear();
            }),
        ),
        Sabotage::new(
            "list-of-everybody",
            &["LB-7"],
            request::<ListLoadBalancersRequest>(move |asked| {
                asked.cluster.iter_mut().for_each(|cluster| one_cluster(&mut cluster.uid));
            }),
        ),
        Sabotage::new(
            "list-without-services",
            &["LB-8"],
            answer::<ListLoadBalancersRequest>(|_, answer| {
                answer.load_balancers.iter_mut().for_each(|one| one.service_name = None);
            }),
        ),
        Sabotage::new(
            "not-owned-is-a-conflict",
            &["LB-10"],
            status(|_, status| {
                let own = status.get_error_details().error_info().is_some_and(|info| info.reason == "NOT_OWNED");
                if own { refusal(Code::Aborted, "CONFLICT") } else { status }
            }),
        ),
    ]
}

fn empty_set() -> NodeSetRef {
    NodeSetRef { set: Some(node_set_ref::Set::Inline(NodeSet::default())) }
}

fn is_empty(nodes: Option<&NodeSetRef>) -> bool {
    matches!(nodes.and_then(|nodes| nodes.set.as_ref()), Some(node_set_ref::Set::Inline(set)) if set.nodes.is_empty())
}

fn sets() -> Vec<Sabotage> {
    vec![
        Sabotage::new(
            "absent-set-is-empty",
            &["NS-3", "LB-43"],
            request::<EnsureLoadBalancerRequest>(|asked| {
                if asked.nodes.as_ref().is_none_or(|nodes| nodes.set.is_none()) {
                    asked.nodes = Some(empty_set());
                }
            }),
        ),
        Sabotage::new(
            "empty-set-is-absent",
            &["LB-18", "LB-19", "NS-2", "LB-10"],
            request::<EnsureLoadBalancerRequest>(|asked| {
                if is_empty(asked.nodes.as_ref()) {
                    asked.nodes = None;
                }
            }),
        ),
        Sabotage::new("unknown-set-is-empty", &["NS-5", "ERR-7"], forgive_unknown()),
        Sabotage::new(
            "put-without-hash",
            &["LB-58"],
            forgive::<PutNodeSetRequest>(Code::InvalidArgument, |_| Some(PutNodeSetResponse {})),
        ),
        Sabotage::new("keeps-one-set", &["NS-4"], keep_few()),
        Sabotage::new(
            "no-inline-sets",
            &["NS-6", "LB-18"],
            instead::<EnsureLoadBalancerRequest>(|asked| {
                let inline =
                    matches!(asked.nodes.as_ref().and_then(|nodes| nodes.set.as_ref()), Some(node_set_ref::Set::Inline(_)));
                let own = asked.service.as_ref().is_some_and(|service| service.name == "inline");
                (inline && own).then(|| Err(Status::unimplemented("give a hash")))
            }),
        ),
    ]
}

/// An unknown hash is taken as a set without nodes.
fn forgive_unknown() -> Edits {
    request::<EnsureLoadBalancerRequest>(|asked| {
        let known = asked.nodes.as_ref().and_then(|nodes| nodes.set.as_ref());
        if matches!(known, Some(node_set_ref::Set::Hash(hash)) if hash == "conformance-never-put") {
            asked.nodes = Some(empty_set());
        }
    })
}

/// Only the two latest sets are kept.
fn keep_few() -> Edits {
    let kept = parking_lot::Mutex::new(Vec::<String>::new());
    let edit = move |path: &str, bytes: &bytes::Bytes| {
        let mut kept = kept.lock();
        match crate::rpc::name(path) {
            "PutNodeSet" => {
                let put: PutNodeSetRequest = prost::Message::decode(bytes.clone()).unwrap_or_default();
                kept.push(put.hash);
                None
            }
            "EnsureLoadBalancer" => {
                let asked: EnsureLoadBalancerRequest = prost::Message::decode(bytes.clone()).unwrap_or_default();
                let set = asked.nodes.and_then(|nodes| nodes.set);
                let Some(node_set_ref::Set::Hash(hash)) = set else { return None };
                let recent = kept.iter().rev().take(2).any(|one| *one == hash);
                (!recent && kept.contains(&hash)).then(|| Err(refusal(Code::FailedPrecondition, "NODE_SET_UNKNOWN")))
            }
            _ => None,
        }
    };
    Edits { instead: Some(Box::new(edit)), ..Edits::default() }
}

fn plan(edit: fn(&mut LoadBalancerPlan)) -> Edits {
    answer::<PlanLoadBalancerRequest>(move |_, answer: &mut PlanLoadBalancerResponse| {
        if let Some(plan_load_balancer_response::Outcome::Plan(plan)) = &mut answer.outcome {
            edit(plan);
        }
    })
}

fn plans() -> Vec<Sabotage> {
    vec![
        Sabotage::new("plan-always-empty", &["LB-16", "LB-14"], plan(|plan| plan.changes.clear())),
        Sabotage::new("plan-never-empty", &["LB-21"], plan(|plan| plan.changes.push("something".into()))),
        Sabotage::new("plan-without-status", &["LB-15"], plan(|plan| plan.status = None)),
        Sabotage::new("plan-without-annotations", &["LB-15"], plan(|plan| plan.annotations.clear())),
    ]
}
