//! Go's `TestNeedsUpdate` and `TestNeedsCleanup`, as data.
use super::*;

type Edit = fn(&mut Value);

/// Whether a Service that was like one is looked at again when it is like another.
fn needs_update(old: Edit, new: Edit) -> bool {
    let [old, new] = [old, new].map(|edit| service_model(&with(finished("external-balancer"), edit)));
    let classes = Classes { listed: [].into(), default: true };
    fingerprint(&old) != fingerprint(&new) || ownership(&old, &classes) != ownership(&new, &classes)
}

const SAME: Edit = |_| {};

fn target(service: &mut Value, port: &Value) {
    service["spec"]["ports"] = json!([{ "port": 80, "protocol": "TCP", "targetPort": port }]);
}

fn ports(service: &mut Value, ports: [u16; 3]) {
    service["spec"]["ports"] = ports.iter().map(|port| json!({ "port": port })).collect();
}

#[test]
fn a_service_is_looked_at_again_as_in_go() {
    let cases: [(&str, Edit, Edit, bool); 15] = [
        (
            "If the service type is changed from LoadBalancer to ClusterIP",
            SAME,
            |it| it["spec"]["type"] = json!("ClusterIP"),
            true,
        ),
        ("If the Ports are different", |it| ports(it, [8000, 9000, 10_000]), |it| ports(it, [8001, 9001, 10_001]), true),
        (
            "If external ip counts are different",
            |it| it["spec"]["externalIPs"] = json!(["old.IP.1"]),
            |it| it["spec"]["externalIPs"] = json!(["new.IP.1", "new.IP.2"]),
            true,
        ),
        (
            "If external ips are different",
            |it| it["spec"]["externalIPs"] = json!(["old.IP.1", "old.IP.2"]),
            |it| it["spec"]["externalIPs"] = json!(["new.IP.1", "new.IP.2"]),
            true,
        ),
        ("If UID is different", SAME, |it| it["metadata"]["uid"] = json!("UID new"), true),
        ("If ExternalTrafficPolicy is different", SAME, |it| it["spec"]["externalTrafficPolicy"] = json!("Local"), true),
        ("If HealthCheckNodePort is different", SAME, |it| it["spec"]["healthCheckNodePort"] = json!(30_123), true),
        ("If TargetGroup is different 1", |it| target(it, &json!(20)), |it| target(it, &json!(21)), true),
        ("If TargetGroup is different 2", |it| target(it, &json!(22)), |it| target(it, &json!("dns")), true),
        ("If appProtocol is the same", SAME, SAME, false),
        (
            "If service IPFamilies from single stack to dual stack",
            |it| it["spec"]["ipFamilies"] = json!(["IPv4"]),
            |it| it["spec"]["ipFamilies"] = json!(["IPv4", "IPv6"]),
            true,
        ),
        (
            "If service IPFamilies from dual stack to single stack",
            |it| it["spec"]["ipFamilies"] = json!(["IPv4", "IPv6"]),
            |it| it["spec"]["ipFamilies"] = json!(["IPv4"]),
            true,
        ),
        (
            "If service IPFamilies not change",
            |it| it["spec"]["ipFamilies"] = json!(["IPv4"]),
            |it| it["spec"]["ipFamilies"] = json!(["IPv4"]),
            false,
        ),
        ("If appProtocol is set when previously unset", SAME, |it| it["spec"]["ports"][0]["appProtocol"] = json!("http"), true),
        (
            "If appProtocol is set to a different value",
            |it| it["spec"]["ports"][0]["appProtocol"] = json!("http"),
            |it| it["spec"]["ports"][0]["appProtocol"] = json!("tcp"),
            true,
        ),
    ];
    for (name, old, new, wanted) in cases {
        assert_eq!(needs_update(old, new), wanted, "{name}");
    }
}

/// The rest of Go's `needsUpdate`, for which it has no cases.
#[test]
fn the_other_fields_that_go_compares_count_and_no_others_do() {
    let matter: [Edit; 9] = [
        |it| it["spec"]["loadBalancerSourceRanges"] = json!(["10.0.0.0/8"]),
        |it| it["spec"]["loadBalancerIP"] = json!("192.0.2.1"),
        |it| it["spec"]["sessionAffinity"] = json!("ClientIP"),
        |it| it["spec"]["sessionAffinityConfig"] = json!({ "clientIP": { "timeoutSeconds": 5 } }),
        |it| it["spec"]["ports"][0]["nodePort"] = json!(30_081),
        |it| it["spec"]["ports"][0]["protocol"] = json!("UDP"),
        |it| it["spec"]["ports"][0]["name"] = json!("http"),
        |it| it["metadata"]["annotations"]["fake/size"] = json!("small"),
        |it| it["metadata"]["deletionTimestamp"] = json!("2024-05-06T07:08:09Z"),
    ];
    for (index, edit) in matter.into_iter().enumerate() {
        assert!(needs_update(SAME, edit) && needs_update(edit, SAME), "{index}");
    }
    let others: [Edit; 6] = [
        |it| it["metadata"]["labels"] = json!({ "team": "red" }),
        |it| it["metadata"]["resourceVersion"] = json!("17"),
        |it| it["spec"]["selector"] = json!({ "app": "b" }),
        |it| it["spec"]["internalTrafficPolicy"] = json!("Local"),
        |it| it["status"] = json!({}),
        |it| it["metadata"]["finalizers"].as_array_mut().unwrap().push(json!("another.example.com/finalizer")),
    ];
    for (index, edit) in others.into_iter().enumerate() {
        assert!(!needs_update(SAME, edit), "{index}");
    }
}

/// Go's table of finalizer, deletion time and type; it leaves out four of the eight rows as alike.
#[test]
fn a_load_balancer_is_removed_as_in_go() {
    let cases: [(&str, Edit, bool); 5] = [
        ("service without finalizer", |it| it["metadata"]["finalizers"] = json!([]), false),
        ("service with finalizer without timestamp without LB", |it| it["spec"]["type"] = json!("NodePort"), true),
        ("service with finalizer without timestamp with LB", SAME, false),
        ("service with finalizer with timestamp", |it| it["metadata"]["deletionTimestamp"] = json!("2024-05-06T07:08:09Z"), true),
        (
            "the same, of another type",
            |it| {
                it["metadata"]["deletionTimestamp"] = json!("2024-05-06T07:08:09Z");
                it["spec"]["type"] = json!("NodePort");
            },
            true,
        ),
    ];
    for (name, edit, wanted) in cases {
        let step = now(&observed(with(finished("s"), edit)));
        assert_eq!(step == Step::Delete { keeps_finalizer: false, priority: Priority::Deletion }, wanted, "{name}: {step:?}");
    }
}
