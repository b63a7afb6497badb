//! The state machine, row by row, and what a lagging reader sees.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
use super::*;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_000_000 + second).unwrap()
}

fn change(action: Action, names: &[&str]) -> Change {
    Change { action, instances: names.iter().map(|&name| Spec::named(name)).collect() }
}

fn after(world: &World, actions: &[(Action, &str)]) -> World {
    actions.iter().fold(world.clone(), |world, (action, name)| world.apply(&change(*action, &[name]), at(0)).unwrap())
}

fn ask(world: &World, name: &str, second: i64) -> Outcome {
    let query = Query { name: name.to_owned(), provider_id: None };
    world.answer(&[query], at(second)).remove(0)
}

fn state(outcome: &Outcome) -> Option<State> {
    if let Outcome::Found(machine) = outcome { Some(machine.state) } else { None }
}

#[test]
fn every_state_and_action_ends_where_the_table_says() {
    use Action::{Start, Stop, Terminate};
    use State::{Deleted, Pending, Running, Stopped};
    let table = [
        (Pending, Start, Some(Running)),
        (Pending, Stop, Some(Stopped)),
        (Running, Stop, Some(Stopped)),
        (Running, Start, Some(Running)),
        (Stopped, Start, Some(Running)),
        (Stopped, Stop, Some(Stopped)),
        (Stopped, Terminate, Some(Deleted)),
        (Running, Terminate, Some(Deleted)),
        (Deleted, Terminate, Some(Deleted)),
        (Deleted, Start, None),
        (Deleted, Stop, None),
    ];
    for (from, action, to) in table {
        let machine = derive::instance(&Layout::default(), 0, &Spec { state: Some(from), ..Spec::named("a") });
        let reached = transition(action, machine).ok().flatten().map(|machine| machine.state);
        assert_eq!(reached, to, "{from} {action}");
    }
}

#[test]
fn a_terminated_machine_keeps_its_record_and_a_forgotten_one_does_not() {
    let world = after(&World::default(), &[(Action::Add, "a"), (Action::Terminate, "a")]);
    assert_eq!(state(&ask(&world, "a", 1)), Some(State::Deleted));
    let world = after(&world, &[(Action::Forget, "a")]);
    assert_eq!(ask(&world, "a", 1), Outcome::NotFound);
    assert!(world.stored().is_empty());
}

#[test]
fn a_hidden_machine_is_denied_to_providers_and_still_there() {
    let world = after(&World::default(), &[(Action::Add, "a"), (Action::Hide, "a")]);
    assert_eq!(ask(&world, "a", 1), Outcome::NotFound);
    assert!(world.truth("a").unwrap().hidden);
    let world = after(&world, &[(Action::Unhide, "a")]);
    assert_eq!(state(&ask(&world, "a", 1)), Some(State::Running));
}

#[test]
fn a_machine_that_is_there_cannot_be_added_again_and_a_terminated_one_can() {
    let world = after(&World::default(), &[(Action::Add, "a")]);
    assert_eq!(world.apply(&change(Action::Add, &["a"]), at(0)).unwrap_err().code, FailureCode::Conflict);
    let world = after(&world, &[(Action::Terminate, "a"), (Action::Add, "a")]);
    assert_eq!(state(&ask(&world, "a", 1)), Some(State::Running));
}

#[test]
fn an_unknown_name_is_named_and_stops_the_whole_change() {
    let world = after(&World::default(), &[(Action::Add, "a")]);
    let failure = world.apply(&change(Action::Stop, &["a", "b", "c"]), at(0)).unwrap_err();
    assert_eq!(failure.code, FailureCode::Unknown);
    assert!(failure.message.contains("b, c"), "{failure}");
    assert_eq!(state(&ask(&world, "a", 1)), Some(State::Running));
}

#[test]
fn a_zone_that_is_not_there_is_refused_with_the_ones_that_are() {
    let moon = Spec { zone: Some("moon".into()), ..Spec::named("b") };
    let change = Change { action: Action::Add, instances: vec![Spec::named("a"), moon] };
    let failure = World::default().apply(&change, at(0)).unwrap_err();
    assert!(failure.message.contains("instances[1].zone") && failure.message.contains("sim-1a"), "{failure}");
}

#[test]
fn a_change_is_seen_once_the_lag_has_passed() {
    let lagging = World { lag: Duration::from_secs(2), ..World::default() };
    let world = lagging.apply(&change(Action::Add, &["a"]), at(0)).unwrap();
    let world = world.apply(&change(Action::Stop, &["a"]), at(1)).unwrap();
    let seen: Vec<_> = [1, 2, 3].map(|second| state(&ask(&world, "a", second))).into();
    assert_eq!(seen, [None, Some(State::Running), Some(State::Stopped)]);
    assert_eq!(world.truth("a").unwrap().state, State::Stopped);
}

#[test]
fn versions_that_nobody_can_see_any_more_are_dropped() {
    let mut world = World { lag: Duration::from_secs(2), auto: true, ..World::default() };
    for second in 0..100 {
        let action = if second % 2 == 0 { Action::Stop } else { Action::Start };
        world = world.apply(&change(action, &["a"]), at(second)).unwrap();
    }
    assert!(world.slots["a"].versions.len() <= 4, "{:?}", world.slots["a"].versions.len());
}

#[test]
fn with_auto_any_name_has_a_machine_until_it_is_forgotten() {
    let world = World { auto: true, ..World::default() };
    assert_eq!(state(&ask(&world, "x", 1)), Some(State::Running));
    let first = world.truth("x").unwrap().provider_id;
    let world = after(&world, &[(Action::Forget, "x"), (Action::Forget, "x")]);
    assert_eq!(ask(&world, "x", 1), Outcome::NotFound);
    let world = after(&world, &[(Action::Add, "x")]);
    assert_ne!(world.truth("x").unwrap().provider_id, first);
    let world = after(&world, &[(Action::Hide, "y")]);
    assert_eq!(ask(&world, "y", 1), Outcome::NotFound);
}

#[test]
fn a_provider_id_decides_over_the_name() {
    let world = after(&World::default(), &[(Action::Add, "a"), (Action::Add, "b")]);
    let id = world.truth("b").unwrap().provider_id;
    let query = |name: &str, id: &str| Query { name: name.into(), provider_id: Some(id.into()) };
    let asked = [query("b", &id), query("renamed", &id), query("a", "simulated://sim-1a/i-0"), query("a", "aws:///i-1")];
    let answers = world.answer(&asked, at(1));
    let names: Vec<_> = answers.iter().map(|a| if let Outcome::Found(m) = a { m.name.as_str() } else { "" }).collect();
    assert_eq!(names, ["b", "b", "", ""]);
    assert_eq!(answers[2], Outcome::NotFound);
    assert!(matches!(answers[3], Outcome::NotMine(_)));
}
