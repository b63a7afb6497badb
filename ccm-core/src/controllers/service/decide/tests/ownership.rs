//! Whose a Service is: the class that its finalizer stands for against the class that it asks for.
use super::*;
use crate::names::annotations;

const DEFAULT: Option<&str> = Some("");
const SERVED: Option<&str> = Some("served");
const OTHER: Option<&str> = Some("other");

/// A Service with our finalizer, the class noted beside it, and the class asked for.
fn held(noted: Option<&str>, asked: Option<&str>) -> Value {
    with(finished("s"), |it| {
        it["metadata"]["annotations"] = noted.map_or(json!({}), |class| json!({ annotations::LOAD_BALANCER_CLASS: class }));
        it["spec"]["loadBalancerClass"] = json!(asked.filter(|class| !class.is_empty()));
    })
}

fn of(service: &Value, default: bool) -> Ownership {
    ownership(&service_model(service), &Classes { listed: ["served".to_owned()].into(), default })
}

fn deleted(service: Value) -> Value {
    with(service, |it| it["metadata"]["deletionTimestamp"] = json!("2024-05-06T07:08:09Z"))
}

/// The API server clears the class with the type.
fn retyped(service: Value) -> Value {
    with(service, |it| {
        it["spec"]["type"] = json!("NodePort");
        it["spec"]["loadBalancerClass"] = json!(null);
    })
}

#[test]
fn a_service_without_the_finalizer_is_ours_if_its_class_is() {
    let free = |service| with(service, |it| it["metadata"]["finalizers"] = json!(["another.example.com/finalizer"]));
    for (asked, default, ownership) in [
        (DEFAULT, true, Ownership::Wanted),
        (DEFAULT, false, Ownership::NotOurs),
        (SERVED, true, Ownership::Wanted),
        (SERVED, false, Ownership::Wanted),
        (OTHER, true, Ownership::NotOurs),
        (OTHER, false, Ownership::NotOurs),
    ] {
        for noted in [None, DEFAULT, SERVED, OTHER] {
            let service = free(held(noted, asked));
            assert_eq!(of(&service, default), ownership, "{asked:?}, default {default}, noted {noted:?}");
            assert_eq!(of(&deleted(service.clone()), default), Ownership::NotOurs);
            assert_eq!(of(&retyped(service), default), Ownership::NotOurs);
        }
    }
}

/// Noted, asked for, and whose it is if it is wanted, deleted, and of another type; the default class is served.
#[test]
fn a_service_with_the_finalizer_is_ours_by_the_class_that_was_noted() {
    use Ownership::{ClassNotServed, NotOurs, Unneeded, Wanted};
    let unneeded = || Unneeded { keeps_finalizer: false };
    let handed_over = || Unneeded { keeps_finalizer: true };
    let left = || ClassNotServed("other".to_owned());
    for (noted, asked, wanted, gone, retyped_to) in [
        (DEFAULT, DEFAULT, Wanted, unneeded(), unneeded()),
        (DEFAULT, SERVED, unneeded(), unneeded(), unneeded()),
        (DEFAULT, OTHER, handed_over(), unneeded(), unneeded()),
        (SERVED, DEFAULT, unneeded(), unneeded(), unneeded()),
        (SERVED, SERVED, Wanted, unneeded(), unneeded()),
        (SERVED, OTHER, handed_over(), unneeded(), unneeded()),
        (OTHER, DEFAULT, left(), left(), left()),
        (OTHER, SERVED, left(), left(), left()),
        (OTHER, OTHER, left(), left(), left()),
        // Without a note the class in the spec decides; none is the default, which Go's controller serves.
        (None, DEFAULT, Wanted, unneeded(), unneeded()),
        (None, SERVED, Wanted, unneeded(), unneeded()),
        (None, OTHER, NotOurs, NotOurs, unneeded()),
    ] {
        let service = held(noted, asked);
        let what = format!("noted {noted:?}, asked {asked:?}");
        assert_eq!(of(&service, true), wanted, "{what}");
        assert_eq!(of(&deleted(service.clone()), true), gone, "{what}, deleted");
        assert_eq!(of(&retyped(service), true), retyped_to, "{what}, of another type");
    }
}

#[test]
fn where_the_default_class_is_not_served_its_services_are_left_unmanaged_if_noted_and_anothers_if_not() {
    use Ownership::{ClassNotServed, NotOurs, Unneeded, Wanted};
    let left = || ClassNotServed(String::new());
    let unneeded = || Unneeded { keeps_finalizer: false };
    for (noted, asked, wanted, gone, retyped_to) in [
        (DEFAULT, DEFAULT, left(), left(), left()),
        (DEFAULT, SERVED, left(), left(), left()),
        (SERVED, SERVED, Wanted, unneeded(), unneeded()),
        (SERVED, DEFAULT, Unneeded { keeps_finalizer: true }, unneeded(), unneeded()),
        (None, DEFAULT, NotOurs, NotOurs, NotOurs),
        (None, OTHER, NotOurs, NotOurs, NotOurs),
    ] {
        let service = held(noted, asked);
        let what = format!("noted {noted:?}, asked {asked:?}");
        assert_eq!(of(&service, false), wanted, "{what}");
        assert_eq!(of(&deleted(service.clone()), false), gone, "{what}, deleted");
        assert_eq!(of(&retyped(service), false), retyped_to, "{what}, of another type");
    }
}

#[test]
fn an_ownership_becomes_a_step() {
    let classes = Arc::new(Classes { listed: ["served".to_owned()].into(), default: true });
    let step = |service: Value| now(&Observed { classes: Arc::clone(&classes), ..observed(service) });
    assert_eq!(step(held(OTHER, OTHER)), Step::LeftUnmanaged(LeftUnmanaged::Class("other".to_owned())));
    assert_eq!(step(held(SERVED, OTHER)), Step::Delete { keeps_finalizer: true, priority: Priority::Deletion });
    assert_eq!(step(held(SERVED, DEFAULT)), Step::Delete { keeps_finalizer: false, priority: Priority::Deletion });
    assert_eq!(step(held(None, OTHER)), Step::Nothing);
}
