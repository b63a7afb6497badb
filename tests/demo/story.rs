//! The story in chapters. Each does something, waits until the cluster shows what should follow, and says what it saw.
use std::fs;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use ccm_core::causes;
use ccm_test_support::wait::{PATIENCE, eventually, throughout};
use k8s_openapi::api::events::v1::Event;
use kube::Api;
use kube::api::ListParams;

use crate::news::{Life, PREFIX};
use crate::routes;
use crate::screen::{Screen, Tone};
use crate::services;
use crate::stage::{OTHER_VERSION, Stage, pid};

/// Nodes in the beginning.
const NODES: usize = 6;

/// Whose machine is terminated.
const TERMINATED: usize = 2;

/// How long the lie lasts: three times what an honest deletion takes.
const LIE: Duration = Duration::from_secs(12);

/// The story, and what came of it so far.
pub struct Story<'a> {
    stage: &'a mut Stage,
    screen: &'a Screen,
    results: Vec<(&'static str, Result<String>)>,
}

impl<'a> Story<'a> {
    /// Before the first chapter.
    pub fn new(stage: &'a mut Stage, screen: &'a Screen) -> Self {
        Self { stage, screen, results: Vec::new() }
    }

    /// Tells it all, up to the first chapter that fails, and sums up. True if everything happened.
    pub async fn tell(mut self) -> bool {
        let told = self.chapters().await;
        self.screen.heading("What was shown");
        for (what, outcome) in &self.results {
            match outcome {
                Ok(seen) => self.screen.result(true, what, seen),
                Err(error) => self.screen.result(false, what, &causes::line(error.as_ref())),
            }
        }
        told.is_some()
    }

    async fn chapters(&mut self) -> Option<()> {
        self.screen.heading("Nodes join, the way kubelet registers them");
        let outcome = self.join().await;
        self.note("nodes join and are initialised", outcome)?;
        self.screen.heading("The Pods of each node get a route");
        let outcome = routes::appear(self.stage, self.screen).await;
        self.note("each Pod CIDR has its route", outcome)?;
        self.screen.heading("A machine is stopped");
        let outcome = self.stop().await;
        self.note("a stopped machine's node is tainted", outcome)?;
        self.screen.heading("A machine is terminated");
        let outcome = self.terminate().await;
        self.note("a terminated machine's node is deleted", outcome)?;
        let outcome = routes::disappears(self.stage, self.screen, TERMINATED).await;
        self.note("its route goes with it", outcome)?;
        self.screen.heading("A Service asks for a load balancer");
        let outcome = services::serve(self.stage, self.screen).await;
        self.note("a Service gets its address", outcome)?;
        self.screen.heading("A node joins and leaves");
        let outcome = services::follow(self.stage, self.screen).await;
        self.note("the load balancer's targets follow", outcome)?;
        self.screen.heading("The Service is deleted");
        let outcome = services::remove(self.stage, self.screen).await;
        self.note("its load balancer goes first", outcome)?;
        self.screen.heading("The provider is killed, and another build of it takes over the socket");
        let outcome = self.replace_provider().await;
        self.note("another build of the provider takes over", outcome)?;
        self.screen.heading("The provider lies: all machines are gone, it says, while no node is ready");
        let outcome = self.lie().await;
        self.note("the deletion breaker holds against a lie", outcome)?;
        self.screen.heading("The lie ends");
        let outcome = self.truth().await;
        self.note("all nodes are still there", outcome)
    }

    fn note(&mut self, what: &'static str, outcome: Result<String>) -> Option<()> {
        let went_well = outcome.is_ok();
        self.results.push((what, outcome));
        went_well.then_some(())
    }

    async fn join(&mut self) -> Result<String> {
        let names: Vec<_> = (0..NODES).map(|number| format!("{PREFIX}{number}")).collect();
        self.stage.provider.machines("add", &names).await?;
        for number in 0..NODES {
            self.stage.kubelets.register([routes::registration(number)]).await?;
        }
        let lives = self.lives(&names, "initialisation", |life| life.initialised.is_some()).await?;
        let slowest = lives.iter().filter_map(|life| life.initialised).max().unwrap_or_default();
        Ok(format!("{NODES} nodes, the slowest in {} ms", slowest.as_millis()))
    }

    async fn stop(&mut self) -> Result<String> {
        let name = [format!("{PREFIX}1")];
        self.screen.act(&format!("provider-simulated ctl stop {}", name[0]));
        self.stage.provider.machines("stop", &name).await?;
        self.stage.kubelets.report(&name, false).await?;
        self.lives(&name, "the shutdown taint", |life| life.shut_down).await?;
        Ok(format!("{} has the taint and stays", name[0]))
    }

