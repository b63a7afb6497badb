//! The driver in a world of its own: a scripted API server whose changes it hears of, and a scripted provider. Time is
//! virtual, and passes when everybody waits.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
pub mod fixtures;

use serde_json::json;
use tokio::task::JoinHandle;

use self::fixtures::{World, busy, error, machine, provider, tainted};
use super::*;
use crate::model::instance::Lookup;
use crate::model::node::{Node, Ready};
use crate::model::provider_info::Limits;
use crate::names::{events, taints};
use crate::provider::{self, Priority, ProviderState};
use tokio::time::Instant;

struct Running {
    shutdown: CancellationToken,
    task: JoinHandle<()>,
}

fn start(world: &World) -> Running {
    let shutdown = CancellationToken::new();
    let task = tokio::spawn(run(world.ctx.clone(), NodeConfig::default(), shutdown.clone()));
    Running { shutdown, task }
}

impl Running {
    async fn stop(self) {
        self.shutdown.cancel();
        self.task.await.unwrap();
    }
}

/// Waits until it is so, an hour of virtual time at most.
async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    for _ in 0..36_000 {
        if is_so() {
            return;
        }
        tokio::time::advance(Duration::from_millis(100)).await;
        settle().await;
    }
    panic!("it never came to pass that {what}");
}

/// Lets everybody do what can be done without time passing.
async fn settle() {
    for _ in 0..200 {
        tokio::task::yield_now().await;
    }
}

async fn pass(time: Duration) {
    let end = Instant::now() + time;
    while Instant::now() < end {
        tokio::time::advance(Duration::from_millis(500)).await;
        settle().await;
    }
}

fn is_initialized(world: &World, name: &str) -> bool {
    !world.server.node(name).is_uninitialized()
}

fn lookups(world: &World, name: &str, priority: Priority) -> usize {
    world.instances.asked().iter().filter(|asked| **asked == (name.to_owned(), priority)).count()
}

