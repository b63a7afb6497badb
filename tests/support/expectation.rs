//! What must hold once nothing happens any more: each Service has exactly what it asks for, and the cloud nothing else.
use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::Service;
use kube::ResourceExt;

use crate::ctl::{Ctl, LoadBalancer};
use crate::kubelet::{Kubelets, is_initialised};
use crate::services::{Services, addresses, is_held, is_served};

/// What one Service shall be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected {
    /// It has its load balancer.
    Balanced {
        /// The port that it listens on.
        port: u16,
        /// Its limit.
        max_qps: Option<u32>,
    },
    /// It is there, and has none.
    Plain,
    /// It is not there.
    Gone,
}

impl Expected {
    /// A load balancer without a limit.
    pub fn balanced(port: u16) -> Self {
        Self::Balanced { port, max_qps: None }
    }
}

/// Both worlds.
#[derive(Clone, Copy)]
pub struct Expectation<'world> {
    /// One.
    pub services: &'world Services,
    /// Its nodes; all of them are to be targets.
    pub kubelets: &'world Kubelets,
    /// The other.
    pub cloud: &'world Ctl,
}

impl Expectation<'_> {
    /// Fails unless all is as expected, and there is nothing else.
    pub async fn holds(&self, expected: &BTreeMap<String, Expected>) -> Result<()> {
        let (services, nodes) = (self.services.all().await?, self.kubelets.all().await?);
        let waiting = nodes.values().filter(|node| !is_initialised(node)).count();
        ensure!(waiting == 0, "{waiting} nodes are not initialised");
        let sold = self.cloud.load_balancers().await?;
        let mut by_uid: BTreeMap<_, _> = sold.iter().map(|one| (one.service_uid.clone(), one)).collect();
        ensure!(by_uid.len() == sold.len(), "a Service has two load balancers");
        for (name, wish) in expected {
            let one = services.get(name).and_then(ResourceExt::uid).and_then(|uid| by_uid.remove(&uid));
            let nodes = nodes.keys().cloned().collect();
            as_expected(*wish, services.get(name), one, &nodes).with_context(|| format!("{name}, which should be {wish:?}"))?;
        }
        ensure!(by_uid.is_empty(), "load balancers were leaked: {:?}", by_uid.values());
        let strangers: Vec<_> = services.keys().filter(|name| !expected.contains_key(*name)).collect();
        ensure!(strangers.is_empty(), "nobody expected {strangers:?}");
        Ok(())
    }
}

fn as_expected(wish: Expected, service: Option<&Service>, one: Option<&LoadBalancer>, nodes: &BTreeSet<String>) -> Result<()> {
    match wish {
        Expected::Gone => ensure!(service.is_none(), "it is still there"),
        Expected::Plain => {
            let service = service.context("it is gone")?;
            ensure!(
                one.is_none() && !is_held(service) && addresses(service).is_empty(),
                "something was left: {one:?}, {service:?}"
            );
        }
        Expected::Balanced { port, max_qps } => {
            let (service, one) = (service.context("it is gone")?, one.context("it has no load balancer")?);
            ensure!(is_served(service) && is_held(service), "it is not served: {:?}", service.status);
            ensure!(addresses(service) == one.addresses, "its addresses are others than {:?}", one.addresses);
            ensure!(one.listeners.iter().map(|listener| listener.port).eq([port]), "it listens on {:?}", one.listeners);
            ensure!(one.listeners[0].node_port == node_port(service), "its node port is another than {:?}", one.listeners);
            ensure!(one.max_qps == max_qps, "its limit is {:?}", one.max_qps);
            ensure!(one.targets.iter().eq(nodes), "its targets are {:?}", one.targets);
        }
    }
    Ok(())
}

fn node_port(service: &Service) -> Option<u16> {
    let ports = service.spec.as_ref().and_then(|spec| spec.ports.as_deref()).unwrap_or_default();
    ports.first().and_then(|port| port.node_port).and_then(|port| u16::try_from(port).ok())
}
