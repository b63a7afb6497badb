//! Load balancers over the provider's socket, by the generated client.
use std::time::Duration;

use ccm_proto::v1;
use ccm_proto::v1::Capability;
use ccm_proto::v1::ensure_load_balancer_response::Outcome;
use serde_json::json;
use tonic::Code;

use crate::leading::{Leading, nodes, reason, service};
use crate::processes::eventually;

mod faults;
mod mutations;
mod owners;

const NAME: &str = "simulated.ccm-core.dev/load-balancer-name";

fn addresses(status: Option<&v1::LoadBalancerStatus>) -> Vec<String> {
    let address = |ingress: &v1::LoadBalancerIngress| ingress.ip.clone().or(ingress.hostname.clone()).unwrap();
    status.unwrap().ingress.iter().map(address).collect()
}

#[tokio::test]
async fn a_load_balancer_from_its_creation_to_its_end() {
    let core = Leading::start(&[]).await;
    let (web, two) = (service("u-1", &[]), nodes(&["node-1", "node-2"]));
    let ready = core.ready(&web, &two).await;
    let [address] = addresses(ready.status.as_ref()).try_into().unwrap();
    assert!(address.starts_with("198.18.") || address.starts_with("198.19."), "{address}");
    assert_eq!(ready.annotations[NAME], "au1");
    let expected = json!([{
        "name": "au1", "clusterUid": "cluster-uid", "namespace": "default", "service": "web-u-1", "serviceUid": "u-1",
        "addresses": [address], "state": "ready", "targets": ["node-1", "node-2"],
        "listeners": [{"port": 80, "protocol": "TCP", "nodePort": 30_000}], "mutations": 1
    }]);
    assert_eq!(json!(core.there()), expected);

    assert_eq!(core.ready(&web, &two).await, ready, "a repeat");
    core.update(&web, &nodes(&["node-2", "node-3"])).await.unwrap();
    core.update(&web, &nodes(&["node-3", "node-2"])).await.unwrap();
    let there = core.there();
    assert_eq!((&there[0]["targets"], &there[0]["mutations"]), (&json!(["node-2", "node-3"]), &json!(2)));
    let table = core.provider.ctl(&["load-balancers"]);
    assert!(table.starts_with("NAME") && table.contains("default/web-u-1") && table.contains(&address), "{table}");

    core.delete(&web).await.unwrap();
    core.delete(&web).await.unwrap();
    assert!(core.there().is_empty());
    let counted = ["EnsureLoadBalancer", "UpdateLoadBalancer", "EnsureLoadBalancerDeleted"].map(|name| core.calls(name));
    assert_eq!(counted, [2, 2, 2]);
}

#[tokio::test]
async fn a_plan_says_what_ensure_would_do_and_nothing_once_it_is_done() {
    let core = Leading::start(&[]).await;
    let (plain, one) = (service("u", &[]), nodes(&["node-1"]));
    assert_eq!(core.plan(&plain, &one).await.unwrap().changes, ["create load balancer au"]);
    let ready = core.ready(&plain, &one).await;
    let settled = core.plan(&plain, &one).await.unwrap();
    assert_eq!((settled.changes, settled.status, settled.annotations), (vec![], ready.status, ready.annotations));

    let limited = service("u", &[("load-balancer-max-qps", "50")]);
    let changes = core.plan(&limited, &nodes(&["node-7"])).await.unwrap().changes;
    assert_eq!(changes, ["remove target node-1", "add target node-7", "set max QPS to 50"]);
    assert_eq!(core.there()[0]["mutations"], 1, "a plan changed something");
    core.ready(&limited, &nodes(&["node-7"])).await;
    assert_eq!((&core.there()[0]["maxQps"], core.calls("PlanLoadBalancer")), (&json!(50), 3));
}

#[tokio::test]
async fn what_was_changed_behind_its_back_is_found_by_a_plan_and_repaired_by_ensure() {
    let core = Leading::start(&[]).await;
    let (web, two) = (service("u", &[]), nodes(&["node-1", "node-2"]));
    core.ready(&web, &two).await;
    core.provider.ctl(&["load-balancer", "change", "au", "--remove-target", "node-2", "--max-qps", "9"]);
    assert_eq!(core.there()[0]["mutations"], 1, "its owner did not do it");
    assert_eq!(core.plan(&web, &two).await.unwrap().changes, ["add target node-2", "remove max QPS"]);
    core.ready(&web, &two).await;
    assert!(core.plan(&web, &two).await.unwrap().changes.is_empty());
    core.provider.ctl(&["load-balancer", "remove", "au"]);
    assert_eq!(core.plan(&web, &two).await.unwrap().changes, ["create load balancer au"]);
    for (args, words) in [
        (&["load-balancer", "remove", "au"][..], "no load balancer au"),
        (&["load-balancer", "change", "au", "--max-qps", "0"], "0 is not in"),
        (&["load-balancer", "change", "au"], "--remove-target"),
    ] {
        let output = core.provider.try_ctl(args);
        let message = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success() && message.contains(words), "{args:?}: {message}");
    }
}

