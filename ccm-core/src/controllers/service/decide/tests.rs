//! What is decided, as tables. Rows name what differs from a Service in the desired state.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod go;
mod ownership;
mod written;

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::ownership::{Classes, Ownership, ownership};
use super::*;
use crate::cluster::scripted::service_model;
use crate::cluster::view::Viewed;
use crate::config::services::Drift;
use crate::controllers::scheduler::retry::Pause;
use crate::controllers::service::PAUSES;
use crate::controllers::service::memory::{Given, Memory};
use crate::controllers::service::targets::{EMPTY_TARGET_GRACE, Targets};
use crate::controllers::service::tests::fixtures::{finished, provider, with, without_plans};
use crate::model::provider_info::ProviderInfo;
use crate::model::target::{Target, TargetSet};

/// Targets of these names; the hash of all candidates where it is not the set's own.
fn targets(names: &[&str], candidates: Option<&str>) -> Targets {
    let set = set(names);
    let candidates = candidates.map_or_else(|| Arc::clone(set.hash()), Arc::from);
    Targets { candidates, set, additions: 0, empty_since: None }
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
    let service = Arc::new(Service::from_object(serde_json::from_value(service).unwrap()));
    let targets = targets(&["n1", "n2"], None);
    let mut memory = Memory::new(&service);
    memory.see_targets(&targets);
    let classes = Arc::new(Classes { listed: ["served".to_owned()].into(), default: true });
    Observed { service, provider: Arc::new(provider()), classes, targets, memory, drift: Drift::Report }
}

/// The same, knowing this.
fn knowing(definition: Definition, observed: Observed) -> Observed {
    Observed { memory: Memory { definition, ..observed.memory.clone() }, ..observed }
}

/// The same, given these targets.
fn given(had: Option<&Targets>, observed: Observed) -> Observed {
    let targets = Given { had: had.cloned(), unsure: false };
    Observed { memory: Memory { targets, ..observed.memory.clone() }, ..observed }
}

/// The same, with targets of which the end is not known.
fn unsure(observed: Observed) -> Observed {
    let targets = Given { unsure: true, ..observed.memory.targets.clone() };
    Observed { memory: Memory { targets, ..observed.memory.clone() }, ..observed }
}

/// The same, after a user changed something.
fn changed(observed: Observed) -> Observed {
    Observed { memory: Memory { seen: !observed.memory.seen, ..observed.memory.clone() }, ..observed }
}

/// The same, while its pause lasts.
fn pausing(observed: Observed) -> Observed {
    let mut memory = observed.memory.clone();
    memory.definition_retry.again(Pause::Exactly(PAUSE), seen(&observed.service), &PAUSES, Instant::now());
    Observed { memory, ..observed }
}

fn without(observed: Observed) -> Observed {
    Observed { provider: Arc::new(without_plans()), ..observed }
}

fn made(observed: &Observed) -> Definition {
    Definition::InDesiredState { fingerprint: fingerprint(&observed.service), drifted: false }
}

/// It was made of the Service as it is, and of these targets.
fn made_of(had: &Targets, observed: Observed) -> Observed {
    given(Some(had), knowing(made(&observed), observed))
}

/// In the desired state.
fn settled(service: Value) -> Observed {
    let observed = observed(service);
    made_of(&observed.targets.clone(), observed)
}

const PAUSE: Duration = Duration::from_hours(1);
const UPDATE: Step = Step::UpdateTargets { priority: Priority::Targets };

fn ensure(names: &[&str], priority: Priority) -> Step {
    Step::Ensure { targets: targets(names, None), priority }
}

fn both(priority: Priority) -> Step {
    ensure(&["n1", "n2"], priority)
}

fn now(observed: &Observed) -> Step {
    decide(observed, Instant::now())
}

fn is_paused(observed: &Observed) -> bool {
    matches!(now(observed), Step::NotBefore(_))
}

fn deleted() -> Value {
    with(finished("s"), |it| it["metadata"]["deletionTimestamp"] = json!("2024-05-06T07:08:09Z"))
}

fn retyped() -> Value {
    with(finished("s"), |it| it["spec"]["type"] = json!("ClusterIP"))
}

/// Wanted, not begun.
fn fresh() -> Value {
    with(finished("s"), |it| {
        it["metadata"]["finalizers"] = json!([]);
        it["metadata"]["annotations"] = json!({});
        it["status"] = json!({});
    })
}

