//! The core against the SDK's own server: leadership, node sets and plans as real providers have them.
use ccm_provider_sdk::fake::{FakeLoadBalancers, FakeProvider, ListScript, PlanScript, status_of};
use ccm_provider_sdk::{Progress as Told, Server};

use super::*;
use crate::provider::Identity as _;

fn balancers(node_sets: bool) -> FakeLoadBalancers {
    let plan = v1::LoadBalancerPlan { status: Some(status_of("192.0.2.1")), ..Default::default() };
    let owned = |n: usize| v1::OwnedLoadBalancer { name: format!("lb-{n}"), ..Default::default() };
    FakeLoadBalancers {
        plan: Some(PlanScript::new(move |_| Ok(Told::Done(plan.clone())))),
        list: Some(ListScript::new(move |()| Ok((0..450).map(owned).collect()))),
        node_sets,
        ..FakeLoadBalancers::default()
    }
}

async fn serve(scenario: &Scenario, node_sets: bool) -> (FakeProvider, Serving) {
    let provider = FakeProvider { load_balancers: Some(balancers(node_sets)), ..FakeProvider::default() };
    let serving = Serving::start(Server::new(provider.clone()), &scenario.endpoint()).await.unwrap();
    scenario.until(|state| state.ready().is_some()).await;
    (provider, serving)
}

async fn until_led(provider: &FakeProvider) {
    let led = async {
        while provider.leaders().is_empty() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, led).await.unwrap();
}

#[tokio::test]
async fn only_the_leader_of_the_latest_epoch_changes_anything() {
    let scenario = Scenario::new();
    let (provider, _serving) = serve(&scenario, true).await;
    let (service, set) = (service("a"), targets(&["a"]));
    let refused = scenario.balancers.ensure(3, &service, &set).await.unwrap_err();
    assert_eq!((refused.outcome, refused.reason.as_str()), (Outcome::Retry { after: None }, "NOT_LEADING"));
    assert!(scenario.balancers.plan(&service, &set).await.is_ok(), "reading needs no leadership");

    scenario.lead(3);
    until_led(&provider).await;
    assert!(scenario.balancers.ensure(3, &service, &set).await.is_ok());
    assert_eq!(scenario.balancers.delete(2, &service).await.unwrap_err().reason, "NOT_LEADING");
    assert_eq!(scenario.balancers.delete(3, &service).await.unwrap(), Progress::Done(()));
    assert_eq!(scenario.balancers.list().await.unwrap().len(), 450);
}

#[tokio::test]
async fn the_nodes_arrive_in_either_form() {
    for node_sets in [true, false] {
        let scenario = Scenario::new();
        let (provider, _serving) = serve(&scenario, node_sets).await;
        let served = scenario.handle.confirm().await.unwrap();
        assert_eq!(served.capabilities.contains(&Capability::NodeSets), node_sets);
        scenario.lead(1);
        until_led(&provider).await;
        // More sets than the SDK keeps, each used twice: those that it dropped are sent again.
        let names: Vec<_> = (0..12).map(|n| format!("n-{n}")).collect();
        for name in names.iter().chain(&names) {
            let answer = scenario.balancers.update(1, &service("a"), &targets(&[name])).await;
            assert!(matches!(answer, Ok(Progress::Done(_))), "{answer:?}");
        }
        let calls = provider.load_balancers.unwrap().update.calls();
        let seen: Vec<_> = calls.iter().map(|(_, nodes)| nodes[0].name.clone()).collect();
        assert_eq!(seen, [names.clone(), names].concat());
        assert_eq!(calls[0].1, [convert::node(&target("n-0"))]);
    }
}
