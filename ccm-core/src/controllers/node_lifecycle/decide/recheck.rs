//! The last question before a write: does the node, as it is now, still call for what was decided upon an earlier version of it?
//! Pure.
use crate::cluster::state::Cause;
use crate::controllers::node_lifecycle::marks::is_marked;
use crate::model::node::{Node, Ready};
use crate::model::provider_info::ProviderInfo;

use super::has_shutdown_taint;

/// What was decided about a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::controllers::node_lifecycle) enum Decided {
    /// It is deleted.
    Delete(Cause),
    /// It gets the taint of a stopped machine.
    Taint,
    /// It loses that taint.
    Untaint,
}

/// What the live node says to that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::controllers::node_lifecycle) enum Recheck {
    /// The write is made.
    Confirmed,
    /// There is nothing left to write.
    Done,
    /// The write is not made: what is true of the live node, for people.
    Refused(&'static str),
}

/// Compares a node that was read just now with the version that was decided upon.
pub(in crate::controllers::node_lifecycle) fn recheck(
    decided: Decided,
    then: &Node,
    live: &Node,
    provider: &ProviderInfo,
) -> Recheck {
    match objection(decided, then, live, provider) {
        Some(objection) => Recheck::Refused(objection),
        None if is_done(decided, live) => Recheck::Done,
        None => Recheck::Confirmed,
    }
}

fn objection(decided: Decided, then: &Node, live: &Node, provider: &ProviderInfo) -> Option<&'static str> {
    let (ownership, is_ready) = (provider.ownership(live), live.ready == Ready::True);
    let (allowed, wants_ready) = match decided {
        Decided::Delete(_) => (ownership.is_deletable(), false),
        Decided::Taint => (ownership.is_managed(), false),
        Decided::Untaint => (ownership.is_managed(), true),
    };
    let objections = [
        (live.uid != then.uid, "is another object of the same name"),
        (live.provider_id != then.provider_id, "has another providerID"),
        (!allowed, ownership.describe()),
        (live.deleted_at.is_some(), "is being deleted"),
        (is_ready && !wants_ready, "is Ready"),
        (!is_ready && wants_ready, "is not Ready"),
        (decided == Decided::Delete(Cause::Planned) && !is_marked(live), "is no longer marked for removal"),
    ];
    objections.into_iter().find_map(|(applies, objection)| applies.then_some(objection))
}

fn is_done(decided: Decided, live: &Node) -> bool {
    match decided {
        Decided::Delete(_) => false,
        Decided::Taint => has_shutdown_taint(live),
        Decided::Untaint => !has_shutdown_taint(live),
    }
}

#[cfg(test)]
mod tests {
    use Decided::{Delete, Taint, Untaint};
    use Recheck::{Confirmed, Done, Refused};

    use super::*;
    use crate::controllers::node_lifecycle::fixtures::{at, cordoned, node, provider, ready, tainted, unmanaged};
    use crate::names::taints::SHUTDOWN;

    /// What somebody did to a node that was decided upon, and what follows for a deletion, for the taint, and for its removal,
    /// which was decided upon a Ready node with the taint.
    #[test]
    fn a_write_is_made_only_if_the_live_node_is_still_the_one_that_was_judged() {
        type Change = fn(&mut Node);
        let foreign: Change = |node| node.provider_id = Some("other://n".into());
        let cases: [(&str, Change, [Recheck; 3]); 10] = [
            ("nothing", |_| (), [Confirmed; 3]),
            ("a newer version", |node| node.resource_version = "99".into(), [Confirmed; 3]),
            ("another object", |node| node.uid = "other".into(), [Refused("is another object of the same name"); 3]),
            ("another machine", |node| node.provider_id = Some("sim://other".into()), [Refused("has another providerID"); 3]),
            ("no machine", |node| node.provider_id = None, [Refused("has another providerID"); 3]),
            ("another provider's", foreign, [Refused("has another providerID"); 3]),
            ("unmanaged", |node| *node = unmanaged(node.clone()), [Refused("has the annotation that leaves it unmanaged"); 3]),
            ("deleted", |node| node.deleted_at = Some(at(0)), [Refused("is being deleted"); 3]),
            ("Ready", |node| *node = ready(node.clone()), [Refused("is Ready"), Refused("is Ready"), Confirmed]),
            ("the taint was added", |node| *node = tainted(node.clone(), SHUTDOWN), [Confirmed, Done, Confirmed]),
        ];
        for (name, change, expected) in cases {
            let (plain, stopped) = (node("n", "a"), ready(tainted(node("n", "a"), SHUTDOWN)));
            let judged = [(Delete(Cause::Absent), &plain), (Taint, &plain), (Untaint, &stopped)];
            let found = judged.map(|(decided, then)| {
                let mut live = then.clone();
                change(&mut live);
                recheck(decided, then, &live, &provider())
            });
            assert_eq!(found, expected, "{name}");
        }
    }

    #[test]
    fn a_taint_is_removed_from_a_ready_node_only_and_once() {
        let then = ready(tainted(node("n", "a"), SHUTDOWN));
        assert_eq!(recheck(Untaint, &then, &tainted(node("n", "a"), SHUTDOWN), &provider()), Refused("is not Ready"));
        assert_eq!(recheck(Untaint, &then, &ready(node("n", "a")), &provider()), Done);
    }

    #[test]
    fn a_planned_removal_needs_its_mark_to_the_end() {
        let then = cordoned(node("n", "a"));
        assert_eq!(recheck(Delete(Cause::Planned), &then, &then, &provider()), Confirmed);
        let refused = Refused("is no longer marked for removal");
        assert_eq!(recheck(Delete(Cause::Planned), &then, &node("n", "a"), &provider()), refused);
    }

    /// The node is as it was, and the provider, or what it says of itself, is not.
    #[test]
    fn ownership_is_asked_for_again() {
        let (ours, unclaimed) = (node("n", "a"), Node { provider_id: None, ..node("n", "a") });
        let other = ProviderInfo { provider_id_prefixes: vec!["new://".to_owned()], ..provider() };
        let foreign = Refused("has a providerID with none of this provider's prefixes");
        for decided in [Delete(Cause::Absent), Taint, Untaint] {
            assert_eq!(recheck(decided, &ours, &ours, &other), foreign);
        }
        assert_eq!(recheck(Delete(Cause::Absent), &unclaimed, &unclaimed, &provider()), Refused("has no providerID"));
        assert_eq!(recheck(Taint, &unclaimed, &unclaimed, &provider()), Confirmed);
    }
}
