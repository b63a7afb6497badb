//! The faults of routes, as a core meets them.
use ccm_proto::v1::route_result::Outcome;
use ccm_proto::v1::{Capability, ErrorReason};
use jiff::Timestamp;
use tonic::Code;

use super::{NET, Routes, failure, is_done};
use crate::leading::reason;

const OTHER: &str = "10.244.2.0/24";

#[tokio::test]
async fn calls_fail_with_the_code_and_reason_of_their_fault() {
    let core = Routes::start(&[]).await;
    let table = [
        ("error-all", ErrorReason::CloudUnavailable, Code::Unavailable),
        ("unauthenticated", ErrorReason::CredentialsInvalid, Code::Unauthenticated),
        ("route-error", ErrorReason::CloudUnavailable, Code::Unavailable),
    ];
    for (fault, word, code) in table {
        core.ctl(&["fault", "set", fault]);
        assert_eq!(failure(&core.create(&[(NET, "node-1")]).await.unwrap()[0]), word, "{fault}");
        assert_eq!(core.list().await.unwrap_err().code(), code, "{fault}");
        core.ctl(&["fault", "clear", fault]);
    }
    core.ctl(&["fault", "set", "throttle"]);
    let status = core.create(&[(NET, "node-1"), (OTHER, "node-2")]).await.unwrap_err();
    assert_eq!((status.code(), reason(&status).as_str()), (Code::ResourceExhausted, "RATE_LIMITED"), "of the call: all pause");
    assert!(core.there().is_empty());
}

#[tokio::test]
async fn the_faults_of_routes_leave_machines_and_load_balancers_alone_and_the_other_way_round() {
    let core = Routes::start(&["--fault", "route-error", "--fault", "lb-error"]).await;
    assert!(core.0.provider.state("node-1").await.is_some());
    core.ctl(&["fault", "clear", "route-error"]);
    core.ctl(&["fault", "set", "not-found-all"]);
    assert!(core.create(&[(NET, "node-1")]).await.unwrap().iter().all(is_done));
}

#[tokio::test]
async fn a_pattern_hits_the_routes_of_the_nodes_that_it_fits() {
    let core = Routes::start(&[]).await;
    core.ctl(&["fault", "set", "route-quota", "--for", "node-1"]);
    let outcomes = core.create(&[(NET, "node-1"), (OTHER, "node-2")]).await.unwrap();
    assert_eq!(failure(&outcomes[0]), ErrorReason::QuotaExceeded);
    assert!(is_done(&outcomes[1]));
}

#[tokio::test]
async fn everything_is_in_progress_and_nothing_happens_until_the_fault_is_cleared() {
    let core = Routes::start(&[]).await;
    core.create(&[(NET, "node-1")]).await.unwrap();
    let (before, route) = (core.there(), core.only(NET).await);
    core.ctl(&["fault", "set", "route-in-progress"]);
    assert!(matches!(core.create(&[(OTHER, "node-2")]).await.unwrap()[..], [Outcome::InProgress(_)]));
    assert!(matches!(core.delete(route.clone()).await, Outcome::InProgress(_)));
    assert_eq!(core.there(), before);
    core.ctl(&["fault", "clear"]);
    assert!(is_done(&core.delete(route).await));
}

#[tokio::test]
async fn a_used_up_quota_stops_neither_a_replacement_nor_a_removal() {
    let core = Routes::start(&["--max-routes", "1"]).await;
    core.create(&[(NET, "node-1")]).await.unwrap();
    assert_eq!(failure(&core.create(&[(OTHER, "node-2")]).await.unwrap()[0]), ErrorReason::QuotaExceeded);
    assert!(core.create(&[(NET, "node-2")]).await.unwrap().iter().all(is_done));
    assert!(is_done(&core.delete(core.only(NET).await).await));
    assert!(core.create(&[(OTHER, "node-2")]).await.unwrap().iter().all(is_done));
}

#[tokio::test]
async fn a_stale_list_is_the_table_as_it_was_and_says_so_or_not() {
    let core = Routes::start(&[]).await;
    core.create(&[(NET, "node-1")]).await.unwrap();
    let before = core.list().await.unwrap();
    for (fault, says_so) in [("route-stale", true), ("route-stale-unsaid", false)] {
        let set_at = Timestamp::now();
        core.ctl(&["fault", "set", fault]);
        core.create(&[(OTHER, "node-2")]).await.unwrap();
        let messages = core.messages().await.unwrap();
        assert_eq!(messages[0].routes, before, "{fault}");
        let observed_at = messages[0].observed_at.map(|at| Timestamp::new(at.seconds, at.nanos).unwrap());
        assert_eq!(observed_at.is_some(), says_so, "{fault}");
        assert!(observed_at.is_none_or(|at| set_at <= at && at < Timestamp::now()), "{fault}");
        core.ctl(&["fault", "clear"]);
        assert!(is_done(&core.delete(core.only(OTHER).await).await));
    }
}

#[tokio::test]
async fn a_list_is_empty_or_breaks_off_while_the_table_is_whole() {
    let core = Routes::start(&[]).await;
    core.create(&[(NET, "node-1"), (OTHER, "node-2")]).await.unwrap();
    core.ctl(&["fault", "set", "route-empty"]);
    assert!(core.list().await.unwrap().is_empty());
    core.ctl(&["fault", "clear"]);
    core.ctl(&["fault", "set", "route-list-broken", "--count", "1"]);
    assert_eq!(core.list().await.unwrap_err().code(), Code::Unavailable);
    assert_eq!(core.list().await.unwrap().len(), 2);
    assert_eq!(core.there().len(), 2);
}

#[tokio::test]
async fn without_the_capability_every_call_is_unimplemented_at_once_and_nothing_is_lost() {
    let core = Routes::start(&[]).await;
    core.create(&[(NET, "node-1")]).await.unwrap();
    core.ctl(&["fault", "set", "route-off"]);
    assert_eq!(core.list().await.unwrap_err().code(), Code::Unimplemented);
    assert_eq!(core.create(&[(OTHER, "node-2")]).await.unwrap_err().code(), Code::Unimplemented);
    assert!(!core.0.provider.info().await.unwrap().capabilities.contains(&Capability::Routes.into()));
    core.ctl(&["fault", "clear", "route-off"]);
    assert_eq!(core.list().await.unwrap().len(), 1);
}
