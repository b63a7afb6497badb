//! Whose a load balancer is: by its mark, never by its name.
use ccm_proto::v1;
use ccm_proto::v1::get_load_balancer_response::Outcome;
use tonic::Code;

use crate::leading::{Leading, nodes, reason, service};
use crate::processes::start_cloud;

#[tokio::test]
async fn somebody_elses_load_balancer_of_the_same_name_is_left_alone() {
    let (_cloud, url) = start_cloud(&[]);
    let mine = Leading::of_cluster("mine", &["--cloud", &url]).await;
    let theirs = Leading::of_cluster("theirs", &["--cloud", &url]).await;
    let web = service("u", &[]);
    theirs.ready(&web, &nodes(&["node-1"])).await;
    let before = mine.there();
    let refused = [mine.ensure(&web, &[]).await.unwrap_err(), mine.plan(&web, &[]).await.unwrap_err()];
    for status in refused {
        assert_eq!((status.code(), reason(&status).as_str()), (Code::FailedPrecondition, "NOT_OWNED"));
        assert!(status.message().contains("of cluster theirs"), "{}", status.message());
    }
    mine.delete(&web).await.unwrap();
    assert_eq!(mine.there(), before, "there was nothing of ours to remove");
    theirs.delete(&web).await.unwrap();
    mine.ready(&web, &[]).await;
}

#[tokio::test]
async fn another_naming_finds_what_the_former_one_made_and_leaks_nothing() {
    let (_cloud, url) = start_cloud(&[]);
    let before = Leading::start(&["--cloud", &url]).await;
    let web = service("u", &[]);
    let made = before.ready(&web, &nodes(&["node-1"])).await;
    let after = Leading::start(&["--cloud", &url, "--load-balancer-naming=service"]).await;
    assert_eq!(after.ready(&web, &nodes(&["node-1"])).await, made);
    after.update(&web, &nodes(&["node-2"])).await.unwrap();
    after.ready(&service("v", &[]), &[]).await;
    let names: Vec<_> = after.there().iter().map(|one| one["name"].as_str().unwrap().to_owned()).collect();
    assert!(names[0] == "au" && names[1].starts_with("kubernetes-default-web-v-"), "{names:?}");
    for uid in ["u", "v"] {
        after.delete(&service(uid, &[])).await.unwrap();
    }
    assert!(after.there().is_empty());
}

#[tokio::test]
async fn an_update_of_nothing_is_a_conflict() {
    let core = Leading::start(&[]).await;
    let status = core.update(&service("u", &[]), &[]).await.unwrap_err();
    assert_eq!((status.code(), reason(&status).as_str()), (Code::Aborted, "CONFLICT"));
}

#[tokio::test]
async fn a_cluster_lists_and_gets_just_its_own() {
    let (_cloud, url) = start_cloud(&[]);
    let mine = Leading::of_cluster("mine", &["--cloud", &url]).await;
    let theirs = Leading::of_cluster("theirs", &["--cloud", &url]).await;
    mine.ready(&service("u", &[]), &[]).await;
    theirs.ready(&service("v", &[]), &[]).await;
    let request = v1::ListLoadBalancersRequest { cluster: Some(mine.cluster.clone()) };
    let mut list = mine.client().list_load_balancers(request).await.unwrap().into_inner();
    let listed = list.message().await.unwrap().unwrap().load_balancers;
    assert_eq!((listed.len(), listed[0].name.as_str(), listed[0].service_uid()), (1, "au", "u"));
    assert_eq!((listed[0].service_namespace(), listed[0].service_name()), ("default", "web-u"));

    let get = async |uid| {
        let request = v1::GetLoadBalancerRequest { cluster: Some(mine.cluster.clone()), service: Some(service(uid, &[])) };
        mine.client().get_load_balancer(request).await.unwrap().into_inner().outcome.unwrap()
    };
    assert!(matches!(get("u").await, Outcome::Found(status) if status.ingress.len() == 1));
    assert!(matches!(get("v").await, Outcome::NotFound(_)));
    assert_eq!((mine.calls("ListLoadBalancers"), mine.calls("GetLoadBalancer")), (1, 2));
}
