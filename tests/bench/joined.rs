//! A world in which many nodes have joined and wait.
use std::time::Instant;

use anyhow::{Result, bail};
use ccm_test_support::kubelet::{is_initialised, names};
use ccm_test_support::world::World;
use futures::StreamExt;
use k8s_openapi::api::core::v1::Node;
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, ResourceExt};
use std::collections::BTreeSet;

/// Starts an API server and lets nodes join.
pub async fn world(nodes: usize) -> Result<(World, Vec<String>)> {
    let world = World::start().await?;
    let names = names("node", nodes);
    world.kubelets().join(&names).await?;
    Ok((world, names))
}

/// When the last of so many nodes was seen initialised, by a watch, which costs the API server little.
pub async fn all_initialised(world: &World, count: usize) -> Result<Instant> {
    let mut seen = BTreeSet::new();
    let mut nodes =
        watcher(Api::<Node>::all(world.admin()), watcher::Config::default()).default_backoff().applied_objects().boxed();
    while let Some(node) = nodes.next().await {
        let node = node?;
        if is_initialised(&node) {
            seen.insert(node.name_any());
        }
        if seen.len() == count {
            return Ok(Instant::now());
        }
    }
    bail!("the watch of nodes ended")
}