#[tokio::test(start_paused = true)]
async fn a_node_that_joins_is_initialised_by_one_look_up_and_two_writes() {
    let mut world = World::new([]);
    let running = start(&world);
    settle().await;
    world.put(tainted("a"));
    until("a is initialised", || is_initialized(&world, "a")).await;
    settle().await;
    assert_eq!(world.instances.asked(), [("a".to_owned(), Priority::Initialize)]);
    assert_eq!(world.server.node_writes("a"), ["PATCH status", "PATCH"]);
    assert_eq!(world.reasons(), [events::SYNCED]);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn all_waiting_nodes_are_asked_about_at_once() {
    const NODES: usize = 500;
    let world = World::new((0..NODES).map(|node| tainted(&format!("node-{node}"))));
    // Answers nobody until everybody has asked: with a bound on look-ups this would never end.
    world.instances.answer_together(NODES);
    let running = start(&world);
    until("all are initialised", || world.ctx.metrics.writes.get() == 2 * NODES as u64).await;
    assert_eq!((world.instances.asked().len(), world.ctx.metrics.conflicts.get()), (NODES, 0));
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_foreign_node_is_neither_asked_about_nor_written() {
    let mut foreign = tainted("foreign");
    foreign["spec"]["providerID"] = json!("other://1");
    let world = World::new([foreign, tainted("a")]);
    let running = start(&world);
    until("a is initialised", || is_initialized(&world, "a")).await;
    pass(Duration::from_mins(11)).await;
    assert!(world.server.node_writes("foreign").is_empty());
    assert!(world.instances.asked().iter().all(|(name, _)| name == "a"));
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_machine_that_shows_up_later_is_found() {
    let world = World::new([tainted("a")]);
    world.instances.reply("a", [Ok(Lookup::NotFound), Ok(Lookup::NotFound), Err(busy()), Ok(machine("a"))]);
    let running = start(&world);
    until("a is initialised", || is_initialized(&world, "a")).await;
    assert_eq!(lookups(&world, "a", Priority::Initialize), 4);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn heartbeats_cut_no_pause_short_and_cost_an_initialised_node_nothing() {
    let world = World::new([tainted("a"), tainted("b")]);
    world.instances.reply("a", [Err(error(provider::Outcome::Terminal))]);
    let running = start(&world);
    until("b is initialised", || is_initialized(&world, "b")).await;
    for name in ["a", "b"].repeat(20) {
        let node = world.server.node(name);
        world.ctx.nodes.show(Node { ready: Ready::True, ..node });
        settle().await;
    }
    assert_eq!((lookups(&world, "a", Priority::Initialize), lookups(&world, "b", Priority::Initialize)), (1, 1));
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn an_error_for_a_person_is_told_once_and_repeated_slowly() {
    let mut world = World::new([tainted("a")]);
    world.instances.reply("a", [Err(error(provider::Outcome::Terminal))]);
    let running = start(&world);
    until("it was asked three times", || lookups(&world, "a", Priority::Initialize) == 3).await;
    assert_eq!(world.reasons(), [events::CLOUD_LOOKUP_FAILED]);
    assert!(world.server.node_writes("a").is_empty());
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_refresh_that_the_cloud_refuses_is_told_in_readiness_until_one_succeeds() {
    let mut world = World::new([tainted("a")]);
    let running = start(&world);
    until("a is initialised", || is_initialized(&world, "a")).await;
    let refused = provider::ProviderError { reason: "CREDENTIALS_INVALID".to_owned(), ..error(provider::Outcome::Terminal) };
    world.instances.reply("a", [Err(refused), Ok(machine("a"))]);
    let credentials = |world: &World| world.ctx.health.checks().get("cloud-credentials").cloned();
    until("readiness tells", || matches!(credentials(&world), Some(Check::Warning(text)) if text.contains("a: "))).await;
    until("all is well", || credentials(&world) == Some(Check::Ok)).await;
    assert_eq!(world.reasons(), [events::SYNCED], "the node itself is in use");
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn an_unmanaged_node_is_left_alone_and_initialised_at_once_when_the_annotation_goes() {
    let mut aside = tainted("aside");
    aside["metadata"]["annotations"] = json!({ names::annotations::UNMANAGED: "true" });
    let world = World::new([aside, tainted("a")]);
    let running = start(&world);
    until("a is initialised", || is_initialized(&world, "a")).await;
    pass(Duration::from_mins(11)).await;
    assert!(world.instances.asked().iter().all(|(name, _)| name == "a"));
    assert!(world.server.node_writes("aside").is_empty());
    world.put(tainted("aside"));
    settle().await;
    assert!(is_initialized(&world, "aside"), "no time has passed");
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn the_warning_of_a_failed_look_up_ends_when_another_provider_claims_the_node() {
    for (claimed_during_the_look_up, asked_together) in [(false, 1), (true, 2)] {
        let world = World::new([tainted("a")]);
        world.instances.reply("a", [Err(error(provider::Outcome::Terminal))]);
        world.instances.answer_together(asked_together);
        let running = start(&world);
        settle().await;
        let look_ups = |world: &World| world.ctx.health.checks().get("cloud-look-ups").cloned();
        assert_eq!(matches!(look_ups(&world), Some(Check::Warning(_))), !claimed_during_the_look_up);
        let mut foreign = tainted("a");
        foreign["spec"]["providerID"] = json!("other://1");
        world.put(foreign);
        world.put(tainted("b"));
        settle().await;
        assert_eq!(look_ups(&world), Some(Check::Ok));
        running.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_without_a_provider_id_keeps_the_taint_and_a_later_one_removes_it() {
    let mut world = World::new([tainted("a")]);
    let Lookup::Found(without) = machine("a") else { panic!() };
    let without = Lookup::Found(Box::new(crate::model::instance::Instance { provider_id: None, ..*without }));
    world.instances.reply("a", [Ok(without.clone()), Ok(without), Ok(machine("a"))]);
    let running = start(&world);
    until("a is initialised", || is_initialized(&world, "a")).await;
    settle().await;
    assert_eq!(world.server.node_writes("a").len(), 2);
    assert_eq!(world.reasons(), [events::INVALID_PROVIDER_ANSWER, events::SYNCED]);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn every_initialised_node_is_refreshed_once_in_a_period_and_a_changed_address_is_written() {
    let mut world = World::new([tainted("a"), tainted("b")]);
    let Lookup::Found(mut moved) = machine("a") else { panic!() };
    moved.addresses[0].value = "10.0.0.2".into();
    moved.zone = Some("zone-b".into());
    world.instances.reply("a", [Ok(machine("a")), Ok(Lookup::Found(moved))]);
    let running = start(&world);
    until("both are initialised", || ["a", "b"].iter().all(|name| is_initialized(&world, name))).await;
    until("both were refreshed twice", || ["a", "b"].iter().all(|name| lookups(&world, name, Priority::Refresh) == 2)).await;
    settle().await;
    assert_eq!(world.server.node("a").addresses[0].value, "10.0.0.2");
    assert_eq!(world.server.node("a").zone(), Some("zone-a"));
    assert_eq!((world.server.node_writes("a").len(), world.server.node_writes("b").len()), (3, 2));
    assert_eq!(world.reasons(), [events::SYNCED, events::SYNCED, events::TOPOLOGY_DRIFT]);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn nothing_is_lost_while_the_provider_is_away() {
    let world = World::new([tainted("a")]);
    world.provider.send_replace(ProviderState::Disconnected { since: std::time::Instant::now(), message: String::new() });
    let running = start(&world);
    settle().await;
    world.put(tainted("b"));
    pass(Duration::from_mins(10)).await;
    assert!(world.instances.asked().is_empty());
    world.provider.send_replace(ProviderState::Ready(Arc::new(provider())));
    until("both are initialised", || ["a", "b"].iter().all(|name| is_initialized(&world, name))).await;
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_provider_that_returns_ends_every_pause() {
    let world = World::new([tainted("a")]);
    world.instances.reply("a", [Err(error(provider::Outcome::Terminal)), Ok(machine("a"))]);
    let running = start(&world);
    settle().await;
    assert_eq!(lookups(&world, "a", Priority::Initialize), 1);
    world.provider.send_replace(ProviderState::Unusable { message: String::new() });
    settle().await;
    world.provider.send_replace(ProviderState::Ready(Arc::new(provider())));
    settle().await;
    assert!(is_initialized(&world, "a"), "no time has passed");
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn without_the_lease_nothing_is_written_and_with_it_everything_is() {
    let world = World::new([tainted("a")]);
    let term = world.term.send_replace(None);
    let running = start(&world);
    pass(Duration::from_mins(1)).await;
    assert!(world.server.calls().is_empty());
    world.term.send_replace(term);
    until("a is initialised", || is_initialized(&world, "a")).await;
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_provider_without_look_ups_is_said_to_be_so_until_one_serves_them() {
    let world = World::new([tainted("a")]);
    let without = ProviderInfo { capabilities: [].into(), ..provider() };
    world.provider.send_replace(ProviderState::Ready(Arc::new(without)));
    let running = start(&world);
    pass(Duration::from_mins(20)).await;
    assert!(matches!(world.ctx.health.checks().get(names::controllers::NODE), Some(Check::Warning(_))));
    assert!(world.instances.asked().is_empty());
    world.provider.send_replace(ProviderState::Ready(Arc::new(provider())));
    until("a is initialised", || is_initialized(&world, "a")).await;
    assert!(world.ctx.health.checks().is_empty());
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_node_that_the_provider_calls_anothers_is_asked_about_once_in_minutes() {
    let world = World::new([tainted("a")]);
    world.instances.reply("a", [Ok(Lookup::NotMine(String::new()))]);
    let running = start(&world);
    pass(Duration::from_mins(20)).await;
    assert!((2..=15).contains(&world.instances.asked().len()), "{}", world.instances.asked().len());
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn one_nodes_unimplemented_or_rate_limited_answer_concerns_that_node_alone() {
    let mut world = World::new([tainted("a"), tainted("b")]);
    world.instances.reply("a", [Err(error(provider::Outcome::Unsupported)), Ok(machine("a"))]);
    let limited = provider::ProviderError {
        reason: "RATE_LIMITED".to_owned(),
        ..error(provider::Outcome::Retry { after: Some(Duration::from_mins(4)) })
    };
    world.instances.reply("b", [Err(limited), Ok(machine("b"))]);
    let running = start(&world);
    settle().await;
    world.put(tainted("c"));
    until("c is initialised", || is_initialized(&world, "c")).await;
    assert!(!world.ctx.health.checks().contains_key(names::controllers::NODE), "the provider serves look-ups");
    assert_eq!(world.reasons(), [events::CLOUD_LOOKUP_FAILED, events::SYNCED]);
    until("the others are initialised", || ["a", "b"].iter().all(|name| is_initialized(&world, name))).await;
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn nodes_that_wait_out_an_outage_wait_15_s_at_most_and_go_on_together() {
    const NODES: usize = 50;
    let name = |node: usize| format!("node-{node}");
    let world = World::new((0..NODES).map(|node| tainted(&name(node))));
    (0..NODES).for_each(|node| world.instances.reply(&name(node), [Err(busy())]));
    let running = start(&world);
    pass(Duration::from_mins(5)).await;
    let before: Vec<_> = (0..NODES).map(|node| lookups(&world, &name(node), Priority::Initialize)).collect();
    pass(Duration::from_secs(17)).await;
    assert!((0..NODES).all(|node| lookups(&world, &name(node), Priority::Initialize) > before[node]), "15 s, with all jitter");
    (0..NODES).for_each(|node| world.instances.reply(&name(node), [Ok(machine(&name(node)))]));
    until("one is initialised", || (0..NODES).any(|node| is_initialized(&world, &name(node)))).await;
    settle().await;
    assert!((0..NODES).all(|node| is_initialized(&world, &name(node))), "the others do not wait for their pauses");
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn node_tasks_in_flight_are_bounded_by_two_rounds_of_full_batches() {
    let limits = Limits { max_batch_size: 10, max_concurrent_instance_calls: 2, ..Limits::default() };
    let world = World::new((0..100).map(|node| tainted(&format!("node-{node}"))));
    world.provider.send_replace(ProviderState::Ready(Arc::new(ProviderInfo { limits, ..provider() })));
    world.instances.answer_together(41);
    let running = start(&world);
    settle().await;
    assert_eq!(world.instances.asked().len(), 40);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_node_that_joins_again_under_its_name_is_initialised_again() {
    let world = World::new([tainted("a")]);
    let running = start(&world);
    until("a is initialised", || is_initialized(&world, "a")).await;
    world.ctx.nodes.hide("a");
    let mut again = tainted("a");
    again["metadata"]["uid"] = json!("another");
    world.put(again);
    until("a is initialised again", || is_initialized(&world, "a")).await;
    assert_eq!(world.server.node_writes("a").len(), 4);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_failed_write_is_repeated() {
    let world = World::new([tainted("a")]);
    world.server.before_write(|_| Some(500));
    world.server.before_write(|_| None);
    world.server.before_write(|_| Some(503));
    let running = start(&world);
    until("a is initialised", || is_initialized(&world, "a")).await;
    assert_eq!(world.ctx.metrics.writes.get(), 2);
    assert!(!world.server.node("a").has_taint(taints::UNINITIALIZED));
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_write_that_the_api_server_refuses_for_good_is_told_once_and_repeated_slowly() {
    let mut world = World::new([tainted("a")]);
    (0..4).for_each(|_| world.server.before_write(|_| Some(422)));
    let (running, begun) = (start(&world), Instant::now());
    until("a is initialised", || is_initialized(&world, "a")).await;
    assert!(begun.elapsed() >= Duration::from_mins(1), "{:?}", begun.elapsed());
    assert_eq!(world.reasons(), [events::NODE_WRITE_REFUSED, events::SYNCED]);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn shutdown_ends_look_ups_that_nobody_answers() {
    let world = World::new([tainted("a")]);
    world.instances.answer_together(2);
    let running = start(&world);
    settle().await;
    assert_eq!(world.instances.asked().len(), 1);
    running.stop().await;
    assert!(world.server.calls().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_node_over_which_every_attempt_panics_is_tried_for_ever_and_holds_up_no_other() {
    let world = World::new([tainted("bad")]);
    world.instances.panic_over("bad");
    let running = start(&world);
    until("it was tried ten times", || lookups(&world, "bad", Priority::Initialize) >= 10).await;
    world.put(tainted("good"));
    until("the other is initialised", || is_initialized(&world, "good")).await;
    let before = lookups(&world, "bad", Priority::Initialize);
    pass(Duration::from_mins(10)).await;
    let after = lookups(&world, "bad", Priority::Initialize) - before;
    assert!((3..=12).contains(&after), "{after} attempts in ten minutes");
    world.instances.panic_over("");
    until("it is initialised once nothing panics", || is_initialized(&world, "bad")).await;
    running.stop().await;
}
