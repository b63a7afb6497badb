//! Routes: each item of a batch is answered for itself and serialised by its destination, and mistakes are refused.
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use ccm_provider_sdk::fake::{FakeProvider, FakeRoutes, RawServer};
use ccm_provider_sdk::v1::route_result::Outcome;
use ccm_provider_sdk::v1::routes_client::RoutesClient;
use ccm_provider_sdk::{NewRoute, ProviderError, RouteList, RouteOutcome, v1};
use tokio::sync::Semaphore;
use tonic::transport::Channel;
use tonic::{Code, Status};

use crate::fixture::{Fixture, Lead, SHORT, cluster, endpoint_in, reason, within};

mod batches;

fn route(cidr: &str) -> v1::Route {
    let owner = v1::RouteOwner::ThisCluster.into();
    v1::Route { destination_cidr: cidr.into(), target_node_name: "node".into(), owner, ..v1::Route::default() }
}

fn create(cidrs: &[&str]) -> v1::CreateRoutesRequest {
    let item =
        |cidr: &&str| v1::CreateRouteItem { key: format!("key of {cidr}"), route: Some(route(cidr)), name_hint: String::new() };
    v1::CreateRoutesRequest {
        cluster: Some(cluster()),
        leadership: Some(v1::Leadership { epoch: 1 }),
        items: cidrs.iter().map(item).collect(),
    }
}

fn delete(cidr: &str) -> v1::DeleteRoutesRequest {
    v1::DeleteRoutesRequest {
        cluster: Some(cluster()),
        leadership: Some(v1::Leadership { epoch: 1 }),
        items: vec![v1::DeleteRouteItem { key: "k".into(), route: Some(route(cidr)) }],
    }
}

/// A provider that is led.
struct Led {
    routes: FakeRoutes,
    client: RoutesClient<Channel>,
    lead: Lead,
    fixture: Fixture,
}

impl Led {
    async fn start() -> Self {
        Self::of(FakeRoutes::default()).await
    }

    async fn of(routes: FakeRoutes) -> Self {
        let provider = FakeProvider { routes: Some(routes.clone()), ..FakeProvider::whole() };
        let fixture = Fixture::of(&provider).await;
        let lead = fixture.lead(1).await;
        Self { routes, client: RoutesClient::new(fixture.channel()), lead, fixture }
    }

    async fn create(&self, cidrs: &[&str]) -> Result<Vec<Outcome>, Status> {
        self.create_within(Duration::from_secs(10), cidrs).await
    }

    async fn create_within(&self, timeout: Duration, cidrs: &[&str]) -> Result<Vec<Outcome>, Status> {
        let results = self.client.clone().create_routes(within(timeout, create(cidrs))).await?.into_inner().results;
        let keys: Vec<_> = results.iter().map(|result| result.key.clone()).collect();
        assert_eq!(keys, cidrs.iter().map(|cidr| format!("key of {cidr}")).collect::<Vec<_>>());
        Ok(results.into_iter().filter_map(|result| result.outcome).collect())
    }

    async fn delete(&self, cidr: &str) -> Result<Outcome, Status> {
        let mut results = self.client.clone().delete_routes(delete(cidr)).await?.into_inner().results;
        Ok(results.pop().unwrap().outcome.unwrap())
    }

    /// Closes the stream `Lead`, and leads again with the same epoch.
    async fn lose_the_lead(&mut self) {
        drop(std::mem::replace(&mut self.lead.words, tokio::sync::mpsc::channel(1).0));
        while self.lead.acknowledged().await.is_ok() {}
        self.lead = self.fixture.lead(1).await;
    }

    async fn list(&self) -> Result<Vec<v1::ListRoutesResponse>, Status> {
        list_of(self.client.clone()).await
    }
}

async fn list_of(mut client: RoutesClient<Channel>) -> Result<Vec<v1::ListRoutesResponse>, Status> {
    let mut messages = client.list_routes(v1::ListRoutesRequest { cluster: Some(cluster()) }).await?.into_inner();
    let mut received = Vec::new();
    while let Some(message) = messages.message().await? {
        received.push(message);
    }
    Ok(received)
}

fn is_done(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Done(_))
}

