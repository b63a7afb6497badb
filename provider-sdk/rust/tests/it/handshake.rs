//! `GetProviderInfo`: versions, capabilities, and the cluster that is remembered.
use std::sync::Arc;

use ccm_provider_sdk::fake::{FakeLoadBalancers, FakeProvider};
use ccm_provider_sdk::v1::{self, Capability};
use ccm_provider_sdk::{
    CallContext, CurrentNodeName, Description, Instances, LookUpsOnly, Lookup, Parts, Provider, Result, ServeError, Server,
    WithoutSshKeys, WithoutWatch, async_trait,
};
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
    fn parts(self: Arc<Self>) -> Parts {
        Parts::new().instances(self)
    }
}

impl LookUpsOnly for Asker {}

#[async_trait]
impl Instances for Asker {
    async fn get_instance(&self, ctx: &CallContext, _: &v1::InstanceQuery) -> Result<Lookup> {
        self.0.lock().push(ctx.cluster().clone());
        Ok(Lookup::not_found())
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

/// Knows its node, and can neither watch nor put keys on machines.
struct OnANode;

impl Provider for OnANode {
    fn describe(&self) -> Description {
        FakeProvider::default().describe()
    }
    fn parts(self: Arc<Self>) -> Parts {
        Parts::new().instances(self)
    }
}

#[async_trait]
impl Instances for OnANode {
    async fn get_instance(&self, _: &CallContext, _: &v1::InstanceQuery) -> Result<Lookup> {
        Ok(Lookup::not_found())
    }
}

#[async_trait]
impl CurrentNodeName for OnANode {
    async fn current_node_name(&self, _: &CallContext, hostname: &str) -> Result<String> {
        Ok(format!("node-of-{hostname}"))
    }
}

impl WithoutWatch for OnANode {}
impl WithoutSshKeys for OnANode {}

#[tokio::test]
async fn a_method_that_is_written_is_served_and_one_declared_absent_is_not() {
    let fixture = Fixture::of_server(Server::new(OnANode)).await;

    let info = fixture.identity().get_provider_info(handshake()).await.unwrap().into_inner().info.unwrap();
    let request = v1::GetCurrentNodeNameRequest { hostname: "h".into() };
    let name = fixture.instances().get_current_node_name(request).await.unwrap().into_inner().node_name;
    let watch = fixture.instances().watch_instances(v1::WatchInstancesRequest {}).await.unwrap_err();

    let served: Vec<_> = info.capabilities().collect();
    assert_eq!(served, [Capability::Lead, Capability::NodeSets, Capability::Instances, Capability::CurrentNodeName]);
    assert_eq!((name.as_str(), watch.code()), ("node-of-h", Code::Unimplemented));
}
