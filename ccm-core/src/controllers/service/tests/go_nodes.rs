//! The cases of Go's controller about nodes: `TestUpdateNodesInExternalLoadBalancer`, `TestNodeChangesForStableNodeSetEnabled`,
//! `TestNodeChangesInExternalLoadBalancer` and `TestNodesNotEqual`.
use serde_json::{Value, json};

use super::fixtures::{Reply, Verb, World, finished, node, refusal, service, with};
use super::{SECOND, pass, settle, start, until};
use crate::names::{labels, taints};
use crate::provider::Outcome;

struct Case {
    name: &'static str,
    /// The Services that have a load balancer, by name.
    services: &'static [&'static str],
    before: Vec<Value>,
    after: Vec<Value>,
    /// Whether the first attempts fail.
    fails: bool,
    /// The targets that Go gives to each Service, if any.
    go: Option<&'static [&'static str]>,
    /// Where ours differs on purpose: what is given, and why.
    ours: Option<(Option<&'static [&'static str]>, &'static str)>,
}

const ONE: &[&str] = &["n1"];
const TWO: &[&str] = &["n1", "n2"];
const THREE: &[&str] = &["n1", "n2", "n3"];
const FOUR: &[&str] = &["n1", "n2", "n3", "n4"];
const WITHOUT_2: &[&str] = &["n1", "n3"];

const DRAINS: &str = "a node that is about to go drains: it is left out with the next change. Go's event handler starts no round \
                      for it either; its test starts one by hand";

fn nodes(names: &[&str]) -> Vec<Value> {
    names.iter().map(|name| node(name)).collect()
}

fn with_2(second: Value) -> Vec<Value> {
    vec![node("n1"), second, node("n3")]
}

fn not_ready() -> Value {
    with(node("n2"), |it| it["status"]["conditions"][0]["status"] = json!("False"))
}

fn tainted(key: &str) -> Value {
    with(node("n2"), |it| it["spec"]["taints"] = json!([{ "key": key, "effect": "NoSchedule" }]))
}

fn excluded() -> Value {
    with(node("n2"), |it| it["metadata"]["labels"] = json!({ labels::EXCLUDE_FROM_LOAD_BALANCERS: "" }))
}

fn deleted() -> Value {
    with(node("n2"), |it| it["metadata"]["deletionTimestamp"] = json!("2024-05-06T07:08:09Z"))
}

fn unnamed(name: &str) -> Value {
    with(node(name), |it| it["spec"] = json!({}))
}

fn case(name: &'static str, before: Vec<Value>, after: Vec<Value>, go: Option<&'static [&'static str]>) -> Case {
    Case { name, services: &["s0", "s1", "external-balancer"], before, after, fails: false, go, ours: None }
}

fn update_nodes() -> Vec<Case> {
    let given = |name, services| Case { services, ..case(name, vec![], nodes(THREE), Some(THREE)) };
    vec![
        given("No services present", &[]),
        given("Services do not have external load balancers", &["no0", "no1"]),
        given("Services does have an external load balancer", &["s0"]),
        given("Three services have an external load balancer", &["s0", "s1", "s2"]),
        given("Two services have an external load balancer and two don't", &["no0", "s1", "s3", "no4"]),
        given("One service has an external load balancer and one is nil", &["s0"]),
        given("Four services have external load balancer with only 2 workers", &["s0", "s1", "s3", "s4"]),
    ]
}

fn stable_set() -> Vec<Case> {
    vec![
        case("No node changes", nodes(THREE), nodes(THREE), None),
        case("1 new node gets added", nodes(TWO), nodes(THREE), Some(THREE)),
        Case { fails: true, ..case("1 new node gets added - with retries", nodes(TWO), nodes(THREE), Some(THREE)) },
        case("1 node goes NotReady", nodes(THREE), with_2(not_ready()), None),
        Case {
            ours: Some((None, DRAINS)),
            ..case("1 node gets Tainted", nodes(THREE), with_2(tainted(taints::TO_BE_DELETED)), Some(WITHOUT_2))
        },
        case("1 node goes Ready", with_2(not_ready()), nodes(THREE), None),
        case("1 node get excluded", nodes(THREE), with_2(excluded()), Some(WITHOUT_2)),
        case("1 old node gets deleted", nodes(THREE), nodes(TWO), Some(TWO)),
        Case {
            ours: Some((None, DRAINS)),
            ..case("1 node marked for deletion", nodes(THREE), with_2(deleted()), Some(WITHOUT_2))
        },
        case("1 spurious node update", nodes(THREE), with_2(tainted("Other")), None),
    ]
}

fn changes() -> Vec<Case> {
    let all = |name, after: &'static [&'static str]| Case {
        services: &["s0", "s1", "s3", "s4"],
        ..case(name, vec![], nodes(after), Some(after))
    };
    vec![all("only 1 node", ONE), all("2 nodes", TWO), all("4 nodes", FOUR)]
}

