//! What is decided, as tables. Rows name what differs from a Service that is as asked.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod go;
mod standing;
mod written;

use std::sync::Arc;

use serde_json::{Value, json};

use super::*;
use crate::cluster::scripted::service_model;
use crate::cluster::view::Viewed;
use crate::controllers::service::observe::Applied;
use crate::controllers::service::targets::{EMPTY_FOR, Targets};
use crate::controllers::service::tests::fixtures::{finished, provider, with, without_plans};
use crate::model::provider_info::ProviderInfo;
use crate::model::target::Target;

/// Targets of these names; `trigger` where it is not the set's own.
fn targets(names: &[&str], trigger: Option<&str>) -> Targets {
    let set = set(names);
    Targets { trigger: trigger.map_or_else(|| Arc::clone(set.hash()), Arc::from), set, empty_since: None }
}

fn set(names: &[&str]) -> TargetSet {
    TargetSet::new(names.iter().map(|name| Target {
        name: (*name).to_owned(),
        uid: format!("uid-{name}"),
        provider_id: None,
        labels: [].into(),
        annotations: [].into(),
        taints: vec![],
        conditions: vec![],
        addresses: vec![],
        pod_cidrs: vec![],
        system_uuid: None,
        zone: None,
        region: None,
    }))
}

/// A Service as this controller leaves it, of which nothing is known yet, with two targets.
fn observed(service: Value) -> Observed {
    Observed {
        service: Arc::new(Service::from_object(serde_json::from_value(service).unwrap())),
        provider: Arc::new(provider()),
        classes: Arc::new(Classes { listed: ["served".to_owned()].into(), default: true }),
        targets: targets(&["n1", "n2"], None),
        known: Known::Nothing,
        changed: false,
        nodes_changed: false,
        turn: Turn::Usual,
        plans: true,
        drift: Drift::Report,
    }
}

/// It was made of the Service as it is and of these targets.
fn applied(observed: &Observed, made_of: &Targets) -> Known {
    Known::Applied(Applied {
        fingerprint: fingerprint(&observed.service),
        trigger: Arc::clone(&made_of.trigger),
        set: made_of.set.clone(),
        drifted: false,
        unsure: false,
    })
}

/// The same, known to be as asked.
fn as_asked(service: Value) -> Observed {
    let observed = observed(service);
    Observed { known: applied(&observed, &observed.targets), ..observed }
}

fn ensure(names: &[&str], lane: Lane) -> Step {
    Step::Ensure { set: set(names), lane }
}

fn now(observed: &Observed) -> Step {
    decide(observed, Instant::now())
}

/// Wanted, not begun.
fn fresh() -> Value {
    with(finished("s"), |it| {
        it["metadata"]["finalizers"] = json!([]);
        it["metadata"]["annotations"] = json!({});
        it["status"] = json!({});
    })
}

fn failed() -> Value {
    with(finished("s"), |it| it["status"]["conditions"][0]["status"] = json!("False"))
}

fn without_condition() -> Value {
    with(finished("s"), |it| it["status"]["conditions"] = json!([]))
}

fn without_address() -> Value {
    with(finished("s"), |it| it["status"]["loadBalancer"] = json!({}))
}

fn just_held() -> Value {
    with(without_condition(), |it| it["status"]["loadBalancer"] = json!({}))
}

fn not_held(service: Value) -> Value {
    with(service, |it| it["metadata"]["finalizers"] = json!([]))
}

fn other_port(service: Value) -> Value {
    with(service, |it| it["spec"]["ports"][0]["port"] = json!(81))
}

#[test]
fn what_is_not_known_is_planned_where_it_was_finished_and_made_where_it_was_not() {
    let both = &["n1", "n2"];
    for (name, service, with_plans, without) in [
        ("as we leave it", finished("s"), Step::Check(Purpose::Restart), ensure(both, Lane::Paced)),
        ("as Go leaves it", without_condition(), Step::Check(Purpose::Restart), ensure(both, Lane::Paced)),
        ("new", fresh(), ensure(both, Lane::Change), ensure(both, Lane::Change)),
        ("without an address, which is as asked", without_address(), Step::Check(Purpose::Restart), ensure(both, Lane::Paced)),
        ("held, and no more", just_held(), ensure(both, Lane::Change), ensure(both, Lane::Change)),
        ("failing", failed(), ensure(both, Lane::Change), ensure(both, Lane::Change)),
    ] {
        assert_eq!(now(&observed(service.clone())), with_plans, "{name}");
        assert_eq!(now(&Observed { plans: false, ..observed(service) }), without, "{name}, without plans");
    }
}

