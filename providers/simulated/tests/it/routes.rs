//! Routes over the provider's socket, by the generated client.
use ccm_proto::v1;
use ccm_proto::v1::Capability;
use ccm_proto::v1::route_result::Outcome;
use ccm_proto::v1::routes_client::RoutesClient;
use serde_json::{Value, json};
use tonic::transport::Channel;
use tonic::{Code, Status};

use crate::leading::{Leading, within};
use crate::processes::start_cloud;

mod faults;
mod hand;

const NET: &str = "10.244.1.0/24";

/// The calls about routes, of a core that leads. The provider knows any machine.
struct Routes(Leading);

impl Routes {
    async fn start(args: &[&str]) -> Self {
        Self(Leading::start(&[&["--auto-instances"], args].concat()).await)
    }

    fn client(&self) -> RoutesClient<Channel> {
        RoutesClient::new(self.0.provider.channel.clone())
    }

    fn ctl(&self, args: &[&str]) -> String {
        self.0.provider.ctl(args)
    }

    async fn list(&self) -> Result<Vec<v1::Route>, Status> {
        Ok(self.messages().await?.into_iter().flat_map(|message| message.routes).collect())
    }

    async fn messages(&self) -> Result<Vec<v1::ListRoutesResponse>, Status> {
        let request = v1::ListRoutesRequest { cluster: Some(self.0.cluster.clone()) };
        let mut stream = self.client().list_routes(within(request)).await?.into_inner();
        let mut messages = Vec::new();
        while let Some(message) = stream.message().await? {
            messages.push(message);
        }
        Ok(messages)
    }

    async fn create(&self, routes: &[(&str, &str)]) -> Result<Vec<Outcome>, Status> {
        let routes = routes.iter().map(|(destination, node)| to(destination, node));
        self.create_as(routes).await
    }

    async fn create_as(&self, routes: impl IntoIterator<Item = v1::Route>) -> Result<Vec<Outcome>, Status> {
        let item = |(at, route): (usize, v1::Route)| v1::CreateRouteItem {
            key: at.to_string(),
            name_hint: "uid".into(),
            route: Some(route),
        };
        let request = v1::CreateRoutesRequest {
            cluster: Some(self.0.cluster.clone()),
            leadership: Some(v1::Leadership { epoch: 1 }),
            items: routes.into_iter().enumerate().map(item).collect(),
        };
        let results = self.client().create_routes(within(request)).await?.into_inner().results;
        Ok(results.into_iter().map(|result| result.outcome.unwrap()).collect())
    }

    async fn delete(&self, route: v1::Route) -> Outcome {
        let request = v1::DeleteRoutesRequest {
            cluster: Some(self.0.cluster.clone()),
            leadership: Some(v1::Leadership { epoch: 1 }),
            items: vec![v1::DeleteRouteItem { key: "k".into(), route: Some(route) }],
        };
        let results = self.client().delete_routes(within(request)).await.unwrap().into_inner().results;
        results.into_iter().next().unwrap().outcome.unwrap()
    }

    /// The only route to a destination, as it is listed.
    async fn only(&self, destination: &str) -> v1::Route {
        let mut found: Vec<_> = self.list().await.unwrap();
        found.retain(|route| route.destination_cidr == destination);
        assert_eq!(found.len(), 1, "{found:?}");
        found.pop().unwrap()
    }

    fn there(&self) -> Vec<Value> {
        serde_json::from_str(&self.ctl(&["routes", "--output", "json"])).unwrap()
    }

    fn calls(&self, method: &str) -> u64 {
        self.0.calls(method)
    }
}

/// A route to a node, which a core wants.
fn to(destination: &str, node: &str) -> v1::Route {
    v1::Route { destination_cidr: destination.into(), target_node_name: node.into(), ..v1::Route::default() }
}

fn is_done(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Done(_))
}

fn failure(outcome: &Outcome) -> v1::ErrorReason {
    if let Outcome::Error(error) = outcome { error.reason() } else { panic!("it did not fail: {outcome:?}") }
}

#[tokio::test]
async fn a_route_from_its_creation_to_its_end() {
    let core = Routes::start(&[]).await;
    let both = [(NET, "node-1"), ("fd00:1::/64", "node-1")];
    assert!(core.create(&both).await.unwrap().iter().all(is_done));
    let route = core.only(NET).await;
    let id = route.target_provider_id.clone().unwrap();
    assert!(id.starts_with("simulated://"), "{id}");
    assert_eq!((route.target_node_name.as_str(), route.owner(), route.blackhole), ("node-1", v1::RouteOwner::ThisCluster, false));
    assert_eq!((route.target_description.as_str(), route.target_addresses.len()), (id.as_str(), 0));

    assert!(core.create(&[("10.244.1.9/24", "node-1")]).await.unwrap().iter().all(is_done), "a repeat, spelled otherwise");
    let expected = json!({
        "id": route.name, "destination": NET, "target": id, "node": "node-1", "providerId": id, "clusterUid": "cluster-uid",
        "blackhole": false, "mutations": 1
    });
    assert_eq!(core.there()[0], expected);
    let table = core.ctl(&["routes"]);
    assert!(table.starts_with("ID") && table.contains("fd00:1::/64") && table.contains("active"), "{table}");

    assert!(is_done(&core.delete(route.clone()).await));
    assert!(is_done(&core.delete(route).await), "a route that is gone is a success");
    assert_eq!(core.there().len(), 1);
    assert_eq!((core.calls("CreateRoutes"), core.calls("DeleteRoutes"), core.calls("ListRoutes")), (2, 2, 1));
}

