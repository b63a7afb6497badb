//! The three clients, each in a world of its own.
use std::time::Duration;

use anyhow::{Result, ensure};
use ccm_test_support::core::Core;
use ccm_test_support::simulated::Provider;
use ccm_test_support::world::World;
use jiff::Timestamp;

use super::report::Row;
use super::writes::Writes;
use crate::upstream::{Flags, Upstream};
use crate::usage::{Usage, while_running};
use crate::{bare, joined};

/// How long the bare client and ccm-core may take.
const LIMIT: Duration = Duration::from_mins(60);

/// What all of them get.
pub struct Clients {
    /// How many nodes.
    pub nodes: usize,
    /// Whether these have their full size.
    pub fat: bool,
    /// How long a call to the cloud takes.
    pub latency: Duration,
}

impl Clients {
    /// A client that patches and does nothing else, in this process.
    pub async fn bare(&self, in_flight: usize) -> Result<Row> {
        let (world, mut writes) = self.world().await?;
        let began = Timestamp::now();
        tokio::try_join!(bare::initialise_all(&world, in_flight), writes.all(LIMIT))?;
        self.end(world, Row::of("bare client", began, &writes)).await
    }

    /// ccm-core on default flags, with a provider beside it.
    pub async fn core(&self) -> Result<Row> {
        let (world, mut writes) = self.world().await?;
        let latency = format!("--latency={}ms", self.latency.as_millis());
        let mut provider = world.provider().flag("--auto-instances").flag(&latency).start().await?;
        let began = Timestamp::now();
        let mut core = world.core().start().await?;
        while_running(core.process(), writes.all(LIMIT)).await?;
        let usages = usages(&mut core, &mut provider);
        let row = Row::of("ccm-core", began, &writes).with(usages, provider.look_ups().await?);
        core.stop().await?;
        provider.stop().await?;
        self.end(world, row).await
    }

    /// Upstream's manager, for so long at most.
    pub async fn upstream(&self, flags: Flags, limit: Duration) -> Result<Row> {
        let (world, mut writes) = self.world().await?;
        let began = Timestamp::now();
        let mut upstream = Upstream::start(&world, flags, self.latency, &[]).await?;
        while_running(upstream.process(), writes.all(limit)).await?;
        let usages = vec![Usage::of(flags.name(), upstream.process())];
        let row = Row::of(flags.name(), began, &writes).with(usages, upstream.calls().await?.total());
        upstream.stop().await?;
        self.end(world, row).await
    }

    async fn world(&self) -> Result<(World, Writes)> {
        let (world, _) = joined::quiet_world(self.nodes, self.fat).await?;
        let writes = Writes::of(&world, self.nodes);
        Ok((world, writes))
    }

    /// After the clock: the nodes are listed, for what was measured must be true.
    async fn end(&self, world: World, row: Row) -> Result<Row> {
        ensure!(row.done > 0, "{} wrote to no node", row.client);
        if row.done == self.nodes {
            joined::check(&world, self.nodes).await?;
        }
        world.end().await?;
        Ok(row)
    }
}

fn usages(core: &mut Core, provider: &mut Provider) -> Vec<Usage> {
    vec![Usage::of("ccm-core", core.process()), Usage::of("provider-simulated", provider.process())]
}
