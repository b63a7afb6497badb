//! What each answer becomes, errors and nonsense included.
use super::*;
use crate::model::load_balancer::{Ingress, IngressAddress};
use crate::provider::Identity as _;
use v1::ErrorReason;

fn status(ip: &str) -> v1::LoadBalancerStatus {
    v1::LoadBalancerStatus { ingress: vec![v1::LoadBalancerIngress { ip: Some(ip.to_owned()), ..Default::default() }] }
}

fn model_status(ip: &str) -> LoadBalancerStatus {
    let address = IngressAddress::Ip(ip.parse().unwrap(), None);
    LoadBalancerStatus { ingress: vec![Ingress { address, ports: Vec::new() }] }
}

fn annotations() -> BTreeMap<String, String> {
    BTreeMap::from([("example.com/name".to_owned(), "lb".to_owned())])
}

fn working() -> v1::InProgress {
    v1::InProgress { poll_after: Some(prost_types::Duration { seconds: 2, nanos: 0 }), message: "at it".to_owned() }
}

fn in_progress<T>() -> Progress<T> {
    Progress::InProgress { poll_after: Duration::from_secs(2), message: "at it".to_owned() }
}

fn elsewhere() -> v1::ImplementedElsewhere {
    v1::ImplementedElsewhere { message: "metallb".to_owned() }
}

#[tokio::test]
async fn every_outcome_of_an_ensure_is_told_and_the_whole_request_crosses() {
    use v1::ensure_load_balancer_response::Outcome;
    let (scenario, raw, _serving) = Scenario::with_raw(ALL).await;
    let balancers = &scenario.balancers;
    let ready = v1::LoadBalancerReady {
        status: Some(status("192.0.2.1")),
        annotations: annotations().into_iter().collect(),
        ..Default::default()
    };
    for outcome in [Outcome::Ready(ready), Outcome::InProgress(working()), Outcome::ImplementedElsewhere(elsewhere())] {
        raw.load_balancers.ensure.then(Ok(v1::EnsureLoadBalancerResponse { outcome: Some(outcome) }));
    }
    let (service, set) = (service("a"), targets(&["n"]));
    let ask = || balancers.ensure(7, &service, &set);
    let extras = Extras { annotations: annotations(), ..Extras::default() };
    assert_eq!(ask().await.unwrap(), Progress::Done(Ensured { status: model_status("192.0.2.1"), extras }));
    assert_eq!(ask().await.unwrap(), in_progress());
    assert_eq!(ask().await.unwrap(), Progress::ImplementedElsewhere("metallb".to_owned()));

    let request = raw.load_balancers.ensure.calls().remove(0);
    assert_eq!(request.leadership, Some(v1::Leadership { epoch: 7 }));
    assert_eq!(request.cluster, Some(v1::ClusterRef { name: "kubernetes".to_owned(), uid: "uid".to_owned() }));
    let sent = request.service.unwrap();
    assert_eq!(sent, convert::service(&service));
    assert_eq!((sent.ip_families, sent.ip_family_policy, sent.external_traffic_policy), (vec![2, 1], 3, 2));
    assert_eq!((sent.session_affinity, sent.health_check_node_port, sent.generation), (2, Some(30081), 3));
}

#[tokio::test]
async fn every_outcome_of_an_update_and_of_a_deletion_is_told() {
    use v1::ensure_load_balancer_deleted_response::Outcome as Deleted;
    use v1::update_load_balancer_response::Outcome as Updated;
    let (scenario, raw, _serving) = Scenario::with_raw(ALL).await;
    let balancers = &scenario.balancers;
    let own = v1::Warning { reason: "Old".to_owned(), message: "old".to_owned() };
    let done = v1::LoadBalancerUpdated { warnings: vec![own], annotations: annotations().into_iter().collect() };
    for outcome in [Updated::Updated(done), Updated::InProgress(working()), Updated::ImplementedElsewhere(elsewhere())] {
        raw.load_balancers.update.then(Ok(v1::UpdateLoadBalancerResponse { outcome: Some(outcome) }));
    }
    let (it, set) = (service("a"), targets(&[]));
    let update = || balancers.update(7, &it, &set);
    let answer = update().await.unwrap();
    assert!(
        matches!(&answer, Progress::Done(it) if it.annotations == annotations() && it.warnings[0].reason == "Old"),
        "{answer:?}"
    );
    assert_eq!(update().await.unwrap(), in_progress());
    assert_eq!(update().await.unwrap(), Progress::ImplementedElsewhere("metallb".to_owned()));

    for outcome in [Deleted::Done(v1::LoadBalancerDeleted {}), Deleted::InProgress(working())] {
        raw.load_balancers.delete.then(Ok(v1::EnsureLoadBalancerDeletedResponse { outcome: Some(outcome) }));
    }
    let gone = Service { deleted_at: Some(Timestamp::from_second(5).unwrap()), ..service("a") };
    assert_eq!(balancers.delete(8, &gone).await.unwrap(), Progress::Done(()));
    assert_eq!(balancers.delete(8, &gone).await.unwrap(), in_progress());
    let request = raw.load_balancers.delete.calls().remove(0);
    assert_eq!(request.leadership, Some(v1::Leadership { epoch: 8 }));
    assert_eq!(request.service.unwrap().times.unwrap().deleted_at.unwrap().seconds, 5);
}

