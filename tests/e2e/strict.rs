//! The paths of nodes and Services against a provider that was written from the contract alone, in Python without an SDK. It
//! refuses every call that breaks the contract; at the end of a story there must be none.
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use ccm_test_support::core::Core;
use ccm_test_support::kubelet::{Kubelets, SHUTDOWN, has_taint, names};
use ccm_test_support::services::{Services, Wish, addresses};
use ccm_test_support::strict_provider::{LoadBalancer, Sight, StrictProvider};
use ccm_test_support::wait::{PATIENCE, eventually, throughout};
use ccm_test_support::world::World;
use serde_json::{Value, json};

const NODES: usize = 20;

/// The label that keeps a node out of load balancers.
const EXCLUDED: &str = "node.kubernetes.io/exclude-from-external-load-balancers";

/// Longer than changes of nodes are gathered, and than a pause before a change.
const A_WHILE: Duration = Duration::from_millis(1500);

/// Calls that change the cloud.
const MUTATIONS: [&str; 3] = ["EnsureLoadBalancer", "UpdateLoadBalancer", "EnsureLoadBalancerDeleted"];

/// Everything around one story.
struct Story {
    world: World,
    provider: StrictProvider,
    core: Core,
    kubelets: Kubelets,
    services: Services,
    nodes: Vec<String>,
}

impl Story {
    /// So many nodes are initialised.
    async fn of(count: usize) -> Result<Self> {
        let world = World::start().await?;
        let provider = StrictProvider::start(world.dir()).await?;
        let nodes = names("node", count);
        provider.machines("add", &nodes).await?;
        let core = world.core().quick().start().await?;
        let (kubelets, services) = (world.kubelets(), world.services());
        kubelets.join(&nodes).await?;
        let story = Self { world, provider, core, kubelets, services, nodes };
        let outcome = eventually("all to be initialised", PATIENCE, async || story.kubelets.initialised(&story.nodes).await);
        story.unless_broken(outcome.await)?;
        Ok(story)
    }

    /// A failure is shown with what the provider refused, which is mostly its cause.
    fn unless_broken<T>(&self, outcome: Result<T>) -> Result<T> {
        outcome.with_context(|| format!("the provider refused: {}", self.provider.violations().unwrap_or_default()))
    }

    /// Waits for something, and says what the provider refused if it does not come.
    async fn comes(&self, what: &str, look: impl AsyncFnMut() -> Result<()>) -> Result<()> {
        self.unless_broken(eventually(what, PATIENCE, look).await)
    }

    /// A Service that has got its address from the cloud.
    async fn serve(&self, name: &str) -> Result<LoadBalancer> {
        self.services.create([Wish::new(name)]).await?;
        let service = [name.to_owned()];
        self.comes("an address", async || self.services.have_addresses(&service).await).await?;
        let one = self.load_balancer(name).await?;
        ensure!(addresses(&self.services.get(name).await?) == [one.address.clone()], "{name} has another address than {one:?}");
        Ok(one)
    }

    async fn load_balancer(&self, service: &str) -> Result<LoadBalancer> {
        let all = self.provider.sight().await?.load_balancers;
        all.into_iter().find(|one| one.service_name == service).with_context(|| format!("{service} has no load balancer"))
    }

    /// Waits until the load balancer of a Service is done and has exactly these targets.
    async fn targets(&self, service: &str, mut nodes: Vec<String>) -> Result<()> {
        nodes.sort();
        self.comes("the right targets", async || {
            let one = self.load_balancer(service).await?;
            ensure!(one.targets == nodes && one.state == "ACTIVE", "{one:?}");
            Ok(())
        })
        .await
    }

    /// Deletes a Service, which leaves nothing in the cloud.
    async fn drop(&self, name: &str) -> Result<()> {
        let service = [name.to_owned()];
        self.services.delete(&service).await?;
        self.comes("the Service to go", async || self.services.gone(&service).await).await?;
        let left = self.load_balancer(name).await;
        ensure!(left.is_err(), "it left {left:?}");
        Ok(())
    }

    /// Waits until ccm-core is ready and has looked machines up so many times more.
    async fn looks_again(&self, times: u64) -> Result<()> {
        self.core.ready().await?;
        let before = self.look_ups().await?;
        self.comes("look-ups", async || {
            let now = self.look_ups().await?;
            ensure!(now >= before + times, "{} of {times}", now - before);
            Ok(())
        })
        .await
    }

    async fn look_ups(&self) -> Result<u64> {
        Ok(self.provider.sight().await?.calls_of(&["BatchGetInstances"]))
    }

    /// Everything that ccm-core wrote to nodes and Services.
    fn writes(&self) -> Result<String> {
        let audit = self.world.audit();
        Ok(format!("{:?} {:?}", audit.node_writes()?, audit.service_writes()?))
    }

    /// Nothing was written and no mutation called in the process of the provider that runs now.
    async fn changes_nothing(&self, writes: &str, before: &Sight) -> Result<()> {
        throughout("nothing is changed", A_WHILE, async || {
            let now = self.provider.sight().await?;
            ensure!(now.calls_of(&MUTATIONS) == 0, "{:?}", now.calls);
            ensure!(now.load_balancers == before.load_balancers, "{:?}", now.load_balancers);
            ensure!(self.writes()? == writes, "{} were the writes, now {}", writes, self.writes()?);
            Ok(())
        })
        .await
    }

