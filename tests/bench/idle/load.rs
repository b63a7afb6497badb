//! What kubelets do all day: a status patch and a lease renewal now and then, each node at its own moment.
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::Result;
use ccm_test_support::kubelet::Kubelets;
use ccm_test_support::world::World;
use futures::{StreamExt, TryStreamExt, stream};
use k8s_openapi::api::coordination::v1::Lease;
use kube::Api;
use kube::api::{Patch, PatchParams, PostParams};
use serde_json::json;
use tokio::time::{Instant, MissedTickBehavior, interval};

/// Where kubelets keep their leases.
const NAMESPACE: &str = "kube-node-lease";

/// Requests at one time, of each kind.
const IN_FLIGHT: usize = 32;

/// How often each node does what.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// Between two status patches.
    pub status: Duration,
    /// Between two renewals of the lease.
    pub lease: Duration,
}

/// The kubelets of these nodes.
pub struct Load {
    kubelets: Kubelets,
    leases: Api<Lease>,
    names: Vec<String>,
    pace: Pace,
    /// Status patches so far.
    pub patches: AtomicU64,
    /// Renewals so far.
    pub renewals: AtomicU64,
}

impl Load {
    /// Creates a lease for each node; nothing is sent after that before [`Load::run`].
    pub async fn prepare(world: &World, names: &[String], pace: Pace) -> Result<Self> {
        let leases: Api<Lease> = Api::namespaced(world.admin(), NAMESPACE);
        let (params, create) = (PostParams::default(), &leases);
        stream::iter(names)
            .map(Ok::<_, anyhow::Error>)
            .try_for_each_concurrent(IN_FLIGHT, |name| {
                let lease = serde_json::from_value(json!({
                    "metadata": { "name": name }, "spec": { "holderIdentity": name, "leaseDurationSeconds": 40 },
                }));
                let params = &params;
                async move {
                    create.create(params, &lease?).await?;
                    Ok(())
                }
            })
            .await?;
        let (patches, renewals) = (AtomicU64::default(), AtomicU64::default());
        Ok(Self { kubelets: world.kubelets(), leases, names: names.to_vec(), pace, patches, renewals })
    }

    /// Goes on for so long. Where the API server is too slow for the pace, less is sent, and the counts show it.
    pub async fn run(&self, period: Duration) -> Result<()> {
        let reports = self.turns(self.pace.status, period).try_for_each_concurrent(IN_FLIGHT, |name| async move {
            self.kubelets.report(std::slice::from_ref(name), true).await?;
            self.patches.fetch_add(1, Ordering::Relaxed);
            Ok(())
        });
        let renewals = self.turns(self.pace.lease, period).try_for_each_concurrent(IN_FLIGHT, |name| async move {
            let renewal = json!({ "spec": { "renewTime": format!("{:.6}", jiff::Timestamp::now()) } });
            self.leases.patch(name, &PatchParams::default(), &Patch::Merge(renewal)).await?;
            self.renewals.fetch_add(1, Ordering::Relaxed);
            Ok(())
        });
        tokio::try_join!(reports, renewals)?;
        Ok(())
    }

    /// The nodes in turn, evenly, each once in every `every`; ends after `period`.
    fn turns(&self, every: Duration, period: Duration) -> impl stream::Stream<Item = Result<&String>> {
        let count = u32::try_from(self.names.len().max(1)).unwrap_or(u32::MAX);
        let mut ticks = interval((every / count).max(Duration::from_micros(1)));
        ticks.set_missed_tick_behavior(MissedTickBehavior::Burst);
        let end = Instant::now() + period;
        stream::unfold((ticks, self.names.iter().cycle()), move |(mut ticks, mut names)| async move {
            ticks.tick().await;
            let name = names.next().filter(|_| Instant::now() < end)?;
            Some((Ok(name), (ticks, names)))
        })
    }
}