#[tokio::test]
async fn every_outcome_of_a_plan_is_told() {
    use v1::plan_load_balancer_response::Outcome;
    let (scenario, raw, _serving) = Scenario::with_raw(ALL).await;
    let standing = v1::LoadBalancerPlan {
        status: Some(status("192.0.2.1")),
        annotations: annotations().into_iter().collect(),
        ..Default::default()
    };
    let changes = v1::LoadBalancerPlan { changes: vec!["add target n".to_owned()], ..Default::default() };
    for outcome in [
        Outcome::Plan(standing),
        Outcome::Plan(changes),
        Outcome::InProgress(working()),
        Outcome::ImplementedElsewhere(elsewhere()),
    ] {
        raw.load_balancers.plan.then(Ok(v1::PlanLoadBalancerResponse { outcome: Some(outcome) }));
    }
    let (service, set) = (service("a"), targets(&["n"]));
    let ask = || scenario.balancers.plan(&service, &set);
    let extras = Extras { annotations: annotations(), ..Extras::default() };
    let as_asked = Planned::AsAsked(Ensured { status: model_status("192.0.2.1"), extras });
    assert_eq!(ask().await.unwrap(), Progress::Done(as_asked));
    assert_eq!(ask().await.unwrap(), Progress::Done(Planned::Changes(vec!["add target n".to_owned()])));
    assert_eq!(ask().await.unwrap(), in_progress());
    assert_eq!(ask().await.unwrap(), Progress::ImplementedElsewhere("metallb".to_owned()));
}

#[tokio::test]
async fn a_list_comes_in_parts_and_one_that_breaks_off_has_told_nothing() {
    let (scenario, raw, _serving) = Scenario::with_raw(ALL).await;
    let part = |names: &[&str]| {
        let one = |name: &&str| v1::OwnedLoadBalancer {
            name: (*name).to_owned(),
            service_uid: Some(format!("uid-{name}")),
            service_name: Some(String::new()),
            status: Some(status("192.0.2.1")),
            ..Default::default()
        };
        Ok(v1::ListLoadBalancersResponse { load_balancers: names.iter().map(one).collect() })
    };
    raw.load_balancers.list.then(vec![part(&["a", "b"]), part(&[]), part(&["c"])]);
    let listed = scenario.balancers.list().await.unwrap();
    assert_eq!(listed.iter().map(|it| it.name.as_str()).collect::<Vec<_>>(), ["a", "b", "c"]);
    assert_eq!((listed[0].service_uid.as_deref(), listed[0].service_name.as_deref()), (Some("uid-a"), None));
    assert_eq!(listed[0].status, model_status("192.0.2.1"));

    raw.load_balancers.list.then(vec![part(&["a"]), Err(Status::unavailable("away"))]);
    assert_eq!(scenario.balancers.list().await.unwrap_err().reason, "UNAVAILABLE");
    raw.load_balancers.list.then(vec![]);
    assert_eq!(scenario.balancers.list().await.unwrap(), []);
}

#[tokio::test]
async fn errors_are_told_apart_with_their_reasons_and_when_to_come_back() {
    use tonic::Code;
    let (scenario, raw, _serving) = Scenario::with_raw(ALL).await;
    let seven = Some(Duration::from_secs(7));
    for (status, outcome, reason) in [
        (refusal(Code::FailedPrecondition, ErrorReason::NotLeading, None), Outcome::Retry { after: None }, "NOT_LEADING"),
        (refusal(Code::ResourceExhausted, ErrorReason::RateLimited, seven), Outcome::Retry { after: seven }, "RATE_LIMITED"),
        (refusal(Code::ResourceExhausted, ErrorReason::QuotaExceeded, None), Outcome::Terminal, "QUOTA_EXCEEDED"),
        (refusal(Code::InvalidArgument, ErrorReason::UserConfiguration, None), Outcome::Terminal, "USER_CONFIGURATION"),
        (refusal(Code::FailedPrecondition, ErrorReason::UserActionRequired, None), Outcome::Terminal, "USER_ACTION_REQUIRED"),
        (refusal(Code::FailedPrecondition, ErrorReason::NotOwned, None), Outcome::Terminal, "NOT_OWNED"),
        (refusal(Code::PermissionDenied, ErrorReason::PermissionMissing, None), Outcome::Terminal, "PERMISSION_MISSING"),
        (refusal(Code::Unauthenticated, ErrorReason::CredentialsInvalid, None), Outcome::Terminal, "CREDENTIALS_INVALID"),
        (refusal(Code::Aborted, ErrorReason::Conflict, None), Outcome::Retry { after: None }, "CONFLICT"),
        (refusal(Code::Unavailable, ErrorReason::CloudUnavailable, None), Outcome::Retry { after: None }, "CLOUD_UNAVAILABLE"),
        (refusal(Code::Unimplemented, ErrorReason::NotImplemented, None), Outcome::Unsupported, "NOT_IMPLEMENTED"),
        (Status::deadline_exceeded("words"), Outcome::Unknown, "DEADLINE_EXCEEDED"),
    ] {
        raw.load_balancers.update.then(Err(status.clone()));
        raw.load_balancers.delete.then(Err(status));
        let update = scenario.balancers.update(1, &service("a"), &targets(&["n"])).await.unwrap_err();
        let delete = scenario.balancers.delete(1, &service("a")).await.unwrap_err();
        for error in [update, delete] {
            assert_eq!((error.outcome, error.reason.as_str(), error.message.as_str()), (outcome, reason, "words"));
        }
    }
}

