//! What a provider is told while the cloud is limited, lying or slow.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
use std::time::Duration;

use super::*;
use crate::cloud::model::{Action, Spec, State};
use crate::cloud::pace::RateLimit;

async fn cloud(settings: Settings) -> Engine {
    let engine = Engine::start(settings).unwrap();
    change(&engine, Action::Add, &["node-1", "node-2"]).await;
    engine
}

async fn change(engine: &Engine, action: Action, names: &[&str]) {
    let instances = names.iter().map(|name| Spec::named(*name)).collect();
    engine.change(Change { action, instances }).await.unwrap();
}

async fn ask(engine: &Engine, name: &str) -> Result<Item, CloudError> {
    let answer = engine.look_up(&[Query { name: name.into(), provider_id: None }]).await?;
    Ok(answer.items.into_iter().next().unwrap())
}

fn state(item: &Item) -> Option<State> {
    if let Outcome::Found(machine) = &item.outcome { Some(machine.state) } else { None }
}

#[tokio::test]
async fn the_rate_limit_refuses_with_when_to_come_back() {
    let limit = Some(RateLimit { per_second: 0.1, burst: 1 });
    let engine = cloud(Settings { rate_limit: limit, ..Settings::default() }).await;
    ask(&engine, "node-1").await.unwrap();
    let Err(CloudError::Refused(failure)) = ask(&engine, "node-1").await else { panic!("the limit let a call pass") };
    assert_eq!(failure.code, FailureCode::RateLimited);
    assert!(failure.retry_after().unwrap() > Duration::from_secs(5));
    assert_eq!(engine.calls().read()["LookUp"], 2);
}

#[tokio::test(start_paused = true)]
async fn a_batch_takes_the_latency_once() {
    let latency = Latency { base: Duration::from_millis(20), jitter: Duration::ZERO };
    let engine = cloud(Settings { latency, ..Settings::default() }).await;
    let start = Instant::now();
    let queries: Vec<_> = (0..500).map(|n| Query { name: format!("node-{n}"), provider_id: None }).collect();
    engine.look_up(&queries).await.unwrap();
    assert_eq!(start.elapsed(), Duration::from_millis(20));
}

#[tokio::test]
async fn stale_answers_stand_still_and_say_so() {
    let engine = cloud(Settings::default()).await;
    engine.set_fault(FaultSpec::new(FaultName::Stale)).await.unwrap();
    let first = ask(&engine, "node-1").await.unwrap();
    change(&engine, Action::Stop, &["node-1"]).await;
    let second = ask(&engine, "node-1").await.unwrap();
    assert_eq!(first, second);
    assert_eq!(state(&second), Some(State::Running));
    engine.clear_faults(None).await.unwrap();
    let third = ask(&engine, "node-1").await.unwrap();
    assert_eq!(state(&third), Some(State::Stopped));
    assert!(third.observed_at > second.observed_at);
}

#[tokio::test]
async fn not_found_all_is_a_lie_about_the_nodes_it_names() {
    let engine = cloud(Settings::default()).await;
    let spec = FaultSpec { pattern: Some("node-1".into()), ..FaultSpec::new(FaultName::NotFoundAll) };
    engine.set_fault(spec).await.unwrap();
    assert_eq!(ask(&engine, "node-1").await.unwrap().outcome, Outcome::NotFound);
    assert_eq!(state(&ask(&engine, "node-2").await.unwrap()), Some(State::Running));
    assert_eq!(engine.instances(&["node-1".into()]).await.unwrap().len(), 1);
}

#[tokio::test]
async fn another_identity_lasts_until_it_is_cleared() {
    let engine = cloud(Settings::default()).await;
    let honest = engine.info().await.unwrap().cloud_identity;
    engine.set_fault(FaultSpec::new(FaultName::OtherIdentity)).await.unwrap();
    assert_ne!(engine.info().await.unwrap().cloud_identity, honest);
    engine.clear_faults(Some(FaultName::OtherIdentity)).await.unwrap();
    assert_eq!(engine.info().await.unwrap().cloud_identity, honest);
}

#[tokio::test]
async fn a_volume_is_subject_to_faults_too() {
    let mut settings = Settings::default();
    let volume = Volume { id: "vol-1".into(), zone: "sim-1a".into(), labels: std::collections::BTreeMap::default() };
    settings.world.volumes.insert("vol-1".into(), volume.clone());
    let engine = cloud(settings).await;
    assert_eq!(engine.volume("vol-1").await.unwrap(), Some(volume));
    engine.set_fault(FaultSpec::new(FaultName::NotFoundAll)).await.unwrap();
    assert_eq!(engine.volume("vol-1").await.unwrap(), None);
    engine.set_fault(FaultSpec::new(FaultName::ErrorAll)).await.unwrap();
    assert!(engine.volume("vol-1").await.is_err());
}