#[test]
fn what_is_known_decides_for_a_finished_service() {
    let both = &["n1", "n2"];
    let it = observed(finished("s"));
    let elsewhere = Known::Elsewhere(fingerprint(&it.service));
    for (known, step) in [
        (Known::Doubt, ensure(both, Lane::Again)),
        (Known::Failed(Failed::default()), ensure(both, Lane::Again)),
        (Known::Differs, ensure(both, Lane::Targets)),
        (Known::InTurn, ensure(both, Lane::Paced)),
        (Known::Elsewhere(1), ensure(both, Lane::Change)),
        (elsewhere, Step::Nothing),
        (applied(&it, &it.targets), Step::Nothing),
        (applied(&it, &targets(&["n1"], None)), Step::Update { lane: Lane::Targets }),
        (applied(&it, &targets(&[], None)), Step::Update { lane: Lane::Targets }),
    ] {
        assert_eq!(now(&Observed { known: known.clone(), ..it.clone() }), step, "{known:?}");
    }
    for other in [other_port(finished("s")), not_held(finished("s"))] {
        let changed = Observed { service: Arc::new(service_model(&other)), ..as_asked(finished("s")) };
        assert_eq!(now(&changed), ensure(both, Lane::Change), "{other}");
    }
}

#[test]
fn an_update_of_which_the_end_is_not_known_goes_on_even_if_its_targets_are_asked_for_no_more() {
    let it = as_asked(finished("s"));
    let Known::Applied(applied) = it.known.clone() else { panic!() };
    let it = Observed { known: Known::Applied(Applied { unsure: true, ..applied }), ..it };
    assert_eq!(now(&it), Step::Update { lane: Lane::Again });
}

#[test]
fn nodes_that_changed_since_a_restart_do_not_wait_for_everybodys_turn() {
    for known in [Known::Nothing, Known::InTurn] {
        let it = Observed { known, plans: false, ..observed(finished("s")) };
        assert_eq!(now(&it), ensure(&["n1", "n2"], Lane::Paced));
        assert_eq!(now(&Observed { nodes_changed: true, ..it }), ensure(&["n1", "n2"], Lane::Targets));
    }
}

#[test]
fn during_a_pause_only_other_targets_are_given_and_the_same_are_not_tried_twice() {
    let update = Step::Update { lane: Lane::Targets };
    let paused = |service, known| Observed { known, turn: Turn::Pause, ..observed(service) };
    let left = |had: Option<&Targets>, tried: Option<&[&str]>| {
        let made_of = |targets| match applied(&observed(finished("s")), targets) {
            Known::Applied(applied) => applied,
            other => panic!("{other:?}"),
        };
        Known::Failed(Failed { refused: true, applied: had.map(made_of), tried: tried.map(set) })
    };
    let (both, one) = (targets(&["n1", "n2"], None), targets(&["n1"], None));
    for (name, it, step) in [
        ("it has other targets", paused(failed(), left(Some(&one), None)), update.clone()),
        ("nobody knows which it has", paused(failed(), left(None, None)), update.clone()),
        ("it has these", paused(failed(), left(Some(&both), None)), Step::Rest),
        ("these were tried", paused(failed(), left(Some(&one), Some(&["n1", "n2"]))), Step::Rest),
        ("others were tried", paused(failed(), left(Some(&one), Some(&["n1"]))), update),
        ("it has no address", paused(just_held(), left(None, None)), Step::Rest),
        ("the cloud is away", paused(failed(), Known::Failed(Failed::default())), Step::Rest),
        ("nobody knows how it is", paused(failed(), Known::Doubt), Step::Rest),
        ("it was finished before", paused(finished("s"), Known::Nothing), Step::Rest),
    ] {
        assert_eq!(now(&it), step, "{name}");
        let gone = with(finished("s"), |it| it["metadata"]["deletionTimestamp"] = json!("2024-05-06T07:08:09Z"));
        let going = Observed { service: Arc::new(service_model(&gone)), ..it };
        assert_eq!(now(&going), Step::Rest, "{name}, and its deletion pauses");
    }
    let none = Targets { empty_since: Some(Instant::now()), ..targets(&[], None) };
    let vanished = Observed { targets: none, ..paused(failed(), left(Some(&one), None)) };
    assert!(matches!(now(&vanished), Step::Wait(_)));
}

