//! The optional methods of the service Instances: keys for all machines, and the watch.
use std::future::pending;

use ccm_provider_sdk::fake::{FakeInstances, FakeProvider, Script};
use ccm_provider_sdk::v1;
use tokio::sync::broadcast;
use tokio::time::timeout;
use tonic::Code;

use crate::fixture::{Fixture, PATIENCE, SHORT, reason, within};

fn key(epoch: u64) -> v1::AddSshKeyToAllInstancesRequest {
    let leadership = Some(v1::Leadership { epoch });
    v1::AddSshKeyToAllInstancesRequest { user: "admin".into(), key_data: b"ssh-ed25519 AAAA".to_vec(), leadership }
}

#[tokio::test]
async fn a_key_is_added_only_for_the_leader_and_once_at_a_time() {
    let script = Script::new(|_| Ok(()));
    script.then_await(|_| pending());
    let instances = FakeInstances { add_ssh_key: Some(script.clone()), ..FakeInstances::default() };
    let fixture = Fixture::of(&FakeProvider { instances: Some(instances), ..FakeProvider::bare() }).await;
    let mut client = fixture.instances();

    assert_eq!(reason(&client.add_ssh_key_to_all_instances(key(1)).await.unwrap_err()), "NOT_LEADING");
    let lead = fixture.lead(1).await;
    for _ in 0..2 {
        let status = client.add_ssh_key_to_all_instances(within(SHORT, key(1))).await.unwrap_err();
        assert_eq!(status.code(), Code::DeadlineExceeded);
    }
    assert_eq!(script.count(), 1);
    drop(lead);
    let _next = fixture.lead(2).await;

    assert!(client.add_ssh_key_to_all_instances(key(2)).await.is_ok());
}

#[tokio::test]
async fn a_watch_brings_changes_until_the_server_ends() {
    let (changes, _) = broadcast::channel(4);
    let instances = FakeInstances { watch: Some(changes.clone()), ..FakeInstances::default() };
    let fixture = Fixture::of(&FakeProvider { instances: Some(instances), ..FakeProvider::bare() }).await;
    let mut watch = fixture.instances().watch_instances(v1::WatchInstancesRequest {}).await.unwrap().into_inner();
    let change = v1::WatchInstancesResponse { node_names: vec!["a".into()], provider_ids: vec![] };

    changes.send(change.clone()).unwrap();
    assert_eq!(watch.message().await.unwrap(), Some(change));

    timeout(PATIENCE, fixture.serving.stop()).await.unwrap().unwrap();
    assert!(matches!(watch.message().await, Ok(None) | Err(_)));
}
