//! How often a node set crosses, and in which form.
use futures::future::join_all;
use tokio::sync::Semaphore;
use tonic::Code;

use super::*;

const INLINE: &[v1::Capability] = &[v1::Capability::Lead, v1::Capability::LoadBalancers, v1::Capability::PlanLoadBalancer];

fn unknown() -> Status {
    refusal(Code::FailedPrecondition, v1::ErrorReason::NodeSetUnknown, None)
}

/// That many calls, each for another Service, and one set.
async fn ensure_all(scenario: &Scenario, count: usize, targets: &TargetSet) -> Vec<Result<Progress<Ensured>, ProviderError>> {
    let calls = (0..count).map(|n| {
        let (balancers, targets) = (Arc::clone(&scenario.balancers), targets.clone());
        async move { balancers.ensure(1, &service(&format!("s-{n}")), &targets).await }
    });
    join_all(calls).await
}

fn hash_of(request: &v1::EnsureLoadBalancerRequest) -> String {
    match request.nodes.as_ref().and_then(|it| it.set.as_ref()) {
        Some(v1::node_set_ref::Set::Hash(hash)) => hash.clone(),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn two_hundred_calls_for_a_new_set_send_it_once() {
    let (scenario, raw, _serving) = Scenario::with_raw(ALL).await;
    let gate = Arc::new(Semaphore::new(0));
    let opened = Arc::clone(&gate);
    raw.load_balancers.put.then_await(move |_| async move {
        drop(opened.acquire().await);
        Ok(v1::PutNodeSetResponse {})
    });
    let set = targets(&["a", "b"]);
    let (answers, ()) = tokio::join!(ensure_all(&scenario, 200, &set), async {
        raw.load_balancers.put.wait_for_calls(1).await;
        assert_eq!(raw.load_balancers.ensure.count(), 0, "a call went before the provider held its set");
        gate.add_permits(1);
    });
    assert!(answers.iter().all(Result::is_ok));
    let puts = raw.load_balancers.put.calls();
    assert_eq!((puts.len(), raw.load_balancers.ensure.count()), (1, 200));
    assert_eq!(puts[0].hash, **set.hash());
    assert_eq!(puts[0].set.as_ref().unwrap().nodes, set.targets().iter().map(convert::node).collect::<Vec<_>>());
    assert!(raw.load_balancers.ensure.calls().iter().all(|it| hash_of(it) == **set.hash()));

    scenario.balancers.plan(&service("a"), &set).await.unwrap();
    scenario.balancers.update(1, &service("a"), &set).await.unwrap();
    assert_eq!(raw.load_balancers.put.count(), 1, "plan and update use the same set");
    scenario.balancers.update(1, &service("a"), &targets(&["a"])).await.unwrap();
    assert_eq!(raw.load_balancers.put.count(), 2);
}

#[tokio::test]
async fn a_set_that_cannot_be_sent_fails_each_call_once_and_the_next_tries_again() {
    let (scenario, raw, _serving) = Scenario::with_raw(ALL).await;
    let gate = Arc::new(Semaphore::new(0));
    let opened = Arc::clone(&gate);
    raw.load_balancers.put.then_await(move |_| async move {
        drop(opened.acquire().await);
        Err(Status::unavailable("away"))
    });
    let set = targets(&["a"]);
    let (answers, ()) = tokio::join!(ensure_all(&scenario, 200, &set), async {
        raw.load_balancers.put.wait_for_calls(1).await;
        gate.add_permits(1);
    });
    assert!(answers.iter().all(|it| it.as_ref().is_err_and(|error| error.reason == "UNAVAILABLE")));
    assert_eq!((raw.load_balancers.put.count(), raw.load_balancers.ensure.count()), (1, 0));
    assert!(scenario.balancers.ensure(1, &service("a"), &set).await.is_ok());
    assert_eq!(raw.load_balancers.put.count(), 2);
}

#[tokio::test]
async fn a_provider_that_forgot_a_set_gets_it_again_and_each_call_is_repeated_once() {
    let (scenario, raw, _serving) = Scenario::with_raw(ALL).await;
    let set = targets(&["a"]);
    assert!(scenario.balancers.ensure(1, &service("a"), &set).await.is_ok());
    // Every one of the 100 arrives before the first is refused.
    let arrived = Arc::new(tokio::sync::Barrier::new(100));
    for _ in 0..100 {
        let arrived = Arc::clone(&arrived);
        raw.load_balancers.ensure.then_await(move |_| async move {
            arrived.wait().await;
            Err(unknown())
        });
    }
    let answers = ensure_all(&scenario, 100, &set).await;
    assert!(answers.iter().all(Result::is_ok));
    assert_eq!((raw.load_balancers.put.count(), raw.load_balancers.ensure.count()), (2, 201));

    raw.load_balancers.ensure.then(Err(unknown())).then(Err(unknown()));
    let error = scenario.balancers.ensure(1, &service("a"), &set).await.unwrap_err();
    assert_eq!((error.outcome, error.reason.as_str()), (Outcome::Retry { after: None }, "NODE_SET_UNKNOWN"));
    assert_eq!(raw.load_balancers.ensure.count(), 203, "twice is enough");
}

#[tokio::test]
async fn another_connection_gets_the_set_again() {
    let (scenario, raw, serving) = Scenario::with_raw(ALL).await;
    let set = targets(&["a"]);
    assert!(scenario.balancers.ensure(1, &service("a"), &set).await.is_ok());
    serving.stop().await.unwrap();
    scenario.until(|state| state.ready().is_none()).await;
    let _serving = scenario.serve(&raw);
    scenario.until(|state| state.ready().is_some()).await;
    assert!(scenario.balancers.ensure(1, &service("a"), &set).await.is_ok());
    assert_eq!(raw.load_balancers.put.count(), 2);
}

#[tokio::test]
async fn another_description_on_the_same_connection_costs_no_set() {
    let (scenario, raw, _serving) = Scenario::with_raw(ALL).await;
    let set = targets(&["a"]);
    assert!(scenario.balancers.ensure(1, &service("a"), &set).await.is_ok());
    describe(&raw, "here", &ALL[..4]);
    scenario.until(|it| it.ready().is_some_and(|it| !it.capabilities.contains(&Capability::ListLoadBalancers))).await;
    assert!(scenario.balancers.ensure(1, &service("a"), &set).await.is_ok());
    assert_eq!(raw.load_balancers.put.count(), 1);
}

#[tokio::test]
async fn without_the_capability_the_set_is_inline_and_encoded_once() {
    let (scenario, raw, _serving) = Scenario::with_raw(INLINE).await;
    let set = targets(&["a", "b"]);
    assert!(ensure_all(&scenario, 200, &set).await.iter().all(Result::is_ok));
    scenario.balancers.plan(&service("a"), &set).await.unwrap();
    assert_eq!(raw.load_balancers.put.count(), 0);
    let sent = v1::node_set_ref::Set::Inline(v1::NodeSet { nodes: set.targets().iter().map(convert::node).collect() });
    let sent = Some(v1::NodeSetRef { set: Some(sent) });
    assert!(raw.load_balancers.ensure.calls().iter().all(|it| it.nodes == sent));
    assert_eq!(raw.load_balancers.plan.calls()[0].nodes, sent);
    assert_eq!(encoded(&scenario), 1);
    scenario.balancers.update(1, &service("a"), &targets(&["a"])).await.unwrap();
    assert_eq!(encoded(&scenario), 2);
}

/// How many sets were encoded, by the metric.
fn encoded(scenario: &Scenario) -> usize {
    let mut registry = prometheus_client::registry::Registry::default();
    let metrics = scenario.handle.current().unwrap().connection.metrics().clone();
    registry.register("encode", "", metrics.node_set_encode);
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
    let count = text.lines().find_map(|line| line.strip_prefix("encode_count "));
    count.unwrap().parse().unwrap()
}

#[tokio::test]
async fn a_set_without_a_node_crosses_as_a_set_in_either_form() {
    let (scenario, raw, _serving) = Scenario::with_raw(ALL).await;
    assert!(scenario.balancers.ensure(1, &service("a"), &targets(&[])).await.is_ok());
    assert_eq!(raw.load_balancers.put.calls()[0].set, Some(v1::NodeSet::default()));

    let (scenario, raw, _serving) = Scenario::with_raw(INLINE).await;
    assert!(scenario.balancers.ensure(1, &service("a"), &targets(&[])).await.is_ok());
    let inline = v1::node_set_ref::Set::Inline(v1::NodeSet::default());
    assert_eq!(raw.load_balancers.ensure.calls()[0].nodes, Some(v1::NodeSetRef { set: Some(inline) }));
}

#[tokio::test]
async fn a_provider_that_lists_node_sets_and_does_not_take_them_gets_them_inline() {
    let (scenario, raw, _serving) = Scenario::with_raw(ALL).await;
    raw.load_balancers.put.always(|_| Err(Status::unimplemented("no such method")));
    assert!(scenario.balancers.ensure(1, &service("a"), &targets(&["a"])).await.is_ok());
    let request = raw.load_balancers.ensure.calls().remove(0);
    assert!(matches!(request.nodes.unwrap().set, Some(v1::node_set_ref::Set::Inline(it)) if it.nodes.len() == 1));
}

#[tokio::test]
async fn five_thousand_nodes_cross_within_the_limits_in_either_form() {
    let set = TargetSet::new((0..5000).map(|n| target(&format!("node-{n:05}"))));
    let mut seen = 0;
    for capabilities in [ALL, INLINE] {
        let (scenario, raw, _serving) = Scenario::with_raw(capabilities).await;
        for _ in 0..3 {
            assert!(scenario.balancers.ensure(1, &service("a"), &set).await.is_ok());
        }
        let put: usize = raw.load_balancers.put.calls().iter().map(|it| it.set.as_ref().unwrap().nodes.len()).sum();
        let inline = raw.load_balancers.ensure.calls().into_iter().filter_map(|it| match it.nodes?.set? {
            v1::node_set_ref::Set::Inline(set) => Some(set.nodes.len()),
            v1::node_set_ref::Set::Hash(_) => None,
        });
        seen += put + inline.sum::<usize>();
        assert_eq!(encoded(&scenario), 1);
    }
    assert_eq!(seen, 5000 + 3 * 5000);
}