#[test]
fn what_goes_on_has_a_lane_of_its_own_until_the_user_changes_something() {
    for service in [fresh(), just_held(), failed(), finished("s")] {
        for known in [Known::Doubt, Known::Failed(Failed::default())] {
            let it = Observed { known, ..observed(service.clone()) };
            assert_eq!(now(&it), ensure(&["n1", "n2"], Lane::Again));
            assert_eq!(now(&Observed { changed: true, ..it }), ensure(&["n1", "n2"], Lane::Change));
        }
    }
}

#[test]
fn what_a_user_changes_goes_first_whatever_is_known() {
    for (plans, known) in
        [(true, Known::Nothing), (false, Known::Nothing), (true, Known::Differs), (true, Known::Doubt), (false, Known::Doubt)]
    {
        let before = Observed { known, plans, ..observed(finished("s")) };
        assert_ne!(now(&before), ensure(&["n1", "n2"], Lane::Change), "{before:?}");
        assert_eq!(now(&Observed { changed: true, ..before }), ensure(&["n1", "n2"], Lane::Change));
    }
}

#[test]
fn targets_are_updated_where_nodes_came_or_went_and_the_set_is_another() {
    // The trigger of two nodes, one of which may be about to go.
    let both = targets(&["n1", "n2"], Some("n1+n2"));
    let one_goes = targets(&["n1"], Some("n1+n2"));
    let one = targets(&["n1"], Some("n1"));
    let other = targets(&["n1", "n3"], Some("n1+n2+n3"));
    for (name, made_of, present, step) in [
        ("nothing changed", &both, &both, Step::Nothing),
        ("one is about to go", &both, &one_goes, Step::Nothing),
        ("it went, and was left out already", &one_goes, &one, Step::Nothing),
        ("it went, and was a target until then", &both, &one, Step::Update { lane: Lane::Targets }),
        ("another came, and it is left out", &both, &other, Step::Update { lane: Lane::Targets }),
        ("it stays after all, and was left out", &one_goes, &both, Step::Update { lane: Lane::Targets }),
        ("one came", &one, &both, Step::Update { lane: Lane::Targets }),
    ] {
        let it = observed(finished("s"));
        let it = Observed { known: applied(&it, made_of), targets: present.clone(), ..it };
        assert_eq!(now(&it), step, "{name}");
    }
}

#[test]
fn no_target_is_not_believed_at_once() {
    let at = Instant::now();
    let none = Targets { empty_since: Some(at), ..targets(&[], None) };
    let had_some = |service| {
        let it = as_asked(service);
        Observed { targets: none.clone(), ..it }
    };
    let had_none = |service| {
        let it = Observed { targets: none.clone(), ..observed(service) };
        Observed { known: applied(&it, &targets(&[], Some("another"))), ..it }
    };
    let unknown = |service| Observed { targets: none.clone(), ..observed(service) };
    let changed = |it: Observed| Observed { service: Arc::new(service_model(&other_port(finished("s")))), ..it };
    let half = EMPTY_FOR / 2;
    for (name, it, young, old) in [
        ("it had some", had_some(finished("s")), Step::Wait(half), Step::Update { lane: Lane::Targets }),
        ("it had none", had_none(finished("s")), Step::Nothing, Step::Nothing),
        ("not known, finished", unknown(finished("s")), Step::Wait(half), Step::Check(Purpose::Restart)),
        ("not known, new", unknown(fresh()), ensure(&[], Lane::Change), ensure(&[], Lane::Change)),
        (
            "it had some, and changed",
            changed(had_some(finished("s"))),
            ensure(&["n1", "n2"], Lane::Change),
            ensure(&[], Lane::Change),
        ),
        ("differs", Observed { known: Known::Differs, ..unknown(finished("s")) }, Step::Wait(half), ensure(&[], Lane::Targets)),
        ("doubt", Observed { known: Known::Doubt, ..unknown(finished("s")) }, Step::Wait(half), ensure(&[], Lane::Again)),
        ("failing", Observed { known: Known::Doubt, ..unknown(failed()) }, Step::Wait(half), ensure(&[], Lane::Again)),
        ("failing, not known", unknown(failed()), Step::Wait(half), ensure(&[], Lane::Change)),
    ] {
        assert_eq!(decide(&it, at + half), young, "{name}, after 15 s");
        assert_eq!(decide(&it, at + EMPTY_FOR), old, "{name}, after 30 s");
    }
}

