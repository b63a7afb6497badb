//! One Service's life: made, changed, of another type or class, deleted, replaced.
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::fixtures::{Reply, Verb, World, address, config, ensured, finished, key, node, provider, service, with};
use super::{SECOND, pass, settle, start, start_with, until};
use crate::cluster::services::Services;
use crate::controllers::service::decide::Classes;
use crate::controllers::service::{Duration, ServiceConfig, ServiceContext, run};
use crate::model::instance::Warning;
use crate::model::load_balancer::{Ensured, Extras, IngressAddress, LoadBalancerStatus};
use crate::model::provider_info::ProviderInfo;
use crate::model::service::Service;
use crate::names::{self, annotations, events};

fn now(world: &World, name: &str) -> Service {
    world.server.service(&key(name)).expect("the Service is there")
}

#[tokio::test(start_paused = true)]
async fn a_new_service_is_held_before_its_load_balancer_is_made_and_gets_its_address_last() {
    let mut world = World::new([], [node("n1"), node("n2")]);
    let extras = Extras { annotations: [("fake/name".to_owned(), "lb".to_owned())].into(), warnings: vec![] };
    world.cloud.reply(Verb::Ensure, "a", [Reply::Done(Ensured { extras, ..ensured() })]);
    let running = start(&world);
    settle().await;
    world.server.put_service(service("a"));
    until("a is done", || world.is_done("a")).await;
    pass(SECOND * 60).await;

    let calls = world.cloud.calls();
    assert_eq!(calls.len(), 1, "{calls:?}");
    assert_eq!((calls[0].verb, calls[0].epoch), (Verb::Ensure, 7));
    assert_eq!(calls[0].targets, ["n1", "n2"]);
    assert!(calls[0].service.has_finalizer());
    assert_eq!(calls[0].service.annotations.get(annotations::LOAD_BALANCER_CLASS).map(String::as_str), Some(""));
    assert_eq!(world.server.service_writes("default/a"), ["PATCH", "PATCH status"]);
    let service = now(&world, "a");
    assert_eq!(service.annotations["fake/name"], "lb");
    assert_eq!(service.status.ingress[0].address, IngressAddress::Ip("203.0.113.1".parse().unwrap(), None));
    let condition = service.condition.unwrap();
    assert!(condition.ready && condition.reason == "Ready" && condition.observed_generation == 1, "{condition:?}");
    assert_eq!(world.reasons(), [events::ENSURING_LOAD_BALANCER, events::ENSURED_LOAD_BALANCER]);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn what_a_provider_writes_to_a_service_is_no_change_of_the_users() {
    let world = World::new([finished("a")], []);
    let extras = Extras { annotations: [("fake/name".to_owned(), "lb".to_owned())].into(), warnings: vec![] };
    world.cloud.always(Verb::Plan, Some(Reply::Done(Ensured { extras, ..ensured() })));
    let running = start(&world);
    pass(SECOND * 60).await;
    assert_eq!(world.cloud.verbs("a"), [Verb::Plan]);
    assert_eq!(now(&world, "a").annotations["fake/name"], "lb");
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn what_matters_to_no_load_balancer_causes_no_call_and_what_matters_causes_one() {
    let world = World::new([finished("a")], [node("n1")]);
    let running = start(&world);
    until("a was seen", || world.cloud.count(Verb::Plan) == 1).await;
    world.change("a", |service| service["metadata"]["labels"] = json!({ "team": "red" }));
    world.change("a", |service| service["spec"]["selector"] = json!({ "app": "b" }));
    pass(SECOND * 5).await;
    assert_eq!(world.cloud.mutations(), 0);
    world.change("a", |service| service["spec"]["ports"][0]["port"] = json!(81));
    pass(SECOND * 5).await;
    assert_eq!(world.cloud.verbs("a"), [Verb::Plan, Verb::Ensure]);
    assert_eq!(world.cloud.calls()[1].service.ports[0].port, 81);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn changes_during_a_call_are_one_more_call_after_it() {
    let world = World::new([service("a")], []);
    world.cloud.hold(Verb::Ensure);
    let running = start(&world);
    until("the cloud is asked", || world.cloud.running() == 1).await;
    for port in 81..86 {
        world.change("a", |service| service["spec"]["ports"][0]["port"] = json!(port));
        pass(SECOND).await;
    }
    world.cloud.release(Verb::Ensure);
    pass(SECOND * 30).await;
    let ports: Vec<_> = world.cloud.made(Verb::Ensure).iter().map(|call| call.service.ports[0].port).collect();
    assert_eq!(ports, [80, 85]);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_deleted_service_goes_when_its_load_balancer_is_gone_and_not_before() {
    let mut world = World::new([finished("a")], []);
    world.cloud.hold(Verb::Delete);
    let running = start(&world);
    settle().await;
    world.delete("a");
    until("the cloud is asked", || world.cloud.count(Verb::Delete) == 1).await;
    pass(SECOND * 60).await;
    assert!(now(&world, "a").has_finalizer());
    world.cloud.release(Verb::Delete);
    until("a is gone", || world.server.service("default/a").is_none()).await;
    pass(SECOND * 60).await;
    assert_eq!(world.server.service_writes("default/a"), ["PATCH"], "of a Service that goes the status is not written");
    assert_eq!(world.cloud.count(Verb::Delete), 1);
    assert_eq!(world.reasons(), [events::DELETING_LOAD_BALANCER, events::DELETED_LOAD_BALANCER]);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_service_of_another_type_loses_its_status_then_its_finalizer() {
    let world = World::new([finished("a")], []);
    let running = start(&world);
    settle().await;
    world.change("a", |service| service["spec"]["type"] = json!("ClusterIP"));
    until("a is let go", || !now(&world, "a").has_finalizer()).await;
    pass(SECOND * 60).await;
    let service = now(&world, "a");
    assert_eq!(world.server.service_writes("default/a"), ["PATCH status", "PATCH"]);
    assert!(service.status.ingress.is_empty() && service.condition.is_none());
    assert!(!service.annotations.contains_key(annotations::LOAD_BALANCER_CLASS));
    assert_eq!(world.cloud.count(Verb::Delete), 1);
    world.change("a", |service| service["spec"]["type"] = json!("LoadBalancer"));
    until("a has a load balancer again", || world.is_done("a")).await;
    assert_eq!(world.cloud.count(Verb::Ensure), 1);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_service_that_is_deleted_while_its_load_balancer_is_made_loses_it_again() {
    let world = World::new([service("a")], []);
    world.cloud.hold(Verb::Ensure);
    let running = start(&world);
    until("the cloud is asked", || world.cloud.running() == 1).await;
    world.delete("a");
    pass(SECOND).await;
    assert_eq!(world.cloud.count(Verb::Delete), 0);
    world.cloud.release(Verb::Ensure);
    until("a is gone", || world.server.service("default/a").is_none()).await;
    assert_eq!(world.cloud.verbs("a"), [Verb::Ensure, Verb::Delete]);
    let refused = "the address that it had got was refused, for the Service is another now";
    assert_eq!(world.server.service_writes("default/a"), ["PATCH", "PATCH status", "PATCH"], "{refused}");
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_conflict_on_the_status_is_mended_with_the_service_as_it_is() {
    let world = World::new([service("a")], []);
    let running = start(&world);
    world.server.before_write(|_| None);
    world.server.before_write(|objects| {
        let service = objects.get_mut("/api/v1/namespaces/default/services/a").unwrap();
        service["metadata"]["resourceVersion"] = json!("50");
        service["status"] = json!({ "conditions": [{
            "type": "Other", "status": "True", "reason": "R", "message": "", "lastTransitionTime": "2024-01-01T00:00:00Z",
        }] });
        None
    });
    until("a is done", || world.is_done("a")).await;
    assert_eq!(world.server.service_writes("default/a"), ["PATCH", "PATCH status", "PATCH status"]);
    let service = world.server.object("/api/v1/namespaces/default/services/a").unwrap();
    assert_eq!(service["status"]["conditions"].as_array().unwrap().len(), 2, "the other's condition stays");
    assert_eq!(world.cloud.count(Verb::Ensure), 1);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_service_that_was_replaced_meanwhile_gets_nothing_of_the_old_ones() {
    let world = World::new([service("a")], []);
    world.cloud.hold(Verb::Ensure);
    world.cloud.reply(
        Verb::Ensure,
        "a",
        [Reply::Done(Ensured {
            status: LoadBalancerStatus { ingress: vec![address("203.0.113.66")] },
            extras: Extras::default(),
        })],
    );
    let running = start(&world);
    until("the cloud is asked", || world.cloud.running() == 1).await;
    // Somebody took the finalizer by force: the old Service is gone, and another has its name.
    world.server.remove("/api/v1/namespaces/default/services/a");
    world.server.put_service(with(service("a"), |it| it["metadata"]["uid"] = json!("another")));
    pass(SECOND).await;
    assert_eq!(world.cloud.count(Verb::Ensure), 1, "two Services of one name take turns");
    world.cloud.let_go(Verb::Ensure, 1);
    pass(SECOND).await;
    assert!(now(&world, "a").status.ingress.is_empty());
    world.cloud.release(Verb::Ensure);
    until("the new one is done", || world.is_done("a")).await;
    assert_eq!(now(&world, "a").status.ingress[0].address, IngressAddress::Ip("203.0.113.1".parse().unwrap(), None));
    let calls = world.cloud.calls().into_iter().map(|call| (call.verb, call.service.uid));
    let expected = [(Verb::Ensure, "uid-a"), (Verb::Delete, "uid-a"), (Verb::Ensure, "another")];
    assert_eq!(calls.collect::<Vec<_>>(), expected.map(|(verb, uid)| (verb, uid.to_owned())), "and nothing of the old one stays");
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_service_that_vanishes_from_the_cache_loses_nothing() {
    let world = World::new([finished("a")], []);
    let running = start(&world);
    settle().await;
    world.services.hide("default/a");
    pass(Duration::from_hours(3)).await;
    assert_eq!(world.cloud.mutations(), 0);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn services_of_other_types_and_classes_are_not_touched() {
    let others = [
        with(service("cluster-ip"), |it| it["spec"]["type"] = json!("ClusterIP")),
        with(service("classy"), |it| it["spec"]["loadBalancerClass"] = json!("example.com/other")),
        with(finished("theirs"), |it| {
            it["spec"]["loadBalancerClass"] = json!("example.com/other");
            it["metadata"]["annotations"] = json!({});
            it["metadata"]["deletionTimestamp"] = json!("2024-05-06T07:08:09Z");
        }),
    ];
    let mut world = World::new(others, [node("n1")]);
    let running = start(&world);
    pass(Duration::from_hours(2)).await;
    assert!(world.cloud.calls().is_empty() && world.server.calls().is_empty());
    assert!(world.reasons().is_empty());
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_class_that_is_served_no_more_leaves_its_services_unmanaged_with_one_event() {
    let of_the_class = |name: &str| {
        with(finished(name), |it| it["metadata"]["annotations"] = json!({ annotations::LOAD_BALANCER_CLASS: "example.com/a" }))
    };
    let deleted = with(of_the_class("deleted"), |it| it["metadata"]["deletionTimestamp"] = json!("2024-05-06T07:08:09Z"));
    let mut world = World::new([of_the_class("kept"), deleted], [node("n1")]);
    let running = start(&world);
    settle().await;
    world.server.put_node(node("n2"));
    world.change("kept", |service| service["spec"]["ports"][0]["port"] = json!(81));
    pass(Duration::from_hours(2)).await;
    assert!(world.cloud.calls().is_empty() && world.server.calls().is_empty());
    assert_eq!(world.reasons(), [events::LOAD_BALANCER_CLASS_NOT_SERVED; 2]);
    running.stop().await;

    let served = ServiceConfig { classes: Classes { listed: ["example.com/a".to_owned()].into(), default: false }, ..config() };
    let running = start_with(&world, served);
    until("the deleted one is gone", || world.server.service("default/deleted").is_none()).await;
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_load_balancer_that_somebody_else_makes_is_theirs_until_the_service_changes() {
    let world = World::new([service("a")], [node("n1")]);
    world.cloud.reply(Verb::Ensure, "a", [Reply::Elsewhere]);
    let running = start(&world);
    settle().await;
    world.server.put_node(node("n2"));
    pass(Duration::from_mins(10)).await;
    assert_eq!(world.cloud.verbs("a"), [Verb::Ensure]);
    assert!(now(&world, "a").status.ingress.is_empty());
    world.change("a", |service| service["metadata"]["annotations"]["fake/make"] = json!("yes"));
    until("a is done", || world.is_done("a")).await;
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn what_one_provider_left_to_others_another_build_is_asked_about() {
    let world = World::new([service("s")], [node("n1")]);
    world.cloud.always(Verb::Ensure, Some(Reply::Elsewhere));
    let running = start(&world);
    settle().await;
    world.cloud.always(Verb::Ensure, None);
    world.becomes(ProviderInfo { version: "2".into(), ..provider() });
    until("an address", || world.is_done("s")).await;
    assert_eq!(world.cloud.count(Verb::Ensure), 2);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn warnings_reach_people_once_and_no_target_is_one() {
    let mut world = World::new([service("a")], []);
    let warnings = vec![Warning { reason: "Deprecated".into(), message: "an old annotation".into() }];
    let extras = Extras { warnings, ..Extras::default() };
    world.cloud.always(Verb::Ensure, Some(Reply::Done(Ensured { extras, ..ensured() })));
    let running = start(&world);
    until("a is done", || world.is_done("a")).await;
    let said = world.reasons();
    assert_eq!(said.iter().filter(|it| *it == "Deprecated").count(), 1, "{said:?}");
    assert_eq!(said.iter().filter(|it| *it == events::UNAVAILABLE_LOAD_BALANCER).count(), 1, "{said:?}");
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn another_controllers_finalizer_stays_when_the_class_changes_hands() {
    let world = World::new([finished("a")], []);
    let running = start(&world);
    settle().await;
    // The API server lets a class be set when the type becomes LoadBalancer: the change away from it was missed.
    world.change("a", |service| {
        service["spec"]["loadBalancerClass"] = json!("example.com/other");
        service["status"]["loadBalancer"] = json!({ "ingress": [{ "ip": "203.0.113.99" }] });
    });
    until("ours is removed", || world.cloud.count(Verb::Delete) == 1).await;
    pass(SECOND * 60).await;
    let service = now(&world, "a");
    assert!(service.finalizers.contains(&names::LOAD_BALANCER_FINALIZER.to_owned()));
    assert!(!service.annotations.contains_key(annotations::LOAD_BALANCER_CLASS));
    assert_eq!(service.status.ingress.len(), 1, "the other controller's address");
    assert_eq!(world.cloud.mutations(), 1);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn two_classes_that_are_both_served_are_two_load_balancers_one_after_the_other() {
    let world = World::new([finished("a")], [node("n1")]);
    let classes = Classes { listed: ["example.com/b".to_owned()].into(), default: true };
    let running = start_with(&world, ServiceConfig { classes, ..config() });
    settle().await;
    world.change("a", |service| service["spec"]["loadBalancerClass"] = json!("example.com/b"));
    until("it was made anew", || world.cloud.count(Verb::Ensure) == 1).await;
    until("a is done", || world.is_done("a")).await;
    assert_eq!(world.cloud.verbs("a")[1..], [Verb::Delete, Verb::Ensure]);
    assert_eq!(now(&world, "a").annotations[annotations::LOAD_BALANCER_CLASS], "example.com/b");
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_is_behind_our_own_writes_is_not_believed() {
    let world = World::new([with(finished("a"), |it| it["spec"]["type"] = json!("ClusterIP"))], [node("n1")]);
    // Shows just what the test shows.
    let behind = Services::fixed(world.server.services());
    let shutdown = CancellationToken::new();
    let context = ServiceContext { services: behind.clone(), ..world.context() };
    let task = tokio::spawn(run(context, config(), shutdown.clone()));
    until("a is let go", || !now(&world, "a").has_finalizer()).await;
    for _ in 0..3 {
        behind.show((*behind.get("default/a").unwrap()).clone());
        pass(SECOND * 5).await;
    }
    behind.show(now(&world, "a"));
    pass(SECOND * 5).await;
    assert_eq!(world.cloud.verbs("a"), [Verb::Delete]);
    shutdown.cancel();
    task.await.unwrap();
}
