//! The faults of load balancers, as a core meets them.
use ccm_proto::v1::Capability;
use ccm_proto::v1::ensure_load_balancer_deleted_response::Outcome as Deleted;
use ccm_proto::v1::ensure_load_balancer_response::Outcome as Ensured;
use ccm_proto::v1::update_load_balancer_response::Outcome as Updated;
use tonic::Code;
use tonic_types::StatusExt as _;

use crate::leading::{Leading, nodes, reason, service};

#[tokio::test]
async fn calls_fail_with_the_code_and_reason_of_their_fault() {
    let core = Leading::start(&[]).await;
    let web = service("u", &[]);
    let table = [
        ("error-all", Code::Unavailable, "CLOUD_UNAVAILABLE"),
        ("unauthenticated", Code::Unauthenticated, "CREDENTIALS_INVALID"),
        ("throttle", Code::ResourceExhausted, "RATE_LIMITED"),
        ("lb-error", Code::Unavailable, "CLOUD_UNAVAILABLE"),
        ("lb-quota", Code::ResourceExhausted, "QUOTA_EXCEEDED"),
    ];
    for (fault, code, word) in table {
        core.provider.ctl(&["fault", "set", fault]);
        let status = core.ensure(&web, &[]).await.unwrap_err();
        assert_eq!((status.code(), reason(&status).as_str()), (code, word), "{fault}");
        assert_eq!(status.get_details_retry_info().is_some(), fault == "throttle", "{fault}");
        core.provider.ctl(&["fault", "clear", fault]);
    }
    assert!(core.there().is_empty());
    core.ready(&web, &[]).await;
}

#[tokio::test]
async fn the_faults_of_load_balancers_leave_machines_alone_and_the_other_way_round() {
    let core = Leading::start(&["--auto-instances", "--fault", "lb-error"]).await;
    assert!(core.provider.state("node-1").await.is_some());
    core.provider.ctl(&["fault", "clear"]);
    core.provider.ctl(&["fault", "set", "not-found-all"]);
    core.ready(&service("u", &[]), &[]).await;
}

#[tokio::test]
async fn a_pattern_hits_the_services_that_it_fits() {
    let core = Leading::start(&[]).await;
    core.provider.ctl(&["fault", "set", "lb-error", "--for", "default/web-u"]);
    assert_eq!(core.ensure(&service("u", &[]), &[]).await.unwrap_err().code(), Code::Unavailable);
    core.ready(&service("v", &[]), &[]).await;
}

#[tokio::test]
async fn everything_is_in_progress_and_nothing_happens_until_the_fault_is_cleared() {
    let core = Leading::start(&[]).await;
    let (old, new) = (service("old", &[]), service("new", &[]));
    core.ready(&old, &[]).await;
    let before = core.there();
    core.provider.ctl(&["fault", "set", "lb-in-progress"]);
    for service in [&old, &new] {
        assert!(matches!(core.ensure(service, &[]).await, Ok(Ensured::InProgress(_))));
    }
    assert!(matches!(core.update(&old, &nodes(&["node-1"])).await, Ok(Updated::InProgress(_))));
    assert!(matches!(core.delete(&old).await, Ok(Deleted::InProgress(_))));
    assert_eq!(core.plan(&new, &[]).await.unwrap().changes.len(), 1);
    assert_eq!(core.there(), before);
    core.provider.ctl(&["fault", "clear", "lb-in-progress"]);
    core.delete(&old).await.unwrap();
    core.ready(&new, &[]).await;
}

#[tokio::test]
async fn a_used_up_quota_stops_no_removal() {
    let core = Leading::start(&["--max-load-balancers", "1"]).await;
    core.ready(&service("u", &[]), &[]).await;
    let status = core.ensure(&service("v", &[]), &[]).await.unwrap_err();
    assert_eq!((status.code(), reason(&status).as_str()), (Code::ResourceExhausted, "QUOTA_EXCEEDED"));
    core.provider.ctl(&["fault", "set", "lb-quota"]);
    core.delete(&service("u", &[])).await.unwrap();
    core.provider.ctl(&["fault", "clear"]);
    core.ready(&service("v", &[]), &[]).await;
}

#[tokio::test]
async fn without_the_capability_every_call_is_unimplemented_at_once_and_nothing_is_lost() {
    let core = Leading::start(&[]).await;
    let web = service("u", &[]);
    core.ready(&web, &[]).await;
    core.provider.ctl(&["fault", "set", "lb-off"]);
    let refused = [
        core.ensure(&web, &[]).await.unwrap_err(),
        core.delete(&web).await.unwrap_err(),
        core.plan(&web, &[]).await.unwrap_err(),
    ];
    for status in refused {
        assert_eq!((status.code(), reason(&status).as_str()), (Code::Unimplemented, "NOT_IMPLEMENTED"));
    }
    let lists = |info: ccm_proto::v1::ProviderInfo| info.capabilities.contains(&Capability::LoadBalancers.into());
    assert!(!lists(core.provider.info().await.unwrap()));
    core.provider.ctl(&["fault", "clear", "lb-off"]);
    assert!(lists(core.provider.info().await.unwrap()));
    assert!(core.plan(&web, &[]).await.unwrap().changes.is_empty());
}