fn failing() -> Value {
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
fn what_was_never_ensured_is_planned_where_it_was_finished_and_made_where_it_was_not() {
    let plan = || Step::Plan(Purpose::Restart);
    for (name, service, with_plans, without_them) in [
        ("as we leave it", finished("s"), plan(), both(Priority::Paced)),
        ("as upstream leaves it", without_condition(), plan(), both(Priority::Paced)),
        ("new", fresh(), both(Priority::Change), both(Priority::Change)),
        ("without an address, as the user wants it", without_address(), plan(), both(Priority::Paced)),
        ("with the finalizer, and no more", just_held(), both(Priority::Change), both(Priority::Change)),
        ("failing", failing(), both(Priority::Change), both(Priority::Change)),
    ] {
        let it = observed(service);
        assert_eq!(now(&it), with_plans, "{name}");
        assert_eq!(now(&without(it.clone())), without_them, "{name}, without plans");
        let unimplemented = Observed { memory: Memory { plans_unimplemented: true, ..it.memory.clone() }, ..it };
        assert_eq!(now(&unimplemented), without_them, "{name}, without plans for this one");
    }
}

#[test]
fn what_is_known_decides_for_a_finished_service() {
    let it = observed(finished("s"));
    let elsewhere = |fingerprint| Definition::ImplementedElsewhere { fingerprint };
    for (definition, step) in [
        (Definition::Unknown, both(Priority::Again)),
        (Definition::Refused, both(Priority::Again)),
        (Definition::Differs, both(Priority::Targets)),
        (Definition::InTurn, both(Priority::Paced)),
        (elsewhere(1), both(Priority::Change)),
        (elsewhere(fingerprint(&it.service)), Step::Nothing),
    ] {
        assert_eq!(now(&knowing(definition, it.clone())), step, "{definition:?}");
    }
    for (had, step) in [(&it.targets, Step::Nothing), (&targets(&["n1"], None), UPDATE), (&targets(&[], None), UPDATE)] {
        assert_eq!(now(&made_of(had, it.clone())), step, "{had:?}");
    }
    for other in [other_port(finished("s")), not_held(finished("s"))] {
        let changed = Observed { service: Arc::new(service_model(&other)), ..settled(finished("s")) };
        assert_eq!(now(&changed), both(Priority::Change), "{other}");
    }
}

#[test]
fn an_update_of_which_the_end_is_not_known_goes_on_even_if_its_targets_are_asked_for_no_more() {
    assert_eq!(now(&unsure(settled(finished("s")))), Step::UpdateTargets { priority: Priority::Again });
}

#[test]
fn nodes_that_changed_since_a_restart_do_not_wait_for_everybodys_turn() {
    for definition in [Definition::NeverEnsured, Definition::InTurn] {
        let it = without(knowing(definition, observed(finished("s"))));
        assert_eq!(now(&it), both(Priority::Paced));
        let memory = Memory { first_candidates: Some(Arc::from("others")), ..it.memory.clone() };
        assert_eq!(now(&Observed { memory, ..it }), both(Priority::Targets));
    }
}

#[test]
fn during_a_pause_only_other_targets_are_given_and_the_same_are_not_tried_twice() {
    let left = |had: Option<&Targets>, service| pausing(given(had, knowing(Definition::Refused, observed(service))));
    let tried = |names: &[&str], it: Observed| {
        let mut memory = it.memory.clone();
        memory.targets_retry.wait_with(&it.memory.definition_retry, targets(names, None).retry_key());
        Observed { memory, ..it }
    };
    let (two, one) = (targets(&["n1", "n2"], None), targets(&["n1"], None));
    for (name, it, updates) in [
        ("it has other targets", left(Some(&one), failing()), true),
        ("which it has is not known", left(None, failing()), true),
        ("whether it has these is not known", unsure(left(Some(&two), failing())), true),
        ("it has these", left(Some(&two), failing()), false),
        ("these were tried", tried(&["n1", "n2"], left(Some(&one), failing())), false),
        ("others were tried", tried(&["n1"], left(Some(&one), failing())), true),
        ("it has no address", left(None, just_held()), false),
        ("the cloud is away", knowing(Definition::Unknown, left(Some(&one), failing())), false),
        ("a plan failed", knowing(Definition::NeverEnsured, left(None, finished("s"))), false),
        ("the cloud is at work on an update", unsure(pausing(settled(finished("s")))), false),
    ] {
        assert_eq!((now(&it) == UPDATE, is_paused(&it)), (updates, !updates), "{name}");
        let other = changed(it.clone());
        assert!(!is_paused(&Observed { service: Arc::new(service_model(&other_port(failing()))), ..other }), "{name}: changed");
    }
    let none = Targets { empty_since: Some(Instant::now()), ..targets(&[], None) };
    assert!(is_paused(&Observed { targets: none, ..left(Some(&one), failing()) }), "no target is not believed at once");
    for service in [deleted(), retyped()] {
        assert!(is_paused(&pausing(knowing(Definition::Unknown, observed(service)))), "a deletion pauses, too");
    }
}

#[test]
fn what_goes_on_has_a_priority_of_its_own_until_the_user_changes_something() {
    for service in [fresh(), just_held(), failing(), finished("s")] {
        for definition in [Definition::Unknown, Definition::Refused] {
            let it = knowing(definition, observed(service.clone()));
            assert_eq!(now(&it), both(Priority::Again));
            assert_eq!(now(&changed(it)), both(Priority::Change));
        }
    }
}

#[test]
fn what_a_user_changes_goes_first_whatever_is_known() {
    for definition in
        [Definition::NeverEnsured, Definition::Differs, Definition::Unknown, Definition::Refused, Definition::InTurn]
    {
        let before = knowing(definition, observed(finished("s")));
        for before in [before.clone(), without(before)] {
            assert_ne!(now(&before), both(Priority::Change), "{before:?}");
            assert_eq!(now(&changed(before)), both(Priority::Change));
        }
    }
}

#[test]
fn targets_are_updated_where_nodes_came_or_went_and_the_set_is_another() {
    // The candidates are two nodes, one of which may be about to go.
    let added = |targets: Targets| Targets { additions: 1, ..targets };
    let two = targets(&["n1", "n2"], Some("n1+n2"));
    let one_goes = targets(&["n1"], Some("n1+n2"));
    let one = targets(&["n1"], Some("n1"));
    let other = added(targets(&["n1", "n3"], Some("n1+n2+n3")));
    for (name, had, present, step) in [
        ("nothing changed", &two, &two, Step::Nothing),
        ("one is about to go", &two, &one_goes, Step::Nothing),
        ("it went, and was left out already", &one_goes, &one, Step::Nothing),
        ("it went, and was a target until then", &two, &one, UPDATE),
        ("another came, and it is left out", &two, &other, UPDATE),
        ("it stays after all, and was left out", &one_goes, &added(two.clone()), UPDATE),
        ("one came", &one, &added(two.clone()), UPDATE),
    ] {
        assert_eq!(now(&Observed { targets: present.clone(), ..made_of(had, observed(finished("s"))) }), step, "{name}");
    }
}

#[test]
fn a_node_that_was_about_to_go_twice_drains_the_second_time_too() {
    let two = targets(&["n1", "n2"], Some("n1+n2"));
    let stayed = Targets { additions: 1, ..two.clone() };
    let goes_again = Targets { additions: 1, ..targets(&["n1"], Some("n1+n2")) };
    let mut it = made_of(&two, observed(finished("s")));
    it.memory.see_targets(&stayed);
    assert_eq!(now(&Observed { targets: goes_again, ..it }), Step::Nothing);
}

#[test]
fn no_target_is_not_believed_at_once() {
    let at = Instant::now();
    let none = Targets { empty_since: Some(at), ..targets(&[], None) };
    let without_nodes = |it: Observed| Observed { targets: none.clone(), ..it };
    let had_some = without_nodes(settled(finished("s")));
    let unknown = |service| without_nodes(observed(service));
    let known = |definition, service| knowing(definition, unknown(service));
    let changed = Observed { service: Arc::new(service_model(&other_port(finished("s")))), ..had_some.clone() };
    let nothing = |priority| Step::Ensure { targets: none.clone(), priority };
    let wait = || Step::NotBefore(at + EMPTY_TARGET_GRACE);
    for (name, it, young, old) in [
        ("it had some", had_some.clone(), wait(), UPDATE),
        ("it had none", made_of(&targets(&[], Some("another")), unknown(finished("s"))), Step::Nothing, Step::Nothing),
        ("not known, finished", unknown(finished("s")), wait(), Step::Plan(Purpose::Restart)),
        ("not known, new", unknown(fresh()), nothing(Priority::Change), nothing(Priority::Change)),
        ("it had some, and changed", changed, both(Priority::Change), nothing(Priority::Change)),
        ("differs", known(Definition::Differs, finished("s")), wait(), nothing(Priority::Targets)),
        ("outcome unknown", known(Definition::Unknown, finished("s")), wait(), nothing(Priority::Again)),
        ("failing", known(Definition::Unknown, failing()), wait(), nothing(Priority::Again)),
        ("failing, not known", unknown(failing()), wait(), nothing(Priority::Change)),
    ] {
        assert_eq!(decide(&it, at + EMPTY_TARGET_GRACE / 2), young, "{name}, after 15 s");
        assert_eq!(decide(&it, at + EMPTY_TARGET_GRACE), old, "{name}, after 30 s");
    }
}

#[test]
fn deletion_waits_for_no_nodes_and_goes_first_unless_it_is_repeated() {
    for service in [deleted(), retyped()] {
        let none = Targets { empty_since: Some(Instant::now()), ..targets(&[], None) };
        let it = Observed { targets: none, ..observed(service) };
        let elsewhere = Definition::ImplementedElsewhere { fingerprint: fingerprint(&it.service) };
        for (definition, priority) in [
            (Definition::NeverEnsured, Priority::Deletion),
            (Definition::Unknown, Priority::Again),
            (Definition::Refused, Priority::Again),
            (Definition::Differs, Priority::Deletion),
            (elsewhere, Priority::Deletion),
            (made(&it), Priority::Deletion),
        ] {
            let it = knowing(definition, it.clone());
            assert_eq!(now(&it), Step::Delete { keeps_finalizer: false, priority }, "{definition:?}");
            let again = Step::Delete { keeps_finalizer: false, priority: Priority::Deletion };
            assert_eq!(now(&changed(it)), again, "{definition:?}");
        }
    }
}

#[test]
fn drift_is_looked_for_where_it_is_due_wanted_and_possible() {
    let (present, later) = (Instant::now(), Instant::now() + PAUSE);
    let check = |check_at, it: Observed| Observed { memory: Memory { check_at, ..it.memory.clone() }, ..it };
    let it = check(Some(present), settled(finished("s")));
    let elsewhere = Definition::ImplementedElsewhere { fingerprint: fingerprint(&it.service) };
    let of_another_type = with(fresh(), |it| it["spec"]["type"] = json!("ClusterIP"));
    let unimplemented = Observed { memory: Memory { plans_unimplemented: true, ..it.memory.clone() }, ..it.clone() };
    for (name, it, step) in [
        ("due", it.clone(), Step::Plan(Purpose::Drift)),
        ("not due", check(Some(later), it.clone()), Step::NotBefore(later)),
        ("off", check(None, it.clone()), Step::Nothing),
        ("no plans", without(it.clone()), Step::Nothing),
        ("no plans for this one", unimplemented, Step::Nothing),
        ("targets come first", Observed { targets: targets(&["n1"], None), ..it.clone() }, UPDATE),
        ("somebody else makes it", knowing(elsewhere, it.clone()), Step::Nothing),
        ("not ours", Observed { service: Arc::new(service_model(&of_another_type)), ..it }, Step::Nothing),
    ] {
        assert_eq!(now(&it), step, "{name}");
    }
}

#[test]
fn a_provider_without_load_balancers_leaves_what_is_unfinished_unmanaged_and_the_rest_in_peace() {
    let unsupported = || Step::LeftUnmanaged(LeftUnmanaged::Unsupported);
    let not_ours = with(fresh(), |it| it["spec"]["type"] = json!("ClusterIP"));
    for (name, it, step) in [
        ("new", observed(fresh()), unsupported()),
        ("failing", observed(failing()), unsupported()),
        ("deleted", observed(deleted()), unsupported()),
        ("finished", observed(finished("s")), Step::Nothing),
        ("known to be in the desired state", settled(without_address()), Step::Nothing),
        ("other targets", Observed { targets: targets(&["n1"], None), ..settled(finished("s")) }, Step::Nothing),
        ("not ours", observed(not_ours), Step::Nothing),
    ] {
        let it = Observed { provider: Arc::new(ProviderInfo::default()), ..it };
        assert_eq!(now(&it), step, "{name}");
    }
}

#[test]
fn every_step_that_does_something_has_a_priority() {
    for (step, priority) in [
        (Step::Nothing, None),
        (Step::LeftUnmanaged(LeftUnmanaged::Unsupported), None),
        (Step::NotBefore(Instant::now()), None),
        (Step::Delete { keeps_finalizer: false, priority: Priority::Deletion }, Some(Priority::Deletion)),
        (ensure(&[], Priority::Paced), Some(Priority::Paced)),
        (UPDATE, Some(Priority::Targets)),
        (Step::Plan(Purpose::Drift), Some(Priority::Check)),
    ] {
        assert_eq!(step.priority(), priority);
    }
}

#[test]
fn a_pause_is_bound_to_what_a_person_changes_and_not_to_our_own_writes() {
    let before = service_model(&fresh());
    let held = service_model(&with(finished("s"), |it| it["status"] = json!({})));
    assert_eq!(seen(&before), seen(&held), "the finalizer and the class are our own");
    assert_eq!(seen(&before), seen(&service_model(&failing())), "and so is the status");
    assert_ne!(seen(&before), seen(&service_model(&other_port(fresh()))));
    let deleted = with(finished("s"), |it| it["metadata"]["deletionTimestamp"] = json!("2024-05-06T07:08:09Z"));
    assert_ne!(seen(&before), seen(&service_model(&deleted)));
}
