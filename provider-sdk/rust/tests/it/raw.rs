//! The raw server of the fakes: that nonsense really crosses the wire.
use ccm_provider_sdk::Endpoint;
use ccm_provider_sdk::fake::RawServer;
use ccm_provider_sdk::v1;
use ccm_provider_sdk::v1::instances_client::InstancesClient;
use tempfile::TempDir;

use crate::fixture::{batch, endpoint_in};

#[tokio::test]
async fn a_raw_server_answers_what_the_sdk_would_never_let_through() {
    let dir = TempDir::new().unwrap();
    let endpoint: Endpoint = endpoint_in(&dir).parse().unwrap();
    let raw = RawServer::default();
    let nonsense = vec![RawServer::running("a"), RawServer::running("a"), RawServer::running("never-asked")];
    raw.batch.then(Ok(v1::BatchGetInstancesResponse { results: nonsense.clone() }));
    let _serving = raw.start(&endpoint).unwrap();

    let answer = InstancesClient::new(endpoint.channel()).batch_get_instances(batch(["a", "b"])).await.unwrap();

    assert_eq!(answer.into_inner().results, nonsense);
    assert_eq!(raw.batch.calls()[0].queries.len(), 2);
}
