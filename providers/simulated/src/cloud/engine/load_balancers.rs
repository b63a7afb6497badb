//! The part of the cloud that sells load balancers. A mutation that has arrived goes on without its caller: it takes its turn
//! and its time, and is then made as a whole.
use std::sync::Arc;

use async_trait::async_trait;

use super::{Engine, OVERLAPPING_MUTATIONS};
use crate::cloud::CloudError;
use crate::cloud::faults::plan::{Call, Lie, Plan, Target};
use crate::cloud::load_balancers::kept::Kept;
use crate::cloud::load_balancers::model::{Edit, Found, LoadBalancer, Mark, Search, Wanted};
use crate::cloud::load_balancers::{LoadBalancerApi, Origin};
use crate::cloud::model::Failure;

#[async_trait]
impl LoadBalancerApi for Engine {
    async fn find_load_balancers(&self, search: &Search) -> Result<Found, CloudError> {
        self.admit("FindLoadBalancers").await?;
        let call = Call::FindLoadBalancers { to_change: search.to_change };
        let plan = self.endure_for(call, search.on_behalf_of.clone()).await?;
        Ok(Found { at_work: plan.at_work, load_balancers: self.load_balancers.find(search) })
    }

    async fn put_load_balancer(&self, origin: &Origin, name: &str, wanted: Wanted) -> Result<LoadBalancer, CloudError> {
        self.calls.count("PutLoadBalancer");
        let (service, put) = (service(&wanted.mark), name.to_owned());
        self.mutate(origin, name, Call::PutLoadBalancer, service, move |kept| kept.put(&put, wanted)).await
    }

    async fn delete_load_balancer(&self, origin: &Origin, name: &str, mark: &Mark) -> Result<(), CloudError> {
        self.calls.count("DeleteLoadBalancer");
        let (service, deleted, mark) = (service(mark), name.to_owned(), mark.clone());
        self.mutate(origin, name, Call::DeleteLoadBalancer, service, move |kept| kept.delete(&deleted, &mark)).await
    }

    async fn load_balancers(&self) -> Result<Vec<LoadBalancer>, CloudError> {
        Ok(self.load_balancers.all())
    }

    async fn edit_load_balancer(&self, name: &str, edit: Edit) -> Result<Option<LoadBalancer>, CloudError> {
        let name = name.to_owned();
        blocking(Arc::clone(&self.load_balancers), move |kept| kept.edit(&name, &edit)).await
    }
}

impl Engine {
    async fn mutate<T: Send + 'static>(
        &self,
        origin: &Origin,
        name: &str,
        call: Call,
        service: String,
        work: impl FnOnce(&Kept) -> Result<T, CloudError> + Send + 'static,
    ) -> Result<T, CloudError> {
        let ticket = self.turns.arrive(name, origin);
        if ticket.overlaps {
            self.calls.count(OVERLAPPING_MUTATIONS);
        }
        let cloud = self.clone();
        let mutation = async move {
            let _turn = ticket.turn().await;
            cloud.pass().await?;
            cloud.endure_for(call, Some(service)).await?;
            blocking(cloud.load_balancers, work).await
        };
        tokio::spawn(mutation).await.unwrap_or(Err(CloudError::ShuttingDown))
    }

    /// Lets the faults have their way with a call about the load balancer of one Service, or of any.
    async fn endure_for(&self, call: Call, service: Option<String>) -> Result<Plan, Failure> {
        let plan = self.endure(call, || vec![Target { name: service, zone: None }]).await?;
        match plan.lie(0) {
            Some(Lie::Failed(failure)) => Err(failure.clone()),
            _ => Ok(plan),
        }
    }
}

fn service(mark: &Mark) -> String {
    format!("{}/{}", mark.namespace, mark.service)
}

async fn blocking<T: Send + 'static>(
    kept: Arc<Kept>,
    work: impl FnOnce(&Kept) -> Result<T, CloudError> + Send + 'static,
) -> Result<T, CloudError> {
    tokio::task::spawn_blocking(move || work(&kept)).await.unwrap_or(Err(CloudError::ShuttingDown))
}
