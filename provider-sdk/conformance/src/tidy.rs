//! The end of a case: what it may have left in the cloud is removed, and the journal says so.
use crate::case::{Checked, Ended, broken};
use crate::cleanup;
use crate::context::Context;
use crate::hooks::Hook;
use crate::journal::{Event, Thing};

use ccm_proto::v1::{ClusterRef, Service};

impl Context {
    /// Notes, before it is made, that the load balancer of this Service may exist.
    pub fn may_make(&self, cluster: &ClusterRef, service: &Service) -> Checked {
        self.note(Event::Made, cluster, Thing::of(service))?;
        self.made.lock().push((cluster.clone(), service.clone()));
        Ok(())
    }

    /// Notes, before it is made, that a route for this destination may exist.
    pub fn may_route(&self, destination: &str) -> Checked {
        self.note(Event::Made, &self.suite.cluster, Thing::Route { destination: destination.to_owned() })?;
        self.routed.lock().push(destination.to_owned());
        Ok(())
    }

    /// Notes that a hook is about to make this machine.
    pub fn may_have_machine(&self, name: &str) -> Checked {
        self.note(Event::Made, &self.suite.cluster, Thing::Machine { name: name.to_owned() })
    }

    /// Deletes a machine that a hook made, if there is a hook for that.
    pub async fn forget_machine(&self, name: &str) -> Checked {
        if self.suite.hooks.has(Hook::DeleteMachine) {
            self.suite.hooks.run(Hook::DeleteMachine, name).await?;
        }
        self.note(Event::Gone, &self.suite.cluster, Thing::Machine { name: name.to_owned() })
    }

    /// Ends the faults of a case that causes any, and removes what the case left.
    pub async fn tidy(&self, faults: bool) -> Checked {
        if faults {
            self.suite.hooks.clear().await?;
        }
        let made = std::mem::take(&mut *self.made.lock());
        for (cluster, service) in made {
            let lead = self.lead_as(self.request_for(&cluster)).await?;
            let gone = cleanup::load_balancer(&self.channel, lead.first.epoch, &cluster, &service).await;
            gone.map_err(|why| broken("LB-20", format!("the load balancer of the case cannot be removed: {why}")))?;
            self.note(Event::Gone, &cluster, Thing::of(&service))?;
        }
        self.tidy_routes().await
    }

    async fn tidy_routes(&self) -> Checked {
        let routed = std::mem::take(&mut *self.routed.lock());
        if routed.is_empty() {
            return Ok(());
        }
        let lead = self.lead().await?;
        let gone = cleanup::routes(&self.channel, lead.first.epoch, &self.suite.cluster, &routed).await;
        gone.map_err(|why| broken("RT-30", format!("the routes of the case cannot be removed: {why}")))?;
        routed.into_iter().try_for_each(|destination| self.note(Event::Gone, &self.suite.cluster, Thing::Route { destination }))
    }

    fn note(&self, event: Event, cluster: &ClusterRef, thing: Thing) -> Checked {
        self.suite.journal.note(event, cluster, thing).map_err(|error| Ended::Stuck(format!("--journal: {error}")))
    }

    fn request_for(&self, cluster: &ClusterRef) -> ccm_proto::v1::LeadRequest {
        ccm_proto::v1::LeadRequest { cluster: Some(cluster.clone()), ..self.lead_request() }
    }
}
