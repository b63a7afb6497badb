//! Every annotation and every refusal.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
use ccm_provider_sdk::v1::ErrorReason;

use super::*;

fn service(annotations: &[(&str, &str)]) -> v1::Service {
    let port = v1::ServicePort { protocol: v1::Protocol::Tcp.into(), port: 80, node_port: Some(30_000), ..Default::default() };
    v1::Service {
        namespace: "default".into(),
        name: "web".into(),
        uid: "s".into(),
        annotations: annotations.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect(),
        ports: vec![port],
        ..v1::Service::default()
    }
}

fn node(name: &str, label: &str) -> v1::Node {
    let labels = HashMap::from([(format!("{PREFIX}pool"), label.to_owned())]);
    v1::Node { name: name.into(), labels, ..v1::Node::default() }
}

fn asked(service: &v1::Service, nodes: &[v1::Node]) -> Result<Wanted> {
    wanted(&v1::ClusterRef { name: "kubernetes".into(), uid: "c".into() }, service, nodes)
}

#[test]
fn without_annotations_every_node_is_a_target_of_an_ipv4_address() {
    let initialised = v1::Node { provider_id: Some("simulated://a/1".into()), ..node("b", "x") };
    let wanted = asked(&service(&[]), &[initialised, node("a", "y")]).unwrap();
    let target = |node: &str, id: Option<&str>| Target { node: node.into(), provider_id: id.map(String::from) };
    assert_eq!(*wanted.targets.0, [target("a", None), target("b", Some("simulated://a/1"))]);
    assert_eq!((wanted.ip_families, wanted.publish, wanted.ip_mode), (vec![Family::IPv4], Publish::Ip, None));
    assert_eq!(wanted.listeners, [Listener { port: 80, protocol: Protocol::Tcp, node_port: Some(30_000) }]);
    assert_eq!(wanted.mark.cluster_uid, "c");
}

#[test]
fn every_annotation_has_its_effect() {
    let annotations = [
        (MAX_QPS_ANNOTATION, "1000000"),
        (NODE_LABEL_ANNOTATION, "simulated.ccm-core.dev/pool=edge"),
        (ADDRESS_ANNOTATION, "hostname"),
        (IP_MODE_ANNOTATION, "Proxy"),
    ];
    let wanted = asked(&service(&annotations), &[node("a", "edge"), node("b", "inner")]).unwrap();
    assert_eq!((wanted.max_qps, wanted.publish, wanted.ip_mode), (Some(1_000_000), Publish::Hostname, Some(IpMode::Proxy)));
    assert_eq!(wanted.targets.0.iter().map(|target| target.node.as_str()).collect::<Vec<_>>(), ["a"]);
}

#[test]
fn a_wrong_annotation_is_the_users_to_mend_and_is_named() {
    let table = [
        (MAX_QPS_ANNOTATION, "0"),
        (MAX_QPS_ANNOTATION, "1000001"),
        (MAX_QPS_ANNOTATION, "many"),
        (NODE_LABEL_ANNOTATION, "simulated.ccm-core.dev/pool"),
        (NODE_LABEL_ANNOTATION, "example.com/pool=edge"),
        (ADDRESS_ANNOTATION, "IP"),
        (IP_MODE_ANNOTATION, "proxy"),
    ];
    for (key, value) in table {
        let error = asked(&service(&[(key, value)]), &[]).unwrap_err();
        assert_eq!(error.reason, ErrorReason::UserConfiguration);
        assert!(error.message.starts_with(&format!("{key}: {value:?}")), "{error}");
    }
}

#[test]
fn sctp_is_refused_by_the_path_of_its_port() {
    let mut service = service(&[]);
    service.ports.push(v1::ServicePort { protocol: v1::Protocol::Sctp.into(), port: 81, ..Default::default() });
    let error = asked(&service, &[]).unwrap_err();
    assert_eq!(error.reason, ErrorReason::UserConfiguration);
    assert!(error.message.starts_with("ports[1].protocol: "), "{error}");
}

#[test]
fn families_come_in_the_services_order() {
    let families = [v1::IpFamily::Ipv6, v1::IpFamily::Ipv4].map(i32::from).to_vec();
    let dual = v1::Service { ip_families: families, ..service(&[]) };
    assert_eq!(asked(&dual, &[]).unwrap().ip_families, [Family::IPv6, Family::IPv4]);
}

#[test]
fn an_address_that_is_asked_for_is_a_warning() {
    assert!(warnings(&service(&[])).is_empty());
    let asked = v1::Service { load_balancer_ip: Some("192.0.2.1".into()), ..service(&[]) };
    let [warning] = warnings(&asked).try_into().unwrap();
    assert!(warning.message.contains("192.0.2.1") && warning.reason == "LoadBalancerIPIgnored", "{warning:?}");
}
