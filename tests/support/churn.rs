//! Things that come, change and go while one of the two processes is killed with -9, again and again; in the end all must be
//! as if nobody had been killed.
use std::time::Duration;

use anyhow::Result;

use crate::core::{Core, CoreSpec};
use crate::simulated::{Provider, ProviderSpec};

pub mod nodes;
pub mod routes;
pub mod services;

/// Until all has settled after a kill: a killed leader's lease must run out first.
const SETTLED: Duration = Duration::from_mins(3);

/// Within which time after the beginning of a round the kill comes.
const MOMENT: u64 = 1500;

/// How often what was killed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Kills {
    /// ccm-core.
    pub core: usize,
    /// The provider.
    pub provider: usize,
}

impl Kills {
    /// All.
    pub fn all(self) -> usize {
        self.core + self.provider
    }
}

/// The two processes that may be killed at any time.
struct Victims {
    provider: Provider,
    core_spec: CoreSpec,
    core: Core,
    kills: Kills,
}

impl Victims {
    async fn start(provider: &ProviderSpec, core: CoreSpec) -> Result<Self> {
        let provider = provider.start().await?;
        Ok(Self { provider, core: core.start().await?, core_spec: core, kills: Kills::default() })
    }

    /// Kills one of them at some moment, and starts it again. Answers which.
    async fn kill(&mut self) -> Result<&'static str> {
        // The moment is left to chance: nothing is waited for here.
        tokio::time::sleep(Duration::from_millis(rand::random_range(0..MOMENT))).await;
        if rand::random() {
            self.kills.core += 1;
            self.core.kill().await?;
            self.core = self.core_spec.start().await?;
            return Ok("ccm-core");
        }
        self.kills.provider += 1;
        self.provider.restart().await?;
        Ok("provider-simulated")
    }

    async fn stop(self) -> Result<Kills> {
        self.core.stop().await?;
        self.provider.stop().await?;
        Ok(self.kills)
    }
}
