//! `GetProviderInfo`: versions, capabilities, and the cluster that is remembered.
use std::sync::Arc;

use ccm_provider_sdk::fake::{FakeLoadBalancers, FakeProvider};
use ccm_provider_sdk::v1::{self, Capability};
use ccm_provider_sdk::{CallContext, Description, Instances, Lookup, Provider, Result, ServeError, Server};
use parking_lot::Mutex;
use tempfile::TempDir;
use tonic::Code;

use crate::fixture::{Fixture, batch, cluster, endpoint_in, handshake, reason};

async fn info(provider: &FakeProvider) -> v1::ProviderInfo {
    let fixture = Fixture::of(provider).await;
    fixture.identity().get_provider_info(handshake()).await.unwrap().into_inner().info.unwrap()
}

#[tokio::test]
async fn the_version_in_common_is_chosen() {
    let info = info(&FakeProvider::default()).await;
    assert_eq!((info.protocol_version.as_str(), info.name.as_str()), ("v1", "fake"));
}

#[tokio::test]
async fn no_version_in_common_is_refused_and_says_what_to_do() {
    let fixture = Fixture::of(&FakeProvider::default()).await;
    let request = v1::GetProviderInfoRequest { protocol_versions: vec!["v9".into()], ..handshake() };

    let status = fixture.identity().get_provider_info(request).await.unwrap_err();

    assert_eq!((status.code(), reason(&status).as_str()), (Code::FailedPrecondition, "PROTOCOL_VERSION_UNSUPPORTED"));
    assert!(status.message().contains("v9") && status.message().contains("upgrade"), "{}", status.message());
}

#[tokio::test]
async fn capabilities_are_those_of_the_parts_that_are_there() {
    let bare: Vec<_> = info(&FakeProvider::bare()).await.capabilities().collect();
    assert_eq!(bare, [Capability::Lead, Capability::NodeSets]);

    let provider = FakeProvider { load_balancers: Some(FakeLoadBalancers::default()), ..FakeProvider::default() };
    let some: Vec<_> = info(&provider).await.capabilities().collect();
    assert_eq!(some, [Capability::Lead, Capability::NodeSets, Capability::Instances, Capability::LoadBalancers]);
}

#[tokio::test]
async fn a_part_that_is_not_there_answers_unimplemented_with_a_reason() {
    let fixture = Fixture::of(&FakeProvider::bare()).await;

    let status = fixture.instances().batch_get_instances(batch(["a"])).await.unwrap_err();

    assert_eq!((status.code(), reason(&status).as_str()), (Code::Unimplemented, "NOT_IMPLEMENTED"));
    assert!(status.message().contains("BatchGetInstances"));
}

#[tokio::test]
async fn an_optional_method_that_is_not_served_answers_unimplemented_too() {
    let fixture = Fixture::of(&FakeProvider::default()).await;

    let status = fixture.instances().watch_instances(v1::WatchInstancesRequest {}).await.unwrap_err();

    assert_eq!((status.code(), reason(&status).as_str()), (Code::Unimplemented, "NOT_IMPLEMENTED"));
}

#[tokio::test]
async fn a_description_that_breaks_the_contract_keeps_the_server_from_starting() {
    let dir = TempDir::new().unwrap();
    let provider = FakeProvider::default();
    provider.describe_as(|description| description.provider_id_prefixes.clear());

    let error = Server::new(provider).endpoint(&endpoint_in(&dir)).bind().await.err().unwrap();

    assert!(matches!(error, ServeError::Description(_)), "{error}");
    assert!(error.to_string().contains("provider_id_prefixes"));
}

/// Remembers the cluster of each call.
#[derive(Clone, Default)]
struct Asker(Arc<Mutex<Vec<v1::ClusterRef>>>);

impl Provider for Asker {
    fn describe(&self) -> Description {
        FakeProvider::default().describe()
    }
    fn instances(&self) -> Option<Arc<dyn Instances>> {
        Some(Arc::new(self.clone()))
    }
}

#[async_trait::async_trait]
impl Instances for Asker {
    async fn get_instance(&self, ctx: &CallContext, _: &v1::InstanceQuery) -> Result<Lookup> {
        self.0.lock().push(ctx.cluster().clone());
        Ok(Lookup::NotFound)
    }
}

#[tokio::test]
async fn later_calls_know_the_cluster_of_the_handshake() {
    let asker = Asker::default();
    let fixture = Fixture::of_server(Server::new(asker.clone())).await;

    fixture.identity().get_provider_info(handshake()).await.unwrap();
    fixture.instances().batch_get_instances(batch(["a"])).await.unwrap();

    assert_eq!(*asker.0.lock(), [cluster()]);
}