#[tokio::test]
async fn two_families_have_an_address_each_and_a_hostname_takes_their_place() {
    let core = Leading::start(&[]).await;
    let families = [v1::IpFamily::Ipv6, v1::IpFamily::Ipv4].map(i32::from).to_vec();
    let dual = |annotations| v1::Service { ip_families: families.clone(), ..service("u", annotations) };
    let status = core.ready(&dual(&[("load-balancer-ip-mode", "Proxy")]), &[]).await.status;
    let [v6, v4] = addresses(status.as_ref()).try_into().unwrap();
    assert!(v6.starts_with("2001:db8:") && v4.starts_with("198."), "{v6} {v4}");
    assert!(status.unwrap().ingress.iter().all(|ingress| ingress.ip_mode() == v1::LoadBalancerIpMode::Proxy));

    let named = core.ready(&dual(&[("load-balancer-address", "hostname")]), &[]).await.status.unwrap();
    assert_eq!(addresses(Some(&named)), ["au.lb.simulated.ccm-core.dev"]);
    assert_eq!(named.ingress[0].ip_mode(), v1::LoadBalancerIpMode::Unspecified);
    assert_eq!(core.there()[0]["addresses"], json!([v6, v4]));
    let back = core.ready(&dual(&[]), &[]).await.status;
    assert_eq!(addresses(back.as_ref()), [v6, v4]);
}

#[tokio::test]
async fn what_the_user_must_mend_is_named_and_costs_the_cloud_nothing() {
    let core = Leading::start(&[]).await;
    let mut sctp = service("u", &[]);
    sctp.ports[0].protocol = v1::Protocol::Sctp.into();
    let wrong = service("u", &[("load-balancer-max-qps", "1000001")]);
    for (service, field) in [(sctp, "ports[0].protocol"), (wrong, "simulated.ccm-core.dev/load-balancer-max-qps")] {
        for status in [core.ensure(&service, &[]).await.unwrap_err(), core.plan(&service, &[]).await.unwrap_err()] {
            assert_eq!((status.code(), reason(&status).as_str()), (Code::InvalidArgument, "USER_CONFIGURATION"));
            assert!(status.message().starts_with(field), "{}", status.message());
        }
    }
}

#[tokio::test]
async fn only_nodes_with_the_label_are_targets() {
    let core = Leading::start(&[]).await;
    let info = core.provider.info().await.unwrap();
    assert_eq!(info.node_labels, ["simulated.ccm-core.dev/*"]);
    assert_eq!(info.service_annotation_prefixes, ["simulated.ccm-core.dev/"]);
    let mut both = nodes(&["edge-1", "node-1"]);
    both[0].labels.insert("simulated.ccm-core.dev/pool".into(), "edge".into());
    core.ready(&service("u", &[("load-balancer-node-label", "simulated.ccm-core.dev/pool=edge")]), &both).await;
    assert_eq!(core.there()[0]["targets"], json!(["edge-1"]));
}

#[tokio::test]
async fn an_address_that_cannot_be_had_is_a_warning() {
    let core = Leading::start(&[]).await;
    let asked = v1::Service { load_balancer_ip: Some("192.0.2.1".into()), ..service("u", &[]) };
    assert_eq!(core.ready(&asked, &[]).await.warnings[0].reason, "LoadBalancerIPIgnored");
}

#[tokio::test]
async fn a_new_one_is_in_progress_until_it_is_provisioned() {
    let core = Leading::start(&["--load-balancer-provisioning", "700ms"]).await;
    let web = service("u", &[]);
    let Outcome::InProgress(progress) = core.ensure(&web, &[]).await.unwrap() else { panic!("it was ready at once") };
    let wait: Duration = progress.poll_after.unwrap().try_into().unwrap();
    assert!(wait <= Duration::from_millis(700), "{wait:?}");
    assert_eq!(core.there()[0]["state"], "provisioning");
    eventually(async || matches!(core.ensure(&web, &[]).await, Ok(Outcome::Ready(_))).then_some(())).await;
    assert_eq!((&core.there()[0]["state"], &core.there()[0]["mutations"]), (&json!("ready"), &json!(1)));
    assert!(matches!(core.ensure(&service("u", &[("load-balancer-max-qps", "5")]), &[]).await, Ok(Outcome::Ready(_))));
}

#[tokio::test]
async fn kill_9_keeps_load_balancers_and_their_addresses() {
    let state = tempfile::tempdir().unwrap();
    let mut core = Leading::start(&["--state", state.path().to_str().unwrap()]).await;
    let web = service("u", &[]);
    core.ready(&web, &nodes(&["node-1"])).await;
    core.ready(&service("gone", &[]), &[]).await;
    core.delete(&service("gone", &[])).await.unwrap();
    let before = core.there();
    core.restart().await;
    assert_eq!(core.there(), before);
    assert!(core.plan(&web, &nodes(&["node-1"])).await.unwrap().changes.is_empty());
}

#[tokio::test]
async fn capabilities_and_limits_are_as_the_flags_say() {
    let core = Leading::start(&[]).await;
    let info = core.provider.info().await.unwrap();
    let parts = [Capability::LoadBalancers, Capability::NodeSets, Capability::PlanLoadBalancer, Capability::ListLoadBalancers];
    assert!(parts.iter().all(|part| info.capabilities.contains(&(*part).into())), "{info:?}");
    assert_eq!(info.limits.unwrap().max_concurrent_load_balancer_calls, Some(50));
    let set = v1::PutNodeSetRequest { hash: "h".into(), set: Some(v1::NodeSet::default()) };
    core.client().put_node_set(set.clone()).await.unwrap();
    assert_eq!(core.calls("PutNodeSet"), 1);

    let flags = ["--load-balancer-plan=false", "--node-sets=false", "--max-concurrent-load-balancer-calls=7"];
    let core = Leading::start(&flags).await;
    let info = core.provider.info().await.unwrap();
    let served = parts.map(|part| info.capabilities.contains(&part.into()));
    assert_eq!(served, [true, false, false, true]);
    assert_eq!(info.limits.unwrap().max_concurrent_load_balancer_calls, Some(7));
    assert_eq!(core.plan(&service("u", &[]), &[]).await.unwrap_err().code(), Code::Unimplemented);
    assert_eq!(core.client().put_node_set(set).await.unwrap_err().code(), Code::Unimplemented);
}
