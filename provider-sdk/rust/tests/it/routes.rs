//! Routes: each item of a batch is answered for itself and serialised by its destination.
use std::sync::Arc;

use ccm_provider_sdk::fake::FakeProvider;
use ccm_provider_sdk::v1::route_result::Outcome;
use ccm_provider_sdk::v1::routes_client::RoutesClient;
use ccm_provider_sdk::{Progress, ProviderError, v1};
use tokio::sync::Semaphore;

use crate::fixture::{Fixture, SHORT, cluster, within};

fn create(cidrs: &[&str]) -> v1::CreateRoutesRequest {
    let route = |cidr: &str| v1::Route { destination_cidr: cidr.into(), ..v1::Route::default() };
    let item =
        |cidr: &&str| v1::CreateRouteItem { key: format!("key of {cidr}"), route: Some(route(cidr)), name_hint: String::new() };
    v1::CreateRoutesRequest {
        cluster: Some(cluster()),
        leadership: Some(v1::Leadership { epoch: 1 }),
        items: cidrs.iter().map(item).collect(),
    }
}

#[tokio::test]
async fn one_route_that_fails_or_takes_long_leaves_the_others_alone() {
    let provider = FakeProvider::whole();
    let routes = provider.routes.clone().unwrap();
    let gate = Arc::new(Semaphore::new(0));
    let entry = Arc::clone(&gate);
    routes.create.always_await(move |(_, route): (String, v1::Route)| {
        let entry = Arc::clone(&entry);
        async move {
            match route.destination_cidr.as_str() {
                "10.0.1.0/24" => Err(ProviderError::quota_exceeded("the table is full")),
                "10.0.2.0/24" => {
                    let _permit = entry.acquire().await;
                    Ok(Progress::Done(()))
                }
                _ => Ok(Progress::Done(())),
            }
        }
    });
    let fixture = Fixture::of(&provider).await;
    let _lead = fixture.lead(1).await;
    let mut client = RoutesClient::new(fixture.channel());
    let request = create(&["10.0.0.0/24", "10.0.1.0/24", "10.0.2.0/24"]);

    let results = client.create_routes(within(SHORT, request)).await.unwrap().into_inner().results;

    assert_eq!(results[0].key, "key of 10.0.0.0/24");
    assert!(matches!(results[0].outcome, Some(Outcome::Done(_))));
    assert!(matches!(&results[1].outcome, Some(Outcome::Error(error)) if error.reason() == v1::ErrorReason::QuotaExceeded));
    assert!(matches!(results[2].outcome, Some(Outcome::InProgress(_))));
    gate.add_permits(1);
    let again = client.create_routes(create(&["10.0.2.0/24"])).await.unwrap().into_inner().results;
    assert!(matches!(again[0].outcome, Some(Outcome::Done(_))));
    assert_eq!(routes.create.count(), 3);
}

#[tokio::test]
async fn a_large_table_comes_whole_in_several_messages() {
    let provider = FakeProvider::whole();
    let table: Vec<v1::Route> = (0..1200).map(|n| v1::Route { name: n.to_string(), ..v1::Route::default() }).collect();
    let sent = table.clone();
    provider.routes.as_ref().unwrap().list.always(move |()| Ok(sent.clone()));
    let fixture = Fixture::of(&provider).await;

    let request = v1::ListRoutesRequest { cluster: Some(cluster()) };
    let mut messages = RoutesClient::new(fixture.channel()).list_routes(request).await.unwrap().into_inner();
    let (mut received, mut count) = (Vec::new(), 0);
    while let Some(message) = messages.message().await.unwrap() {
        received.extend(message.routes);
        count += 1;
    }

    assert_eq!(received, table);
    assert_eq!(count, 3);
}
