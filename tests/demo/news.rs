//! What happens to the demo's nodes, as the API server tells it: printed at once, and remembered for the checks.
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ccm_test_support::kubelet::{SHUTDOWN, has_taint, is_initialised};
use futures::StreamExt;
use k8s_openapi::api::core::v1::Node;
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, Client, ResourceExt};
use parking_lot::Mutex;
use tokio::task::JoinHandle;

use crate::screen::{Screen, Tone};

/// Nodes of other names are not the demo's.
pub const PREFIX: &str = "ccm-demo-";

/// The story of one node.
#[derive(Clone, Debug)]
pub struct Life {
    joined: Instant,
    /// How long it waited for its taint to go.
    pub initialised: Option<Duration>,
    /// Whether it has the shutdown taint.
    pub shut_down: bool,
    /// Whether it is Ready; absent before the first report.
    ready: Option<bool>,
    /// Whether it was deleted.
    pub deleted: bool,
}

/// All stories so far. It stops listening when dropped.
pub struct News {
    lives: Arc<Mutex<BTreeMap<String, Life>>>,
    listener: JoinHandle<()>,
}

impl News {
    /// Listens from now on.
    pub fn listen(client: Client, screen: Screen) -> Self {
        let lives = Arc::<Mutex<BTreeMap<String, Life>>>::default();
        let told = Arc::clone(&lives);
        let listener = tokio::spawn(async move {
            let mut events = watcher(Api::<Node>::all(client), watcher::Config::default()).default_backoff().boxed();
            while let Some(event) = events.next().await {
                match event {
                    Ok(watcher::Event::Apply(node) | watcher::Event::InitApply(node)) => {
                        changed(&mut told.lock(), &node, &screen);
                    }
                    Ok(watcher::Event::Delete(node)) => deleted(&mut told.lock(), &node, &screen),
                    _ => {}
                }
            }
        });
        Self { lives, listener }
    }

    /// The story of a node, if it ever joined.
    pub fn of(&self, name: &str) -> Option<Life> {
        self.lives.lock().get(name).cloned()
    }

    /// The names of the nodes that are there.
    pub fn present(&self) -> Vec<String> {
        self.lives.lock().iter().filter(|(_, life)| !life.deleted).map(|(name, _)| name.clone()).collect()
    }
}

impl Drop for News {
    fn drop(&mut self) {
        self.listener.abort();
    }
}

fn changed(lives: &mut BTreeMap<String, Life>, node: &Node, screen: &Screen) {
    let name = node.name_any();
    if !name.starts_with(PREFIX) {
        return;
    }
    let life = lives.entry(name.clone()).or_insert_with(|| joined(&name, screen));
    if life.initialised.is_none() && is_initialised(node) {
        let took = life.joined.elapsed();
        life.initialised = Some(took);
        screen.news(&name, Tone::Good, &format!("initialised in {} ms: {}", took.as_millis(), description(node)));
    }
    let ready = is_ready(node);
    if life.ready.replace(ready).is_some_and(|before| before != ready) {
        screen.news(&name, Tone::Neutral, if ready { "kubelet reports Ready" } else { "kubelet reports NotReady" });
    }
    let shut_down = has_taint(node, SHUTDOWN);
    if shut_down != std::mem::replace(&mut life.shut_down, shut_down) {
        let text = if shut_down { "machine stopped: tainted as shut down" } else { "machine runs: shutdown taint removed" };
        screen.news(&name, if shut_down { Tone::Bad } else { Tone::Good }, text);
    }
}

fn joined(name: &str, screen: &Screen) -> Life {
    screen.news(name, Tone::Neutral, "joined, tainted as uninitialized");
    Life { joined: Instant::now(), initialised: None, shut_down: false, ready: None, deleted: false }
}

fn deleted(lives: &mut BTreeMap<String, Life>, node: &Node, screen: &Screen) {
    if let Some(life) = lives.get_mut(&node.name_any()) {
        life.deleted = true;
        screen.news(&node.name_any(), Tone::Bad, "deleted");
    }
}

fn is_ready(node: &Node) -> bool {
    let conditions = node.status.as_ref().and_then(|status| status.conditions.as_deref()).unwrap_or_default();
    conditions.iter().any(|condition| condition.type_ == "Ready" && condition.status == "True")
}

fn description(node: &Node) -> String {
    let label = |key: &str| node.labels().get(key).map_or("?", String::as_str);
    let addresses = node.status.as_ref().and_then(|status| status.addresses.as_deref()).unwrap_or_default();
    let ips: Vec<_> = addresses.iter().filter(|a| a.type_.ends_with("IP")).map(|a| a.address.as_str()).collect();
    format!("{} in {}, {}", label("node.kubernetes.io/instance-type"), label("topology.kubernetes.io/zone"), ips.join(" "))
}