fn not_equal() -> Vec<Case> {
    vec![
        case("Nodes with updated providerID", vec![unnamed("n1"), unnamed("n2")], nodes(TWO), Some(TWO)),
        case("Nodes unchanged", vec![node("n1"), unnamed("n2")], vec![node("n1"), unnamed("n2")], None),
        case(
            "Change node with empty providerID",
            vec![node("n1"), unnamed("n2")],
            vec![node("n1"), unnamed("n3")],
            Some(WITHOUT_2),
        ),
    ]
}

fn wants_none(name: &str) -> bool {
    name.starts_with("no")
}

fn start_of(name: &&str) -> Value {
    let kind = if name.ends_with('1') { "NodePort" } else { "ClusterIP" };
    if wants_none(name) { with(service(name), |it| it["spec"]["type"] = json!(kind)) } else { finished(name) }
}

fn become_nodes(world: &World, case: &Case) {
    let name = |node: &Value| node["metadata"]["name"].as_str().unwrap().to_owned();
    for gone in case.before.iter().map(name).filter(|it| !case.after.iter().any(|node| name(node) == *it)) {
        world.remove_node(&gone);
    }
    case.after.iter().for_each(|node| world.server.put_node(node.clone()));
}

async fn check(case: Case) {
    let world = World::new(case.services.iter().map(start_of), case.before.clone());
    // Where there is no node at first, nothing is believed of load balancers that have targets: here they have none.
    let wait = if case.before.is_empty() { SECOND * 31 } else { SECOND };
    let running = start(&world);
    let owners: Vec<_> = case.services.iter().filter(|name| !wants_none(name)).collect();
    pass(wait).await;
    until("all were seen", || world.cloud.answered(Verb::Plan) == owners.len()).await;
    settle().await;
    world.cloud.clear();
    if case.fails {
        let error = || Reply::Fail(refusal(Outcome::Retry { after: None }, "UNAVAILABLE"));
        owners.iter().for_each(|name| world.cloud.reply(Verb::Update, name, [error()]));
    }
    become_nodes(&world, &case);
    pass(SECOND * 10).await;
    let (want, why) = case.ours.unwrap_or((case.go, "as in Go"));
    for name in &owners {
        let calls: Vec<_> = world.cloud.calls().into_iter().filter(|call| call.name() == **name).collect();
        let given = calls.last().map(|call| call.targets.clone());
        assert_eq!(given, want.map(|names| names.iter().map(ToString::to_string).collect()), "{}: {why}", case.name);
        assert!(calls.len() <= 1 + usize::from(case.fails), "{}: {} calls", case.name, calls.len());
    }
    let others = world.cloud.calls().into_iter().filter(|call| wants_none(call.name())).count();
    assert_eq!(others, 0, "{}", case.name);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn services_with_a_load_balancer_get_the_nodes_and_others_nothing() {
    for case in update_nodes() {
        check(case).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_change_of_the_set_is_given_and_other_changes_are_not() {
    for case in stable_set() {
        check(case).await;
    }
}

#[tokio::test(start_paused = true)]
async fn every_set_is_given_to_every_service() {
    for case in changes() {
        check(case).await;
    }
}

#[tokio::test(start_paused = true)]
async fn nodes_are_compared_by_what_they_are() {
    for case in not_equal() {
        check(case).await;
    }
}