#[test]
fn deletion_waits_for_nobody() {
    let deleted = with(finished("s"), |it| it["metadata"]["deletionTimestamp"] = json!("2024-05-06T07:08:09Z"));
    let changed = with(finished("s"), |it| it["spec"]["type"] = json!("ClusterIP"));
    for service in [deleted, changed] {
        let it = observed(service);
        let none = Targets { empty_since: Some(Instant::now()), ..targets(&[], None) };
        for (known, lane) in [
            (Known::Nothing, Lane::Change),
            (Known::Doubt, Lane::Again),
            (Known::Differs, Lane::Change),
            (Known::Elsewhere(fingerprint(&it.service)), Lane::Change),
            (applied(&it, &none), Lane::Change),
        ] {
            let it = Observed { known, targets: none.clone(), ..it.clone() };
            assert_eq!(now(&it), Step::Delete { keeps_finalizer: false, lane });
            assert_eq!(now(&Observed { changed: true, ..it }), Step::Delete { keeps_finalizer: false, lane: Lane::Change });
        }
    }
}

#[test]
fn drift_is_looked_for_where_it_is_due_wanted_and_possible() {
    let due = Observed { turn: Turn::Check, ..as_asked(finished("s")) };
    for (name, it, step) in [
        ("report", due.clone(), Step::Check(Purpose::Drift)),
        ("repair", Observed { drift: Drift::Repair, ..due.clone() }, Step::Check(Purpose::Drift)),
        ("off", Observed { drift: Drift::Off, ..due.clone() }, Step::Nothing),
        ("not due", Observed { turn: Turn::Usual, ..due.clone() }, Step::Nothing),
        ("no plans", Observed { plans: false, provider: Arc::new(without_plans()), ..due.clone() }, Step::Nothing),
        ("targets come first", Observed { targets: targets(&["n1"], None), ..due.clone() }, Step::Update { lane: Lane::Targets }),
        ("somebody else makes it", Observed { known: Known::Elsewhere(fingerprint(&due.service)), ..due.clone() }, Step::Nothing),
        (
            "not ours",
            Observed { service: Arc::new(service_model(&with(fresh(), |it| it["spec"]["type"] = json!("ClusterIP")))), ..due },
            Step::Nothing,
        ),
    ] {
        assert_eq!(now(&it), step, "{name}");
    }
}

#[test]
fn a_provider_without_load_balancers_freezes_what_is_unfinished_and_lets_the_rest_rest() {
    let unsupported = || Step::Frozen(Frozen::Unsupported);
    let deleted = with(finished("s"), |it| it["metadata"]["deletionTimestamp"] = json!("2024-05-06T07:08:09Z"));
    let not_ours = with(fresh(), |it| it["spec"]["type"] = json!("ClusterIP"));
    for (name, it, step) in [
        ("new", observed(fresh()), unsupported()),
        ("failing", observed(failed()), unsupported()),
        ("deleted", observed(deleted), unsupported()),
        ("finished", observed(finished("s")), Step::Nothing),
        ("known to be as asked", as_asked(without_address()), Step::Nothing),
        ("other targets", Observed { targets: targets(&["n1"], None), ..as_asked(finished("s")) }, Step::Nothing),
        ("not ours", observed(not_ours), Step::Nothing),
    ] {
        let it = Observed { provider: Arc::new(ProviderInfo::default()), ..it };
        assert_eq!(now(&it), step, "{name}");
    }
}

#[test]
fn every_step_that_does_something_has_a_lane() {
    for (step, lane) in [
        (Step::Nothing, None),
        (Step::Frozen(Frozen::Unsupported), None),
        (Step::Wait(EMPTY_FOR), None),
        (Step::Delete { keeps_finalizer: false, lane: Lane::Change }, Some(Lane::Change)),
        (ensure(&[], Lane::Paced), Some(Lane::Paced)),
        (Step::Update { lane: Lane::Targets }, Some(Lane::Targets)),
        (Step::Check(Purpose::Drift), Some(Lane::Check)),
    ] {
        assert_eq!(step.lane(), lane);
    }
}

#[test]
fn a_pause_is_bound_to_what_a_person_changes_and_not_to_our_own_writes() {
    let before = service_model(&fresh());
    let held = service_model(&with(finished("s"), |it| it["status"] = json!({})));
    assert_eq!(seen(&before), seen(&held), "the finalizer and the class are our own");
    assert_eq!(seen(&before), seen(&service_model(&failed())), "and so is the status");
    assert_ne!(seen(&before), seen(&service_model(&other_port(fresh()))));
    let deleted = with(finished("s"), |it| it["metadata"]["deletionTimestamp"] = json!("2024-05-06T07:08:09Z"));
    assert_ne!(seen(&before), seen(&service_model(&deleted)));
}
