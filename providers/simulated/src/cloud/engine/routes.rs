//! The part of the cloud that has routes. A batch that has arrived goes on without its caller: its destinations take their turns,
//! it takes its time, and is then made item by item, each as a whole.
use std::sync::Arc;

use async_trait::async_trait;
use jiff::Timestamp;

use super::{Engine, OVERLAPPING_MUTATIONS};
use crate::cloud::CloudError;
use crate::cloud::faults::plan::{Call, Lie, Plan, Target as FaultTarget};
use crate::cloud::load_balancers::Origin;
use crate::cloud::model::Failure;
use crate::cloud::routes::RouteApi;
use crate::cloud::routes::model::{Edit, Listed, Listing, Outcome, Removal, Wanted};
use crate::cloud::routes::resolve::{listed, targets};
use crate::cloud::routes::table::{Claim, Record, Table, Terms};

#[async_trait]
impl RouteApi for Engine {
    async fn list_routes(&self) -> Result<Listing, CloudError> {
        self.admit("ListRoutes").await?;
        let list = self.endure(Call::ListRoutes, || vec![FaultTarget::default()]).await?.route_list;
        let now = match &list.stale {
            Some(then) => listed(&then.world, then.routes.all(), then.at),
            None => listed(&self.kept.world(), self.routes.table().all(), Timestamp::now()),
        };
        Ok(Listing {
            observed_at: list.stale.filter(|_| !list.unsaid).map(|then| then.at),
            breaks_off: list.broken,
            routes: if list.empty { Vec::new() } else { now },
        })
    }

    async fn put_routes(&self, origin: &Origin, cluster_uid: &str, wanted: Vec<Wanted>) -> Result<Vec<Outcome>, CloudError> {
        self.calls.count("PutRoutes");
        let nodes = wanted.iter().map(|one| one.machine.node.clone()).collect();
        let destinations = wanted.iter().map(|one| one.destination.trunc().to_string()).collect();
        let (world, cluster_uid) = (self.kept.world(), cluster_uid.to_owned());
        let claim = move |at: usize, table: &mut Table, terms: Terms, records: &mut Vec<Record>| {
            let Some(one) = wanted.get(at) else { return Outcome::Done };
            match targets(&world, std::slice::from_ref(one), Timestamp::now()).pop().flatten() {
                None => Outcome::UnknownMachine,
                Some(target) => {
                    let claim = Claim { cluster_uid: &cluster_uid, destination: one.destination, target };
                    table.claim(terms, &claim, records)
                }
            }
        };
        self.change_routes(origin, Call::PutRoutes, destinations, nodes, claim).await
    }

    async fn remove_routes(&self, origin: &Origin, cluster_uid: &str, gone: Vec<Removal>) -> Result<Vec<Outcome>, CloudError> {
        self.calls.count("RemoveRoutes");
        let nodes = gone.iter().map(|one| one.node.clone()).collect();
        let destinations = gone.iter().map(|one| one.destination.trunc().to_string()).collect();
        let cluster_uid = cluster_uid.to_owned();
        let release = move |at: usize, table: &mut Table, _: Terms, records: &mut Vec<Record>| {
            gone.get(at).map_or(Outcome::Done, |one| table.release(&cluster_uid, one, records))
        };
        self.change_routes(origin, Call::RemoveRoutes, destinations, nodes, release).await
    }

    async fn route_records(&self) -> Result<Vec<Listed>, CloudError> {
        Ok(listed(&self.kept.world(), self.routes.table().all(), Timestamp::now()))
    }

    async fn edit_route(&self, edit: Edit) -> Result<Option<Listed>, CloudError> {
        let kept = Arc::clone(&self.routes);
        let edited = tokio::task::spawn_blocking(move || kept.edit(edit)).await.unwrap_or(Err(CloudError::ShuttingDown))?;
        Ok(edited.and_then(|route| listed(&self.kept.world(), [&route], Timestamp::now()).pop()))
    }
}

impl Engine {
    /// Makes one change for each destination, but for those that a fault hits.
    async fn change_routes(
        &self,
        origin: &Origin,
        call: Call,
        destinations: Vec<String>,
        nodes: Vec<String>,
        change: impl Fn(usize, &mut Table, Terms, &mut Vec<Record>) -> Outcome + Send + 'static,
    ) -> Result<Vec<Outcome>, CloudError> {
        let (cloud, count) = (self.clone(), destinations.len());
        let tickets = self.arrive(origin, destinations);
        let work = async move {
            let mut turns = Vec::with_capacity(tickets.len());
            for ticket in &tickets {
                turns.push(ticket.turn().await);
            }
            cloud.pass().await?;
            let plan = cloud.endure(call, || nodes.into_iter().map(node).collect()).await?;
            let kept = Arc::clone(&cloud.routes);
            let made = move || {
                kept.change(|table, terms, records| {
                    (0..count).map(|at| spoilt(&plan, at).unwrap_or_else(|| change(at, table, terms, records))).collect()
                })
            };
            tokio::task::spawn_blocking(made).await.unwrap_or(Err(CloudError::ShuttingDown))
        };
        tokio::spawn(work).await.unwrap_or(Err(CloudError::ShuttingDown))
    }

    /// A ticket for each destination, in one order for all, so that no two batches wait for each other.
    fn arrive(&self, origin: &Origin, mut destinations: Vec<String>) -> Vec<crate::cloud::load_balancers::turns::Ticket> {
        destinations.sort();
        destinations.dedup();
        let tickets: Vec<_> = destinations.iter().map(|destination| self.destinations.arrive(destination, origin)).collect();
        if tickets.iter().any(|ticket| ticket.overlaps) {
            self.calls.count(OVERLAPPING_MUTATIONS);
        }
        tickets
    }
}

fn node(name: String) -> FaultTarget {
    FaultTarget { name: Some(name), zone: None }
}

/// What a fault makes of an item.
fn spoilt(plan: &Plan, at: usize) -> Option<Outcome> {
    match plan.lie(at)? {
        Lie::AtWork => Some(Outcome::AtWork),
        Lie::Failed(failure) => Some(Outcome::Failed(Failure::clone(failure))),
        Lie::NotFound | Lie::Stale(_) => None,
    }
}
