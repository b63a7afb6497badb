//! Whom a fault hits, for how long, and what it makes of a call.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
use super::plan::Lie;
use super::*;

fn targets() -> Vec<Target> {
    let target = |name: &str, zone: &str| Target { name: Some(name.into()), zone: Some(zone.into()) };
    vec![target("web-1", "a"), target("web-2", "b"), target("db-1", "b")]
}

fn snapshot() -> Snapshot {
    Snapshot { world: Arc::default(), routes: Arc::default(), at: Timestamp::now() }
}

fn with(spec: FaultSpec) -> Faults {
    let faults = Faults::default();
    faults.set(spec, snapshot()).unwrap();
    faults
}

fn lies(plan: &Plan) -> Vec<bool> {
    (0..3).map(|index| plan.lie(index).is_some()).collect()
}

#[test]
fn a_general_failure_fails_the_call_and_a_scoped_one_its_items() {
    let general = with(FaultSpec::new(FaultName::Throttle)).plan(Call::Machines, targets);
    let failure = general.failure.expect("the call fails");
    assert_eq!((failure.code, failure.retry_after_ms), (FailureCode::RateLimited, Some(2000)));

    let zone = FaultSpec { zone: Some("b".into()), ..FaultSpec::new(FaultName::Unauthenticated) };
    let scoped = with(zone).plan(Call::Machines, targets);
    assert_eq!(scoped.failure, None);
    assert_eq!(lies(&scoped), [false, true, true]);
}

#[test]
fn a_pattern_hits_by_name_and_nobody_else() {
    let spec = FaultSpec { pattern: Some("web-*".into()), ..FaultSpec::new(FaultName::NotFoundAll) };
    let plan = with(spec).plan(Call::Machines, targets);
    assert_eq!(lies(&plan), [true, true, false]);
    assert!(matches!(plan.lie(0), Some(Lie::NotFound)));
}

#[test]
fn a_counted_fault_hits_so_many_calls_that_concern_it() {
    let spec = FaultSpec { zone: Some("a".into()), count: Some(2), ..FaultSpec::new(FaultName::Garbage) };
    let faults = with(spec);
    assert!(!faults.plan(Call::Machines, || vec![Target::default()]).garbage, "no machine of zone a was asked for");
    let spoilt: Vec<_> = (0..3).map(|_| faults.plan(Call::Machines, targets).garbage).collect();
    assert_eq!(spoilt, [true, true, false]);
    assert_eq!(faults.list()[0].remaining, Some(0));
}

#[test]
fn setting_a_fault_again_replaces_it() {
    let faults = with(FaultSpec { count: Some(1), ..FaultSpec::new(FaultName::ErrorAll) });
    faults.set(FaultSpec::new(FaultName::ErrorAll), snapshot()).unwrap();
    assert_eq!(faults.list().len(), 1);
    assert_eq!(faults.list()[0].remaining, None);
}

#[test]
fn clearing_what_is_not_set_is_an_error_and_clearing_all_never_is() {
    let faults = with(FaultSpec::new(FaultName::ErrorAll));
    assert!(faults.clear(Some(FaultName::Hang)).unwrap_err().message.contains("hang"));
    faults.clear(None).unwrap();
    assert!(faults.list().is_empty());
    faults.clear(None).unwrap();
}

#[test]
fn another_identity_takes_no_scope() {
    let spec = FaultSpec { zone: Some("a".into()), ..FaultSpec::new(FaultName::OtherIdentity) };
    assert!(Faults::default().set(spec, snapshot()).is_err());
}

#[test]
fn a_load_balancer_is_in_no_zone_and_the_loss_of_all_takes_no_scope() {
    let zone = FaultSpec { zone: Some("a".into()), ..FaultSpec::new(FaultName::LbError) };
    let one = FaultSpec { pattern: Some("web".into()), ..FaultSpec::new(FaultName::LbOff) };
    for spec in [zone, one] {
        assert!(Faults::default().set(spec, snapshot()).is_err());
    }
}

#[test]
fn calls_about_load_balancers_meet_the_faults_that_concern_them() {
    const CALLS: [Call; 5] = [
        Call::Machines,
        Call::FindLoadBalancers { to_change: false },
        Call::FindLoadBalancers { to_change: true },
        Call::PutLoadBalancer,
        Call::DeleteLoadBalancer,
    ];
    let table = [
        (FaultName::ErrorAll, [true, true, true, true, true]),
        (FaultName::Hang, [true, true, true, true, true]),
        (FaultName::NotFoundAll, [true, false, false, false, false]),
        (FaultName::LbError, [false, true, true, true, true]),
        (FaultName::LbInProgress, [false, false, true, false, false]),
        (FaultName::LbQuota, [false, false, false, true, false]),
        (FaultName::LbOff, [false; 5]),
        (FaultName::HandshakeHang, [false; 5]),
    ];
    for (fault, expected) in table {
        assert_eq!(CALLS.map(|call| call.meets(fault)), expected, "{}", fault.as_str());
    }
}

#[test]
fn a_pattern_narrows_a_fault_to_the_load_balancers_of_its_services() {
    let faults = with(FaultSpec { pattern: Some("default/*".into()), ..FaultSpec::new(FaultName::LbQuota) });
    let hit = |service: &str| {
        let target = Target { name: Some(service.into()), zone: None };
        faults.plan(Call::PutLoadBalancer, || vec![target]).lie(0).is_some()
    };
    assert_eq!(["default/web", "other/web"].map(hit), [true, false]);
}

#[tokio::test]
async fn a_call_hangs_until_its_fault_is_cleared() {
    let faults = Arc::new(with(FaultSpec { count: Some(1), ..FaultSpec::new(FaultName::Hang) }));
    let plan = faults.plan(Call::Machines, targets);
    let call = tokio::spawn({
        let faults = Arc::clone(&faults);
        async move { faults.cleared(&plan.hang).await }
    });
    tokio::task::yield_now().await;
    assert!(!call.is_finished());
    faults.clear(Some(FaultName::Hang)).unwrap();
    call.await.unwrap();
}
