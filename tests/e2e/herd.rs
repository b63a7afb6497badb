//! The start of most stories: a provider, a core, and many initialised nodes.
use anyhow::Result;
use ccm_test_support::core::{Core, CoreSpec};
use ccm_test_support::kubelet::{Kubelets, names};
use ccm_test_support::simulated::{Provider, ProviderSpec};
use ccm_test_support::wait::{PATIENCE, eventually};
use ccm_test_support::world::World;

/// Initialised, Ready nodes with everything around them.
pub struct Herd {
    pub world: World,
    pub provider: Provider,
    pub core: Core,
    pub core_spec: CoreSpec,
    pub kubelets: Kubelets,
    pub names: Vec<String>,
}

impl Herd {
    /// So many nodes, `node-0` and so on, under a quick core.
    pub async fn of(count: usize) -> Result<Self> {
        Self::under(count, |core| core).await
    }

    /// The same under a core with further flags.
    pub async fn under(count: usize, flags: impl FnOnce(CoreSpec) -> CoreSpec) -> Result<Self> {
        Self::between(count, |provider| provider, flags).await
    }

    /// The same with flags for both processes.
    pub async fn between(
        count: usize,
        provider_flags: impl FnOnce(ProviderSpec) -> ProviderSpec,
        flags: impl FnOnce(CoreSpec) -> CoreSpec,
    ) -> Result<Self> {
        let world = World::start().await?;
        let provider = provider_flags(world.provider()).start().await?;
        let names = names("node", count);
        provider.machines("add", &names).await?;
        let core_spec = flags(world.core().quick());
        let core = core_spec.start().await?;
        let kubelets = world.kubelets();
        kubelets.join(&names).await?;
        let herd = Self { world, provider, core, core_spec, kubelets, names };
        herd.initialised(&herd.names).await?;
        Ok(herd)
    }

    /// Another core in place of the first, with further flags.
    pub async fn renew(self, flags: impl FnOnce(CoreSpec) -> CoreSpec) -> Result<Self> {
        self.core.stop().await?;
        let core_spec = flags(self.core_spec);
        Ok(Self { core: core_spec.start().await?, core_spec, ..self })
    }

    /// A node joins, and is initialised.
    pub async fn joined(&self, name: &str) -> Result<()> {
        let names = [name.to_owned()];
        self.provider.machines("add", &names).await?;
        self.kubelets.join(&names).await?;
        self.initialised(&names).await
    }

    /// Waits until these are initialised.
    pub async fn initialised(&self, names: &[String]) -> Result<()> {
        eventually("all to be initialised", PATIENCE, async || self.kubelets.initialised(names).await).await
    }

    /// Waits until the cluster has exactly so many nodes.
    pub async fn shrinks_to(&self, count: usize) -> Result<()> {
        eventually("nodes to be deleted", PATIENCE, async || self.kubelets.count_is(count).await).await
    }

    /// All nodes are there, now and while the core has looked at the cloud some more times.
    pub async fn all_stay(&self, look_ups: u64) -> Result<()> {
        self.provider.asked_again(look_ups).await?;
        self.kubelets.count_is(self.names.len()).await
    }

    /// Everything ends well.
    pub async fn end(self) -> Result<()> {
        self.core.stop().await?;
        self.provider.stop().await?;
        self.world.end().await
    }
}