/// Makes each creation wait until it gets a permit.
fn hold_creations(routes: &FakeRoutes) -> Arc<Semaphore> {
    let gate = Arc::new(Semaphore::new(0));
    let entry = Arc::clone(&gate);
    routes.create.always_await(move |_| {
        let entry = Arc::clone(&entry);
        async move {
            entry.acquire().await.unwrap().forget();
            Ok(RouteOutcome::Done)
        }
    });
    gate
}

#[tokio::test]
async fn one_route_that_fails_or_takes_long_leaves_the_others_alone() {
    let led = Led::start().await;
    let gate = Arc::new(Semaphore::new(0));
    let entry = Arc::clone(&gate);
    led.routes.create.always_await(move |new: NewRoute| {
        let entry = Arc::clone(&entry);
        async move {
            match new.route.destination_cidr.as_str() {
                "10.0.1.0/24" => Err(ProviderError::quota_exceeded("the table is full")),
                "10.0.2.0/24" => {
                    let _permit = entry.acquire().await;
                    Ok(RouteOutcome::Done)
                }
                "10.0.3.0/24" => Ok(RouteOutcome::TargetNotFound),
                _ => Ok(RouteOutcome::Done),
            }
        }
    });
    let cidrs = ["10.0.0.0/24", "10.0.1.0/24", "10.0.2.0/24", "10.0.3.0/24"];

    let outcomes = led.create_within(SHORT, &cidrs).await.unwrap();

    assert!(is_done(&outcomes[0]));
    assert!(matches!(&outcomes[1], Outcome::Error(error) if error.reason() == v1::ErrorReason::QuotaExceeded));
    assert!(matches!(outcomes[2], Outcome::InProgress(_)));
    assert!(matches!(outcomes[3], Outcome::TargetNotFound(_)));
    gate.add_permits(1);
    assert!(is_done(&led.create(&["10.0.2.0/24"]).await.unwrap()[0]));
    assert_eq!(led.routes.create.count(), 4);
}

#[tokio::test]
async fn the_same_creation_under_another_spelling_of_its_destination_attaches_to_the_running_one() {
    let led = Led::start().await;
    let gate = hold_creations(&led.routes);

    let both = async { tokio::join!(led.create(&["10.0.1.0/24"]), led.create(&["10.0.1.7/24"])) };
    let (answers, ()) = tokio::join!(both, async {
        led.routes.create.wait_for_calls(1).await;
        gate.add_permits(2);
    });

    assert!(is_done(&answers.0.unwrap()[0]) && is_done(&answers.1.unwrap()[0]));
    assert_eq!(led.routes.create.calls()[0].route.destination_cidr, "10.0.1.0/24", "host bits do not reach the provider");
    assert_eq!(led.routes.create.count(), 1);
}

#[tokio::test]
async fn a_deletion_waits_for_the_creation_of_its_destination_under_another_spelling() {
    let led = Led::start().await;
    let gate = hold_creations(&led.routes);

    let early = led.create_within(SHORT, &["fd00::1:0/112"]).await.unwrap();
    assert!(matches!(early[0], Outcome::InProgress(_)));
    let waiting = led.client.clone().delete_routes(within(SHORT, delete("fd00:0::1:5/112"))).await.unwrap().into_inner();
    assert!(matches!(waiting.results[0].outcome, Some(Outcome::InProgress(_))));
    assert_eq!(led.routes.delete.count(), 0, "the creation still runs");
    gate.add_permits(1);

    assert!(is_done(&led.delete("fd00::1:0/112").await.unwrap()));
}

#[tokio::test]
async fn a_deletion_whose_target_is_not_found_is_a_defect_of_the_provider() {
    let led = Led::start().await;
    led.routes.delete.then(Ok(RouteOutcome::TargetNotFound));

    let outcome = led.delete("10.0.1.0/24").await.unwrap();

    assert!(matches!(outcome, Outcome::Error(error) if error.code == i32::from(Code::Internal)));
}