#[tokio::test]
async fn a_creation_replaces_the_clusters_own_route_and_a_stale_deletion_is_a_conflict() {
    let core = Routes::start(&[]).await;
    core.create(&[(NET, "node-1")]).await.unwrap();
    let before = core.only(NET).await;
    core.ctl(&["route", "duplicate", NET, "--node", "node-3"]);
    assert_eq!(core.there().len(), 2);
    assert!(core.create(&[(NET, "node-2")]).await.unwrap().iter().all(is_done));
    assert_eq!(core.only(NET).await.target_node_name, "node-2", "and of duplicates one is left");
    assert_eq!(failure(&core.delete(before).await), v1::ErrorReason::Conflict);
    assert_eq!(core.only(NET).await.target_node_name, "node-2");
}

#[tokio::test]
async fn a_route_of_others_is_neither_replaced_nor_removed() {
    let (_cloud, url) = start_cloud(&["--auto-instances"]);
    let mine = Routes(Leading::of_cluster("mine", &["--cloud", &url]).await);
    let theirs = Routes(Leading::of_cluster("theirs", &["--cloud", &url]).await);
    theirs.create(&[(NET, "node-1")]).await.unwrap();
    mine.ctl(&["route", "add", "192.168.0.0/16"]);
    let before = mine.there();

    assert_eq!(failure(&mine.create(&[(NET, "node-2")]).await.unwrap()[0]), v1::ErrorReason::NotOwned);
    assert!(mine.create(&[(NET, "node-1")]).await.unwrap().iter().all(is_done), "it is as requested, and stays theirs");
    let (one, person) = (mine.only(NET).await, mine.only("192.168.0.0/16").await);
    assert_eq!([one.owner(), person.owner()], [v1::RouteOwner::Other; 2]);
    assert_eq!((person.target_description.as_str(), person.target_provider_id.as_deref()), ("vpn", None));
    for route in [one, person] {
        assert_eq!(failure(&mine.delete(route).await), v1::ErrorReason::NotOwned);
    }
    assert_eq!(mine.there(), before);
}

#[tokio::test]
async fn a_machine_that_is_not_there_is_no_target_and_leaves_a_blackhole() {
    let core = Routes::start(&[]).await;
    core.ctl(&["add", "old", "stopped"]);
    let second = "10.244.2.0/24";
    assert!(core.create(&[(NET, "old"), (second, "stopped")]).await.unwrap().iter().all(is_done));
    core.ctl(&["stop", "stopped"]);
    core.ctl(&["forget", "old"]);

    let stopped = core.only(second).await;
    assert_eq!((stopped.blackhole, stopped.target_node_name.as_str()), (true, "stopped"));
    let gone = core.only(NET).await;
    assert_eq!((gone.blackhole, gone.target_node_name.as_str(), &gone.target_provider_id), (true, "", &None));
    assert!(gone.target_description.starts_with("simulated://"), "{gone:?}");
    assert!(matches!(core.create(&[(NET, "old")]).await.unwrap()[..], [Outcome::TargetNotFound(_)]));
    assert_eq!(core.there().len(), 2);
    assert!(is_done(&core.delete(gone).await), "an unresolved target is known by its description");

    core.ctl(&["add", "old"]);
    let wrong = v1::Route { target_provider_id: Some("simulated://sim-1a/other".into()), ..to(NET, "old") };
    assert!(matches!(core.create_as([wrong]).await.unwrap()[..], [Outcome::TargetNotFound(_)]), "the id alone decides");
}

#[tokio::test]
async fn routes_lead_to_addresses_where_the_flag_says_so() {
    let core = Routes::start(&["--routes-to-addresses=true"]).await;
    core.ctl(&["add", "node-1", "--address", "10.9.0.1"]);
    let address = |text: &str| v1::NodeAddress { r#type: v1::NodeAddressType::InternalIp.into(), address: text.into() };
    let route = |destination| v1::Route { target_addresses: vec![address("10.9.0.1")], ..to(destination, "node-1") };

    let outcomes = core.create_as([route(NET), route("fd00::/64")]).await.unwrap();

    assert!(is_done(&outcomes[0]));
    assert_eq!(failure(&outcomes[1]), v1::ErrorReason::UserConfiguration, "the node has no IPv6 address");
    let listed = core.only(NET).await;
    assert_eq!((listed.target_addresses.clone(), listed.target_node_name.as_str()), (vec![address("10.9.0.1")], "node-1"));
    assert!(is_done(&core.delete(listed).await));
}

#[tokio::test]
async fn kill_9_keeps_routes() {
    let state = tempfile::tempdir().unwrap();
    let mut core = Routes::start(&["--state", state.path().to_str().unwrap()]).await;
    core.create(&[(NET, "node-1"), ("10.244.2.0/24", "node-2")]).await.unwrap();
    core.delete(core.only(NET).await).await;
    core.ctl(&["route", "add", "192.168.0.0/16", "--cluster", "another"]);
    let before = core.there();
    core.0.restart().await;
    assert_eq!(core.there(), before);
}

#[tokio::test]
async fn capabilities_and_limits_are_as_the_flags_say() {
    let lists = |info: &v1::ProviderInfo| info.capabilities.contains(&Capability::Routes.into());
    let core = Routes::start(&["--max-concurrent-route-calls=3", "--route-batches=false"]).await;
    let info = core.0.provider.info().await.unwrap();
    assert!(lists(&info));
    assert_eq!(info.limits.unwrap().max_concurrent_route_calls, Some(3));
    core.create(&[(NET, "node-1"), ("10.244.2.0/24", "node-2")]).await.unwrap();
    assert_eq!(core.calls("CreateRoutes"), 2, "each route is a call of the cloud");

    let core = Routes::start(&["--routes=false"]).await;
    assert!(!lists(&core.0.provider.info().await.unwrap()));
    assert_eq!(core.list().await.unwrap_err().code(), Code::Unimplemented);
}