    async fn terminate(&mut self) -> Result<String> {
        let name = [format!("{PREFIX}{TERMINATED}")];
        self.screen.act(&format!("provider-simulated ctl terminate {}", name[0]));
        self.stage.provider.machines("terminate", &name).await?;
        self.stage.kubelets.report(&name, false).await?;
        self.lives(&name, "the deletion", |life| life.deleted).await?;
        Ok(format!("{} was confirmed gone and deleted", name[0]))
    }

    async fn replace_provider(&mut self) -> Result<String> {
        let (core, old) = (self.stage.core.id(), self.stage.provider.process().id());
        self.screen.act(&format!("kill -9 {}", pid(old)));
        self.stage.provider.kill().await?;
        let late = [format!("{PREFIX}{NODES}")];
        self.stage.kubelets.register([routes::registration(NODES)]).await?;
        self.stage.core.readiness_says("[-]provider").await?;
        self.screen.news("ccm-core", Tone::Bad, "is not ready without its provider, and goes on trying");
        let spec = self.stage.provider.spec().clone().program(self.stage.other_build.clone());
        self.stage.provider = spec.start().await?;
        let new = self.stage.provider.process().id();
        self.screen.act(&format!("started version {OTHER_VERSION} of it (pid {})", pid(new)));
        self.stage.provider.machines("add", &late).await?;
        self.sees_other_version().await?;
        self.screen.news("ccm-core", Tone::Good, &format!("shook hands with version {OTHER_VERSION}"));
        self.lives(&late, "initialisation", |life| life.initialised.is_some()).await?;
        ensure!(self.stage.core.id() == core && self.stage.core.process().exited()?.is_none(), "ccm-core did not go on running");
        Ok(format!("ccm-core is still pid {}, the provider is pid {} after {}", pid(core), pid(new), pid(old)))
    }

    async fn sees_other_version(&mut self) -> Result<()> {
        let log = self.stage.core.process().log().to_owned();
        eventually("ccm-core to tell of the new version", PATIENCE, async || {
            ensure!(fs::read_to_string(&log)?.contains(OTHER_VERSION), "its log does not");
            Ok(())
        })
        .await
    }

    async fn lie(&mut self) -> Result<String> {
        let present = self.stage.news.present();
        self.screen.act("provider-simulated ctl fault set not-found-all");
        self.stage.provider.set_fault("not-found-all").await?;
        self.stage.kubelets.report(&present, false).await?;
        self.stage.core.breaker_holds().await?;
        let message = self.event("NodeDeletionBreakerTripped").await?;
        self.screen.news("event", Tone::Bad, &message);
        let readiness = self.stage.core.readiness_says("[!]node-deletion-breaker").await?;
        let line = readiness.text.lines().find(|line| line.starts_with("[!]node-deletion-breaker")).unwrap_or_default();
        self.screen.news("/readyz", Tone::Bad, line);
        let breakers = self.stage.core.breakers().await?;
        self.screen.news("/metrics", Tone::Bad, &format!("ccm_core_node_deletion_breakers_tripped {breakers}"));
        throughout("no node is deleted", LIE, async || self.nobody_left(&present)).await?;
        self.screen.act(&format!("{} s later all {} nodes are there", LIE.as_secs(), present.len()));
        Ok(format!("{} nodes stayed; event, /readyz and metric say why", present.len()))
    }

    async fn truth(&mut self) -> Result<String> {
        let present = self.stage.news.present();
        self.screen.act("provider-simulated ctl fault clear");
        self.stage.provider.clear_faults().await?;
        let running: Vec<_> = present.iter().filter(|name| !name.ends_with("-1")).cloned().collect();
        self.stage.kubelets.report(&running, true).await?;
        self.stage.provider.asked_again(2).await?;
        self.nobody_left(&present)?;
        self.stage.kubelets.initialised(&present).await?;
        Ok(format!("{} nodes, all initialised", present.len()))
    }

    fn nobody_left(&self, expected: &[String]) -> Result<()> {
        let present = self.stage.news.present();
        ensure!(present == expected, "there are {present:?} of {expected:?}");
        Ok(())
    }

    /// Waits until what happened to all of these nodes satisfies the condition.
    async fn lives(&self, names: &[String], what: &str, condition: impl Fn(&Life) -> bool) -> Result<Vec<Life>> {
        eventually(what, PATIENCE, async || {
            let lives = names.iter().map(|name| {
                let life = self.stage.news.of(name).with_context(|| format!("{name} has not joined"))?;
                ensure!(condition(&life), "not so for {name}");
                Ok(life)
            });
            lives.collect()
        })
        .await
    }

    async fn event(&self, reason: &str) -> Result<String> {
        eventually(&format!("an event {reason}"), PATIENCE, async || {
            let events = Api::<Event>::all(self.stage.client.clone()).list(&ListParams::default()).await?;
            let event = events.into_iter().find(|event| event.reason.as_deref() == Some(reason)).context("there is none")?;
            Ok(event.note.unwrap_or_default())
        })
        .await
    }
}
