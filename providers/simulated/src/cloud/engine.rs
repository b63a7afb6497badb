//! The cloud within the process: pace, faults and the world put together. No rule of its own; each stands in its module.
use std::sync::Arc;

use async_trait::async_trait;
use jiff::Timestamp;
use parking_lot::Mutex;
use tokio::time::Instant;

use super::config::Settings;
use super::counters::Counters;
use super::faults::plan::{Call, Lie, Plan, Target};
use super::faults::{Fault, FaultName, FaultSpec, Faults, Snapshot};
use super::kept::Kept;
use super::load_balancers::kept::Kept as KeptLoadBalancers;
use super::load_balancers::turns::Turns;
use super::model::{Answer, Change, CloudInfo, Failure, FailureCode, Instance, Item, Outcome, Query, Volume};
use super::pace::{Bucket, Latency};
use super::routes::kept::Kept as KeptRoutes;
use super::store::Store;
use super::world::World;
use super::{CloudApi, CloudError};

mod load_balancers;
mod routes;

/// The mutations of a load balancer or of one destination that one process made at once, among the counters.
pub const OVERLAPPING_MUTATIONS: &str = "OverlappingMutations";

/// The cloud within the process. Clones are the same cloud.
#[derive(Clone)]
pub struct Engine {
    kept: Arc<Kept>,
    load_balancers: Arc<KeptLoadBalancers>,
    turns: Arc<Turns>,
    routes: Arc<KeptRoutes>,
    destinations: Arc<Turns>,
    latency: Latency,
    bucket: Option<Arc<Mutex<Bucket>>>,
    faults: Arc<Faults>,
    calls: Arc<Counters>,
}

impl Engine {
    /// Starts a cloud; one that keeps its state goes on where it was.
    pub fn start(settings: Settings) -> Result<Self, CloudError> {
        let store = settings.state.as_deref().map(Store::open).transpose()?;
        let engine = Self {
            kept: Arc::new(Kept::open(settings.world, settings.cloud_identity, store)?),
            // After the one before, which locks the directory.
            load_balancers: Arc::new(KeptLoadBalancers::open(settings.load_balancers, settings.state.as_deref())?),
            turns: Arc::default(),
            routes: Arc::new(KeptRoutes::open(settings.routes, settings.state.as_deref())?),
            destinations: Arc::default(),
            latency: settings.latency,
            bucket: settings.rate_limit.map(|limit| Arc::new(Mutex::new(Bucket::new(limit, Instant::now())))),
            faults: Arc::default(),
            calls: Arc::new(Counters::showing(&[OVERLAPPING_MUTATIONS])),
        };
        for fault in settings.faults {
            engine.faults.set(fault, engine.snapshot())?;
        }
        Ok(engine)
    }

    /// How often providers called what: `LookUp`, `GetVolume`, `FindLoadBalancers`, `PutLoadBalancer`, `DeleteLoadBalancer`,
    /// `ListRoutes`, `PutRoutes` and `RemoveRoutes`; and how often one process made two mutations of one load balancer, or of one
    /// destination, at once.
    pub fn calls(&self) -> Arc<Counters> {
        Arc::clone(&self.calls)
    }

    /// The cloud as it is now.
    fn snapshot(&self) -> Snapshot {
        Snapshot { world: self.kept.world(), routes: self.routes.table(), at: Timestamp::now() }
    }

    /// The way into every call that providers make: counted, paced, limited.
    async fn admit(&self, call: &'static str) -> Result<(), Failure> {
        self.calls.count(call);
        self.pass().await
    }

    /// The same for a call that was counted already.
    async fn pass(&self) -> Result<(), Failure> {
        self.latency.pass().await;
        let Some(bucket) = &self.bucket else { return Ok(()) };
        bucket.lock().take(Instant::now()).map_err(|wait| Failure {
            // Rounded up: who comes back just in time shall be let in.
            retry_after_ms: u64::try_from(wait.as_millis() + 1).ok(),
            ..Failure::new(FailureCode::RateLimited, "the cloud's rate limit is used up")
        })
    }

