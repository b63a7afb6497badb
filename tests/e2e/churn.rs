//! Kills with -9 while nodes come and go. The soak (`--bin soak`) does the same for longer.
use anyhow::Result;
use ccm_test_support::churn::Churn;
use ccm_test_support::world::World;

#[tokio::test(flavor = "multi_thread")]
async fn five_kills_while_five_hundred_nodes_join_and_leave_end_with_exactly_the_right_nodes() -> Result<()> {
    let world = World::start().await?;
    let report = Churn { nodes: 500, kills: 5 }.run(&world, |line| println!("{line}")).await?;
    assert_eq!((report.core_kills + report.provider_kills, report.nodes), (5, 250));
    world.end().await
}
