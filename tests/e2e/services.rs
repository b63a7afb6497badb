//! Services of type LoadBalancer, from the wish of a user to the load balancer in the cloud and back.
use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Result, ensure};
use ccm_test_support::core::CoreSpec;
use ccm_test_support::ctl::{Calls, LoadBalancer};
use ccm_test_support::services::{Services, Wish};
use ccm_test_support::simulated::ProviderSpec;
use ccm_test_support::wait::{PATIENCE, eventually, throughout};

use crate::herd::Herd;

mod classes;
mod drift;
mod handshakes;
mod life;
mod listing;
mod outages;
mod restarts;
mod sigterm;
mod start_up;
mod targets;
mod wishes;

/// When no call has come for so long, none will: longer than changes of nodes are gathered.
const REST: Duration = Duration::from_millis(500);

/// A herd, and Services that want load balancers to it.
struct Market {
    herd: Herd,
    services: Services,
}

impl Market {
    /// So many nodes, and no Service yet.
    async fn of(nodes: usize) -> Result<Self> {
        Self::between(nodes, |provider| provider, |core| core).await
    }

    /// The same with flags for both processes.
    async fn between(
        nodes: usize,
        provider: impl FnOnce(ProviderSpec) -> ProviderSpec,
        core: impl FnOnce(CoreSpec) -> CoreSpec,
    ) -> Result<Self> {
        let herd = Herd::between(nodes, provider, core).await?;
        Ok(Self { services: herd.world.services(), herd })
    }

    /// Another core in place of the first, with further flags.
    async fn renew(self, flags: impl FnOnce(CoreSpec) -> CoreSpec) -> Result<Self> {
        Ok(Self { herd: self.herd.renew(flags).await?, services: self.services })
    }

    /// A Service that has got its load balancer.
    async fn serve(&self, name: &str) -> Result<()> {
        self.services.create([Wish::new(name)]).await?;
        self.served(&[name.to_owned()]).await
    }

    /// Many of them. Answers what was called until all came to rest.
    async fn serve_all(&self, names: &[String]) -> Result<Calls> {
        self.services.ask(names).await?;
        self.served(names).await?;
        self.rest().await
    }

    /// Waits until nobody wants to change a load balancer any more. The first Services may be served with nodes as they
    /// were a moment before they were initialised, and are then updated.
    async fn rest(&self) -> Result<Calls> {
        eventually("changes of load balancers to come to rest", PATIENCE, async || {
            let calls = self.calls().await?;
            throughout("nobody changes one", REST, async || {
                let more = self.calls().await?.since(&calls);
                ensure!(more.mutations() == 0, "{more:?}");
                Ok(())
            })
            .await?;
            Ok(calls)
        })
        .await
    }

    /// How often each load balancer was changed, by its name.
    async fn mutations(&self) -> Result<BTreeMap<String, u64>> {
        let all = self.herd.provider.cloud().load_balancers().await?;
        Ok(all.into_iter().map(|one| (one.name, one.mutations)).collect())
    }

    /// Waits until these have their addresses.
    async fn served(&self, names: &[String]) -> Result<()> {
        eventually("all to have addresses", PATIENCE, async || self.services.have_addresses(names).await).await
    }

    /// Waits until these Services are gone, and answers that the cloud has nothing left.
    async fn cleared(&self, names: &[String]) -> Result<()> {
        eventually("the Services to go", PATIENCE, async || self.services.gone(names).await).await?;
        self.herd.provider.cloud().sells(0).await
    }

    /// Waits until the load balancer of a Service is so.
    async fn becomes(&self, service: &str, what: &str, is: impl Fn(&LoadBalancer) -> bool) -> Result<()> {
        eventually(&format!("the load balancer of {service}: {what}"), PATIENCE, async || {
            let one = self.herd.provider.cloud().load_balancer(service).await?;
            ensure!(is(&one), "it is {one:?}");
            Ok(())
        })
        .await
    }

    /// Waits until all load balancers have exactly these targets.
    async fn targets_are(&self, nodes: &[&str]) -> Result<()> {
        eventually("all load balancers to have the right targets", PATIENCE, async || {
            let all = self.herd.provider.cloud().load_balancers().await?;
            let other = all.iter().find(|one| one.targets != nodes);
            ensure!(other.is_none(), "there is {other:?}");
            Ok(())
        })
        .await
    }

    /// What was called so far.
    async fn calls(&self) -> Result<Calls> {
        self.herd.provider.calls().await
    }

    /// Everything ends well.
    async fn end(self) -> Result<()> {
        self.herd.end().await
    }
}

/// Just this one.
fn name(service: &str) -> [String; 1] {
    [service.to_owned()]
}
