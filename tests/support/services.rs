//! Services of type LoadBalancer, as users make, change and delete them.
use std::collections::BTreeMap;

use anyhow::{Result, bail, ensure};
use futures::{StreamExt, TryStreamExt, stream};
use k8s_openapi::api::core::v1::{LoadBalancerIngress, Service, ServicePort, ServiceSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::api::{DeleteParams, ListParams, ObjectMeta, Patch, PatchParams, PostParams};
use kube::{Api, Client, ResourceExt};
use serde_json::{Value, json};

/// Keeps a Service until its load balancer is gone.
pub const FINALIZER: &str = "service.kubernetes.io/load-balancer-cleanup";

/// The class that the finalizer stands for.
pub const CLASS: &str = "ccm-core.dev/load-balancer-class";

/// The condition that says how the load balancer stands.
pub const READY: &str = "LoadBalancerReady";

/// Who tells of load balancers, in events.
pub const CONTROLLER: &str = "service-controller";

/// The most queries a second, as the simulated provider reads it.
pub const MAX_QPS: &str = "simulated.ccm-core.dev/load-balancer-max-qps";

/// Where the simulated provider writes a load balancer's name.
pub const NAME: &str = "simulated.ccm-core.dev/load-balancer-name";

/// Where all of them are.
pub const NAMESPACE: &str = "default";

/// Requests at one time.
const IN_FLIGHT: usize = 32;

/// The Services of the cluster. Clones are the same ones.
#[derive(Clone)]
pub struct Services {
    api: Api<Service>,
}

/// A Service as a user asks for it.
#[derive(Clone, Debug)]
pub struct Wish(Service);

impl Wish {
    /// A load balancer for port 80, and nothing special.
    pub fn new(name: impl Into<String>) -> Self {
        let spec = ServiceSpec {
            type_: Some("LoadBalancer".into()),
            ports: Some(vec![ServicePort { port: 80, protocol: Some("TCP".into()), ..ServicePort::default() }]),
            selector: Some([("app".to_owned(), "web".to_owned())].into()),
            ..ServiceSpec::default()
        };
        Self(Service {
            metadata: ObjectMeta { name: Some(name.into()), ..ObjectMeta::default() },
            spec: Some(spec),
            status: None,
        })
    }

    /// With an annotation.
    #[must_use]
    pub fn annotation(mut self, key: &str, value: &str) -> Self {
        self.0.annotations_mut().insert(key.to_owned(), value.to_owned());
        self
    }

    /// With a finalizer of somebody else's.
    #[must_use]
    pub fn finalizer(mut self, finalizer: &str) -> Self {
        self.0.finalizers_mut().push(finalizer.to_owned());
        self
    }

    /// Of a class.
    #[must_use]
    pub fn class(self, class: &str) -> Self {
        self.spec(|spec| spec.load_balancer_class = Some(class.to_owned()))
    }

    /// With an IPv4 and an IPv6 address.
    #[must_use]
    pub fn dual_stack(self) -> Self {
        self.spec(|spec| {
            spec.ip_family_policy = Some("RequireDualStack".into());
            spec.ip_families = Some(vec!["IPv4".into(), "IPv6".into()]);
        })
    }

    fn spec(mut self, change: impl FnOnce(&mut ServiceSpec)) -> Self {
        change(self.0.spec.get_or_insert_default());
        self
    }
}

impl Services {
    /// Through this client.
    pub fn new(client: Client) -> Self {
        Self { api: Api::namespaced(client, NAMESPACE) }
    }

    /// Makes Services.
    pub async fn create(&self, wishes: impl IntoIterator<Item = Wish>) -> Result<()> {
        let params = PostParams::default();
        self.each(wishes, async |api, wish| api.create(&params, &wish.0).await.map(drop)).await
    }

    /// Makes plain ones of these names.
    pub async fn ask(&self, names: &[String]) -> Result<()> {
        self.create(names.iter().map(Wish::new)).await
    }

    /// Changes them by a merge patch.
    pub async fn merge(&self, names: &[String], patch: &Value) -> Result<()> {
        let (params, patch) = (PatchParams::default(), Patch::Merge(patch));
        self.each(names, async |api, name| api.patch(name, &params, &patch).await.map(drop)).await
    }

    /// Gives them an annotation, or takes it.
    pub async fn annotate(&self, names: &[String], key: &str, value: Option<&str>) -> Result<()> {
        self.merge(names, &json!({ "metadata": { "annotations": { key: value } } })).await
    }

    /// Has them listen on this port only.
    pub async fn listen(&self, names: &[String], port: u16) -> Result<()> {
        self.merge(names, &json!({ "spec": { "ports": [{ "port": port, "protocol": "TCP" }] } })).await
    }

    /// Makes them of another type.
    pub async fn retype(&self, names: &[String], kind: &str) -> Result<()> {
        self.merge(names, &json!({ "spec": { "type": kind } })).await
    }

    /// Deletes them; they go when their finalizers have.
    pub async fn delete(&self, names: &[String]) -> Result<()> {
        let params = DeleteParams::default();
        self.each(names, async |api, name| api.delete(name, &params).await.map(drop)).await
    }

    /// All but the API server's own, by name.
    pub async fn all(&self) -> Result<BTreeMap<String, Service>> {
        let list = self.api.list(&ListParams::default()).await?;
        let ours = list.into_iter().filter(|service| service.name_any() != "kubernetes");
        Ok(ours.map(|service| (service.name_any(), service)).collect())
    }

    /// One.
    pub async fn get(&self, name: &str) -> Result<Service> {
        Ok(self.api.get(name).await?)
    }

    /// Fails unless all of these have an address and say that all is well.
    pub async fn have_addresses(&self, names: &[String]) -> Result<()> {
        let all = self.all().await?;
        let waiting: Vec<_> = names.iter().filter(|name| !all.get(*name).is_some_and(is_served)).collect();
        let some: Vec<_> = waiting.iter().take(3).map(|name| (name, all.get(*name).map(condition))).collect();
        ensure!(waiting.is_empty(), "{} of {} Services have no address, {some:?} for some", waiting.len(), names.len());
        Ok(())
    }

    /// Fails while any of these is there.
    pub async fn gone(&self, names: &[String]) -> Result<()> {
        let all = self.all().await?;
        let left: Vec<_> = names.iter().filter(|name| all.contains_key(*name)).collect();
        ensure!(left.is_empty(), "{} Services are still there, {:?} for some", left.len(), &left[..left.len().min(3)]);
        Ok(())
    }

    /// Fails unless none of these holds anything of a load balancer: no finalizer, no address, no condition, no class.
    pub async fn are_free(&self, names: &[String]) -> Result<()> {
        let all = self.all().await?;
        for name in names {
            match all.get(name) {
                None => bail!("{name} is gone"),
                Some(service) => is_free(service).map_err(|left| left.context(name.clone()))?,
            }
        }
        Ok(())
    }

    async fn each<T>(
        &self,
        items: impl IntoIterator<Item = T>,
        act: impl AsyncFn(&Api<Service>, T) -> kube::Result<()>,
    ) -> Result<()> {
        let act = &act;
        Ok(stream::iter(items).map(Ok).try_for_each_concurrent(IN_FLIGHT, async move |item| act(&self.api, item).await).await?)
    }
}

/// What its status says of where clients reach it.
pub fn ingress(service: &Service) -> &[LoadBalancerIngress] {
    let balancer = service.status.as_ref().and_then(|status| status.load_balancer.as_ref());
    balancer.and_then(|balancer| balancer.ingress.as_deref()).unwrap_or_default()
}

/// Its IP addresses.
pub fn addresses(service: &Service) -> Vec<String> {
    ingress(service).iter().filter_map(|ingress| ingress.ip.clone()).collect()
}

/// The condition of its load balancer.
pub fn condition(service: &Service) -> Option<&Condition> {
    let conditions = service.status.as_ref().and_then(|status| status.conditions.as_deref()).unwrap_or_default();
    conditions.iter().find(|condition| condition.type_ == READY)
}

/// Whether it has an address, and all is well.
pub fn is_served(service: &Service) -> bool {
    !ingress(service).is_empty() && condition(service).is_some_and(|condition| condition.status == "True")
}

/// Whether our finalizer is there.
pub fn is_held(service: &Service) -> bool {
    service.finalizers().iter().any(|finalizer| finalizer == FINALIZER)
}

fn is_free(service: &Service) -> Result<()> {
    ensure!(!is_held(service), "it has the finalizer");
    ensure!(ingress(service).is_empty(), "it has addresses");
    ensure!(condition(service).is_none(), "it has the condition");
    ensure!(!service.annotations().contains_key(CLASS), "it has the annotation {CLASS}");
    Ok(())
}
