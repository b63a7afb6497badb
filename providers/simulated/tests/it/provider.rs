//! The provider over its socket, by the generated client.
use std::time::{Duration, Instant};

use ccm_proto::v1::get_volume_labels_response::Outcome as VolumeOutcome;
use ccm_proto::v1::get_zone_request::Target;
use ccm_proto::v1::get_zone_response::Outcome as ZoneOutcome;
use ccm_proto::v1::instance_result::Outcome;
use ccm_proto::v1::volumes_client::VolumesClient;
use ccm_proto::v1::zones_client::ZonesClient;
use ccm_proto::v1::{Capability, GetVolumeLabelsRequest, GetZoneRequest, InstanceQuery, InstanceState};
use tonic::Code;

use crate::processes::{Provider, eventually, machine, program, start_cloud, state};

#[tokio::test]
async fn the_handshake_says_what_the_provider_is_and_can() {
    let provider = Provider::start(&[]).await;
    let info = provider.info().await.unwrap();
    assert_eq!((info.name.as_str(), info.cloud_identity.as_str()), ("simulated", "simulated://default"));
    assert_eq!(info.limits.unwrap().max_batch_size, Some(500));
    assert_eq!(info.cluster_id.as_deref(), Some("simulated-cluster"));
    for capability in [Capability::Instances, Capability::Zones, Capability::Volumes] {
        assert!(info.capabilities.contains(&capability.into()), "{capability:?}");
    }
}

#[tokio::test]
async fn an_untagged_cloud_reports_no_cluster() {
    let provider = Provider::start(&["--untagged", "--cloud-identity", "simulated://mine"]).await;
    let info = provider.info().await.unwrap();
    assert_eq!((info.cluster_id, info.cloud_identity.as_str()), (None, "simulated://mine"));
}

#[tokio::test]
async fn five_hundred_auto_instances_are_one_call_that_takes_the_latency_once() {
    let provider = Provider::start(&["--auto-instances", "--latency", "200ms"]).await;
    let names: Vec<_> = (0..500).map(|n| format!("node-{n}")).collect();
    let names: Vec<_> = names.iter().map(String::as_str).collect();
    let started = Instant::now();
    let results = provider.batch(&names).await.unwrap();
    assert!(started.elapsed() >= Duration::from_millis(200));
    assert_eq!(results.len(), 500);
    assert!(results.iter().all(|result| state(result) == Some(InstanceState::Running) && result.observed_at.is_some()));
    let first = machine(&results[0]);
    assert!(first.provider_id.starts_with("simulated://sim-1a/i-"), "{}", first.provider_id);
    assert_eq!(first.zone.as_deref(), Some("sim-1a"));
    assert_eq!(provider.ctl(&["calls"]), "{\"BatchGetInstances\":1}\n");
    assert_eq!(provider.ctl(&["calls", "--reset"]), "{\"BatchGetInstances\":1}\n");
    assert_eq!(provider.ctl(&["calls"]), "{\"BatchGetInstances\":0}\n");
}

#[tokio::test]
async fn a_batch_of_501_is_refused() {
    let provider = Provider::start(&["--auto-instances"]).await;
    let names: Vec<_> = (0..501).map(|n| format!("node-{n}")).collect();
    let names: Vec<_> = names.iter().map(String::as_str).collect();
    assert_eq!(provider.batch(&names).await.unwrap_err().code(), Code::InvalidArgument);
}

#[tokio::test]
async fn a_machine_is_seen_from_its_addition_to_its_end() {
    let provider = Provider::start(&[]).await;
    assert_eq!(provider.state("web").await, None);
    provider.ctl(&["add", "web", "--zone", "sim-1c", "--type", "big", "--address", "10.9.8.7", "--state", "pending"]);
    let results = provider.batch(&["web"]).await.unwrap();
    let web = machine(&results[0]);
    assert_eq!(
        (web.state(), web.zone.as_deref(), web.instance_type.as_deref()),
        (InstanceState::Pending, Some("sim-1c"), Some("big"))
    );
    assert_eq!(web.addresses[0].address, "10.9.8.7");
    let steps = [
        ("start", Some(InstanceState::Running)),
        ("stop", Some(InstanceState::Stopped)),
        ("hide", None),
        ("unhide", Some(InstanceState::Stopped)),
        ("terminate", Some(InstanceState::Deleted)),
        ("forget", None),
    ];
    for (command, expected) in steps {
        provider.ctl(&[command, "web"]);
        assert_eq!(provider.state("web").await, expected, "{command}");
    }
}