#[tokio::test]
async fn a_call_fails_by_the_rate_limit_only_if_the_cloud_refuses_every_item() {
    let led = Led::start().await;
    let limited = |seconds| Err(ProviderError::rate_limited("slow down", Some(Duration::from_secs(seconds))));
    led.routes.create.then(limited(2)).then(limited(7));
    let status = led.create(&["10.0.1.0/24", "10.0.2.0/24"]).await.unwrap_err();
    assert_eq!((status.code(), reason(&status).as_str()), (Code::ResourceExhausted, "RATE_LIMITED"));

    led.routes.create.then(limited(2)).then(Ok(RouteOutcome::Done));
    let outcomes = led.create(&["10.0.1.0/24", "10.0.2.0/24"]).await.unwrap();
    assert!(matches!(&outcomes[0], Outcome::Error(error) if error.reason() == v1::ErrorReason::RateLimited));
    assert!(is_done(&outcomes[1]));
}

#[tokio::test]
async fn a_request_that_breaks_the_contract_is_refused_with_the_name_of_the_field() {
    let led = Led::start().await;
    let item = |key: &str, route| v1::CreateRouteItem { key: key.into(), route, name_hint: String::new() };
    let whole = || Some(route("10.0.1.0/24"));
    let table = [
        (vec![], "items:"),
        (vec![item("", whole())], "items[0].key:"),
        (vec![item("k", whole()), item("k", whole())], "items[1].key:"),
        (vec![item("k", None)], "items[0].route:"),
        (vec![item("k", Some(route("")))], "items[0].route.destination_cidr:"),
        (vec![item("k", Some(route("10.0.1.0")))], "items[0].route.destination_cidr:"),
        (
            vec![item("k", Some(v1::Route { target_node_name: String::new(), ..route("10.0.1.0/24") }))],
            "items[0].route.target_node",
        ),
        (vec![item("k", whole()); 101], "items: 101"),
    ];
    for (items, expected) in table {
        let request = v1::CreateRoutesRequest { items, ..create(&[]) };
        let status = led.client.clone().create_routes(request).await.unwrap_err();
        assert_eq!(status.code(), Code::InvalidArgument, "{expected}");
        assert!(status.message().starts_with(expected), "{}", status.message());
    }
    assert_eq!(led.routes.create.count(), 0);
}

#[tokio::test]
async fn a_large_table_comes_whole_in_several_messages_each_with_its_age() {
    let led = Led::start().await;
    let table: Vec<_> = (0..1200).map(|n| v1::Route { name: n.to_string(), ..route("10.0.1.0/24") }).collect();
    let read_at = SystemTime::now() - Duration::from_mins(1);
    led.routes.list.then(Ok(RouteList::from(table.clone()).read_at(read_at)));

    let messages = led.list().await.unwrap();

    assert_eq!(messages.len(), 3);
    assert!(messages.iter().all(|message| message.observed_at == Some(read_at.into())));
    assert_eq!(messages.into_iter().flat_map(|message| message.routes).collect::<Vec<_>>(), table);
}

#[tokio::test]
async fn a_list_that_breaks_the_contract_is_a_defect_of_the_provider_that_names_the_field() {
    let led = Led::start().await;
    let sound = || route("10.0.1.0/24");
    let owner = v1::RouteOwner::Unspecified.into();
    let table = [
        (vec![sound(), route("0/24")], "routes[1].destination_cidr"),
        (vec![v1::Route { owner, ..sound() }], "routes[0].owner"),
        (vec![v1::Route { target_provider_id: Some(String::new()), ..sound() }], "routes[0].target_provider_id"),
    ];
    for (routes, field) in table {
        led.routes.list.then(Ok(routes.into()));
        let status = led.list().await.unwrap_err();
        assert_eq!(status.code(), Code::Internal);
        assert!(status.message().contains(field), "{}", status.message());
    }
    led.routes.list.then(Ok(RouteList::default().read_at(SystemTime::now() + Duration::from_mins(1))));
    assert!(led.list().await.unwrap_err().message().contains("read_at"));
}

#[tokio::test]
async fn a_raw_server_lists_what_its_script_says_and_breaks_off() {
    let dir = tempfile::TempDir::new().unwrap();
    let raw = RawServer::default();
    let message = v1::ListRoutesResponse { routes: vec![route("nonsense")], observed_at: None };
    raw.routes.list.then(vec![Ok(message), Err(Status::unavailable("gone"))]);
    let serving = raw.start(&endpoint_in(&dir).parse().unwrap()).unwrap();

    let status = list_of(RoutesClient::new(serving.endpoint().channel())).await.unwrap_err();

    assert_eq!(status.message(), "gone");
}
