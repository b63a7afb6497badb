//! The driver in a world of its own: a scripted API server whose changes it hears of, and a scripted cloud. Time is virtual,
//! and passes when everybody waits. However a test goes, no Service may have two mutating calls at a time.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod apart;
mod cloud;
pub mod fixtures;
mod go;
mod go_nodes;
mod life;
mod limits;
mod order;
mod pauses;
mod presence;
mod restart;
mod targets;
mod trouble;

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use self::cloud::Cloud;
use self::fixtures::{World, config};
use super::{ServiceConfig, run};

struct Running {
    shutdown: CancellationToken,
    task: JoinHandle<()>,
    cloud: Arc<Cloud>,
}

fn start(world: &World) -> Running {
    start_with(world, config())
}

fn start_with(world: &World, config: ServiceConfig) -> Running {
    let shutdown = CancellationToken::new();
    let task = tokio::spawn(run(world.context(), config, shutdown.clone()));
    Running { shutdown, task, cloud: Arc::clone(&world.cloud) }
}

impl Running {
    async fn stop(self) {
        self.shutdown.cancel();
        self.task.await.unwrap();
        self.cloud.assert_one_at_a_time();
    }
}

/// Waits until it is so, an hour of virtual time at most.
async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_hours(1);
    while Instant::now() < end {
        settle().await;
        if is_so() {
            return;
        }
        pass(Duration::from_millis(20)).await;
    }
    panic!("it never came to pass that {what}");
}

/// Lets everybody do what can be done without waiting: time passes only when all wait.
async fn settle() {
    pass(Duration::from_millis(1)).await;
}

async fn pass(time: Duration) {
    tokio::time::sleep(time).await;
}

const SECOND: Duration = Duration::from_secs(1);
