//! Which changes of nodes matter, and what is remembered of nodes that went.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::cluster::scripted::model;

const WINDOW: Duration = Duration::from_mins(10);

fn object(name: &str, cidrs: &[&str]) -> Value {
    json!({
        "metadata": { "name": name, "uid": name },
        "spec": { "podCIDRs": cidrs },
        "status": { "addresses": [{ "type": "InternalIP", "address": "10.0.1.1" }] },
    })
}

fn claimant(object: &Value) -> Claimant {
    Claimant::new(Arc::new(model(object)), Ownership::Ours)
}

fn cidr(text: &str) -> IpNet {
    text.parse().unwrap()
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

/// Upstream's cases of node updates, and ours.
#[test]
fn a_change_matters_if_it_may_change_a_route() {
    let node = || object("n", &["10.120.0.0/24"]);
    let edited = |pointer: &str, value: Value| {
        let mut node = node();
        *node.pointer_mut(pointer).unwrap() = value;
        node
    };
    let mut other = node();
    other["status"]["images"] = json!([{ "names": ["pause"] }]);
    let mut initialised = node();
    initialised["spec"]["providerID"] = json!("fake://n");
    let cases = [
        ("internal IP", edited("/status/addresses/0/address", json!("10.0.1.2")), true),
        ("Pod CIDR", edited("/spec/podCIDRs/0", json!("10.121.0.0/24")), true),
        ("nothing", node(), false),
        ("unrelated", other, false),
        ("another object", edited("/metadata/uid", json!("other")), true),
        ("initialised", initialised, true),
    ];
    for (name, changed, matters) in cases {
        let (mut claims, now) = (Claims::new(WINDOW), Instant::now());
        assert!(claims.see("n", Some(claimant(&node())), now, at(0)).matters, "a new node");
        assert_eq!(claims.see("n", Some(claimant(&changed)), now, at(1)).matters, matters, "{name}");
        assert!(claims.see("n", None, now, at(2)).matters, "it went");
        assert!(!claims.see("n", None, now, at(2)).matters, "it is gone");
    }
}

#[test]
fn a_pod_cidr_is_free_when_its_last_node_is_gone() {
    let (mut claims, now) = (Claims::new(WINDOW), Instant::now());
    claims.see("a", Some(claimant(&object("a", &["10.0.1.0/24", "10.0.2.7/24"]))), now, at(0));
    claims.see("b", Some(claimant(&object("b", &["10.0.2.0/24"]))), now, at(0));
    let change = claims.see("a", Some(claimant(&object("a", &["10.0.3.0/24"]))), now, at(5));
    assert_eq!((change.freed, change.rivals), (vec![cidr("10.0.1.0/24")], vec!["b".to_owned()]));
    assert_eq!(claims.gone_since(&cidr("10.0.1.0/24")), Some(at(5)));
    assert_eq!(claims.holder(&cidr("10.0.2.0/24")).map(|it| it.node.name.as_str()), Some("b"));
    assert_eq!(claims.see("b", None, now, at(6)).freed, [cidr("10.0.2.0/24")]);
    claims.forget_settled(|destination| *destination == cidr("10.0.2.0/24"));
    assert_eq!(claims.gone_since(&cidr("10.0.1.0/24")), None);
    claims.see("c", Some(claimant(&object("c", &["10.0.2.0/24"]))), now, at(7));
    assert_eq!(claims.gone_since(&cidr("10.0.2.0/24")), None);
}

#[test]
fn a_node_counts_as_seen_for_a_window_after_it_went() {
    let (mut claims, now) = (Claims::new(WINDOW), Instant::now());
    for name in ["a", "b"] {
        claims.see(name, Some(claimant(&object(name, &["10.0.1.0/24"]))), now, at(0));
    }
    claims.see("a", None, now, at(0));
    assert_eq!(claims.seen_within_window(now + WINDOW / 2), ["a", "b"].into());
    assert_eq!(claims.seen_within_window(now + WINDOW), ["b"].into());
}

proptest! {
    #[test]
    fn cidrs_overlap_if_one_contains_the_other(
        all in prop::collection::vec((any::<u32>(), 0_u8..=32), 0..20), one in (any::<u32>(), 0_u8..=32), is_v6 in any::<bool>(),
    ) {
        // Few different bits, so that CIDRs often overlap.
        let net = |(bits, length): (u32, u8)| IpNet::new((bits & 0xC300_0003).to_be_bytes().into(), length).unwrap().trunc();
        let (set, one) = (all.iter().copied().map(net).collect::<Cidrs>(), net(one));
        let expected = all.iter().copied().map(net).any(|it| it.contains(&one) || one.contains(&it));
        prop_assert_eq!(set.overlaps(&one), expected);
        let other: IpNet = "fd00::/8".parse().unwrap();
        prop_assert!(!is_v6 || !set.overlaps(&other));
    }
}