    /// Everything ends well, and the provider had nothing to refuse.
    async fn end(self) -> Result<()> {
        self.core.stop().await?;
        let violations = self.provider.violations()?;
        self.provider.stop().await?;
        ensure!(violations.is_empty(), "ccm-core broke the contract:\n{violations}");
        self.world.end().await
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_of_a_strict_provider_join_stop_and_go() -> Result<()> {
    let story = Story::of(NODES).await?;
    let (stopped, terminated, forgotten) = (&story.nodes[3..4], &story.nodes[5..6], &story.nodes[7..8]);

    story.provider.machines("stop", stopped).await?;
    story.kubelets.report(stopped, false).await?;
    story.comes("the shutdown taint", async || has_shutdown_taint(&story.kubelets, &stopped[0], true).await).await?;
    story.provider.machines("start", stopped).await?;
    story.kubelets.report(stopped, true).await?;
    story.comes("the taint to go", async || has_shutdown_taint(&story.kubelets, &stopped[0], false).await).await?;

    story.provider.machines("terminate", terminated).await?;
    story.kubelets.report(terminated, false).await?;
    story.comes("the node to be deleted", async || story.kubelets.count_is(NODES - 1).await).await?;
    story.provider.machines("forget", forgotten).await?;
    story.kubelets.report(forgotten, false).await?;
    story.comes("the other to be deleted", async || story.kubelets.count_is(NODES - 2).await).await?;
    assert_eq!(story.world.audit().node_writes()?.deleted, [terminated, forgotten].concat());
    story.end().await
}

async fn has_shutdown_taint(kubelets: &Kubelets, node: &str, expected: bool) -> Result<()> {
    ensure!(has_taint(&kubelets.get(node).await?, SHUTDOWN) == expected, "not yet");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_of_a_strict_provider_gets_its_address_follows_the_nodes_and_leaves_nothing() -> Result<()> {
    let mut story = Story::of(NODES).await?;
    let one = story.serve("web").await?;
    story.targets("web", story.nodes.clone()).await?;

    let gone = story.nodes.remove(NODES - 1);
    story.provider.machines("terminate", std::slice::from_ref(&gone)).await?;
    story.kubelets.report(std::slice::from_ref(&gone), false).await?;
    story.targets("web", story.nodes.clone()).await?;

    story.provider.forget_sets().await?;
    let changed = story.load_balancer("web").await?.changes;
    story.services.listen(&["web".to_owned()], 8080).await?;
    story
        .comes("the other port, though the provider has forgotten the nodes", async || {
            let now = story.load_balancer("web").await?;
            ensure!(now.changes > changed && now.address == one.address, "{now:?}");
            Ok(())
        })
        .await?;
    story.services.retype(&["web".to_owned()], "ClusterIP").await?;
    story.comes("nothing to be left", async || story.services.are_free(&["web".to_owned()]).await).await?;
    story.services.retype(&["web".to_owned()], "LoadBalancer").await?;
    story.comes("an address again", async || story.services.have_addresses(&["web".to_owned()]).await).await?;
    story.drop("web").await?;
    story.end().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_without_an_eligible_node_is_ensured_with_a_set_that_is_there_and_empty() -> Result<()> {
    let story = Story::of(2).await?;
    story.kubelets.merge(&story.nodes, &excluded(true)).await?;
    story.serve("web").await?;
    story.targets("web", Vec::new()).await?;
    story.kubelets.merge(&story.nodes, &excluded(false)).await?;
    story.targets("web", story.nodes.clone()).await?;
    story.drop("web").await?;
    story.end().await
}

/// A patch that keeps a node out of load balancers, or lets it in.
fn excluded(is_excluded: bool) -> Value {
    json!({ "metadata": { "labels": { EXCLUDED: is_excluded.then_some("") } } })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_strict_provider_that_another_leader_used_is_led_under_a_higher_epoch() -> Result<()> {
    let story = Story::of(2).await?;
    story.serve("web").await?;
    story.provider.supersede().await?;
    story.core.says("the provider refuses to be led under epoch").await?;
    story.serve("after").await?;
    story.drop("web").await?;
    story.drop("after").await?;
    story.end().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_strict_provider_that_drains_ends_the_call_that_runs_and_its_successor_serves_the_rest() -> Result<()> {
    let mut story = Story::of(2).await?;
    story.provider.slow_down(Duration::from_secs(2)).await?;
    story.services.create([Wish::new("web")]).await?;
    story
        .comes("the load balancer to be asked for", async || {
            ensure!(story.provider.sight().await?.calls_of(&["EnsureLoadBalancer"]) == 1, "not yet");
            Ok(())
        })
        .await?;
    story.provider.renew().await?;
    story.comes("an address", async || story.services.have_addresses(&["web".to_owned()]).await).await?;
    ensure!(story.world.warnings("service-controller").await?.is_empty(), "somebody was warned");
    story.drop("web").await?;
    story.end().await
}

#[tokio::test(flavor = "multi_thread")]
async fn restarts_of_a_strict_provider_and_of_the_core_write_nothing() -> Result<()> {
    let mut story = Story::of(NODES).await?;
    story.serve("web").await?;
    story.targets("web", story.nodes.clone()).await?;
    let (writes, sight) = (story.writes()?, story.provider.sight().await?);

    story.provider.restart().await?;
    story.looks_again(4).await?;
    story.changes_nothing(&writes, &sight).await?;

    story.core.stop().await?;
    let before = story.provider.sight().await?.calls_of(&["PlanLoadBalancer"]);
    story.core = story.world.core().quick().start().await?;
    story.looks_again(4).await?;
    story
        .comes("a plan", async || {
            ensure!(story.provider.sight().await?.calls_of(&["PlanLoadBalancer"]) > before, "none yet");
            Ok(())
        })
        .await?;
    story.changes_nothing(&writes, &sight).await?;
    story.provider.machines("add", &["late".to_owned()]).await?;
    story.kubelets.join(&["late".to_owned()]).await?;
    story.targets("web", [story.nodes.as_slice(), &["late".to_owned()]].concat()).await?;
    story.drop("web").await?;
    story.end().await
}
