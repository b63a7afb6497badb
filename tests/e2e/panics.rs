//! Two replicas, a provider each: a panic in any long task of the leader ends its leadership term, or its process, and the other
//! replica goes on. A panic over one object is that object's, which tests of the controllers hold.
use std::collections::BTreeSet;
use std::fs;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use ccm_test_support::cloud::Cloud;
use ccm_test_support::core::{Core, CoreSpec};
use ccm_test_support::process::tail;
use ccm_test_support::simulated::{Provider, ProviderSpec};
use ccm_test_support::wait::{PATIENCE, eventually};
use ccm_test_support::world::World;
use k8s_openapi::api::coordination::v1::Lease;
use kube::Api;

/// The tasks of a leadership term.
const OF_A_TERM: [&str; 11] = [
    "cloud-node",
    "cloud-node-lifecycle",
    "node-events",
    "node-watch",
    "rate-limit-report",
    "route",
    "route-events",
    "unmanaged-nodes",
    "service",
    "service-events",
    "service-watch",
];
/// The tasks of the process.
const OF_THE_PROCESS: [&str; 8] = [
    "api-server-probe",
    "provider-eligibility",
    "election-eligibility",
    "events",
    "health-and-metrics",
    "leader-election",
    "look-up-batches",
    "provider-session",
];
/// How soon `/livez` names a task that makes no progress: it may work for a minute.
const STANDSTILL: Duration = Duration::from_secs(90);
/// How soon after a panic the lease is released, and a process that ends has ended.
const SOON: Duration = Duration::from_secs(5);

/// A core and its own provider.
struct Replica {
    spec: CoreSpec,
    core: Core,
    provider: Provider,
}

impl Replica {
    async fn start(world: &World, cloud: &Cloud, name: &str) -> Result<Self> {
        let folder = world.dir().join(name);
        fs::create_dir(&folder)?;
        let provider = ProviderSpec::new(&folder).of(cloud).start().await?;
        let spec = world.core().named(name).endpoint(&provider.spec().endpoint()).flag("--cluster-cidr=10.0.0.0/8").with_panics();
        Ok(Self { core: spec.start().await?, spec, provider })
    }

    async fn stop(self) -> Result<()> {
        self.core.stop().await?;
        self.provider.stop().await
    }
}

/// The leader first.
struct Replicas {
    world: World,
    cloud: Cloud,
    leader: Replica,
    other: Replica,
}

impl Replicas {
    async fn start() -> Result<Self> {
        let world = World::start().await?;
        let cloud = Cloud::start(world.dir(), &["--auto-instances"]).await?;
        let leader = Replica::start(&world, &cloud, "a").await?;
        eventually("the first replica to lead", PATIENCE, async || ensure_leads(&leader.core).await).await?;
        let other = Replica::start(&world, &cloud, "b").await?;
        other.core.ready().await?;
        Ok(Self { world, cloud, leader, other })
    }

    /// Waits until the leader runs all its tasks.
    async fn run_all_tasks(&self) -> Result<()> {
        let all: BTreeSet<_> = OF_A_TERM.into_iter().chain(OF_THE_PROCESS).map(str::to_owned).collect();
        eventually("all tasks to run", PATIENCE, async || {
            let running = self.leader.core.tasks()?;
            ensure!(running == all, "these run: {running:?}");
            Ok(())
        })
        .await
    }

    /// A node joins while a task of the leader panics: the lease is released, and the other replica initialises the node.
    async fn panic_in(&mut self, task: &str) -> Result<()> {
        self.run_all_tasks().await?;
        let (leases, node) = (Api::<Lease>::namespaced(self.world.admin(), "kube-system"), [format!("during-{task}")]);
        let holder =
            async || Ok::<_, anyhow::Error>(leases.get("cloud-controller-manager").await?.spec.and_then(|it| it.holder_identity));
        let held = holder().await?;
        self.leader.core.panic_in(task)?;
        eventually("the lease to be released", SOON, async || {
            ensure!(holder().await? != held, "it is still held");
            Ok(())
        })
        .await?;
        self.world.kubelets().join(&node).await?;
        std::mem::swap(&mut self.leader, &mut self.other);
        eventually("the other replica to initialise the node", PATIENCE, async || {
            ensure_leads(&self.leader.core).await?;
            self.world.kubelets().initialised(&node).await
        })
        .await
    }

    async fn end(self) -> Result<()> {
        self.leader.stop().await?;
        self.other.stop().await?;
        self.cloud.stop().await?;
        self.world.end_after_panics().await
    }
}

async fn ensure_leads(core: &Core) -> Result<()> {
    ensure!(core.leads().await?, "it does not lead");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_panic_in_any_task_of_a_term_gives_the_lease_to_the_other_replica_and_the_first_contends_again() -> Result<()> {
    // The pauses of a replica double, so that other replicas get the second half.
    for tasks in OF_A_TERM.chunks(OF_A_TERM.len().div_ceil(2)) {
        let mut replicas = Replicas::start().await?;
        // Each takes over from the other, so each contends again after its own panics.
        for task in tasks {
            replicas.panic_in(task).await.with_context(|| format!("after a panic in {task}"))?;
            replicas.other.core.says(&format!("the task {task} panicked: injected by a test; the leadership term ends")).await?;
            ensure!(replicas.other.core.process().exited()?.is_none(), "a panic in {task} ended the process");
        }
        replicas.end().await?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_panic_in_any_task_of_the_process_ends_it_with_an_error_and_without_the_lease() -> Result<()> {
    let mut replicas = Replicas::start().await?;
    for task in OF_THE_PROCESS {
        replicas.panic_in(task).await.with_context(|| format!("after a panic in {task}"))?;
        let failed = &mut replicas.other;
        let status = failed.core.process().ended(SOON).await?;
        let log = tail(failed.core.log(), 5);
        ensure!(status.code() == Some(1), "it ended with {status}:\n{log}");
        ensure!(log.contains(&format!("ccm-core: the task {task} panicked: injected by a test")), "{log}");
        failed.core = failed.spec.start().await?;
        failed.core.ready().await?;
    }
    replicas.end().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_that_stands_still_fails_livez_by_name_and_the_other_replica_takes_over() -> Result<()> {
    let mut replicas = Replicas::start().await?;
    replicas.run_all_tasks().await?;
    replicas.leader.core.stall("service")?;
    std::mem::swap(&mut replicas.leader, &mut replicas.other);
    let node = ["after-a-standstill".to_owned()];
    replicas.world.kubelets().join(&node).await?;
    let takes_over = eventually("the other replica to initialise the node", 2 * PATIENCE, async || {
        ensure_leads(&replicas.leader.core).await?;
        replicas.world.kubelets().initialised(&node).await
    });
    takes_over.await?;
    let named = eventually("/livez to name the task", STANDSTILL, async || {
        let problem = replicas.other.core.lacks_liveness().await?.context("/livez is well")?;
        ensure!(problem.contains("the task service has made no progress for"), "it says: {problem}");
        Ok(())
    });
    named.await?;
    replicas.other.core.kill().await?;
    replicas.other.provider.stop().await?;
    replicas.leader.stop().await?;
    replicas.cloud.stop().await?;
    replicas.world.end_after_panics().await
}
