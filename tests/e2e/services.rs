//! Services of type LoadBalancer, from the wish of a user to the load balancer in the cloud and back.
use anyhow::{Result, ensure};
use ccm_test_support::core::CoreSpec;
use ccm_test_support::ctl::{Calls, LoadBalancer};
use ccm_test_support::services::{Services, Wish};
use ccm_test_support::simulated::ProviderSpec;
use ccm_test_support::wait::{PATIENCE, eventually};

use crate::herd::Herd;

mod classes;
mod drift;
mod life;
mod outages;
mod restarts;
mod start_up;
mod targets;
mod wishes;

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

    /// Many of them.
    async fn serve_all(&self, names: &[String]) -> Result<()> {
        self.services.ask(names).await?;
        self.served(names).await
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
