//! `ctl route` and `ctl routes`: a hand in the table, and batches that do not get in each other's way.
use super::{NET, Routes, is_done};

#[tokio::test]
async fn a_hand_adds_tags_and_removes_routes() {
    let core = Routes::start(&[]).await;
    let added = core.ctl(&["route", "add", "10.244.1.7/24", "--node", "node-1", "--cluster", "another"]);
    assert!(added.starts_with("added route-") && added.ends_with(" 10.244.1.0/24\n"), "{added}");
    core.ctl(&["route", "mark", NET, "--cluster", "cluster-uid"]);
    assert_eq!((&core.there()[0]["clusterUid"], &core.there()[0]["mutations"]), (&"cluster-uid".into(), &0.into()));
    core.ctl(&["route", "duplicate", NET, "--address", "10.9.0.9"]);
    let refused = core.0.provider.try_ctl(&["route", "remove", NET]);
    let message = String::from_utf8(refused.stderr).unwrap();
    assert!(!refused.status.success() && message.contains("name one by its id"), "{message}");
    for route in core.there() {
        core.ctl(&["route", "remove", route["id"].as_str().unwrap()]);
    }
    assert!(core.there().is_empty());
    let unknown = core.0.provider.try_ctl(&["route", "mark", "ghost"]);
    assert!(String::from_utf8(unknown.stderr).unwrap().contains("no route ghost"));
}

#[tokio::test]
async fn batches_of_one_destination_at_one_time_do_not_overlap_in_the_cloud() {
    let (_cloud, url) = crate::processes::start_cloud(&["--auto-instances", "--latency", "20ms"]);
    let core = Routes(crate::leading::Leading::start(&["--cloud", &url]).await);
    let routes: Vec<_> = (1..50).map(|n| format!("10.244.{n}.0/24")).collect();
    let batch = |node| {
        let batch: Vec<_> = routes.iter().map(|destination| (destination.as_str(), node)).collect();
        let core = &core;
        async move { core.create(&batch).await.unwrap() }
    };

    let (one, two, three) = tokio::join!(batch("node-1"), batch("node-2"), batch("node-1"));

    assert!([one, two, three].iter().flatten().all(is_done));
    assert_eq!(core.there().len(), routes.len());
    let output = crate::processes::program().args(["ctl", "--cloud", &url, "calls"]).output().unwrap();
    let calls: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(calls["OverlappingMutations"], 0, "{calls}");
}