#[tokio::test]
async fn nonsense_is_an_error_and_nothing_else() {
    let (scenario, raw, _serving) = Scenario::with_raw(ALL).await;
    raw.load_balancers.ensure.then(Ok(v1::EnsureLoadBalancerResponse { outcome: None }));
    raw.load_balancers.delete.then(Ok(v1::EnsureLoadBalancerDeletedResponse { outcome: None }));
    raw.load_balancers.plan.then(Ok(v1::PlanLoadBalancerResponse {
        outcome: Some(v1::plan_load_balancer_response::Outcome::Plan(v1::LoadBalancerPlan::default())),
    }));
    let (service, none) = (service("a"), targets(&[]));
    assert_eq!(scenario.balancers.ensure(1, &service, &none).await.unwrap_err().reason, "INTERNAL");
    assert_eq!(scenario.balancers.delete(1, &service).await.unwrap_err().reason, "INTERNAL");
    let error = scenario.balancers.plan(&service, &none).await.unwrap_err();
    assert!(error.message.contains("plan.status"), "{}", error.message);
}

#[tokio::test]
async fn what_the_provider_does_not_list_is_not_called() {
    let none = targets(&[]);
    let (scenario, raw, _serving) = Scenario::with_raw(&[v1::Capability::LoadBalancers]).await;
    let (balancers, service) = (&scenario.balancers, service("a"));
    for error in [
        balancers.ensure(1, &service, &none).await.map(drop).unwrap_err(),
        balancers.update(1, &service, &none).await.map(drop).unwrap_err(),
        balancers.delete(1, &service).await.map(drop).unwrap_err(),
        balancers.plan(&service, &none).await.map(drop).unwrap_err(),
        balancers.list().await.map(drop).unwrap_err(),
    ] {
        assert_eq!((error.outcome, error.reason.as_str()), (Outcome::Unsupported, "NOT_IMPLEMENTED"));
    }
    assert_eq!(raw.load_balancers.ensure.count() + raw.load_balancers.plan.count() + raw.load_balancers.list.count(), 0);
}

#[tokio::test]
async fn an_answer_of_another_cloud_is_discarded() {
    let (scenario, raw, _serving) = Scenario::with_raw(ALL).await;
    let answered = Arc::new(tokio::sync::Semaphore::new(0));
    let gate = Arc::clone(&answered);
    raw.load_balancers.delete.then_await(move |_| async move {
        drop(gate.acquire().await);
        let done = v1::ensure_load_balancer_deleted_response::Outcome::Done(v1::LoadBalancerDeleted {});
        Ok(v1::EnsureLoadBalancerDeletedResponse { outcome: Some(done) })
    });
    let balancers = Arc::clone(&scenario.balancers);
    let call = tokio::spawn(async move { balancers.delete(1, &service("a")).await });
    raw.load_balancers.delete.wait_for_calls(1).await;
    describe(&raw, "elsewhere", ALL);
    scenario.handle.confirm().await.unwrap();
    answered.add_permits(1);
    assert_eq!(call.await.unwrap().unwrap_err().reason, "CLOUD_IDENTITY_CHANGED");
}

#[tokio::test]
async fn a_call_that_dies_with_its_provider_has_an_unknown_outcome() {
    let scenario = Scenario::new();
    assert_eq!(scenario.balancers.delete(1, &service("a")).await.unwrap_err().reason, "PROVIDER_NOT_READY");
    let raw = RawServer::default();
    describe(&raw, "here", ALL);
    raw.load_balancers.delete.always_await(|_| std::future::pending());
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let serving = {
        let _entered = runtime.enter();
        scenario.serve(&raw)
    };
    scenario.until(|state| state.ready().is_some()).await;
    let balancers = Arc::clone(&scenario.balancers);
    let call = tokio::spawn(async move { balancers.delete(1, &service("a")).await });
    raw.load_balancers.delete.wait_for_calls(1).await;
    runtime.shutdown_background();
    assert_eq!(call.await.unwrap().unwrap_err().outcome, Outcome::Unknown);
    drop(serving);
}
