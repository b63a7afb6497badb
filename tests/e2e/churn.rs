//! Kills with -9 while nodes come and go. The soak (`--bin soak`) does the same for longer.
use anyhow::Result;
use ccm_test_support::churn::{nodes, routes, services};
use ccm_test_support::world::World;

#[tokio::test(flavor = "multi_thread")]
async fn five_kills_while_five_hundred_nodes_join_and_leave_end_with_exactly_the_right_nodes() -> Result<()> {
    let world = World::start().await?;
    let report = nodes::Churn { nodes: 500, kills: 5 }.run(&world, |line| println!("{line}")).await?;
    assert_eq!((report.kills.all(), report.nodes), (5, 250));
    world.end().await
}

#[tokio::test(flavor = "multi_thread")]
async fn five_kills_while_two_hundred_services_come_and_go_leave_each_with_what_it_asks_for_and_leak_nothing() -> Result<()> {
    let world = World::start().await?;
    let report = services::Churn { services: 200, kills: 5 }.run(&world, |line| println!("{line}")).await?;
    assert_eq!((report.kills.all(), report.balanced + report.plain + report.gone), (5, 200));
    world.end().await
}

#[tokio::test(flavor = "multi_thread")]
async fn five_kills_while_two_hundred_nodes_come_and_go_end_with_exactly_the_right_routes_and_no_moment_without_one() -> Result<()>
{
    let world = World::start().await?;
    let report = routes::Churn { nodes: 200, kills: 5 }.run(&world, |line| println!("{line}")).await?;
    assert_eq!(report.kills.all(), 5);
    assert!(report.looks > 0);
    world.end().await
}
