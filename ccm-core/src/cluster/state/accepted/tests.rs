//! Which cloud and which epoch follow from what is left in the cluster.
#![allow(clippy::unwrap_used)]
use super::*;
use crate::cluster::state::{History, Object};

fn stored(identity: Option<&str>, epoch: u64) -> Stored {
    let object = Object { name: "map".to_owned(), uid: "uid".to_owned(), resource_version: "1".to_owned() };
    Stored {
        accepted_identity: identity.map(str::to_owned),
        epoch: Ok(epoch),
        history: Ok(History { deletions: None, budget_spent_until: None, trips: vec![], releases: vec![] }),
        release_request: None,
        object,
    }
}

fn mirror(provider: &str, identity: &str, epoch: u64) -> Mirror {
    Mirror { provider: provider.to_owned(), cloud_identity: identity.to_owned(), epoch }
}

#[test]
fn the_config_map_rules_unless_it_is_lost_emptied_or_set_back() {
    let a = |epoch| Some(mirror("p", "a", epoch));
    for (case, map, mirror, identity, epoch) in [
        ("a first installation", None, None, None, 0),
        ("both agree", Some(stored(Some("a"), 3)), a(3), Some("a"), 3),
        ("before there was a mirror", Some(stored(Some("a"), 3)), None, Some("a"), 3),
        ("deleted", None, a(3), Some("a"), 3),
        ("emptied", Some(stored(None, 0)), a(3), Some("a"), 3),
        ("the identity alone removed", Some(stored(None, 3)), a(3), Some("a"), 3),
        ("set back to another cloud", Some(stored(Some("old"), 2)), a(3), Some("a"), 3),
        ("the leader ended before it wrote the mirror", Some(stored(Some("b"), 4)), a(3), Some("b"), 4),
        ("another provider led since", Some(stored(Some("b"), 2)), Some(mirror("q", "a", 3)), Some("b"), 3),
        ("only another provider led", None, Some(mirror("q", "a", 3)), None, 3),
    ] {
        let accepted = Accepted::of("p", map.as_ref(), mirror.as_ref()).unwrap();
        assert_eq!((accepted.identity.as_deref(), accepted.epoch), (identity, epoch), "{case}");
    }
}

#[test]
fn an_epoch_that_cannot_be_read_counts_as_set_back_where_a_mirror_stands_in() {
    let unreadable = Unreadable { key: "epoch", problem: "many".to_owned() };
    let map = Stored { epoch: Err(unreadable.clone()), ..stored(Some("b"), 0) };
    assert_eq!(Accepted::of("p", Some(&map), None), Err(unreadable));
    let accepted = Accepted::of("p", Some(&map), Some(&mirror("p", "a", 3))).unwrap();
    assert_eq!((accepted.identity.as_deref(), accepted.epoch), (Some("a"), 3));
}

#[test]
fn a_cloud_is_trusted_on_first_use_and_otherwise_as_known_or_by_hand() {
    let known = Accepted { identity: Some("a".to_owned()), epoch: 1, set_back: false };
    let nothing = Accepted::default();
    let another = Err(Rejection::Another { accepted: "a".to_owned() });
    for (case, accepted, found, by_hand, traces, verdict) in [
        ("the known one", &known, "a", false, true, Ok(())),
        ("another one", &known, "b", false, true, another),
        ("another one, by hand", &known, "b", true, true, Ok(())),
        ("a first installation", &nothing, "a", false, false, Ok(())),
        ("everything is lost", &nothing, "a", false, true, Err(Rejection::Lost)),
        ("everything is lost, by hand", &nothing, "a", true, true, Ok(())),
    ] {
        assert_eq!(accepted.judge(found, by_hand, traces), verdict, "{case}");
    }
    assert_eq!(
        [(&known, false), (&nothing, true), (&nothing, false)].map(|(it, by_hand)| it.needs_traces(by_hand)),
        [false, false, true]
    );
}

#[test]
fn an_epoch_is_greater_than_all_before() {
    let epoch = |epoch, seen, transitions| Accepted { identity: None, epoch, set_back: false }.next_epoch(seen, transitions);
    assert_eq!([epoch(0, 0, 0), epoch(3, 0, 2), epoch(3, 0, 9), epoch(3, 7, 5), epoch(u64::MAX, 0, 0)], [1, 4, 9, 8, u64::MAX]);
}
