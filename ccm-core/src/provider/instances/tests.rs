//! Look-ups over a real socket, answered by the SDK's own server: how fresh an answer is arrives as the provider said it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
use std::time::{Duration, SystemTime};

use ccm_provider_sdk::fake::{FakeInstances, FakeProvider, Serving};
use ccm_provider_sdk::{Lookup as Told, Server};
use tempfile::TempDir;
use tokio::sync::watch;
use tokio_util::task::AbortOnDropHandle;

use crate::model::instance::{Lookup, NodeQuery};
use crate::provider::scripted;
use crate::provider::session::Session;
use crate::provider::{Anyone, Instances as _, Priority};

use super::*;

/// Longer than anything here takes; only a failing test waits for it.
const PATIENCE: Duration = Duration::from_secs(20);

/// Look-ups of a node that has a providerID, one after another, at a provider with these machines.
async fn look_up(machines: &FakeInstances, times: usize) -> Vec<Answer> {
    let (dir, term) = (TempDir::new().unwrap(), watch::Sender::new(None));
    let config = scripted::session_in(dir.path());
    let provider = FakeProvider { instances: Some(machines.clone()), ..FakeProvider::bare() };
    let _serving = Serving::start(Server::new(provider), &config.endpoint.to_string()).await.unwrap();
    let (handle, work) = Session::start(config, Arc::new(Anyone), term.subscribe());
    let _session = AbortOnDropHandle::new(tokio::spawn(work));
    let mut state = handle.state();
    tokio::time::timeout(PATIENCE, state.wait_for(|state| state.ready().is_some())).await.unwrap().unwrap();
    let (batcher, work) = handle.instances();
    let _batches = AbortOnDropHandle::new(tokio::spawn(work));
    let query = NodeQuery { node_name: "n".into(), provider_id: Some("fake://n".into()), ..NodeQuery::default() };
    let mut answers = Vec::new();
    for _ in 0..times {
        answers.push(batcher.look_up(query.clone(), Priority::Lifecycle).await.unwrap());
    }
    answers
}

#[tokio::test]
async fn two_not_found_from_one_reading_of_a_cache_are_as_old_as_that_reading() {
    let (machines, read_at) = (FakeInstances::default(), SystemTime::now() - Duration::from_secs(90));
    machines.get.always(move |_| Ok(Told::not_found().read_at(read_at)));

    let answers = look_up(&machines, 2).await;

    let read_at = Timestamp::try_from(read_at).unwrap();
    assert!(answers.iter().all(|answer| answer.lookup == Lookup::NotFound && answer.observed_at == read_at), "{answers:?}");
    assert_eq!(machines.get.count(), 2, "the provider was asked twice, and read its cloud once");
}

#[tokio::test]
async fn two_not_found_of_a_provider_without_a_cache_are_from_two_readings() {
    let machines = FakeInstances::default();
    machines.get.always(|_| Ok(Told::not_found()));

    let answers = look_up(&machines, 2).await;

    assert!(answers[1].observed_at > answers[0].observed_at, "{answers:?}");
}
