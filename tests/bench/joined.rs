//! Worlds in which many nodes have joined and wait, and what is waited for.
use std::collections::BTreeSet;
use std::fmt::Debug;
use std::time::Instant;

use anyhow::{Result, bail, ensure};
use ccm_test_support::audit::Scope;
use ccm_test_support::kubelet::{is_initialised, names};
use ccm_test_support::services::is_served;
use ccm_test_support::world::World;
use futures::StreamExt;
use k8s_openapi::api::core::v1::{Node, Service};
use kube::api::ListParams;
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, ResourceExt};
use serde::de::DeserializeOwned;

/// Starts an API server and lets nodes join.
pub async fn world(nodes: usize) -> Result<(World, Vec<String>)> {
    let world = World::start().await?;
    let names = names("node", nodes);
    world.kubelets().join(&names).await?;
    Ok((world, names))
}

/// The same with an API server that logs nothing but writes to nodes, and with nodes that are as full as a kubelet makes them if
/// they are to be fat.
pub async fn quiet_world(nodes: usize, fat: bool) -> Result<(World, Vec<String>)> {
    let world = World::audited(Scope::NodeWrites).await?;
    let names = names("node", nodes);
    world.kubelets().join(&names).await?;
    if fat {
        world.kubelets().report_in_full(&names).await?;
    }
    Ok((world, names))
}

/// Fails unless so many nodes are there, all of them initialised. It lists them in pages.
pub async fn check(world: &World, count: usize) -> Result<()> {
    let nodes = Api::<Node>::all(world.admin());
    let (mut initialised, mut params) = (0, ListParams::default().limit(500));
    loop {
        let page = nodes.list(&params).await?;
        initialised += page.items.iter().filter(|node| is_initialised(node)).count();
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => params = params.continue_token(&token),
            None => break,
        }
    }
    ensure!(initialised == count, "{initialised} of {count} nodes are initialised");
    Ok(())
}

/// When the last of so many nodes was seen initialised.
pub async fn all_initialised(world: &World, count: usize) -> Result<Instant> {
    all(Api::<Node>::all(world.admin()), count, is_initialised).await
}

/// When the last of so many Services was seen with an address.
pub async fn all_served(world: &World, count: usize) -> Result<Instant> {
    all(Api::<Service>::all(world.admin()), count, is_served).await
}

/// By a watch, which costs the API server little.
async fn all<K>(api: Api<K>, count: usize, done: impl Fn(&K) -> bool) -> Result<Instant>
where
    K: kube::Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug + Send + 'static,
{
    let mut seen = BTreeSet::new();
    let mut objects = watcher(api, watcher::Config::default()).default_backoff().applied_objects().boxed();
    while let Some(object) = objects.next().await {
        let object = object?;
        if done(&object) {
            seen.insert(object.name_any());
        }
        if seen.len() == count {
            return Ok(Instant::now());
        }
    }
    bail!("the watch ended")
}