    /// Lets the faults have their way with a call.
    async fn endure(&self, call: Call, targets: impl FnOnce() -> Vec<Target>) -> Result<Plan, Failure> {
        let mut plan = self.faults.plan(call, targets);
        if !plan.hang.is_empty() {
            self.faults.cleared(&plan.hang).await;
        }
        plan.failure.take().map_or(Ok(plan), Err)
    }
}

#[async_trait]
impl CloudApi for Engine {
    async fn info(&self) -> Result<CloudInfo, CloudError> {
        let identity = self.kept.identity();
        let other = self.faults.is_set(FaultName::OtherIdentity);
        let world = self.kept.world();
        Ok(CloudInfo {
            cloud_identity: if other { format!("{identity}/other") } else { identity.to_owned() },
            region: world.layout.region.clone(),
            zones: world.layout.zones.clone(),
            auto_instances: world.auto,
            load_balancers: !self.faults.is_set(FaultName::LbOff),
            routes: !self.faults.is_set(FaultName::RouteOff),
            handshakes_hang: self.faults.is_set(FaultName::HandshakeHang),
        })
    }

    async fn look_up(&self, queries: &[Query]) -> Result<Answer, CloudError> {
        self.admit("LookUp").await?;
        let plan = self.endure(Call::Machines, || machine_targets(&self.kept.world(), queries)).await?;
        let items = answer(&self.kept.world(), queries, &plan, Timestamp::now());
        Ok(Answer { garbage: plan.garbage, items })
    }

    async fn volume(&self, id: &str) -> Result<Option<Volume>, CloudError> {
        self.admit("GetVolume").await?;
        let volume = self.kept.world().volumes.get(id).cloned();
        let target = Target { name: None, zone: volume.as_ref().map(|volume| volume.zone.clone()) };
        let plan = self.endure(Call::Machines, || vec![target]).await?;
        match plan.lie(0) {
            Some(Lie::NotFound) => Ok(None),
            Some(Lie::Failed(failure)) => Err(failure.clone().into()),
            // Disks never change: what was known is what is known.
            Some(Lie::Stale(_) | Lie::AtWork) | None => Ok(volume),
        }
    }

    async fn instances(&self, names: &[String]) -> Result<Vec<Instance>, CloudError> {
        let world = self.kept.world();
        Ok(if names.is_empty() { world.stored() } else { names.iter().filter_map(|name| world.truth(name)).collect() })
    }

    async fn change(&self, change: Change) -> Result<Vec<Instance>, CloudError> {
        let kept = Arc::clone(&self.kept);
        let work = tokio::task::spawn_blocking(move || kept.change(&change));
        work.await.unwrap_or(Err(CloudError::ShuttingDown))
    }

    async fn faults(&self) -> Result<Vec<Fault>, CloudError> {
        Ok(self.faults.list())
    }

    async fn set_fault(&self, spec: FaultSpec) -> Result<(), CloudError> {
        Ok(self.faults.set(spec, self.snapshot())?)
    }

    async fn clear_faults(&self, name: Option<FaultName>) -> Result<(), CloudError> {
        Ok(self.faults.clear(name)?)
    }
}

fn machine_targets(world: &World, queries: &[Query]) -> Vec<Target> {
    let target =
        |query: &Query| Target { name: Some(query.name.clone()), zone: world.truth(&query.name).map(|machine| machine.zone) };
    queries.iter().map(target).collect()
}

fn answer(world: &World, queries: &[Query], plan: &Plan, now: Timestamp) -> Vec<Item> {
    let truth = world.answer(queries, now);
    let stale = plan.snapshot().map(|snapshot| snapshot.world.answer(queries, snapshot.at)).unwrap_or_default();
    let mut stale = stale.into_iter();
    let item = |(index, truth)| {
        let then = stale.next();
        match (plan.lie(index), then) {
            (None | Some(Lie::AtWork), _) => Item { observed_at: now, outcome: truth },
            (Some(Lie::NotFound), _) => Item { observed_at: now, outcome: Outcome::NotFound },
            (Some(Lie::Failed(failure)), _) => Item { observed_at: now, outcome: Outcome::Failed(failure.clone()) },
            (Some(Lie::Stale(snapshot)), then) => Item { observed_at: snapshot.at, outcome: then.unwrap_or(truth) },
        }
    };
    truth.into_iter().enumerate().map(item).collect()
}

#[cfg(test)]
mod tests;
