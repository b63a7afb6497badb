//! The condition NetworkUnavailable.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
use std::time::Duration;

use http::Method;
use serde_json::{Value, json};

use super::world::{World, node, route, with};
use crate::provider::scripted::routes::foreign;

fn saying(number: u32, status: &str, reason: &str) -> Value {
    with(node(number), |node| {
        node["status"]["conditions"] = json!([{ "type": "NetworkUnavailable", "status": status, "reason": reason }]);
    })
}

/// Upstream's cases of the condition: what it says, whether the route is there, whether it is written.
#[tokio::test(start_paused = true)]
async fn the_condition_is_written_where_status_or_reason_differ() {
    let cases = [
        (None, true, true),
        (None, false, true),
        (Some(("False", "RouteCreated")), true, false),
        (Some(("False", "CalicoIsUp")), true, true),
        (Some(("False", "ExternalCNI")), true, true),
        (Some(("True", "SomeOtherReason")), false, true),
        (Some(("False", "RouteCreated")), false, true),
        (Some(("True", "NoRouteCreated")), false, false),
    ];
    for (condition, is_made, is_written) in cases {
        let node = condition.map_or_else(|| node(1), |(status, reason)| saying(1, status, reason));
        let route = if is_made { route(1) } else { foreign(&super::world::cidr(1)) };
        let world = World::started([node], [route]).await;
        assert_eq!(world.writes(), usize::from(is_written), "{condition:?} {is_made}");
        let expected = if is_made { ("False", "RouteCreated") } else { ("True", "NoRouteCreated") };
        assert_eq!(world.condition(1), Some((expected.0.to_owned(), expected.1.to_owned())), "{condition:?} {is_made}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_condition_that_was_not_written_is_written_later_and_one_that_another_changed_again() {
    let mut world = World::new([node(1)], [route(1)]);
    world.api.fail_once(Method::PATCH, "/api/v1/nodes/n1", 500);
    world.start().await;
    world.settle().await;
    assert!(world.is_available(1));
    world.change(1, |node| node["status"]["conditions"][0]["status"] = json!("True"));
    world.settle().await;
    assert!(world.is_available(1));
    assert_eq!(world.writes(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_is_behind_leads_to_no_second_write() {
    let world = World::started([], []).await;
    let behind = crate::cluster::scripted::model(&with(node(1), |node| node["metadata"]["resourceVersion"] = json!("1")));
    world.api.put_node(node(1));
    world.settle().await;
    for _ in 0..5 {
        world.nodes.show(behind.clone());
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    assert_eq!((world.writes(), world.is_available(1)), (1, true));
}