#[tokio::test]
async fn an_auto_instance_that_was_forgotten_stays_so_until_it_is_added_as_another_machine() {
    let provider = Provider::start(&["--auto-instances"]).await;
    let before = machine(&provider.batch(&["node-1"]).await.unwrap()[0]).provider_id.clone();
    provider.ctl(&["forget", "node-1"]);
    assert_eq!(provider.state("node-1").await, None);
    provider.ctl(&["add", "node-1"]);
    assert_eq!(provider.state("node-1").await, Some(InstanceState::Running));
    let old = InstanceQuery { node_name: "node-1".into(), provider_id: Some(before), ..InstanceQuery::default() };
    assert_eq!(state(&provider.look_up(vec![old]).await.unwrap()[0]), None);
}

#[tokio::test]
async fn a_foreign_provider_id_is_not_mine() {
    let provider = Provider::start(&["--auto-instances"]).await;
    let foreign = InstanceQuery { node_name: "a".into(), provider_id: Some("aws:///i-1".into()), ..InstanceQuery::default() };
    let results = provider.look_up(vec![foreign]).await.unwrap();
    assert!(matches!(results[0].outcome, Some(Outcome::NotMine(_))));
}

#[tokio::test]
async fn a_restart_in_memory_is_the_same_cloud_with_the_same_machines() {
    let mut provider = Provider::start(&["--auto-instances"]).await;
    let before = (provider.info().await.unwrap(), machine(&provider.batch(&["node-1"]).await.unwrap()[0]).clone());
    provider.restart().await;
    let after = (provider.info().await.unwrap(), machine(&provider.batch(&["node-1"]).await.unwrap()[0]).clone());
    assert_eq!(before, after);
}

#[tokio::test]
async fn kill_9_loses_no_change_that_was_acknowledged() {
    let state_directory = tempfile::tempdir().unwrap();
    let mut provider = Provider::start(&["--state", state_directory.path().to_str().unwrap()]).await;
    let identity = provider.info().await.unwrap().cloud_identity;
    assert_ne!(identity, "simulated://default");
    provider.ctl(&["add", "a", "b"]);
    provider.ctl(&["stop", "b"]);
    provider.restart().await;
    assert_eq!(provider.info().await.unwrap().cloud_identity, identity);
    assert_eq!(provider.state("a").await, Some(InstanceState::Running));
    assert_eq!(provider.state("b").await, Some(InstanceState::Stopped));
}

#[tokio::test]
async fn zones_and_volumes_are_answered() {
    let directory = tempfile::tempdir().unwrap();
    let config = directory.path().join("cloud.yaml");
    std::fs::write(&config, "autoInstances: true\nvolumes: [{id: vol-1, zone: sim-1b, labels: {tier: fast}}]").unwrap();
    let provider = Provider::start(&["--config", config.to_str().unwrap()]).await;

    let request = GetZoneRequest { target: Some(Target::NodeName("node-1".into())) };
    let zone = ZonesClient::new(provider.channel.clone()).get_zone(request).await.unwrap().into_inner();
    let Some(ZoneOutcome::Zone(zone)) = zone.outcome else { panic!("{zone:?}") };
    assert_eq!((zone.zone.as_deref(), zone.region.as_deref()), (Some("sim-1b"), Some("sim-1")));

    let request = GetVolumeLabelsRequest {
        name: "pv".into(),
        plugin: "simulated.ccm-core.dev".into(),
        volume_id: "vol-1".into(),
        ..GetVolumeLabelsRequest::default()
    };
    let volume = VolumesClient::new(provider.channel.clone()).get_volume_labels(request).await.unwrap().into_inner();
    let Some(VolumeOutcome::Labels(volume)) = volume.outcome else { panic!("{volume:?}") };
    assert_eq!(volume.labels["topology.kubernetes.io/zone"], "sim-1b");
    assert_eq!(volume.labels["tier"], "fast");
}

#[tokio::test]
async fn a_provider_waits_for_its_cloud_and_outlives_it() {
    let state_directory = tempfile::tempdir().unwrap();
    let state_directory = state_directory.path().to_str().unwrap();
    let (mut cloud, url) = start_cloud(&["--state", state_directory]);
    let provider = Provider::start(&["--cloud", &url]).await;
    provider.ctl(&["add", "a"]);
    assert_eq!(provider.state("a").await, Some(InstanceState::Running));
    cloud.kill();
    assert_eq!(provider.batch(&["a"]).await.unwrap_err().code(), Code::Unavailable);
    let listen = url.trim_start_matches("http://");
    let (_cloud, _) = start_cloud(&["--state", state_directory, "--listen", listen]);
    assert_eq!(provider.state("a").await, Some(InstanceState::Running));
}

#[tokio::test]
async fn health_exits_0_while_the_provider_serves() {
    let provider = Provider::start(&[]).await;
    let endpoint = provider.endpoint().to_string();
    let health = || program().args(["health", "--endpoint", &endpoint]).output().unwrap().status.success();
    assert!(health());
    drop(provider);
    eventually(async || (!health()).then_some(())).await;
}
